"""One process at a time uses a folder of the store, and is told in words what the disk refuses."""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class StateError(Exception):
    """The state can't be kept or used. The message names the folder, and says why and what to do."""


@contextmanager
def locked(folder: Path, whose: str, does: str) -> Iterator[None]:
    """A folder, made where it isn't there, for this process alone: `lock` in it holds its process id. whose state it is
    and what another process does with it is for people. Raises StateError."""
    with telling(folder, whose):
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        with telling(folder, whose):
            _take(lock, folder, does)
        yield
    finally:
        os.close(lock)


@contextmanager
def telling(folder: Path, whose: str) -> Iterator[None]:
    """What the disk refuses, in words. Raises StateError."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC:
            why = "the disk is full; make room, or name a --store on another one"
        elif error.errno == errno.EROFS:
            why = "the file system is read-only; name a --store that can be written"
        elif error.errno in (errno.EEXIST, errno.ENOTDIR):
            why = f"a file stands in its place ({error.filename}); move it away, or name another --store"
        else:
            why = f"{error.strerror or error}; name another --store"
        raise StateError(f"{folder}: the {whose}'s state can't be kept here: {why}") from error


def _take(lock: int, folder: Path, does: str) -> None:
    """Locks it, and writes who holds it. Children don't inherit the lock, and it ends with the process."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(lock, 32, 0).decode("ascii", "replace").strip()
        raise StateError(
            f"{folder}: another wedgewatch (process {holder if holder.isdigit() else 'unknown'}) {does} with this "
            "state; stop it, or give this one its own --store"
        ) from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
