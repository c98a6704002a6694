"""The live probes of all jobs: they run in processes of their own, on their own timers, and are recorded in `polls/`.

Nothing here blocks who asks. A probe that fails in whatever way is a record like any other: what could not be had is
evidence.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from dataflow.guardian import Guardian
from dataflow.opened import reason
from dataflow.outcome import told
from dataflow.poll_files import append_record, poll_record
from dataflow.probe_run import Ran, run_command
from dataflow.settings import Settings
from dataflow.timers import Series, Timers

MOST_PROBES = 8
"""Probes that run at once, over all jobs: each is a client of a control plane."""
MOST_SYNCS = 4
"""Syncs that run at once; they take minutes, and probes don't wait for them."""
MOST_REMEMBERED = 10_000
SYNC = "sync"


@dataclass(frozen=True, slots=True)
class ProbedJob:
    """A job whose probes run: its capture's folder, and its job.toml."""

    job: str
    folder: Path
    settings: Settings


@dataclass(frozen=True, slots=True)
class Polled:
    """A run that has ended. elapsed is seconds, printed bytes. record is its line in polls/, with the newline;
    unwritten says why it is not there, and is empty where it is. began_us is when it began, as its record says.
    unbegun says that there was no process: the command is not there, or can't be run."""

    job: str
    probe: str
    target: str
    exit: int | None
    error: str
    elapsed: float
    printed: int
    record: bytes
    unwritten: str = ""
    began_us: int = 0
    unbegun: bool = False


def _wall_us() -> int:
    return time.time_ns() // 1000


class ProbePool:
    """Runs the probes and syncs of jobs from `start` to `stop`. clock gives microseconds UTC, for the records."""

    def __init__(
        self,
        *,
        clock: Callable[[], int] = _wall_us,
        most_probes: int = MOST_PROBES,
        most_syncs: int = MOST_SYNCS,
    ) -> None:
        self._clock = clock
        self._guardian = Guardian()
        self._stopping = threading.Event()
        self._ended: deque[Polled] = deque(maxlen=MOST_REMEMBERED)
        self._running: dict[int, tuple[str, int]] = {}
        self._lanes = (_Lane(self, most_probes), _Lane(self, most_syncs))

    def start(self, jobs: Iterable[ProbedJob]) -> None:
        """Begins with all probes of the jobs at once. May be called again with further jobs."""
        probes, syncs = self._lanes
        for job in jobs:
            for series in series_of(job):
                (syncs if series.probe == SYNC else probes).add(series)

    def poll(self) -> list[Polled]:
        """The runs that have ended since the last call, in the order in which they did; the newest ones, where nobody
        has asked for long."""
        return [self._ended.popleft() for _ in range(len(self._ended))]

    def began_us(self, job: str) -> int | None:
        """When the oldest probe of a job that runs now began; None where none does. Syncs are not counted."""
        return min((began for name, began in list(self._running.values()) if name == job), default=None)

    def due(self) -> float | None:
        """Seconds until the next run; None where all are running, or there are none."""
        waits = [wait for lane in self._lanes if (wait := lane.wait()) is not None]
        return min(waits, default=None)

    def stop(self, timeout: float = 2.0) -> None:
        """Ends what runs, and returns within so many seconds. What was broken off is not recorded: it failed of us."""
        until = time.monotonic() + timeout
        self._stopping.set()
        for lane in self._lanes:
            lane.wake()
        for lane in self._lanes:
            lane.join(until - min(0.3, timeout / 4))
        self._guardian.close()
        for lane in self._lanes:
            lane.join(until)

    @property
    def stopping(self) -> bool:
        """Whether no more is to be run."""
        return self._stopping.is_set()

    def run(self, series: Series) -> bool:
        """One run, recorded. Gives whether it failed; called by the lanes."""
        at_us = self._clock()
        if series.probe != SYNC:
            self._running[id(series)] = (series.job, at_us)
        try:
            return self._run(series, at_us)
        finally:
            self._running.pop(id(series), None)

    def _run(self, series: Series, at_us: int) -> bool:
        try:
            ran = run_command(series.command, series.folder, series.timeout, self._guardian, self._stopping.is_set)
        except Exception as error:
            ran = Ran(None, f"internal error: {told(error)}")
        if ran is None:
            return False
        record = poll_record(at_us, series.probe, series.target, series.command, ran)
        unwritten = ""
        try:
            append_record(series.folder, series.probe, record)
        except (OSError, ValueError) as error:
            unwritten = reason(error)
        printed = len(ran.stdout) + len(ran.stderr) + sum(ran.dropped.values())
        came_to = (ran.exit, ran.error, ran.elapsed, printed, record, unwritten)
        self._ended.append(Polled(series.job, series.probe, series.target, *came_to, at_us, ran.unbegun))
        return ran.exit != 0 or bool(ran.error)


class _Lane:
    """Threads that run one kind of command, each one at a time. They share the timers."""

    def __init__(self, pool: ProbePool, most: int) -> None:
        self._pool = pool
        self._most = most
        self._timers = Timers()
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._series = 0

    def add(self, series: Series) -> None:
        with self._changed:
            self._timers.add(series, time.monotonic())
            self._series += 1
            if len(self._threads) < min(self._most, self._series):
                thread = threading.Thread(target=self._work, name=f"probes-{len(self._threads)}", daemon=True)
                self._threads.append(thread)
                thread.start()
            self._changed.notify()

    def wait(self) -> float | None:
        with self._changed:
            return self._timers.wait(time.monotonic())

    def wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def join(self, until: float) -> None:
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _work(self) -> None:
        while (series := self._next()) is not None:
            began = time.monotonic()
            failed = self._pool.run(series)
            with self._changed:
                self._timers.ended(series, began, time.monotonic(), failed)
                self._changed.notify()

    def _next(self) -> Series | None:
        """The next run, once it is due; None at the end."""
        with self._changed:
            while not self._pool.stopping:
                now = time.monotonic()
                series = self._timers.take(now)
                if series is not None:
                    return series
                self._changed.wait(self._timers.wait(now))
        return None


def series_of(job: ProbedJob) -> list[Series]:
    """What is to run for a job: its sync, and each probe at each of its targets."""
    sync = job.settings.sync
    found = [Series(job.job, job.folder, SYNC, "", sync.command, sync.every, sync.timeout)] if sync else []
    for probe in job.settings.probes:
        for target, command in probe.commands():
            found.append(Series(job.job, job.folder, probe.name, target, command, probe.every, probe.timeout))
    return found
