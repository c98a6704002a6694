"""A set of ranks as bits: 10,000 ranks take 1,250 bytes of a snapshot, where a list of them takes thirty thousand."""

from typing import Self

import msgspec


class RankBits(msgspec.Struct):
    """Ranks from 0 on, one bit each; count is how many are in it. Bound: the highest rank that is added."""

    bits: bytearray = msgspec.field(default_factory=bytearray)
    count: int = 0

    def __contains__(self, rank: int) -> bool:
        return rank >> 3 < len(self.bits) and bool(self.bits[rank >> 3] & 1 << (rank & 7))

    def add(self, rank: int) -> None:
        """Puts a rank in."""
        at, bit = rank >> 3, 1 << (rank & 7)
        if at >= len(self.bits):
            self.bits.extend(bytes(at + 1 - len(self.bits)))
        if not self.bits[at] & bit:
            self.bits[at] |= bit
            self.count += 1

    def union(self, other: Self) -> "RankBits":
        """The ranks in either."""
        return _of(self._number() | other._number())

    def without(self, other: Self) -> "RankBits":
        """The ranks in this one that are not in the other."""
        return _of(self._number() & ~other._number())

    def inverse(self, ranks: int) -> "RankBits":
        """The ranks below a number that are not in it."""
        return _of(((1 << ranks) - 1) & ~self._number())

    def first(self, limit: int) -> tuple[int, ...]:
        """The lowest ranks, at most so many."""
        rest, found = self._number(), list[int]()
        while rest and len(found) < limit:
            lowest = rest & -rest
            found.append(lowest.bit_length() - 1)
            rest ^= lowest
        return tuple(found)

    def _number(self) -> int:
        return int.from_bytes(self.bits, "little")


def _of(number: int) -> RankBits:
    return RankBits(bytearray(number.to_bytes((number.bit_length() + 7) // 8, "little")), number.bit_count())
