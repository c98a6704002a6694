"""One job's files as one ordered stream.

Order: effective time, then file rank, then byte offset; ties never depend on arrival.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heapreplace
from typing import Any

from dataflow.beats import Run
from extractors.record import Observation, SourceEnded, SourceKind

SHORT = 64
"""Thousands of files that speak in turn give runs of a line or two."""
ACTOR_KINDS = (SourceKind.ACTOR, SourceKind.DAEMON)
"""Sources whose node's clock may run ahead: they don't move the job's end beyond its other sources."""
_NEVER = (1 << 63, 0, None)


@dataclass(slots=True)
class Stream:
    """The observations of one source, in order of their effective time, in runs: what was read of it at once."""

    rank: int
    kind: SourceKind
    runs: Iterable[Run]


@dataclass(slots=True)
class _Head:
    """Where the merge stands in one stream, which has a number."""

    number: int
    kind: SourceKind
    runs: Iterator[Run]
    run: Run = field(default_factory=list)
    place: int = 0
    ended: Observation | None = None

    def stands(self) -> bool:
        """Whether there is an observation to take; reads on where the run is used up. At a source's end it lets its
        reader go at once: thousands that wait for it are not held, whose memory then serves the next file."""
        while self.place >= len(self.run):
            run = next(self.runs, None)
            if run is None:
                return False
            if run and type(run[-1].signal) is SourceEnded:
                self.ended = run[-1]
                run = run[:-1]
                next(self.runs, None)
            self.run, self.place = run, 0
        return True

    def taken(self, before: tuple[int, int, Any]) -> Run:
        """What comes before another stream's head (its time and number)."""
        run, place, (at_us, other, _) = self.run, self.place, before
        end = place + 1
        if end < len(run) and run[end].at_us <= at_us:
            cut = bisect_right if self.number < other else bisect_left
            end = len(run) if run[-1].at_us < at_us else cut(run, at_us, lo=end, key=_at_us)
        self.place = end
        return run if place == 0 and end == len(run) else run[place:end]


class _Sorted(_Head):
    """The rests of several streams, all of which are known, as one."""

    def __init__(self, heads: list[_Head]) -> None:
        every = [each for head in heads for each in head.run]
        places = [(each.at_us, head.number) for head in heads for each in head.run]
        times = [at_us for at_us, _ in places]
        order = sorted(range(len(every)), key=times.__getitem__)
        super().__init__(heads[0].number, heads[0].kind, iter(()), [every[number] for number in order])
        self.heads = heads
        self._places = [places[number] for number in order]
        self.stands()

    def stands(self) -> bool:
        if self.place == len(self.run):
            return False
        self.number = self._places[self.place][1]
        return True

    def taken(self, before: tuple[int, int, Any]) -> Run:
        place, self.place = self.place, bisect_left(self._places, before[:2], lo=self.place)
        return self.run[place : self.place]


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
        heads = self._heads()
        together: Run = []
        while heads:
            head = heads[0][2]
            run = self._held(head.kind, head.taken(min(heads[1:3], default=_NEVER)))
            if together or len(run) < SHORT:
                together += run
            else:
                yield run
            if len(together) >= SHORT:
                yield together
                together = []
            if head.stands():
                heapreplace(heads, (head.run[head.place].at_us, head.number, head))
            else:
                heappop(heads)
                self._used_up(head)
        if together:
            yield together

    def _heads(self) -> list[tuple[int, int, _Head]]:
        """The streams that say anything, as a heap. Of thousands of short files whose ends were read with their
        beginnings one head is made: to sort what they say takes a tenth of merging it line by line."""
        heads: list[_Head] = []
        whole: list[_Head] = []
        for number, stream in enumerate(self.streams):
            head = _Head(number, stream.kind, iter(stream.runs))
            if not head.stands():
                self._used_up(head)
            elif head.ended is not None and head.kind in ACTOR_KINDS:
                whole.append(head)
            else:
                heads.append(head)
        if whole:
            heads.append(whole[0] if len(whole) == 1 else _Sorted(whole))
        found = [(head.run[head.place].at_us, head.number, head) for head in heads]
        heapify(found)
        return found

    def _used_up(self, head: _Head) -> None:
        """Nothing more comes of a stream."""
        if isinstance(head, _Sorted):
            for each in head.heads:
                self._used_up(each)
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
