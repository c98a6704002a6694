"""One multi-literal scan over a block: which lines may say something, and which patterns to ask."""

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from extractors.catalogue import Catalogue
from extractors.literals import Hit, Scanner
from extractors.pattern import Pattern
from extractors.record import Block

BACKWARDS_BYTES = 16_384
BACKWARDS_LINES = 48
"""How far a line without a time looks back for one that has it."""
LONG = 1_024
"""Bytes of a piece from which on newlines are counted in the way of long ones."""


class Lines:
    """The physical lines of a block, numbered as one comes to them, in order.

    after is where the line begins that follows the one that was read last, -1 where that is not in this block. timed is
    the place in the file up to which the newest time is known: that of the line before it. number is that of the line
    that begins at counted, the last one asked for. What stands before the block is remembered for so far as lines
    without a time look back.
    """

    __slots__ = ("_before", "after", "block", "counted", "data", "number", "timed")

    def __init__(self, block: Block, earlier: "Lines | None" = None) -> None:
        self.block = block
        self.data = block.data
        follows = earlier is not None and earlier.block.offset + len(earlier.data) == block.offset
        self._before: bytes = earlier.tail() if earlier is not None and follows else b""
        self.after: int = 0 if not block.offset or (earlier and follows and earlier.after == len(earlier.data)) else -1
        self.timed: int = earlier.timed if earlier is not None else 0
        self.counted = 0
        self.number = block.line

    def kept(self) -> "Lines":
        """The same to the block that follows, without this one's bytes."""
        tail, end = self.tail(), self.block.offset + len(self.data)
        rest = Lines(Block(self.block.source, end - len(tail), 0, tail))
        rest.after, rest.timed = len(tail) if self.after == len(self.data) else -1, self.timed
        return rest

    def number_at(self, start: int) -> int:
        """The number of the line that begins at a place in the block, no earlier than the one asked before."""
        self.number += newlines(self.data, self.counted, start)
        self.counted = start
        return self.number

    def tail(self) -> bytes:
        """The last bytes of the block, and of those before it where it is short."""
        whole = self.data if len(self.data) >= BACKWARDS_BYTES else self._before + self.data
        return whole[-BACKWARDS_BYTES:]

    def behind(self, start: int) -> list[bytes]:
        """The nearest lines before a place in the block whose times are not known; the first of them may lack its
        beginning."""
        begin = max(self.timed - self.block.offset, start - BACKWARDS_BYTES)
        found = self.data[begin:start] if begin >= 0 else self._before[begin:] + self.data[:start]
        return found.split(b"\n")[-BACKWARDS_LINES:]

    def newlines(self) -> int:
        """All newlines of the block; only those behind the last line asked for are still to be counted."""
        return self.number - self.block.line + newlines(self.data, self.counted, len(self.data))


def newlines(data: bytes, start: int, end: int) -> int:
    """The newlines between two places. In CPython, taking them out of a long piece costs half of counting them."""
    if end - start < LONG:
        return data.count(b"\n", start, end)
    piece = data[start:end]
    return len(piece) - len(piece.replace(b"\n", b""))


def line_at(block: bytes, hits: list[Hit], at: int) -> tuple[int, int, list[int], int]:
    """(start, end, hint numbers, the next hit) of the line of a hit; end excludes the newline."""
    end_of_hit = hits[at][0]
    start = block.rfind(b"\n", 0, end_of_hit) + 1
    end = block.find(b"\n", end_of_hit)
    if end < 0:
        end = len(block)
    numbers, at = hints_until(hits, at, end)
    return start, end, numbers, at


def hints_until(hits: list[Hit], at: int, end: int) -> tuple[list[int], int]:
    """The hint numbers of the hits from `at` on up to a place, and the next hit."""
    numbers = []
    while at < len(hits) and hits[at][0] <= end:
        numbers.append(hits[at][1])
        at += 1
    return numbers, at


Ask = tuple[Callable[[str], Any], str]
"""What reads a signal in a payload, and its pattern's name."""


class Scanned(NamedTuple):
    """A scanner, and by its hints' numbers the hints and the patterns that each speaks for. plain says how these are
    asked, only of hints whose lines, when no other hint is in them, begin no joined message."""

    scanner: Scanner
    hints: tuple[str, ...]
    by_hint: tuple[tuple[Pattern, ...], ...]
    plain: tuple[tuple[Ask, ...] | None, ...]


def _ask(pattern: Pattern) -> Ask:
    return (pattern.build if pattern.regex is None else pattern.read), pattern.name


class _OfThread(threading.local):
    """The scanners of one thread, with their catalogues, by the catalogues' identity."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[Catalogue, Scanned]] = {}


_OF_THREAD = _OfThread()


def scanned(catalogue: Catalogue, unspoken: tuple[str, ...], joined: tuple[str, ...]) -> Scanned:
    """The scanner of a catalogue, compiled once a thread. It also finds the unspoken hints, that no pattern has.
    joined are words of lines that may begin a joined message."""
    known = _OF_THREAD.known.get(id(catalogue))
    if known is None:
        unspoken = tuple(hint for hint in dict.fromkeys((*unspoken, *joined)) if hint not in catalogue.hints)
        hints = (*catalogue.hints, *unspoken)
        by_hint = (*catalogue.by_hint, *(() for _ in unspoken))
        plain = tuple(
            None if any(hint in word or word in hint for word in joined) else tuple(map(_ask, patterns)) or None
            for hint, patterns in zip(hints, by_hint, strict=True)
        )
        found = Scanned(Scanner(hints), hints, by_hint, plain)
        known = _OF_THREAD.known[id(catalogue)] = (catalogue, found)
    return known[1]
