"""One multi-literal scan over a block: which lines may say something, and which patterns to ask.

All hints of the catalogue stand in one Hyperscan literal database, padded to at least 64 literals: small sets are
compiled to a slower matcher (32–48 literals scan at half the speed of 64 and more).
"""

import threading
from collections.abc import Iterator

import hyperscan

from extractors.catalogue import Catalogue
from extractors.pattern import Pattern

LEAST_LITERALS = 64


class Scanner:
    """Finds the lines of a block that hold a hint. Not safe to share between threads: it owns its scratch space."""

    def __init__(self, hints: tuple[str, ...]) -> None:
        literals = [hint.encode() for hint in hints]
        padding = [b"\x01\x02wedgewatch-padding-%03d" % n for n in range(max(0, LEAST_LITERALS - len(literals)))]
        self._database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
        every = literals + padding
        self._database.compile(
            expressions=every, ids=list(range(len(every))), elements=len(every), flags=[0] * len(every), literal=True
        )
        self._hits: list[tuple[int, int]] = []

    def hits(self, block: bytes) -> list[tuple[int, int]]:
        """(end offset in the block, hint number) of each hint that stands in the block, by offset."""
        self._hits = found = []

        def note(hint: int, _start: int, end: int, _flags: int, _context: object) -> None:
            found.append((end, hint))

        self._database.scan(block, match_event_handler=note)
        found.sort()
        return found


def candidates(block: bytes, hits: list[tuple[int, int]]) -> Iterator[tuple[int, int, list[int]]]:
    """(start, end, hint numbers) of each line with a hit; end excludes the newline."""
    at, count = 0, len(hits)
    while at < count:
        end_of_hit = hits[at][0]
        start = block.rfind(b"\n", 0, end_of_hit) + 1
        end = block.find(b"\n", end_of_hit)
        if end < 0:
            end = len(block)
        numbers = [hits[at][1]]
        at += 1
        while at < count and hits[at][0] <= end:
            numbers.append(hits[at][1])
            at += 1
        yield start, end, numbers


Scanned = tuple[Scanner, tuple[str, ...], tuple[tuple[Pattern, ...], ...]]
"""A scanner, and by its hints' numbers the hints and the patterns that each speaks for."""


class _OfThread(threading.local):
    """The scanners of one thread, with their catalogues, by the catalogues' identity."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[Catalogue, Scanned]] = {}


_OF_THREAD = _OfThread()


def scanned(catalogue: Catalogue, unspoken: tuple[str, ...]) -> Scanned:
    """The scanner of a catalogue, compiled once a thread. It also finds the unspoken hints, that no pattern has."""
    known = _OF_THREAD.known.get(id(catalogue))
    if known is None:
        hints = (*catalogue.hints, *unspoken)
        found = Scanner(hints), hints, (*catalogue.by_hint, *(() for _ in unspoken))
        known = _OF_THREAD.known[id(catalogue)] = (catalogue, found)
    return known[1]
