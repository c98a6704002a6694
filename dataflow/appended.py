"""A file to which pieces are appended, each whole or not at all."""

import errno
import fcntl
import os
import select
import stat
from contextlib import suppress
from pathlib import Path


class Appended:
    """An open file that only grows. Where its path leads to another file, or to none (logrotate), it goes on in a new
    one. With fd it is that descriptor, which is neither followed nor closed. Raises OSError, with the file's name."""

    def __init__(self, path: Path, fd: int | None = None) -> None:
        self.path = path
        self._unforced = False
        self._given = fd is not None
        self.fd = self._opened() if fd is None else fd

    def append(self, piece: bytes) -> None:
        """Adds a piece. Where the disk takes only a part of it, that part is taken back."""
        try:
            if not self._given and not self._stands():
                self.force()
                fresh = self._opened()
                self.close()
                self.fd = fresh
            self._write(piece)
        except OSError as error:
            error.filename = error.filename or str(self.path)
            raise

    def force(self) -> None:
        """Has the disk keep what was appended, also through a crash of the machine. A pipe or terminal keeps nothing.
        Raises OSError."""
        if self._unforced and self.fd >= 0 and stat.S_ISREG(os.fstat(self.fd).st_mode):
            os.fsync(self.fd)
            if not self._given:
                force_names(self.path.parent)
        self._unforced = False

    def place(self) -> tuple[int, int] | None:
        """Which file it is (its inode), and where that ends; None of a pipe or terminal. Raises OSError."""
        found = os.fstat(self.fd)
        return (found.st_ino, found.st_size) if stat.S_ISREG(found.st_mode) else None

    def end_line(self) -> None:
        """Ends a last line that was cut off amid a write, so that it spoils none but itself. What can't be read back, a
        pipe or a file of other people's, is left as it is. Raises OSError where the end can't be written."""
        end = self._end()
        if not end:
            return
        try:
            with open(f"/dev/fd/{self.fd}", "rb") as written:
                last = os.pread(written.fileno(), 1, end - 1)
        except OSError:
            return
        if last != b"\n":
            self.append(b"\n")

    def close(self) -> None:
        """Lets go. Raises OSError where the file system tells only now what it couldn't write."""
        fd, self.fd = self.fd, -1
        if fd >= 0 and not self._given:
            os.close(fd)

    def _opened(self) -> int:
        return os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)

    def _stands(self) -> bool:
        """Whether the path still leads to the file that is open."""
        if self.fd < 0:
            return False
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            return False
        return os.path.samestat(found, os.fstat(self.fd))

    def _write(self, piece: bytes) -> None:
        end = self._end()
        rest = memoryview(piece)
        self._unforced = True
        try:
            while rest:
                try:
                    rest = rest[os.write(self.fd, rest) :]
                except BlockingIOError:
                    select.select([], [self.fd], [])
        except OSError:
            if end is not None:
                with suppress(OSError):
                    os.ftruncate(self.fd, end)
                    os.lseek(self.fd, end, os.SEEK_SET)
            raise

    def _end(self) -> int | None:
        """Where the next byte will stand; None in a pipe or terminal, or amid a file, from which nothing is cut."""
        found = os.fstat(self.fd)
        if not stat.S_ISREG(found.st_mode):
            return None
        if fcntl.fcntl(self.fd, fcntl.F_GETFL) & os.O_APPEND:
            return found.st_size
        place = os.lseek(self.fd, 0, os.SEEK_CUR)
        return place if place >= found.st_size else None


def force(path: Path) -> None:
    """Has the disk keep a file as it stands, and its name. Raises OSError."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)
    force_names(path.parent)


def force_names(folder: Path) -> None:
    """Has the disk keep which files a folder holds; some file systems can't be asked for it. Raises OSError."""
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(place)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(place)


class Pages:
    """A text stream into such a file: what was written is appended as one piece at `flush`, or dropped where that
    fails, so that a sink may write it again."""

    def __init__(self, file: Appended) -> None:
        self._file = file
        self._held: list[str] = []

    def write(self, text: str) -> None:
        """Keeps a text for the next flush."""
        self._held.append(text)

    def flush(self) -> None:
        """Appends what is kept. Raises OSError."""
        piece = "".join(self._held).encode("utf-8", "backslashreplace")
        self._held.clear()
        self._file.append(piece)

    def isatty(self) -> bool:
        """Whether people read it."""
        return os.isatty(self._file.fd)
