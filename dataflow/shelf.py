"""Files that came from a shipper, in a folder that mirrors its capture: what is read whole, or again, needs a place."""

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any


class Shelf:
    """A folder of files as they come, in pieces. Pieces may come twice, and in any order; what is missing is known.

    upto is, by relative name, the offset up to which all came, and ahead the pieces behind a hole, as (from, to).
    Raises OSError. Names are as the wire gives them: they lead to no place outside.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.upto: dict[str, int] = {}
        self.ahead: dict[str, list[tuple[int, int]]] = {}

    def path_of(self, relative: str) -> Path:
        """Where a file lies."""
        return self.folder / relative

    def begin(self, relative: str) -> None:
        """A file is sent anew: what is there of it is another one's."""
        with suppress(FileNotFoundError):
            self.path_of(relative).unlink()

    def put(self, relative: str, offset: int, data: bytes, mtime_ns: int = 0) -> None:
        """Writes a piece."""
        path = self.path_of(relative)
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            rest, at = memoryview(data), offset
            while rest:
                wrote = os.pwrite(fd, rest, at)
                rest, at = rest[wrote:], at + wrote
            if mtime_ns:
                os.utime(fd, ns=(mtime_ns, mtime_ns))
        finally:
            os.close(fd)
        self._came(relative, offset, offset + len(data))

    def line(self, relative: str, offset: int, line: bytes) -> None:
        """Writes a line of a file whose blank lines don't come."""
        upto = self.upto.get(relative, 0)
        if offset > upto:
            self.put(relative, upto, b"\n" * (offset - upto))
        self.put(relative, offset, line + b"\n")

    def folder_of(self, relative: str) -> None:
        """Makes a folder."""
        self.path_of(relative).mkdir(parents=True, exist_ok=True)

    def link(self, relative: str) -> None:
        """Makes a link that leads nowhere: who reads the folder tells of it, and follows none."""
        path = self.path_of(relative)
        path.parent.mkdir(parents=True, exist_ok=True)
        if not os.path.lexists(path):
            path.symlink_to("elsewhere")

    def missing(self, files: dict[str, int]) -> dict[str, tuple[int, int]]:
        """Of these files with their sizes: where the first bytes are that have not come, as (from, to)."""
        return {
            name: (self.upto.get(name, 0), self.ahead[name][0][0] if self.ahead.get(name) else size)
            for name, size in files.items()
            if self.upto.get(name, 0) < size
        }

    def finish(self, files: dict[str, int]) -> None:
        """Gives the files their sizes: one may be empty, or end in a line that has no newline."""
        for name, size in files.items():
            path = self.path_of(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "ab") as file:
                found = os.fstat(file.fileno())
                if found.st_size != size:
                    os.truncate(file.fileno(), size)
                    os.utime(path, ns=(found.st_mtime_ns, found.st_mtime_ns))

    def remove(self) -> None:
        """Removes all."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def snapshot(self) -> tuple[Any, ...]:
        """What `restore` needs; the files themselves stay where they are."""
        return self.upto, self.ahead

    def restore(self, snapshot: tuple[Any, ...]) -> None:
        """Goes on where a snapshot was made."""
        self.upto, self.ahead = snapshot

    def _came(self, relative: str, begin: int, end: int) -> None:
        upto = self.upto.get(relative, 0)
        if begin > upto:
            self.ahead[relative] = sorted({*self.ahead.get(relative, []), (begin, end)})
            return
        upto = max(upto, end)
        ahead = self.ahead.pop(relative, [])
        while ahead and ahead[0][0] <= upto:
            upto = max(upto, ahead.pop(0)[1])
        if ahead:
            self.ahead[relative] = ahead
        self.upto[relative] = upto
