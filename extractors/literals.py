"""The hints of a catalogue as one Hyperscan literal database, which learns from what it scans.

Hyperscan looks at the last eight bytes of a literal, in pairs, and asks closer where all of them may fit. So a literal
is cheap whose last eight bytes hold pairs that the text doesn't. Once enough has been scanned, each hint is cut behind
its rarest eight bytes, by a sample of the text, and what it was cut off is compared where the rest was found: the same
hits, at twice the speed. (Hyperscan 5.4, `src/fdr`.)
"""

from collections import Counter
from itertools import pairwise

import hyperscan

Hit = tuple[int, int]
"""Where a hint ends in the block, and its number."""
LEAST_LITERALS = 64
"""Smaller sets are compiled to a slower matcher."""
_SHORT = b"\x01\x02\x03\x04"
"""A literal that can't occur. The shortest one decides in what steps Hyperscan goes through the text: with five bytes
it looks at every fourth place only, and most of what it then asks closer is nothing."""
WINDOW = 8
"""The bytes of a literal that are looked at first."""
SHORTEST = 14
"""The bytes that a cut hint keeps: shorter literals scan at 2.3 GB/s and not at 1.7, but compiling them takes 44 MB and
80 ms, and not 10 ms."""
LEARN_AFTER_BYTES = 16_777_216
"""What is scanned before the hints are cut, and again when eight times as much was: learning takes 20 ms."""
WORTH = 0.8
"""The part of their cost at which new literals are compiled."""
_SAMPLES, _SAMPLE_BYTES = 64, 1_024


class Scanner:
    """Finds the lines of a block that hold a hint. Not safe to share between threads: it owns its scratch space."""

    def __init__(self, hints: tuple[str, ...]) -> None:
        self._hints = [hint.encode() for hint in hints]
        self._scanned, self._sample = 0, bytearray()
        self._learn_at = LEARN_AFTER_BYTES
        self._compile(self._hints)

    def hits(self, block: bytes) -> list[Hit]:
        """Each hint that stands in the block, by offset."""
        hits: list[Hit] = []
        meant, add, holds = self._meant, hits.append, block.startswith

        def note(literal: int, _start: int, end: int, _flags: int, _context: object) -> None:
            for hint, rest, more in meant[literal]:
                if not more:
                    add((end, hint))
                elif holds(rest, end):
                    add((end + more, hint))

        self._database.scan(block, match_event_handler=note)
        hits.sort()
        self._learn(block)
        return hits

    def _compile(self, literals: list[bytes]) -> None:
        """One literal for each hint, which begins with it."""
        self._literals = literals
        meant: dict[bytes, list[tuple[int, bytes, int]]] = {}
        for number, (hint, literal) in enumerate(zip(self._hints, literals, strict=True)):
            meant.setdefault(literal, []).append((number, hint[len(literal) :], len(hint) - len(literal)))
        self._meant = list(meant.values())
        padding = (b"\x01\x02wedgewatch-padding-%03d" % n for n in range(max(0, LEAST_LITERALS - len(meant))))
        every = [*meant, _SHORT, *padding]
        self._meant += [[]] * (len(every) - len(meant))
        self._database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
        self._database.compile(
            expressions=every, ids=list(range(len(every))), elements=len(every), flags=[0] * len(every), literal=True
        )

    def _learn(self, block: bytes) -> None:
        """Samples what is scanned, evenly, and cuts the hints anew each time that enough was."""
        self._scanned += len(block)
        if self._scanned * _SAMPLES >= self._learn_at * (len(self._sample) // _SAMPLE_BYTES + 1):
            self._sample += block[:_SAMPLE_BYTES].ljust(_SAMPLE_BYTES)
        if self._scanned >= self._learn_at:
            sample = bytes(self._sample)
            pairs = Counter(pairwise(sample))
            literals = cut(self._hints, sample, pairs)
            if _cost(literals, pairs) < WORTH * _cost(self._literals, pairs):
                self._compile(literals)
            self._sample.clear()
            self._scanned, self._learn_at = 0, 8 * self._learn_at


Pairs = Counter[tuple[int, int]]
"""How often a sample holds each two bytes."""


def _cost(literals: list[bytes], pairs: Pairs) -> int:
    return sum(pairs[pair] for literal in literals for pair in pairwise(literal[-WINDOW:]))


def cut(hints: list[bytes], sample: bytes, pairs: Pairs) -> list[bytes]:
    """Each hint up to the end of those eight bytes of it whose pairs are the rarest in the sample; a beginning that
    stands there oftener than the hint itself is too short."""

    def cut_one(hint: bytes) -> bytes:
        counts = [pairs[pair] for pair in pairwise(hint)]
        costs = {end: sum(counts[end - WINDOW : end - 1]) for end in range(SHORTEST, len(hint) + 1)}
        for end in sorted(costs, key=lambda end: (costs[end], -end)):
            oftener = sample.count(hint[:end])
            if not oftener or oftener <= sample.count(hint):
                return hint[:end]
        return hint

    return [cut_one(hint) for hint in hints]
