"""The ordered stream of one job, cut into beats.

A beat ends at a multiple of 10 s, and before that with what may change an answer (state/telling.py), a second after
the beat before it at the earliest. Silences are crossed by empty beats, dense at first. Where a beat ends depends on
the observations and their times alone: not on how they were read, nor on when.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from extractors.record import Beat, Observation, Tick
from state.attempts import AttemptCutter
from state.policy import BEAT, HOUR, MINUTE, SECOND_US
from state.telling import Telling

Run = list[Observation]
BEAT_US = int(BEAT * SECOND_US)
APART_US = SECOND_US
"""A beat that ends early does so at least so long after the one before: a storm of faults is judged once a second."""
PART = 4096
"""Observations that a beat holds at most: a log of hundreds of lines a millisecond must not be held in memory."""

_SILENCE_STRIDES = ((30 * MINUTE, BEAT), (6 * HOUR, MINUTE), (72 * HOUR, 10 * MINUTE), (float("inf"), 24 * HOUR))
"""How long a silence has lasted, up to which the next empty beat comes after this stride (seconds)."""


@dataclass(slots=True)
class BeatCutter:
    """Cuts what it is given, in order. Plain data, so that it can be kept.

    edge_us is where the open beat ends at the latest, early_us where it ends early; silent is where the silence began
    behind the last beat and the newest beat in it, where no beat is open.
    """

    job: str
    attempts: AttemptCutter = field(default_factory=AttemptCutter)
    telling: Telling = field(default_factory=Telling)
    gathered: Run = field(default_factory=list)
    count: int = 0
    edge_us: int | None = None
    early_us: int | None = None
    silent: tuple[int, int] | None = None
    last_us: int = 0

    def take(self, run: Run) -> Iterator[Beat]:
        """The beats that are over with these observations, none of which is before one that was taken."""
        place = 0
        while place < len(run):
            at_us = run[place].at_us
            yield from self._pass(at_us, at_us - 1)
            if self.edge_us is None:
                self.edge_us, self.silent = _edge_after(at_us), None
            if self.count >= PART:
                yield self._over(Tick(at_us), partial=True)
            place = self._gather(run, place, self.edge_us)

    def reach(self, at_us: int) -> Iterator[Beat]:
        """The beats that are over when all observations up to a time were taken."""
        yield from self._pass(at_us, at_us)

    def aside(self, observation: Observation) -> Beat:
        """A beat with what was gathered and one thing more. It changes nothing of where those after it end."""
        gathered, self.gathered, self.count = self.gathered, [], 0
        return Beat(self.job, Tick(observation.at_us), (*gathered, observation))

    def finish(self, last_us: int, endings: Run) -> Iterator[Beat]:
        """The last beats; the very last is final, stands at last_us and has the endings of the job's sources."""
        yield from self._pass(last_us, last_us - 1)
        yield Beat(self.job, Tick(last_us, final=True), (*self.gathered, *endings))

    def _gather(self, run: Run, place: int, edge_us: int) -> int:
        """Takes in what belongs to the open beat; gives the place behind it."""
        limit_us = edge_us if self.early_us is None else min(edge_us, self.early_us + 1)
        end = min(_end_before(run, limit_us, place), place + PART - self.count)
        seen = place
        if self.early_us is None:
            found = self.telling.first(run[place:end])
            seen = end if found is None else place + found + 1
            if found is not None:
                self.early_us = max(run[place + found].at_us, self.last_us + APART_US)
                end = min(end, _end_before(run, self.early_us + 1, place))
        self.telling.passed(run[seen:end])
        self.gathered += self.attempts.cut(run if end - place == len(run) else run[place:end])
        self.count += end - place
        return end

    def _pass(self, at_us: int, early_us: int) -> Iterator[Beat]:
        """The beats that end up to a time (early ones: up to early_us), and those of the silence behind them."""
        if self.edge_us is not None:
            if self.early_us is not None and self.early_us < self.edge_us and self.early_us <= early_us:
                yield self._over(Tick(self.early_us))
            if self.edge_us <= at_us:
                edge_us, self.edge_us = self.edge_us, None
                self.silent = (edge_us, edge_us)
                yield self._over(Tick(edge_us))
        if self.silent is not None:
            yield from self._silence(*self.silent, at_us)

    def _silence(self, from_us: int, newest_us: int, at_us: int) -> Iterator[Beat]:
        """Empty beats of a silence, up to a time."""
        while True:
            lasted = (newest_us - from_us) / SECOND_US
            stride = next(stride for limit, stride in _SILENCE_STRIDES if lasted < limit)
            newest_us += int(stride * SECOND_US)
            if newest_us > at_us:
                return
            self.silent, self.last_us = (from_us, newest_us), newest_us
            yield Beat(self.job, Tick(newest_us))

    def _over(self, tick: Tick, partial: bool = False) -> Beat:
        gathered, self.gathered, self.count = self.gathered, [], 0
        if not partial:
            self.last_us, self.early_us = tick.at_us, None
        return Beat(self.job, tick, tuple(gathered), partial)


def beats(
    job: str,
    runs: Iterable[Run],
    end_us: Callable[[], int],
    as_of_us: int | None,
    endings: Callable[[int], Run] = lambda _: [],
) -> Iterator[Beat]:
    """The whole stream of one job as beats; the last one stands at end_us(), or at as_of_us where given."""
    cutter = BeatCutter(job)
    for run in runs if as_of_us is None else _until(runs, as_of_us):
        yield from cutter.take(run)
    last_us = as_of_us if as_of_us is not None else end_us()
    yield from cutter.finish(last_us, endings(last_us))


def _until(runs: Iterable[Run], as_of_us: int) -> Iterator[Run]:
    """The runs up to a time."""
    for run in runs:
        if run[-1].at_us > as_of_us:
            yield run[: _end_before(run, as_of_us + 1, 0)]
            return
        yield run


def _end_before(run: Run, at_us: int, place: int) -> int:
    """The place in a run from which on nothing is before a time."""
    return len(run) if run[-1].at_us < at_us else bisect_left(run, at_us, lo=place, key=_at_us)


def _at_us(observation: Observation) -> int:
    return observation.at_us


def _edge_after(at_us: int) -> int:
    return at_us - at_us % BEAT_US + BEAT_US
