"""Where a rollout's requests stand between trainer, coordinators and engines: live stacks, coordinator CPU and
staleness. Serves gate A rules 5–6 and gate B rules 3, 5, 6 and 10.

Bounds: the newest dumps of 256 processes, one CPU reading of 64 coordinators, the last 8 steps, the newest failure of
64 asked processes.
"""

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, ClassVar

import msgspec

from extractors.metrics import StepMetrics
from extractors.polls import PollFailed, Process, ProcessesPolled, StacksPolled, Thread
from extractors.record import Evidence, Observation
from extractors.trainer import PhaseFinished
from state.policy import SECOND_US, STACKS_MIN_APART
from state.tracker import AttemptStarted, Tracker
from state.trackers.cpu_share import CpuSample, percent_between
from state.trackers.processes import ProcessRole, process_role
from state.trackers.unanswered import PollFailedSeen

_DUMPS_A_PROCESS = 8
_PROCESSES = 256
_COORDINATORS = 64
_STEPS = 8
_FAILURES = 64
_FRAMES = 24


class StackDump(msgspec.Struct, frozen=True):
    """The informative thread of one process at one moment, innermost frame first."""

    at_us: int
    target: str
    pid: int
    title: str
    role: ProcessRole
    frames: tuple[str, ...]
    evidence: Evidence


class CoordinatorCpu(msgspec.Struct, frozen=True):
    """The share of one core that a coordinator used up to at_us. how says where it comes from."""

    target: str
    pid: int
    percent: float
    how: str
    at_us: int
    evidence: Evidence


class StepTiming(msgspec.Struct, frozen=True):
    """One completed step: its seconds, the seconds of it that waited for the buffer, and the staleness, as its
    metrics line says (or its timers, where there are no metrics: then without staleness and number)."""

    step: int | None
    seconds: float
    waited_seconds: float
    at_us: int
    evidence: Evidence
    staleness_mean: float | None = None
    staleness_max: float | None = None


class ProcessesAsked(msgspec.Struct, frozen=True):
    """The newest procs poll that gave rows: what was asked, and the row that it is quoted by."""

    command: tuple[str, ...]
    at_us: int
    evidence: Evidence


class PipelineView(msgspec.Struct, frozen=True):
    """stacks holds, per process, the newest dump and the one to compare it with: the newest that is a minute older,
    else the one before; in time. steps are oldest first. lifetime_only are coordinators of which a single ps row is
    known, which says nothing of now; asked is the newest procs poll that answered."""

    stacks: tuple[StackDump, ...] = ()
    stack_failures: tuple[PollFailedSeen, ...] = ()
    coordinators: tuple[CoordinatorCpu, ...] = ()
    lifetime_only: int = 0
    asked: ProcessesAsked | None = None
    process_failures: tuple[PollFailedSeen, ...] = ()
    steps: tuple[StepTiming, ...] = ()

    def dumps(self, role: ProcessRole, since_us: int) -> tuple[StackDump, ...]:
        """The dumps of a role that are not older than a time."""
        return tuple(dump for dump in self.stacks if dump.role is role and dump.at_us >= since_us)

    def pairs(self, role: ProcessRole, since_us: int) -> tuple[tuple[StackDump, StackDump], ...]:
        """Per process of a role: two dumps since a time, at least a minute apart, older first."""
        by_process: dict[tuple[str, int], list[StackDump]] = {}
        for dump in self.dumps(role, since_us):
            by_process.setdefault((dump.target, dump.pid), []).append(dump)
        apart = int(STACKS_MIN_APART * SECOND_US)
        return tuple(
            (found[0], found[-1]) for found in by_process.values() if found[-1].at_us - found[0].at_us >= apart
        )


class _Waiting(msgspec.Struct):
    """What the timers said of the step that is under way, and the newest timer line that was counted. A step that
    never waits for a buffer (a synchronous one has none) says nothing of who is the slow side."""

    waited_seconds: float | None = None
    counted: dict[str, int] = {}


