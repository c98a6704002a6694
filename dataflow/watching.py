"""`wedgewatch watch`: the flow live, until it is asked to end. It resumes where it stopped."""

import os
import stat
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from dataflow.capture import CaptureError, open_capture, shown
from dataflow.ending import end, halting, tell, unusable
from dataflow.flow import run_live
from dataflow.health import Health, lag_of
from dataflow.homes import JOB_FILE
from dataflow.job_rows import JobLag
from dataflow.lag import Watched
from dataflow.live_clock import AnyClock
from dataflow.live_job import LiveJob, place_of
from dataflow.outcome import Outcome, SettingsError
from dataflow.probes import ProbePool
from dataflow.probing import Probing
from dataflow.settings import load_job
from dataflow.shards import SHARDS, LiveShards, ShippedShard
from dataflow.share import WHOLE, Share
from dataflow.state_folder import StateError, StateFolder, held
from dataflow.watch_outputs import Outputs, mixed, outputs_of
from extractors.catalogue import CATALOGUE
from state.track import TRACKS

if TYPE_CHECKING:
    from dataflow.kafka_settings import Brokers
    from dataflow.shipped_jobs import ShippedJobs, Snapshot
    from dataflow.verdict_topic import VerdictTopic

ROUND_SECONDS = 1.0
"""From one look of the watcher at itself to the next."""
PROBES_WITHIN = 1.0
"""Seconds that probes have to end; the whole watch has two."""
_CODE = ("extractors", "state", "dataflow")


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user asked for. Times are microseconds; lateness is how long a line may be on its way."""

    captures: tuple[str, ...]
    job_toml: Path | None
    store: Path
    layout: str | None
    out: Path | None
    log_folder: Path | None
    heartbeat_us: int
    lateness_us: int
    workers: int
    clock: AnyClock
    brokers: "Brokers | None" = None
    share: Share = WHOLE


@dataclass(slots=True)
class _Watch:
    """The jobs that are watched now, for who reports on them from another thread."""

    asked: Asked
    state: StateFolder
    probing: Probing
    jobs: Mapping[str, Watched] = field(default_factory=dict)
    lost: str = ""

    def source(self, outcome: Outcome) -> LiveShards | ShippedShard:
        """The captures, each as it stands, or what shippers send: new for each run of the engine."""
        asked = self.asked
        if asked.brokers is not None:
            self.lost = ""
            return ShippedShard(lambda kept: self._shipped(kept, outcome), outcome, lambda: bool(self.lost))
        names: dict[str, str] = {}
        places = (asked.job_toml, self.state.journal, asked.lateness_us, self.probing, asked.clock, names)
        jobs = {place_of(path): LiveJob(path, *places) for path in asked.captures}
        self.jobs = jobs
        return LiveShards(jobs, asked.clock, outcome, tell)

    def lose(self) -> None:
        """The brokers lost verdicts: who says all again is the flow, from its beginning."""
        self.lost = "the brokers lost the verdicts that stood there"

    def _shipped(self, kept: "Snapshot | None", outcome: Outcome) -> "ShippedJobs":
        from dataflow.shipped_jobs import ShippedJobs

        asked = self.asked
        assert asked.brokers is not None
        spool = self.state.folder / "spool"
        told = (spool, asked.lateness_us, outcome, tell)
        jobs = ShippedJobs(asked.brokers, *told, owns=asked.share.has, clock=asked.clock, kept=kept)
        self.jobs = jobs.jobs
        return jobs

    def lags(self) -> list[JobLag]:
        """How the watcher stands with each job."""
        now_us = self.asked.clock()
        return [lag_of(job, now_us) for job in list(self.jobs.values())]


def watch(asked: Asked) -> NoReturn:
    """Watches until SIGINT or SIGTERM, and ends then with exit code 0; with 2 where it can't begin."""
    outcome = Outcome()
    try:
        with halting(outcome, lives=True):
            names = _names(asked) if asked.brokers is None else None
            if asked.out is not None and (why := mixed(asked.out, asked.layout)):
                unusable(why)
            if asked.brokers is not None:
                _knock(asked.brokers)
            with held(asked.store, _fingerprint(asked)) as state:
                _run(asked, names, state, outcome)
    except StateError as error:
        unusable(str(error))
    except OSError as error:
        unusable(f"{error.filename or asked.store}: cannot be used: {error.strerror or error}")
    if outcome.signal and not outcome.errors:
        sys.exit(0)
    outcome.signal = 0
    end(outcome, str(asked.out or "standard output"), 0)


