"""What time it is for a watcher, in microseconds UTC. It never runs backwards."""

import time
from collections.abc import Callable
from pathlib import Path
from threading import Lock

from extractors.clocks import DAY_US, parse_iso


def _wall_us() -> int:
    return time.time_ns() // 1000


def _steady_us() -> int:
    return time.monotonic_ns() // 1000


class LiveClock:
    """The machine's clock, made steady: forward it is followed at once; when it was stepped back, ours runs on at half
    its pace until they agree, so that a log that goes on is never taken for a silent one. ahead_us is how far ours runs
    ahead meanwhile."""

    def __init__(self, wall: Callable[[], int] = _wall_us, steady: Callable[[], int] = _steady_us) -> None:
        self._wall = wall
        self._steady = steady
        self._now_us, self._steady_us = wall(), steady()
        self.ahead_us = 0
        self._lock = Lock()

    def __call__(self) -> int:
        with self._lock:
            return self._now()

    def not_before(self, at_us: int) -> None:
        """Goes on from where the clock of an earlier run stood, should the machine's have been stepped back meanwhile.
        A time that is more than a day ahead was no time."""
        with self._lock:
            if at_us - self._now() < DAY_US:
                self._now_us = max(self._now_us, at_us)

    def _now(self) -> int:
        wall_us, steady_us = self._wall(), self._steady()
        passed_us = max(0, steady_us - self._steady_us)
        self._steady_us = steady_us
        self._now_us = max(wall_us, self._now_us + passed_us // 2)
        self.ahead_us = max(0, self._now_us - wall_us)
        return self._now_us


class FileClock:
    """A clock for drills: a file that says the time (ISO 8601), replaced by who writes the logs. 0 while there is
    none."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._now_us = 0
        self.ahead_us = 0

    def not_before(self, at_us: int) -> None:
        """Nothing: who writes the file knows the time."""

    def __call__(self) -> int:
        try:
            said = parse_iso(self._path.read_text(encoding="ascii", errors="replace"))
        except OSError:
            said = None
        self._now_us = max(self._now_us, said or 0)
        return self._now_us


AnyClock = LiveClock | FileClock