class PipelineTracker(Tracker):
    """Stacks and CPU are of the living job; steps are of the attempt. A new attempt forgets all of it."""

    dumps: dict[str, list[StackDump]] = {}
    titles: dict[str, ProcessRole] = {}
    stack_failures: dict[str, PollFailedSeen] = {}
    process_failures: dict[str, PollFailedSeen] = {}
    samples: dict[str, CpuSample] = {}
    coordinators: dict[str, CoordinatorCpu] = {}
    asked: ProcessesAsked | None = None
    metered: list[StepTiming] = []
    timed: list[StepTiming] = []
    waiting: _Waiting = msgspec.field(default_factory=_Waiting)

    def on_attempt(self, seen: Observation) -> None:
        """Forgets what belonged to the life before."""
        self.dumps, self.titles, self.samples, self.coordinators = {}, {}, {}, {}
        self.stack_failures, self.process_failures, self.asked = {}, {}, None
        self.metered, self.timed, self.waiting = [], [], _Waiting()

    def on_stacks(self, seen: Observation) -> None:
        """Keeps the informative thread of a dump."""
        polled: StacksPolled = seen.signal
        key = _key(polled.target, polled.pid)
        role = process_role(polled.title)
        if role is ProcessRole.UNKNOWN:
            role = self.titles.get(key, ProcessRole.UNKNOWN)
        frames = informative_frames(polled.threads)[:_FRAMES]
        dump = StackDump(seen.at_us, polled.target, polled.pid, polled.title, role, frames, seen.evidence)
        self.dumps[key] = [*self.dumps.pop(key, []), dump][-_DUMPS_A_PROCESS:]
        _bound(self.dumps, _PROCESSES)
        self.stack_failures.pop(key, None)

    def on_failure(self, seen: Observation) -> None:
        """Keeps what a stacks or procs probe got instead of an answer."""
        failure: PollFailed = seen.signal
        kept = PollFailedSeen(failure, seen.at_us, seen.evidence)
        if failure.probe == "stacks":
            _renew(self.stack_failures, _key(failure.target, _asked_pid(failure.command)), kept)
        elif failure.probe == "procs":
            _renew(self.process_failures, failure.target, kept)

    def on_processes(self, seen: Observation) -> None:
        """Learns titles, and what each coordinator used since its row before."""
        polled: ProcessesPolled = seen.signal
        self.process_failures.pop(polled.target, None)
        self.asked = ProcessesAsked(polled.command, seen.at_us, seen.evidence)
        for process in polled.processes:
            role = process_role(process.command)
            if role is ProcessRole.UNKNOWN:
                continue
            key = _key(polled.target, process.pid)
            _renew(self.titles, key, role, _PROCESSES)
            if role is ProcessRole.COORDINATOR:
                self._measure(key, polled.target, process, seen)

    def _measure(self, key: str, target: str, process: Process, seen: Observation) -> None:
        if not process.lifetime:
            reading = CoordinatorCpu(target, process.pid, process.cpu_percent, "top", seen.at_us, seen.evidence)
            _renew(self.coordinators, key, reading, _COORDINATORS)
            return
        if process.elapsed_seconds is None:
            return
        now = CpuSample(process.elapsed_seconds, process.cpu_percent / 100 * process.elapsed_seconds)
        before = self.samples.get(key)
        percent = percent_between(before, now)
        if percent is None and before is not None and now.elapsed > before.elapsed:
            return  # still too near: the older row stays the one to compare with
        _renew(self.samples, key, now, _COORDINATORS)
        if percent is not None:
            how = "the difference of two ps samples"
            reading = CoordinatorCpu(target, process.pid, percent, how, seen.at_us, seen.evidence)
            _renew(self.coordinators, key, reading, _COORDINATORS)

    def on_metrics(self, seen: Observation) -> None:
        """Keeps the timing and the staleness of a training step; the same step in a second home replaces it."""
        said: StepMetrics = seen.signal
        if said.kind != "train":
            return
        seconds = _value(said.values, "timing/step")
        waited = _value(said.values, "timing/wait_for_generation_buffer")
        if seconds is None or waited is None:
            return
        step = StepTiming(
            said.step,
            seconds,
            waited,
            seen.at_us,
            seen.evidence,
            _value(said.values, "async/staleness_mean"),
            _value(said.values, "async/staleness_max"),
        )
        if not any(known.step == said.step for known in self.metered):
            self.metered = [*self.metered, step][-_STEPS:]

    def on_phase(self, seen: Observation) -> None:
        """Adds up the timers of the step under way. A line that two homes hold counts once."""
        finished: PhaseFinished = seen.signal
        own_us = seen.evidence.at_us or seen.at_us
        if finished.phase not in ("step", "wait_for_generation_buffer"):
            return
        if own_us <= self.waiting.counted.get(finished.phase, 0):
            return
        self.waiting.counted[finished.phase] = own_us
        if finished.phase == "wait_for_generation_buffer":
            self.waiting.waited_seconds = (self.waiting.waited_seconds or 0.0) + finished.seconds
            return
        if self.waiting.waited_seconds is None:
            return
        step = StepTiming(None, finished.seconds, self.waiting.waited_seconds, seen.at_us, seen.evidence)
        self.timed = [*self.timed, step][-_STEPS:]
        self.waiting.waited_seconds = None

    def view(self) -> PipelineView:
        """What is known of the pipeline now."""
        dumps = [dump for found in self.dumps.values() for dump in _to_compare(found)]
        return PipelineView(
            stacks=tuple(sorted(dumps, key=lambda dump: (dump.at_us, dump.target, dump.pid))),
            stack_failures=tuple(self.stack_failures.values()),
            coordinators=tuple(self.coordinators.values()),
            lifetime_only=sum(1 for key in self.samples if key not in self.coordinators),
            asked=self.asked,
            process_failures=tuple(self.process_failures.values()),
            steps=tuple(self.metered or self.timed),
        )

    FOLDS: ClassVar[Mapping[type, Callable[[Any, Observation], None]]] = {
        AttemptStarted: on_attempt,
        StacksPolled: on_stacks,
        PollFailed: on_failure,
        ProcessesPolled: on_processes,
        StepMetrics: on_metrics,
        PhaseFinished: on_phase,
    }


