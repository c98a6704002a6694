"""The flow on one page: shards give beats, tracks fold them in series, the judge speaks, sinks write.

input  jobs        beats of every job, keyed by job
track  freshness   facts, coverage, scheduler, phases, step, cadence, faults, attempts
track  heartbeat   buffer heartbeat, engine subscription
track  bursts      exceptions per 10-minute slot
track  nccl        communicators and ranks
track  resources   gpus, processes, stacks
track  rollouts    trials, duty cycle, dynamics
judge  gates       a gate record when a gate's answer changes, then the verdict
output verdicts
"""

import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import bytewax.operators as op
import msgspec
from bytewax.dataflow import Dataflow
from bytewax.operators import KeyedStream, StatefulBatchLogic
from bytewax.recovery import RecoveryConfig
from bytewax.testing import cluster_main

from dataflow.ending import tell
from dataflow.feed import ReplayFeed, open_feed
from dataflow.opened import READ_BYTES
from dataflow.outcome import Guarded, Outcome
from dataflow.recovery import Refusal, refusal
from dataflow.shards import JobShards, LiveShards, ShippedShard, watched
from dataflow.sinks import InOrder, KeptSinks, Sink, Sinks
from extractors.record import Beat
from state.case import Case
from state.judge import Judge
from state.report import encode
from state.track import TRACKS, Track, Views

if TYPE_CHECKING:
    from dataflow.state_folder import StateFolder

Passing = tuple[Beat, Views]
EPOCH = timedelta(seconds=30)
"""How often a live flow keeps its state: a restart reads so much again at most."""
RETRY_SECONDS = 3.0
"""From a failure of the disk under the recovery to the next try."""


class _TrackLogic(StatefulBatchLogic[Passing, Passing, dict[str, bytes]]):
    """Lifts a track into a stateful operator: a beat passes through and gains the step's views.

    After an error of our own it lets nothing more of the job through.
    """

    def __init__(self, step: str, outcome: Outcome, snapshots: dict[str, bytes] | None) -> None:
        self._track = Track(step, snapshots)
        self._outcome = outcome
        self._broken = False

    def on_batch(self, values: list[Passing]) -> tuple[list[Passing], bool]:
        passed: list[Passing] = []
        for beat, views in () if self._broken else values:
            if beat.fresh or beat.forgotten:
                self._track = Track(self._track.step)
            try:
                passed.append((beat, {} if beat.forgotten else self._track.fold(beat, views)))
            except Exception as error:
                self._outcome.failed(beat.job, error)
                self._broken = True
                break
        return passed, _is_forgotten(values)

    def snapshot(self) -> dict[str, bytes]:
        return self._track.snapshots()


class _JudgeLogic(StatefulBatchLogic[Passing, dict[str, Any], tuple[bytes, list[Case]]]):
    """Lifts the judge into a stateful operator. After an error of our own it says nothing more of the job."""

    def __init__(self, snapshot: tuple[bytes, list[Case]] | None, heartbeat_us: int | None, outcome: Outcome) -> None:
        self._judge = Judge(heartbeat_us)
        if snapshot is not None:
            self._judge = msgspec.msgpack.decode(snapshot[0], type=Judge)
            self._judge.waiting, self._judge.heartbeat_us = list(snapshot[1]), heartbeat_us
        self._heartbeat_us = heartbeat_us
        self._outcome = outcome
        self._broken = False

    def on_batch(self, values: list[Passing]) -> tuple[list[dict[str, Any]], bool]:
        records: list[dict[str, Any]] = []
        for beat, views in () if self._broken else values:
            if beat.fresh or beat.forgotten:
                self._judge = Judge(None if beat.recorded else self._heartbeat_us)
            try:
                records += () if beat.partial or beat.forgotten else self._judge.weigh(beat, views)
            except Exception as error:
                self._outcome.failed(beat.job, error)
                self._broken = True
                break
        return records, _is_forgotten(values)

    def snapshot(self) -> tuple[bytes, list[Case]]:
        return self._judge.snapshot(), list(self._judge.waiting)


def _key(beat: Beat) -> str:
    """What is remembered of a recorded capture is apart from what is remembered of its job live."""
    return f"{beat.job}\0recorded" if beat.recorded else beat.job


def _is_forgotten(values: list[Passing]) -> bool:
    """Whether the engine is to drop what it keeps of the job."""
    return StatefulBatchLogic.DISCARD if values[-1][0].forgotten else StatefulBatchLogic.RETAIN


