"""What each thing that a shipper sends costs the process that judges it: stage by stage, in this process, on one core.

The costs of a round's tick, block and line are those that explain three loads: ticks alone, the usual fleet, and ten
times its lines. Processor time; the least of several runs.
"""

import gc
import os
import pickle
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path

import msgspec

from benchmarks.costs import resident_of
from benchmarks.fleet_load import SECOND_US, Load, Message, Shipper
from dataflow.kafka_follower import Message as Received
from dataflow.shipped_job import ShippedJob
from dataflow.wire import Arrived, read
from extractors.record import Beat
from state.judge import Judge
from state.track import TRACKS, Track, Views

RUNS = 3
JOBS = 20
LATENESS_US = 5 * SECOND_US
HEARTBEAT_US = 600 * SECOND_US
USUAL = Load(jobs=JOBS, lines=100.0 * JOBS, seconds=30.0)
QUIET, LOUD = msgspec.structs.replace(USUAL, lines=0.0), msgspec.structs.replace(USUAL, lines=1000.0 * JOBS)
SMALL, LARGE, FEW = 10, 160, 5
"""Sources of the jobs whose snapshots and memory are compared, and how many jobs."""
LINES_A_FILE = 24
"""A second and file, so that the last 16 KiB of each are there."""
CALM_SECONDS = 10.0
"""Of nothing but ticks at the end, so that nothing waits to be released."""
Row = tuple[str, str]
_SPOOLS = count()


class Taken(msgspec.Struct):
    """A load that was taken: seconds of each stage, what it was of, and the beats that came of it."""

    messages: int
    blocks: int
    ticks: int
    lines: int
    reading: float
    taking: float
    rounds: float
    beats: list[Beat]


def messages_of(load: Load, shippers: list[Shipper], calm: float = 0.0) -> Iterator[Received]:
    """The messages of a load in the order of a topic; at the end so many seconds of ticks alone."""
    begin_us = int(time.time() * SECOND_US) - int((load.seconds + calm) * SECOND_US)
    for shipper in shippers:
        yield from _keyed(shipper, shipper.begin())
    for turn in range(1, int((load.seconds + calm) / load.round) + 1):
        for shipper in shippers:
            if turn * load.round > load.seconds:
                shipper.hush()
            yield from _keyed(shipper, shipper.round(begin_us + int(turn * load.round * SECOND_US)))


def _keyed(shipper: Shipper, messages: Iterable[Message]) -> Iterator[Received]:
    key = shipper.job.encode()
    return (Received(f"fleet.{topic}", 0, 0, key, *carried) for topic, carried in messages)