def informative_frames(threads: tuple[Thread, ...]) -> tuple[str, ...]:
    """The frames of the active thread (the one that holds the GIL first, then the deepest), else of MainThread, else
    of the deepest thread. MainThread idles in Ray's main loop whatever its actor does."""
    active = [thread for thread in threads if thread.status.startswith("active")]
    chosen = active or [thread for thread in threads if thread.name == "MainThread"] or list(threads)
    if not chosen:
        return ()
    return max(chosen, key=lambda thread: ("gil" in thread.status, len(thread.frames))).frames


def _to_compare(found: list[StackDump]) -> list[StackDump]:
    newest = found[-1]
    apart = int(STACKS_MIN_APART * SECOND_US)
    older = [dump for dump in found if newest.at_us - dump.at_us >= apart] or found[:-1]
    return [*older[-1:], newest]


def _value(values: Mapping[str, float], name: str) -> float | None:
    if name in values:
        return values[name]
    return next((value for key, value in values.items() if key.endswith("/" + name)), None)


def _asked_pid(command: tuple[str, ...]) -> int:
    for flag, value in pairwise(command):
        if flag in ("--pid", "-p") and value.isdecimal() and len(value) < 12:
            return int(value)
    return 0


def _key(target: str, pid: int) -> str:
    return f"{target} {pid}"


def _renew(kept: dict[str, Any], key: str, value: Any, bound: int = _FAILURES) -> None:
    kept.pop(key, None)
    kept[key] = value
    _bound(kept, bound)


def _bound(kept: dict[str, Any], bound: int) -> None:
    while len(kept) > bound:
        del kept[next(iter(kept))]