def _run(asked: Asked, names: set[str] | None, state: StateFolder, outcome: Outcome) -> None:
    pool = ProbePool(clock=asked.clock)
    watched = _Watch(asked, state, Probing(pool, tell, asked.lateness_us))
    places = (asked.layout, asked.out, asked.log_folder)
    try:
        topic = _topic(asked, watched)
        with outputs_of(state, asked.store, *places, names, watched.lags, topic) as outputs:
            if outputs.mended:
                state.quarantine(outputs.mended)
            for note in state.notes:
                tell(note)
            state.notes.clear()
            with _rounds(watched, outputs, outcome):
                run_live(
                    lambda: watched.source(outcome),
                    outputs.sink,
                    outcome,
                    state,
                    workers=asked.workers,
                    heartbeat_us=asked.heartbeat_us,
                    again=lambda: watched.lost,
                    force=outputs.force,
                )
    finally:
        watched.probing.stop(PROBES_WITHIN)


def _knock(brokers: "Brokers") -> None:
    """Ends the command where the brokers never let this user in; those that are away are waited for."""
    from dataflow.kafka import BrokerError, Trouble
    from dataflow.kafka_topics import topics_of

    try:
        with topics_of(brokers):
            pass
    except BrokerError as error:
        if error.trouble is Trouble.DENIED:
            unusable(str(error))


def _topic(asked: Asked, watched: _Watch) -> "VerdictTopic | None":
    if asked.brokers is None:
        return None
    from dataflow.verdict_topic import VerdictTopic

    return VerdictTopic(asked.brokers, tell, watched.lose, asked.share.has)


@contextmanager
def _rounds(watched: _Watch, outputs: Outputs, outcome: Outcome) -> Iterator[None]:
    """Once a second: what probes ended, what waits to be written, how the watcher fares."""
    ended = threading.Event()
    health = Health(watched.state.folder, os.getpid())

    def go_round() -> None:
        unwritten = ""
        while not ended.wait(ROUND_SECONDS):
            watched.probing.hear()
            try:
                outputs.retry()
            except OSError as error:
                outcome.unwritable = outcome.unwritable or error
            try:
                health.write(list(watched.jobs.values()), watched.asked.clock())
                unwritten = ""
            except OSError as error:
                if not unwritten:
                    unwritten = f"{watched.state.folder}: health.json can't be written: {error.strerror}"
                    tell(unwritten)

    thread = threading.Thread(target=go_round, name="rounds", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(ROUND_SECONDS / 2)


def _names(asked: Asked) -> set[str]:
    """The names that the jobs may have. Ends the command over captures that can't be watched."""
    names: set[str] = set()
    named: dict[str, str] = {}
    if "-" in asked.captures:
        unusable("-: standard input can't be watched; a replay reads it")
    if len({os.path.realpath(path) for path in asked.captures}) < len(asked.captures):
        unusable("a capture is named twice; name each once")
    for path in asked.captures:
        _look(path, asked)
        job, sure = _job_of(path, asked.job_toml)
        if sure and named.setdefault(job, path) != path:
            unusable(f"{path}: is of the job {job}, as {named[job]} is; watch one of them, or give each its own id")
        names |= {job, shown(os.path.basename(os.path.abspath(path)))}
    return names - {""}


def _look(path: str, asked: Asked) -> None:
    """Ends the command over a path that can't be watched, or from which the outputs are not apart."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        if not Path(path).absolute().parent.is_dir():
            unusable(f"{path}: its folder is not there, so that nothing can come; check the path")
    else:
        if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
            unusable(f"{path}: is neither a folder nor a file, and can't be watched")
    for place in (asked.store, asked.out, asked.log_folder):
        if place is not None and place.resolve().is_relative_to(Path(path).resolve()):
            unusable(f"{place}: lies in the capture {path}, into which nothing is written; name another place")


def _job_of(path: str, job_toml: Path | None) -> tuple[str, bool]:
    """The name of a capture's job, and whether it is sure: a folder's name is not."""
    toml = job_toml or Path(path) / JOB_FILE
    try:
        if toml.exists() and (id := load_job(toml).facts.id):
            return id, True
        capture = open_capture(path)
    except SettingsError as error:
        unusable(error.message)
    except CaptureError:
        return "", False
    return capture.job_id, capture.job_id_from != "name"


def _fingerprint(asked: Asked) -> str:
    """What would write the state: this very code and these patterns, of these topics. Another one begins anew, from the
    logs."""
    digest = blake2b(digest_size=16)
    root = Path(__file__).resolve().parent.parent
    for path in sorted(path for folder in _CODE for path in (root / folder).rglob("*.py")):
        digest.update(path.read_bytes())
    topics = "" if asked.brokers is None else f"; topics {asked.brokers.prefix} {asked.share}"
    own = f"; own patterns {CATALOGUE.written}" if CATALOGUE.written else ""
    return f"steps {' '.join(TRACKS)}; {SHARDS} shards; code {digest.hexdigest()}{topics}{own}\n"
