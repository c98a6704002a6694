"""A file that is open, and may stay so between two polls while few do (opened.py)."""

import errno
import os

import msgspec

from dataflow.identity import SAMPLE_BYTES, Mark, digest
from dataflow.opened import HELD

_HOLE_FROM = 65_536
"""A hole begins at a block of the file system; none has larger ones."""


class Stretch(msgspec.Struct, frozen=True):
    """Bytes of a file from offset `since` on. at_end says that nothing but a hole follows."""

    read: bytes
    since: int
    at_end: bool


class Grip:
    """An open file; close it. All methods but close raise OSError."""

    def __init__(self, path: str) -> None:
        """Opens. Raises ValueError where the path can be none."""
        self.fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        self._kept = False
        try:
            opened = os.fstat(self.fd)
        except OSError:
            os.close(self.fd)
            raise
        self.inode, self.device = opened.st_ino, opened.st_dev

    @property
    def size(self) -> int:
        """The file's size now."""
        return os.fstat(self.fd).st_size

    def is_of(self, found: os.stat_result) -> bool:
        """Whether a path that was looked at leads to this file."""
        return self.inode == found.st_ino and self.device == found.st_dev

    def stretch(self, mark: Mark, most: int) -> Stretch | None:
        """At most so many bytes behind a mark, and SAMPLE_BYTES before it; None where those are not what they were."""
        seen = self.whole_stretch(mark, most)
        if seen is None or not seen.read.endswith(b"\0"):
            return seen
        end = max(mark.offset - seen.since, len(seen.read.rstrip(b"\0")))
        return Stretch(seen.read[:end], seen.since, True) if self._hole_after(seen.since + end) else seen

    def whole_stretch(self, mark: Mark, most: int) -> Stretch | None:
        """The same with the hole at the file's end, as NUL bytes."""
        context = min(mark.offset, SAMPLE_BYTES)
        since = mark.offset - context
        read = os.pread(self.fd, context + most, since)
        if context and digest(read[:context]) != mark.before:
            return None
        at_end = len(read) <= context or since + len(read) >= self.size
        return Stretch(read, since, at_end)

    def _hole_after(self, offset: int) -> bool:
        """Whether the file has no more bytes behind an offset, whatever its size. Where a file system cannot tell, the
        NUL bytes count as written."""
        try:
            os.lseek(self.fd, offset + _HOLE_FROM, os.SEEK_DATA)
        except OSError as error:
            return error.errno == errno.ENXIO
        return False

    def keep(self) -> bool:
        """Whether it may stay open until the next poll."""
        self._kept = self._kept or HELD.take()
        return self._kept

    def close(self) -> None:
        """Lets go."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
        HELD.give_back(self._kept)
        self._kept = False
