"""Builders of observations and cases. A case is made by folding observations, so none can be that no log could give.

Times are seconds after T0. `saw` makes one observation, `case_after` folds them as the flow does, attempts cut.
"""

import importlib
import re
from types import ModuleType
from typing import Any

import msgspec

from extractors.polls import JobState, StatePolled
from extractors.record import Evidence, Observation, Origin, SourceKind, SourceSeen

T0 = 1_784_534_400_000_000
"""2026-07-20T08:00:00Z, in microseconds."""

JOB = "/alice/rl-demo"
ACTOR_LOG = "ray_session_logs/rank0-node-a/worker-1.err"

TRACKERS = (
    "facts",
    "coverage",
    "scheduler",
    "phases",
    "freshness",
    "faults",
    "restarts",
    "nccl",
    "flights",
    "heartbeat",
    "engines",
    "gpus",
    "pipeline",
    "rollouts",
    "duty_cycle",
    "bursts",
    "dynamics",
)


def us(at_seconds: float) -> int:
    """The time, in microseconds since the epoch, that stands so many seconds after T0."""
    return T0 + round(at_seconds * 1_000_000)


def saw(
    at_seconds: float,
    signal: Any,
    *,
    source: str = "finelog.log",
    line: int | None = None,
    quote: str = "",
    pattern: str | None = None,
    repeated: int = 1,
    own_seconds: float | None = None,
    actor: str = "",
    pid: int = 0,
    host: str = "",
    rank: int | None = None,
    attempt: int = 0,
    task: str = "",
) -> Observation:
    """One observation. own_seconds is the line's own time, where it is not the effective one."""
    name = pattern or pattern_of(signal)
    number = line if line is not None else 1 + int(at_seconds * 10)
    evidence = Evidence(
        signal=name,
        source=source,
        line=number,
        offset=number * 100,
        at_us=us(at_seconds if own_seconds is None else own_seconds),
        quote=quote or f"{type(signal).__name__} {signal}",
    )
    origin = Origin(task=task, attempt=attempt, actor=actor, pid=pid, host=host, rank=rank)
    return Observation(signal, evidence, us(at_seconds), name, origin, repeated)


def pattern_of(signal: Any) -> str:
    """The name of a catalogued pattern that reads such a signal (by cause, for a fault), else the signal's own name."""
    for entry in _catalogue():
        for sample in entry.samples.values():
            if type(sample) is type(signal) and getattr(sample, "cause", "") == getattr(signal, "cause", ""):
                return str(entry.name)
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(signal).__name__).lower()


def _catalogue() -> tuple[Any, ...]:
    from extractors.catalogue import CATALOGUE

    return tuple(CATALOGUE.by_name.values())


def polled(at_seconds: float, state: JobState | str, **said: Any) -> Observation:
    """A state poll that succeeded, as polls/state.jsonl holds it."""
    word = JobState(state)
    quote = f"/alice/rl-demo state={word} " + " ".join(f"{key}={value}" for key, value in said.items())
    return saw(at_seconds, StatePolled(word, **said), source="polls/state.jsonl", quote=quote.strip())


def reading(
    kind: SourceKind = SourceKind.AGGREGATED, source: str = "finelog.log", at_seconds: float = 0
) -> Observation:
    """A file of this home begins to be read."""
    return saw(at_seconds, SourceSeen(kind), source=source)


def trackers() -> dict[str, Any]:
    """One fresh tracker of each kind, by the name of its view in a case."""
    return {name: _tracker_class(importlib.import_module(f"state.trackers.{name}"))() for name in TRACKERS}


def _tracker_class(module: ModuleType) -> type[Any]:
    from state.tracker import Tracker

    own = [
        found
        for found in vars(module).values()
        if isinstance(found, type) and issubclass(found, Tracker) and found.__module__ == module.__name__
    ]
    if len(own) != 1:
        raise LookupError(f"{module.__name__} has {len(own)} trackers, one is wanted")
    return own[0]


def fold(memory: dict[str, Any], observation: Observation) -> None:
    """Lets every tracker, whose matter it is, fold one observation."""
    for tracker in memory.values():
        every = type(tracker).EVERY
        if every is not None:
            every(tracker, (observation,))
        folding = tracker.FOLDS.get(type(observation.signal))
        if folding is not None:
            folding(tracker, observation)


def case_after(*observations: Observation, now: float | None = None, job: str = JOB) -> Any:
    """The case after these observations in order, at `now` (the last one's time by default)."""
    from state.attempts import AttemptCutter
    from state.case import Case

    memory, cutter = trackers(), AttemptCutter()
    for observation in observations:
        started = cutter.observe(observation)
        if started is not None:
            fold(memory, msgspec.structs.replace(observation, signal=started, pattern="attempt_started"))
        fold(memory, observation)
        for tracker in memory.values():
            tracker.tick(observation.at_us)
    newest = max((seen.at_us for seen in observations), default=T0)
    now_us = newest if now is None else us(now)
    for tracker in memory.values():
        tracker.tick(now_us)
    return Case(job=job, now_us=now_us, **{name: tracker.view() for name, tracker in memory.items()})


def polls(
    state: JobState | str, *, since: float = 0, until: float, every: float = 60, **said: Any
) -> list[Observation]:
    """State polls of one state, at a fixed interval."""
    times = range(round(since), round(until) + 1, round(every))
    return [polled(at, state, **said) for at in times]


def started(at_seconds: float, phase: str, **where: Any) -> Observation:
    """The trainer opens a phase."""
    from extractors.trainer import PhaseStarted

    return saw(at_seconds, PhaseStarted(phase), quote=f"Started: '{phase}'", **{"pid": 77, **where})


def finished(at_seconds: float, phase: str, seconds: float, **where: Any) -> Observation:
    """The trainer closes a phase."""
    from extractors.trainer import PhaseFinished

    quote = f"Finished: '{phase}', time cost: {seconds:.2f}s"
    return saw(at_seconds, PhaseFinished(phase, seconds), quote=quote, **{"pid": 77, **where})


def both_homes() -> list[Observation]:
    """The aggregated log and one policy actor's file begin to be read."""
    return [reading(), reading(SourceKind.ACTOR, ACTOR_LOG)]


def in_time(*observations: Observation) -> list[Observation]:
    """Observations in the order of the stream."""
    return sorted(observations, key=lambda seen: seen.at_us)