def build(
    jobs: JobShards | LiveShards | ShippedShard,
    sink: Sink,
    outcome: Outcome,
    heartbeat_us: int | None = None,
    force: Callable[[], None] | None = None,
) -> Dataflow:
    """The flow over these jobs. heartbeat_us is event time; None asks for none. force has the disk keep what was
    written, at the end of each epoch; None where no flow goes on from here."""
    flow = Dataflow("wedgewatch")
    beats = op.input("jobs", flow, jobs)
    passing: KeyedStream[Passing] = op.map("key", beats, lambda beat: (_key(beat), (beat, {})))
    for step in TRACKS:
        passing = op.stateful_batch(f"track_{step}", passing, partial(_TrackLogic, step, outcome))
    records = op.stateful_batch("judge", passing, lambda snapshot: _JudgeLogic(snapshot, heartbeat_us, outcome))
    if force is None:
        op.output("verdicts", op.map("record", records, lambda item: item[1]), Sinks(Guarded(sink, outcome)))
    else:
        op.output("verdicts", records, KeptSinks(Guarded(sink, outcome), force))
    return flow


def run(
    feeds: list[ReplayFeed],
    sink: Sink,
    *,
    workers: int = 1,
    heartbeat_us: int | None = None,
    outcome: Outcome | None = None,
) -> Outcome:
    """Runs the flow to the end of its feeds, or until the outcome is halted. Gives how it ended; raises nothing."""
    outcome = outcome or Outcome()
    cluster_main(  # type: ignore[no-untyped-call]
        build(JobShards(feeds, outcome), sink, outcome, heartbeat_us), [], 0, worker_count_per_proc=workers
    )
    return outcome


def run_live(
    source: Callable[[], LiveShards | ShippedShard],
    sink: Sink,
    outcome: Outcome,
    state: "StateFolder",
    *,
    workers: int = 1,
    heartbeat_us: int | None = None,
    again: Callable[[], str] = lambda: "",
    force: Callable[[], None] = lambda: None,
) -> None:
    """Runs the live flow until the outcome is halted, from where the state stands. Databases that the engine refuses
    are moved aside, a full disk is waited for. When the source ends by itself, again says why all is to be read anew.
    force has the disk keep what the sink was given, before the state says so. Raises StateError."""
    waited = False
    while not outcome.halted:
        try:
            cluster_main(  # type: ignore[no-untyped-call]
                build(source(), sink, outcome, heartbeat_us, force),
                [],
                0,
                epoch_interval=EPOCH,
                recovery_config=RecoveryConfig(state.recovery),  # type: ignore[no-untyped-call]
                worker_count_per_proc=workers,
            )
            if outcome.halted or not (reason := again()):
                return
            tell(f"{reason}; all is read again")
            state.quarantine(reason)
            continue
        except Exception as error:
            why = refusal(error)
            if why is None:
                raise
            if why is Refusal.DAMAGED:
                state.quarantine("the engine can't go on from it")
            elif not waited:
                waited = True
                tell(f"{state.recovery}: the disk is full; the watch goes on when there is room")
        _patience(outcome)


def _patience(outcome: Outcome) -> None:
    """Waits a little, unless the end is asked for."""
    until = time.monotonic() + RETRY_SECONDS
    while time.monotonic() < until and not outcome.halted:
        time.sleep(0.1)


def run_plain(feeds: list[ReplayFeed], sink: Sink, *, heartbeat_us: int | None = None) -> Outcome:
    """The same shards, trackers and judge in a plain loop: the oracle that tests compare the flow with."""
    outcome = Outcome()
    guarded = Guarded(sink, outcome)
    for feed in feeds:
        tracks = [Track(step) for step in TRACKS]
        judge = Judge(heartbeat_us)
        for beat in watched(feed, outcome):
            try:
                views: Views = {}
                for track in tracks:
                    views = track.fold(beat, views)
                records = [] if beat.partial else judge.weigh(beat, views)
            except Exception as error:
                outcome.failed(feed.job, error)
                break
            for record in records:
                guarded.write(record)
    return outcome


def replay_records(
    paths: list[str],
    *,
    workers: int = 1,
    read_size: int = READ_BYTES,
    engine: str = "bytewax",
    heartbeat_us: int | None = None,
) -> list[bytes]:
    """The records of a replay as JSON lines, in order. engine is `bytewax` or `plain`; neither it, nor the workers, nor
    the read size may change a byte. Raises CaptureError or SettingsError; RuntimeError on an error of our own."""
    feeds = [open_feed(path, read_size=read_size) for path in paths]
    lines: list[bytes] = []
    sink = InOrder([feed.job for feed in feeds], _Encoded(lines))
    if engine == "plain":
        outcome = run_plain(feeds, sink, heartbeat_us=heartbeat_us)
    else:
        outcome = run(feeds, sink, workers=workers, heartbeat_us=heartbeat_us)
    if outcome.errors:
        raise RuntimeError(str(outcome.errors))
    return lines


class _Encoded:
    """A sink that keeps the JSON lines."""

    def __init__(self, lines: list[bytes]) -> None:
        self._lines = lines

    def write(self, record: dict[str, Any]) -> None:
        self._lines.append(encode(record))
