"""One job's files as one ordered stream.

Order: effective time, then file rank, then byte offset; ties never depend on arrival.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush

from dataflow.beats import Run
from extractors.record import Observation, SourceEnded, SourceKind

SHORT = 64
"""Thousands of files that speak in turn give runs of a line or two."""
ACTOR_KINDS = (SourceKind.ACTOR, SourceKind.DAEMON)
"""Sources whose node's clock may run ahead: they don't move the job's end beyond its other sources."""
_NEVER = (1 << 63, 0)


@dataclass(slots=True)
class Stream:
    """The observations of one source, in order of their effective time, in runs: what was read of it at once."""

    rank: int
    kind: SourceKind
    runs: Iterable[Run]


@dataclass(slots=True)
class _Head:
    """Where the merge stands in one stream."""

    kind: SourceKind
    runs: Iterator[Run]
    run: Run = field(default_factory=list)
    place: int = 0
    ended: Observation | None = None

    @property
    def at_us(self) -> int:
        return self.run[self.place].at_us

    def stands(self) -> bool:
        """Whether there is an observation to take; reads on where the run is used up."""
        while self.place >= len(self.run):
            run = next(self.runs, None)
            if run is None:
                return False
            if run and type(run[-1].signal) is SourceEnded:
                self.ended = run[-1]
                run = run[:-1]
            self.run, self.place = run, 0
        return True

    def taken(self, number: int, before: tuple[int, int]) -> Run:
        """What comes before another stream's head (its time and number)."""
        run, place, (at_us, other) = self.run, self.place, before
        end = place + 1
        if end < len(run) and run[end].at_us <= at_us:
            cut = bisect_right if number < other else bisect_left
            end = len(run) if run[-1].at_us < at_us else cut(run, at_us, lo=end, key=_at_us)
        self.place = end
        return run if place == 0 and end == len(run) else run[place:end]


@dataclass(slots=True)
class Merge:
    """Merges streams. polled says that polls are among them; end_us is the newest time that moves the job's end; ended
    are the ends of the streams that were used up: a live run, whose files may grow, has none before its own end."""

    streams: list[Stream]
    polled: bool
    end_us: int = 0
    ended: list[Observation] = field(default_factory=list)
    _running: int = field(default=0)

    def __iter__(self) -> Iterator[Run]:
        """All observations in order, in runs: what a run costs, its observations don't. Short ones are put together."""
        self._running = sum(stream.kind not in ACTOR_KINDS for stream in self.streams)
        heads: list[tuple[int, int, _Head]] = []
        for number, stream in enumerate(self.streams):
            self._wait(heads, number, _Head(stream.kind, iter(stream.runs)))
        together: Run = []
        while heads:
            _, number, head = heappop(heads)
            run = self._held(head.kind, head.taken(number, heads[0][:2] if heads else _NEVER))
            if together or len(run) < SHORT:
                together += run
            else:
                yield run
            if len(together) >= SHORT:
                yield together
                together = []
            self._wait(heads, number, head)
        if together:
            yield together

    def _wait(self, heads: list[tuple[int, int, _Head]], number: int, head: _Head) -> None:
        if head.stands():
            heappush(heads, (head.at_us, number, head))
            return
        if head.ended is not None:
            self.ended.append(head.ended)
        if head.kind not in ACTOR_KINDS:
            self._running -= 1
        if head.ended is not None and (head.kind not in ACTOR_KINDS or not self.polled):
            self.end_us = max(self.end_us, head.ended.at_us)

    def _held(self, kind: SourceKind, run: Run) -> Run:
        """The run, at the job's end where a node's clock runs ahead of it."""
        newest_us = run[-1].at_us
        if kind not in ACTOR_KINDS or not self.polled:
            self.end_us = max(self.end_us, newest_us)
        elif not self._running and newest_us > self.end_us:
            return [each.moved(self.end_us) if each.at_us > self.end_us else each for each in run]
        return run

    def endings(self, at_us: int) -> Run:
        """The ends of the streams that were used up, told at a time."""
        return [each.moved(at_us) for each in sorted(self.ended, key=lambda each: each.evidence.source)]


def _at_us(observation: Observation) -> int:
    return observation.at_us
