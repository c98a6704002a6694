"""What each vLLM engine holds, and the fleet together. Serves gate B rules 6–8, 10 and its need of a subscription.

An engine is told by its process (pid and host) and tag; where a line names no process, by its file and tag. The
aggregated log is a de-duplicated sample of the engines' lines while an actor's own file has them all: the same line in
both counts once, and silence means something only of an engine whose own file is read. Bounds: 1,024 engines, 12
minutes of samples at least 5 s apart each.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import msgspec

from extractors.record import Evidence, Observation, SourceKind, SourceSeen
from extractors.vllm import AGGREGATED, EngineLoad
from state.policy import GENERATION_WINDOW, SECOND_US
from state.tracker import AttemptStarted, Tracker

_ENGINES = 1024
_KEPT_US = int((GENERATION_WINDOW + 120) * SECOND_US)
_SPACING_US = 5 * SECOND_US
_ECHO_US = 60 * SECOND_US
"""The driver's echo of a line comes within Ray's de-duplication window and what clocks differ by."""
_SAMPLED_HOMES = (SourceKind.AGGREGATED, SourceKind.POD, SourceKind.SLURM)


class EngineSample(msgspec.Struct, frozen=True, array_like=True):
    """One statistics line: requests, percent of the KV cache, tokens per second."""

    at_us: int
    running: int
    waiting: int
    kv_percent: float | None
    prompt_rate: float
    generation_rate: float

    @property
    def busy(self) -> bool:
        """Whether the engine held any request."""
        return self.running > 0 or self.waiting > 0

    def says_the_same(self, other: "EngineSample") -> bool:
        """Whether both hold the same figures, whenever they were printed."""
        return (
            self.generation_rate == other.generation_rate
            and self.prompt_rate == other.prompt_rate
            and self.running == other.running
            and self.waiting == other.waiting
            and self.kv_percent == other.kv_percent
        )


class FleetLoad(msgspec.Struct, frozen=True):
    """The sums over all engines at one moment; kv_percent is the fullest engine's."""

    running: int
    waiting: int
    kv_percent: float
    prompt_rate: float
    generation_rate: float


class EngineState(msgspec.Struct, frozen=True):
    """One engine. complete says that a home with all its lines is read. last_busy is its newest line with a request
    in it; window holds its lines of the last 10 min and the one before them, oldest first."""

    name: str
    actor: str
    pid: int
    host: str
    tag: str
    complete: bool
    last: EngineSample
    evidence: Evidence
    last_busy: EngineSample | None
    last_busy_evidence: Evidence | None
    window: tuple[EngineSample, ...]

    def at(self, at_us: int) -> EngineSample | None:
        """What the engine last said at a time."""
        return next((sample for sample in reversed(self.window) if sample.at_us <= at_us), None)

    def since(self, from_us: int) -> tuple[EngineSample, ...]:
        """Its lines since a time."""
        return tuple(sample for sample in self.window if sample.at_us >= from_us)


class EnginesView(msgspec.Struct, frozen=True):
    """The engines that spoke in this attempt, by name."""

    engines: tuple[EngineState, ...] = ()

    @property
    def newest(self) -> EngineState | None:
        """The engine that spoke last."""
        return max(self.engines, key=lambda engine: engine.last.at_us, default=None)

    def load(self, at_us: int) -> FleetLoad:
        """The fleet's sums as of a time within the window. A silent engine counts with its last line: V1 falls silent
        after a line of zeros."""
        said = [sample for engine in self.engines if (sample := engine.at(at_us)) is not None]
        return FleetLoad(
            running=sum(sample.running for sample in said),
            waiting=sum(sample.waiting for sample in said),
            kv_percent=max((sample.kv_percent or 0.0 for sample in said), default=0.0),
            prompt_rate=sum(sample.prompt_rate for sample in said),
            generation_rate=sum(sample.generation_rate for sample in said),
        )


class _Engine(msgspec.Struct):
    actor: str
    pid: int
    host: str
    tag: str
    complete: bool
    last: EngineSample
    evidence: Evidence
    busy: EngineSample | None
    busy_evidence: Evidence | None
    window: list[EngineSample]


