"""Which of a job's tails to poll now: what grows at each round, what is quiet in turn, so that thousands of quiet files
cost little and none is looked at much later than it grew.

A line is held for the lateness of the stream in any case, so that less than that on a quiet file delays no verdict.
"""

from collections import deque
from collections.abc import Iterator

from dataflow.packed_tail import PackedTail
from dataflow.shipped_tail import ShippedTail
from dataflow.tail import Tail

BRISK_US = 10_000_000
"""How long after it grew a file is polled at each round."""
QUIET_US = 1_000_000
"""Within this time each quiet file is polled once, unless told otherwise."""

AnyTail = Tail | PackedTail | ShippedTail


class Rounds:
    """The tails of a job, by the names of their sources. Within quiet_us each quiet one is polled once."""

    def __init__(self, quiet_us: int = QUIET_US) -> None:
        self._quiet_us = quiet_us
        self.tails: dict[str, AnyTail] = {}
        self._brisk: dict[str, AnyTail] = {}
        self._quiet: deque[AnyTail] = deque()
        self._last_us: int | None = None

    def add(self, tail: AnyTail) -> None:
        """Takes a tail in; it is polled in the next round. One of the same name is closed."""
        name = tail.source.relative
        self.remove(name)
        self.tails[name] = self._brisk[name] = tail

    def remove(self, name: str) -> None:
        """Closes a tail, if there is one."""
        tail = self.tails.pop(name, None)
        self._brisk.pop(name, None)
        if tail is not None:
            tail.close()

    def due(self, now_us: int) -> Iterator[AnyTail]:
        """The tails of this round, each to be polled before the next one is asked for. Call it every 0.25 s."""
        since_us = self._quiet_us if self._last_us is None else now_us - self._last_us
        self._last_us = now_us
        quiet = min(len(self._quiet), -(-len(self._quiet) * max(0, since_us) // self._quiet_us))
        for name, tail in list(self._brisk.items()):
            if self._brisk.get(name) is not tail:
                continue
            yield tail
            if self._brisk.get(name) is tail and not _is_brisk(tail, now_us):
                del self._brisk[name]
                self._quiet.append(tail)
        for _ in range(quiet):
            tail = self._quiet.popleft()
            name = tail.source.relative
            if self.tails.get(name) is not tail:
                continue
            yield tail
            if self.tails.get(name) is not tail:
                continue
            if _is_brisk(tail, now_us):
                self._brisk[name] = tail
            else:
                self._quiet.append(tail)

    @property
    def is_brisk(self) -> bool:
        """Whether a file grew lately."""
        return bool(self._brisk)

    def brisk(self) -> list[AnyTail]:
        """The tails whose files grew lately."""
        return list(self._brisk.values())

    def close(self) -> None:
        """Closes all tails."""
        for name in list(self.tails):
            self.remove(name)


def _is_brisk(tail: AnyTail, now_us: int) -> bool:
    return tail.more or tail.waiting or (tail.grew_us is not None and now_us - tail.grew_us < BRISK_US)
