"""The polls of a job on their way: they come on a topic of their own, ahead of the lines or behind them, and are read
at the tick that counts them, as if they had come with the lines."""

from collections import deque
from collections.abc import Mapping

from dataflow.shipped_tail import FileWord, ShippedTail
from dataflow.turns import Continued, Rotated
from dataflow.wire import PollLine
from extractors.record import Block

Place = tuple[int, int]
"""A generation, and an offset in it."""
LAST: Place = (1 << 62, 0)


class ShippedPolls:
    """The lines of poll files, and the words about these files, that wait for their tick. tails are all files of the
    job."""

    def __init__(self, tails: Mapping[str, ShippedTail]) -> None:
        self._tails = tails
        self.lines: dict[str, deque[PollLine]] = {}
        self.words: dict[str, list[FileWord]] = {}

    def line(self, name: str, poll: PollLine) -> None:
        """Takes a line."""
        self.lines.setdefault(name, deque()).append(poll)

    def word(self, name: str, word: FileWord) -> None:
        """Takes a word."""
        self.words.setdefault(name, []).append(word)

    def newest(self, name: str) -> Place:
        """The place behind the newest line that came."""
        waiting, tail = self.lines.get(name), self._tails.get(name)
        if waiting:
            return waiting[-1].generation, waiting[-1].offset + len(waiting[-1].data) + 1
        return (-1, 0) if tail is None else tail.stands

    def read(self, name: str, upto: Place) -> None:
        """Gives a file's tail the lines before this place, and the words between them."""
        tail = self._tails[name]
        for word in self.words.pop(name, ()):
            self._take(tail, _before(word, tail))
            tail.told(word)
        self._take(tail, upto)

    def _take(self, tail: ShippedTail, upto: Place) -> None:
        waiting = self.lines.get(tail.source.relative, deque())
        while waiting and (waiting[0].generation, waiting[0].offset) < upto:
            poll = waiting.popleft()
            tail.take(Block(poll.source, poll.offset, poll.line, poll.data + b"\n", poll.generation))


def _before(word: FileWord, tail: ShippedTail) -> Place:
    """The place before which lines come before a word."""
    if isinstance(word, Rotated):
        return word.generation, 0
    return tail.stands[0], 0 if isinstance(word, Continued) else word.offset