class EnginesTracker(Tracker):
    """The engines of the attempt. sampled are the sources in which Ray's de-duplication leaves lines out."""

    engines: dict[str, _Engine] = {}
    sampled: list[str] = []

    def on_attempt(self, seen: Observation) -> None:
        """Forgets the engines of the life before."""
        self.engines = {}

    def on_source(self, seen: Observation) -> None:
        """Notes the sources that hold a sample only."""
        found: SourceSeen = seen.signal
        if found.kind in _SAMPLED_HOMES and seen.evidence.source not in self.sampled:
            self.sampled = [*self.sampled, seen.evidence.source][-_ENGINES:]

    def on_load(self, seen: Observation) -> None:
        """Folds a statistics line into its engine, once."""
        said: EngineLoad = seen.signal
        sample = EngineSample(
            seen.at_us, said.running, said.waiting, said.kv_percent, said.prompt_rate, said.generation_rate
        )
        complete = seen.evidence.source not in self.sampled
        key = self._key_of(seen, sample, complete)
        if key is None:
            return
        engine = self.engines.get(key)
        if engine is None:
            self._meet(key, seen, sample, complete)
            return
        engine.complete = engine.complete or complete
        if sample.at_us <= engine.last.at_us or _echoes(sample, engine):
            return
        engine.last, engine.evidence = sample, seen.evidence
        if sample.busy:
            engine.busy, engine.busy_evidence = sample, seen.evidence
        if sample.at_us - engine.window[-1].at_us >= _SPACING_US:
            engine.window.append(sample)

    def _meet(self, key: str, seen: Observation, sample: EngineSample, complete: bool) -> None:
        if len(self.engines) >= _ENGINES:
            return
        origin, line = seen.origin, seen.evidence
        self.engines[key] = _Engine(
            actor=origin.actor,
            pid=origin.pid,
            host=origin.host or origin.task,
            tag=seen.signal.engine,
            complete=complete,
            last=sample,
            evidence=line,
            busy=sample if sample.busy else None,
            busy_evidence=line if sample.busy else None,
            window=[sample],
        )

    def _key_of(self, seen: Observation, sample: EngineSample, complete: bool) -> str | None:
        """The engine that a line is of; None where several could be meant and their own files hold the line anyway.
        The aggregated log names an address where an actor's file is in a node's folder: the pid joins them."""
        origin, tag = seen.origin, seen.signal.engine
        place = origin.host or origin.task or ("" if origin.pid else seen.evidence.source)
        own = f"{place} {origin.pid} {tag}"
        if own in self.engines or not origin.pid:
            return own
        twins = [
            key
            for key, engine in self.engines.items()
            if engine.pid == origin.pid and engine.tag == tag and engine.complete is not complete
        ]
        if len(twins) > 1:
            said = [key for key in twins if any(sample.says_the_same(known) for known in self.engines[key].window)]
            if not said and not complete:
                return None
            twins = said[:1]
        if not twins:
            return own
        if complete:
            engine = self.engines.pop(twins[0])
            engine.host, engine.actor = origin.host or engine.host, origin.actor or engine.actor
            self.engines[own] = engine
            return own
        return twins[0]

    def tick(self, now_us: int) -> bool:
        """Lets samples go that are older than the window, all but the newest of them."""
        gone = False
        for engine in self.engines.values():
            while len(engine.window) > 1 and engine.window[1].at_us < now_us - _KEPT_US:
                del engine.window[0]
                gone = True
        return gone

    def view(self) -> EnginesView:
        """The engines as they last spoke. A line that sums all engines of a process counts only where they do not
        speak for themselves."""
        alone = {(engine.pid, engine.host) for engine in self.engines.values() if engine.tag != AGGREGATED}
        shown = [
            _shown(engine)
            for engine in self.engines.values()
            if engine.tag != AGGREGATED or (engine.pid, engine.host) not in alone
        ]
        return EnginesView(tuple(sorted(shown, key=lambda engine: engine.name)))

    FOLDS: ClassVar[Mapping[type, Callable[[Any, Observation], None]]] = {
        AttemptStarted: on_attempt,
        SourceSeen: on_source,
        EngineLoad: on_load,
    }


def _echoes(sample: EngineSample, engine: _Engine) -> bool:
    """Whether this is a line already folded, read again in another home. An idle engine's zeros repeat truly, but
    nothing hangs on how often."""
    rate, since_us = sample.generation_rate, sample.at_us - _ECHO_US
    for known in (engine.last, *engine.window[-8:]):
        if known.generation_rate == rate and known.at_us >= since_us and sample.says_the_same(known):
            return True
    return False


def _shown(engine: _Engine) -> EngineState:
    words = ["engine", engine.tag] if engine.tag else ["engine"]
    if engine.pid:
        words += ["pid", str(engine.pid)]
    if engine.host:
        words += ["on", engine.host]
    return EngineState(
        name=" ".join(words),
        actor=engine.actor,
        pid=engine.pid,
        host=engine.host,
        tag=engine.tag,
        complete=engine.complete,
        last=engine.last,
        evidence=engine.evidence,
        last_busy=engine.busy,
        last_busy_evidence=engine.busy_evidence,
        window=tuple(engine.window),
    )
