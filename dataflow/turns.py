"""What happens to a file while it is tailed, as values, so that it can become evidence."""

from enum import StrEnum

import msgspec

from dataflow.blocks import LineCut
from extractors.record import Block


class How(StrEnum):
    """How another content came to stand under the same name."""

    ROTATED = "another file stands in its place"
    TRUNCATED = "it was truncated and written anew"
    REFILLED = "it was truncated and refilled beyond its old size"


class Rotated(msgspec.Struct, frozen=True, tag=True):
    """Another content stands under the same name and is read from its beginning as this generation.

    offset and line are how far the one before it was read; unread how many more bytes of it had been seen on the disk
    (0 where it was read to its end).
    """

    source: str
    how: How
    generation: int
    offset: int
    line: int
    unread: int


class Trouble(StrEnum):
    """Why a file cannot be read further now."""

    VANISHED = "vanished"
    UNREADABLE = "unreadable"
    NOT_A_FILE = "not a file"
    SHORTER = "shorter"


class TailFailed(msgspec.Struct, frozen=True, tag=True):
    """A file cannot be read further now; told once, and again only where the trouble changes. offset is how far it was
    read. A shorter one is a copy that lacks bytes which were read already: nothing of it is read twice."""

    source: str
    trouble: Trouble
    why: str
    generation: int
    offset: int


class TailResumed(msgspec.Struct, frozen=True, tag=True):
    """After a TailFailed the file is read on from this offset. A Rotated follows where it is not the same file."""

    source: str
    generation: int
    offset: int


class Continued(msgspec.Struct, frozen=True, tag=True):
    """What is read under a name as this generation goes on what was read under another name (a log was rotated). Comes
    before the first byte of it, and only where blocks are read far from the disk."""

    source: str
    from_source: str
    from_generation: int
    generation: int


class Gap(msgspec.Struct, frozen=True, tag=True):
    """So many bytes from this offset on never came, and won't: they were removed on their way before they were read."""

    source: str
    offset: int
    size: int


class Held(msgspec.Struct, frozen=True, tag=True):
    """The newest bytes of a line that has no newline yet: a bar that is redrawn in place for hours. offset and line are
    where it begins; it will be read again, whole, when it ends."""

    source: str
    offset: int
    line: int
    data: bytes


Piece = Block | LineCut | Rotated | TailFailed | TailResumed | Continued | Gap
