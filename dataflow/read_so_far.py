"""How much of a capture was read, for whoever waits. The thread that reads counts, any other may look."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from dataflow.capture import Capture, TrialTree

_Said = TypeVar("_Said")


@dataclass(slots=True)
class ReadSoFar:
    """Bytes of files as they lie (packed ones packed), and trials. It counts what was read once, not the looks at heads
    and tails before."""

    taken: int = 0
    trials: int = 0

    def take(self, size: int) -> None:
        """Counts so many bytes."""
        self.taken += size

    def whole(self, found: Iterator[_Said], path: str) -> Iterator[_Said]:
        """What a small file says; the file is counted when all is said."""
        yield from found
        self.taken += _size(path)

    def each_trial(self, go_on: Callable[[], None]) -> Callable[[], None]:
        """go_on, counting how often it lets a trial pass."""

        def count() -> None:
            go_on()
            self.trials += 1

        return count


def bytes_to_read(capture: Capture) -> int | None:
    """The bytes that reading this capture will count; None where only reading tells (standard input, pipes). The files
    of trial folders are not among them: there may be a million."""
    if any(source.stream is not None for source in capture.sources):
        return None
    return sum(_size(each.path) for each in (*capture.sources, *capture.trials) if not isinstance(each, TrialTree))


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except (OSError, ValueError):
        return 0
