"""The bytes of one file as they lie, as a stream of chunks. Whatever goes wrong is a value."""

import errno
import os
import resource
import stat
import sys
from collections.abc import Callable, Iterator
from threading import Lock

import msgspec

READ_BYTES = 262_144
HELD_FILES = 64
"""Files that stay open between two reads; others are opened for each."""
LINE_BYTES = 1_024
"""Most lines are shorter."""
STDIN = "-"
"""The path that stands for standard input."""


class Damage(msgspec.Struct, frozen=True):
    """Why bytes are missing or doubtful, with the place. What was given before it is good."""

    why: str


Taken = Callable[[int], None]
"""Is told of each chunk's bytes as they lie, packed ones packed."""


def counted(raw: Iterator[bytes | Damage], taken: Taken) -> Iterator[bytes | Damage]:
    """The same chunks, their bytes counted."""
    for chunk in raw:
        if isinstance(chunk, bytes):
            taken(len(chunk))
        yield chunk


def stdin_chunks(read_size: int) -> Iterator[bytes | Damage]:
    """Standard input can be read once."""
    at = 0
    if sys.stdin is None:
        yield Damage("cannot be read: standard input is closed")
        return
    try:
        while chunk := sys.stdin.buffer.read1(read_size):  # type: ignore[union-attr]
            at += len(chunk)
            yield chunk
    except (OSError, ValueError) as error:
        yield Damage(f"reading stopped at byte {at}: {error}")


def file_chunks(path: str, read_size: int, by_lines: bool = False) -> Iterator[bytes | Damage]:
    """A file's bytes in order, then what was wrong with it. Never raises OSError.

    A chunk has read_size bytes at most; by_lines, it ends with the line that goes over a multiple of read_size, if that
    is short.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        yield Damage(f"cannot be opened: {reason(error)}")
        return
    opened = os.fstat(fd)
    if stat.S_ISREG(opened.st_mode):
        yield from _regular(path, fd, opened, read_size, by_lines)
        return
    try:
        yield from _stream(fd, read_size)
    finally:
        os.close(fd)


def _regular(path: str, fd: int, opened: os.stat_result, read_size: int, by_lines: bool) -> Iterator[bytes | Damage]:
    """A file stays open from one read to the next only while few do: thousands are merged at once, and a process may
    have no more than 256 open."""
    at, now, keep = 0, opened, HELD.take()
    try:
        while True:
            if fd < 0:
                fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            size = min(read_size, max(LINE_BYTES, now.st_size - at))
            if by_lines and size == read_size:
                size = _to_the_line_end(fd, at, read_size)
            chunk, now = os.pread(fd, size, at), os.fstat(fd)
            if not keep:
                fd = _closed(fd)
            if not chunk or not _same_file(now, opened):
                break
            at += len(chunk)
            yield chunk
    except OSError as error:
        yield Damage(f"reading stopped at byte {at}: {reason(error)}")
        return
    finally:
        if fd >= 0:
            os.close(fd)
        HELD.give_back(keep)
    if not _same_file(now, opened) or not _still_there(path, now):
        yield Damage(f"replaced while it was read: the {at} bytes read are those of the earlier file")
    elif at < opened.st_size or now.st_size < at:
        yield Damage(f"truncated while it was read: had {opened.st_size} bytes, has {now.st_size}, read to byte {at}")


def _to_the_line_end(fd: int, at: int, read_size: int) -> int:
    """How many bytes to read from a place, so that a block of whole lines is one piece and need not be joined."""
    edge = at - at % read_size + read_size - 1
    newline = os.pread(fd, LINE_BYTES, edge).find(b"\n")
    return edge - at + max(0, newline) + 1


def _closed(fd: int) -> int:
    os.close(fd)
    return -1


class _Held:
    """How many files may be held open at once: few, and a quarter of what the process may have."""

    def __init__(self) -> None:
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._free = HELD_FILES if soft == resource.RLIM_INFINITY else min(HELD_FILES, soft // 4)
        self._lock = Lock()

    def take(self) -> bool:
        """Whether one more may be held; it must be given back then."""
        with self._lock:
            taken = self._free > 0
            self._free -= taken
            return taken

    def give_back(self, taken: bool) -> None:
        """Ends what `take` gave."""
        with self._lock:
            self._free += taken


HELD = _Held()
"""The files that this process holds open between two reads."""


def _same_file(one: os.stat_result, other: os.stat_result) -> bool:
    return (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)


def _still_there(path: str, opened: os.stat_result) -> bool:
    try:
        now = os.stat(path)
    except OSError:
        return False
    return _same_file(now, opened)


def _stream(fd: int, read_size: int) -> Iterator[bytes | Damage]:
    """A pipe or a device, which has no size and no second reading."""
    at = 0
    try:
        while chunk := os.read(fd, read_size):
            at += len(chunk)
            yield chunk
    except OSError as error:
        yield Damage(f"reading stopped at byte {at}: {reason(error)}")


def reason(error: Exception) -> str:
    """An error in the system's words, without Python's."""
    if isinstance(error, OSError) and error.errno is not None:
        return "too many symbolic links" if error.errno == errno.ELOOP else os.strerror(error.errno)
    return str(error) or type(error).__name__