class _Jobs(dict[str, ShippedJob]):
    """By name, each made when it is asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __missing__(self, name: str) -> ShippedJob:
        job = self[name] = ShippedJob(name, self._folder / f"spool-{next(_SPOOLS)}", LATENESS_US)
        return job


def taken(load: Load, folder: Path) -> Taken:
    """Reads a load and gives it to its jobs."""
    shippers = [Shipper(number, load) for number in range(load.jobs)]
    messages = list(messages_of(load, shippers))
    begun = time.process_time()
    arrived = [each for each in map(read, messages) if isinstance(each, Arrived)]
    reading = time.process_time() - begun
    jobs, beats = _Jobs(folder), list[Beat]()
    taking = rounds = 0.0
    for each in arrived:
        job = jobs[each.job]
        begun = time.process_time()
        beats += job.take(each)
        took = time.process_time() - begun
        if type(each.what).__name__ == "Tick":
            rounds += took
        else:
            taking += took
    sums = [sum(getattr(shipper.sent, name) for shipper in shippers) for name in ("blocks", "ticks", "lines")]
    return Taken(len(messages), *sums, reading, taking, rounds, beats)


def least(load: Load, folder: Path) -> Taken:
    """The run that cost least."""
    return min((taken(load, folder) for _ in range(RUNS)), key=lambda run: run.reading + run.taking + run.rounds)


def fitted(quiet: Taken, usual: Taken, loud: Taken) -> tuple[float, float, float]:
    """Seconds of a tick, a block and a line in a round."""
    tick = quiet.rounds / quiet.ticks
    rest = [run.rounds - run.ticks * tick for run in (usual, loud)]
    of = usual.blocks * loud.lines - loud.blocks * usual.lines
    block = (rest[0] * loud.lines - rest[1] * usual.lines) / of
    line = (usual.blocks * rest[1] - loud.blocks * rest[0]) / of
    return tick, block, line


def judged(beats: Iterable[Beat]) -> tuple[int, float, float, int]:
    """Beats, seconds of tracks and of judging, records."""
    known: dict[str, tuple[list[Track], Judge]] = {}
    tracking = judging = 0.0
    number = records = 0
    for beat in beats:
        number += 1
        if beat.job not in known:
            known[beat.job] = ([Track(step) for step in TRACKS], Judge(HEARTBEAT_US))
        tracks, judge = known[beat.job]
        views: Views = {}
        begun = time.process_time()
        for track in tracks:
            views = track.fold(beat, views)
        tracked = time.process_time()
        records += 0 if beat.partial else len(judge.weigh(beat, views))
        tracking, judging = tracking + tracked - begun, judging + time.process_time() - tracked
    return number, tracking, judging, records


def standing(sources: int, folder: Path) -> tuple[float, float, float, float]:
    """Of a job of so many sources: seconds of a first snapshot and of one with nothing new, its bytes, its memory."""
    load = msgspec.structs.replace(USUAL, jobs=FEW, sources=sources, lines=float(LINES_A_FILE * sources * FEW))
    gc.collect()
    before = resident_of(os.getpid())
    jobs = _Jobs(folder)
    for each in messages_of(load, [Shipper(number, load) for number in range(FEW)], CALM_SECONDS):
        arrived = read(each)
        assert isinstance(arrived, Arrived)
        jobs[arrived.job].take(arrived)
    gc.collect()
    memory = resident_of(os.getpid()) - before
    costs = [_timed(lambda: [job.snapshot() for job in jobs.values()]) for _ in range(2)]
    size = len(pickle.dumps([job.snapshot() for job in jobs.values()]))
    return costs[0] / FEW, costs[1] / FEW, size / FEW, memory / FEW


def _timed(what: Callable[[], object]) -> float:
    begun = time.process_time()
    what()
    return time.process_time() - begun


def heard(bootstrap_messages: Callable[[], int]) -> tuple[int, float]:
    """Messages, and processor seconds of the client that hears them."""
    begun = time.process_time()
    number = bootstrap_messages()
    return number, time.process_time() - begun


def rows(folder: Path, hear: Callable[[], int]) -> list[Row]:
    """The table. hear hears a topic to its end and gives how many messages there were."""
    _ = least(msgspec.structs.replace(USUAL, seconds=2.0), folder)
    small, large = standing(SMALL, folder), standing(LARGE, folder)
    quiet, usual, loud = (least(load, folder) for load in (QUIET, USUAL, LOUD))
    tick, block, line = fitted(quiet, usual, loud)
    beats, tracking, judging, records = judged(usual.beats)
    number, hearing = heard(hear)
    source = [(b - a) / (LARGE - SMALL) for a, b in zip(small, large, strict=True)]
    job = [a - each * SMALL for a, each in zip(small, source, strict=True)]
    return [
        ("a message: heard by the client", _us(hearing / number)),
        ("a message: read", _us(usual.reading / usual.messages)),
        ("a message: taken", _us(usual.taking / (usual.messages - usual.ticks))),
        ("a tick", _us(tick)),
        ("a block in a round", _us(block)),
        ("a line", _us(line)),
        ("a beat: tracks, judging", f"{_us(tracking / beats)}, {_us(judging / beats)}"),
        ("beats and records of a job and minute", f"{_a_minute(beats):.1f}, {_a_minute(records):.1f}"),
        ("snapshot of a job, and more of each source", f"{job[0] * 1e3:.2f} ms, {source[0] * 1e3:.3f} ms"),
        ("snapshot bytes of a job, and of each source", f"{job[2] / 1e3:.0f} KB, {source[2] / 1e3:.1f} KB"),
        ("memory of a job, and of each source", f"{job[3] * 1e3:.0f} KB, {source[3] * 1e3:.1f} KB"),
    ]


def _a_minute(number: int) -> float:
    return number / JOBS / (USUAL.seconds / 60)


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.1f} µs"
