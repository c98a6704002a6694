"""One job's files as one ordered stream, cut into beats at fixed event-time boundaries.

Order: effective time, then file rank, then byte offset; ties never depend on arrival.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from extractors.record import Beat, Observation, SourceKind, Tick
from state.attempts import AttemptCutter
from state.policy import BEAT, HOUR, MINUTE, SECOND_US
from state.tracker import AttemptStarted

BEAT_US = int(BEAT * SECOND_US)
ACTOR_KINDS = (SourceKind.ACTOR, SourceKind.DAEMON)
"""Sources whose node's clock may run ahead: they don't move the job's end beyond its other sources."""

_SILENCE_STRIDES = ((30 * MINUTE, BEAT), (6 * HOUR, MINUTE), (72 * HOUR, 10 * MINUTE), (float("inf"), 24 * HOUR))
"""How long a silence has lasted, up to which the next empty beat comes after this stride (seconds)."""


@dataclass(slots=True)
class Stream:
    """The observations of one source, in order of their effective time."""

    rank: int
    kind: SourceKind
    observations: Iterable[Observation]


@dataclass(slots=True)
class Merge:
    """Merges streams. polled says that polls are among them; end_us is the newest time that moves the job's end."""

    streams: list[Stream]
    polled: bool
    end_us: int = 0
    _running: int = field(default=0)

    def __iter__(self) -> Iterator[Observation]:
        self._running = sum(stream.kind not in ACTOR_KINDS for stream in self.streams)
        for kind, observation in heapq.merge(*map(self._keyed, self.streams), key=_order):
            if kind in ACTOR_KINDS and self.polled:
                if not self._running and observation.at_us > self.end_us:
                    observation = _at(observation, self.end_us)
                yield observation
                continue
            self.end_us = max(self.end_us, observation.at_us)
            yield observation

    def _keyed(self, stream: Stream) -> Iterator[tuple[SourceKind, Observation]]:
        for observation in stream.observations:
            yield stream.kind, observation
        if stream.kind not in ACTOR_KINDS:
            self._running -= 1


def _order(item: tuple[SourceKind, Observation]) -> int:
    return item[1].at_us


def _at(observation: Observation, at_us: int) -> Observation:
    return Observation(
        observation.signal, observation.evidence, at_us, observation.pattern, observation.origin, observation.repeated
    )


def beats(
    job: str, observations: Iterable[Observation], end_us: Callable[[], int], as_of_us: int | None
) -> Iterator[Beat]:
    """The stream of one job as beats; the last one is final and stands at end_us(), or at as_of_us where given.

    A beat ends at a multiple of 10 s. Silences are crossed by empty beats, dense at first.
    """
    cutter = AttemptCutter()
    gathered: list[Observation] = []
    edge_us: int | None = None
    for observation in observations:
        if as_of_us is not None and observation.at_us > as_of_us:
            break
        if edge_us is None:
            edge_us = _edge_after(observation.at_us)
        if observation.at_us >= edge_us:
            yield Beat(job, Tick(edge_us), tuple(gathered))
            gathered = []
            yield from _silence(job, edge_us, _edge_after(observation.at_us))
            edge_us = _edge_after(observation.at_us)
        started = cutter.observe(observation)
        if started is not None:
            gathered.append(_marker(started, observation))
        gathered.append(observation)
    last_us = as_of_us if as_of_us is not None else end_us()
    if edge_us is not None and last_us >= edge_us:
        yield Beat(job, Tick(edge_us), tuple(gathered))
        gathered = []
        yield from _silence(job, edge_us, _edge_after(last_us))
    yield Beat(job, Tick(last_us, final=True), tuple(gathered))


def _silence(job: str, from_us: int, edge_us: int) -> Iterator[Beat]:
    """Empty beats between two edges, both left out."""
    at_us = from_us
    while True:
        lasted = (at_us - from_us) / SECOND_US
        stride = next(stride for limit, stride in _SILENCE_STRIDES if lasted < limit)
        at_us += int(stride * SECOND_US)
        if at_us >= edge_us:
            return
        yield Beat(job, Tick(at_us))


def _edge_after(at_us: int) -> int:
    return at_us - at_us % BEAT_US + BEAT_US


def _marker(started: AttemptStarted, observation: Observation) -> Observation:
    return Observation(started, observation.evidence, observation.at_us, "attempt_started", observation.origin)
