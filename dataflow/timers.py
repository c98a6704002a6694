"""When which probe is to run next: on its own timer, less often while it fails. No clock is read here."""

import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

LONGEST_BACKOFF = 300.0
"""Seconds between two runs of a probe that keeps failing, unless its own timer is slower."""
PAUSE = 1.0
"""Seconds between two runs of a probe that takes longer than its timer."""
_DOUBLINGS = 16


@dataclass(slots=True)
class Series:
    """The runs of one command: a probe at one target, or a sync. Durations are seconds; failures counts those since the
    last success."""

    job: str
    folder: Path
    probe: str
    target: str
    command: tuple[str, ...]
    every: float
    timeout: float
    failures: int = 0


class Timers:
    """The series of runs in the order in which they are due. Times are seconds of any clock that does not jump."""

    def __init__(self, jitter: Callable[[], float] = random.random) -> None:
        """jitter gives a number from 0 to 1."""
        self._jitter = jitter
        self._due: list[tuple[float, int, Series]] = []
        self._places = itertools.count()

    def add(self, series: Series, at: float) -> None:
        """A series that is due at a time. Of those that are due at once, the one that was added first goes first."""
        heapq.heappush(self._due, (at, next(self._places), series))

    def take(self, now: float) -> Series | None:
        """The series that is due longest, which is then away until it has ended."""
        return heapq.heappop(self._due)[2] if self._due and self._due[0][0] <= now else None

    def wait(self, now: float) -> float | None:
        """Seconds until the next is due; None where there is none."""
        return max(0.0, self._due[0][0] - now) if self._due else None

    def ended(self, series: Series, began: float, now: float, failed: bool) -> float:
        """Puts a series back after a run; gives the time at which it is due again."""
        series.failures = series.failures + 1 if failed else 0
        wait = series.every
        if failed:
            longest = max(series.every, LONGEST_BACKOFF)
            wait = min(series.every * 2.0 ** min(series.failures, _DOUBLINGS), longest) * (0.9 + 0.2 * self._jitter())
        at = max(began + wait, now + min(series.every, PAUSE))
        self.add(series, at)
        return at
