"""Whether a file is the one that was read before, told by its content: file systems give an inode again at once.

A file is known by samples of 1 KiB: one before each power of two that was passed (the first five make its head), and
one before the place that was reached. A log whose lines hold times differs from another within its first lines.
"""

import os
from enum import StrEnum
from hashlib import blake2b

import msgspec

SAMPLE_BYTES = 1_024
FIRST_RUNG = 64
"""A file of fewer bytes says too little of what it is."""
_HEAD_RUNGS = 5
_DIGEST_BYTES = 8


class Mark(msgspec.Struct, frozen=True):
    """How far a file was read, and what it was.

    All bytes before offset were given (or told as cut off), line is the number of the line that stands there. In the
    midst of a line that is over 1 MiB, cut_from is where that line begins, else -1. generation counts how often the
    file was replaced by another. inode and device are hints only, size is the file's when it was last read. ladder and
    before are the samples. earlier is where the generation before stood when it went. least is the smallest number
    that the next generation may have.
    """

    offset: int = 0
    line: int = 1
    cut_from: int = -1
    generation: int = 0
    inode: int = 0
    device: int = 0
    size: int = 0
    ladder: tuple[bytes, ...] = ()
    before: bytes = b""
    earlier: "Mark | None" = None
    least: int = 0

    def passed(self, read: bytes, since: int, offset: int, line: int, cut_from: int = -1) -> "Mark":
        """The mark at a later offset. read holds the file's bytes from `since` up to there at least: what was newly
        read, and SAMPLE_BYTES before it (or all, where there are fewer)."""
        ladder = list(self.ladder)
        while (rung := FIRST_RUNG << len(ladder)) <= offset:
            ladder.append(digest(read[max(0, rung - SAMPLE_BYTES) - since : rung - since]))
        before = digest(read[max(0, offset - SAMPLE_BYTES) - since : offset - since])
        return msgspec.structs.replace(
            self, offset=offset, line=line, cut_from=cut_from, ladder=tuple(ladder), before=before
        )

    @staticmethod
    def restored(snapshot: bytes) -> "Mark":
        """The mark of `Tail.snapshot`. Raises msgspec.DecodeError where the bytes are none."""
        return msgspec.msgpack.decode(snapshot, type=Mark)

    def next_generation(self) -> "Mark":
        """The beginning of another file in this one's place."""
        number = max(self.generation + 1, self.least)
        return Mark(generation=number, earlier=msgspec.structs.replace(self, earlier=None), least=self.least)


class Likeness(StrEnum):
    """What a file is to a mark: it goes on there; it is the same but shorter; too short to be told; another one."""

    SAME = "same"
    SHORTER = "shorter"
    UNTOLD = "untold"
    OTHER = "other"


def likeness(fd: int, mark: Mark, size: int, thorough: bool) -> Likeness:
    """Compares an open file of this size with a mark. thorough asks all samples, else those of the head and of the
    place reached, which a file that only grows keeps. Raises OSError."""
    reach = min(size, mark.offset)
    rungs = min(len(mark.ladder), max(0, reach // FIRST_RUNG).bit_length())
    head = min(rungs, _HEAD_RUNGS) - 1
    for number in range(max(0, head), rungs if thorough or size < mark.offset else head + 1):
        rung = FIRST_RUNG << number
        if _sample(fd, rung) != mark.ladder[number]:
            return Likeness.OTHER
    if size < mark.offset:
        return Likeness.SHORTER if rungs else Likeness.UNTOLD
    if mark.offset and _sample(fd, mark.offset) != mark.before:
        return Likeness.OTHER
    return Likeness.SAME


def _sample(fd: int, end: int) -> bytes:
    start = max(0, end - SAMPLE_BYTES)
    return digest(os.pread(fd, end - start, start))


def digest(content: bytes) -> bytes:
    """Eight bytes that stand for a sample."""
    return blake2b(content, digest_size=_DIGEST_BYTES).digest()
