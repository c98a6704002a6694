"""The durable book of what was said of each job: its newest verdict and gates, and every verdict before (RocksDB).

Keys are deterministic, so that a record that is written twice stands once. One process writes; any number read beside
it, each as a secondary that leaves no trace in the store.
"""

import errno
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
from rocksdict import AccessType, Options, Rdict, WriteBatch

from state.report import encode

Record = dict[str, Any]

_NEWEST, _GATE, _VERDICT = b"newest", b"gate", b"verdict"
_BUFFER_BYTES = 4 << 20
_FILES_OPEN = 64
_WORDS = ("CURRENT", "MANIFEST-")
"""Files of which one stands in every store."""


class StoreError(OSError):
    """A store that can't be opened, read or written: filename is its folder, strerror says why and what to do."""

    def __init__(self, folder: Path, why: str) -> None:
        super().__init__(errno.EIO, why, str(folder))

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"


class Store:
    """The book, open for writing. Raises StoreError where it can't be written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._book = Rdict(str(folder), _options())
        except Exception as error:
            raise _told(folder, error) from error
        self._newest: dict[str, str] = {}

    def write(self, record: Record) -> None:
        """Adds one record. A verdict that is older than the job's newest goes into the history alone."""
        job, at = record["job"], record["at"]
        batch, value = WriteBatch(raw_mode=True), encode(record)
        if record["kind"] == "gate":
            batch.put(_key(_GATE, job, record["gate"]), value)
        else:
            batch.put(_key(_VERDICT, job, at, record["id"]), value)
            if at >= self._newest_of(job):
                batch.put(_key(_NEWEST, job), value)
                self._newest[job] = at
        try:
            self._book.write(batch)
        except Exception as error:
            raise _told(self._folder, error) from error

    def close(self) -> None:
        """Ends the writing; what was written is on the disk."""
        try:
            self._book.flush()
            self._book.close()
        except Exception as error:
            raise _told(self._folder, error) from error

    def _newest_of(self, job: str) -> str:
        if job not in self._newest:
            known = self._book.get(_key(_NEWEST, job))
            self._newest[job] = "" if known is None else orjson.loads(known)["at"]
        return self._newest[job]


class Book:
    """The book, open for reading."""

    def __init__(self, folder: Path, book: Rdict) -> None:
        self._folder = folder
        self._book = book

    def jobs(self) -> list[Record]:
        """The newest verdict of every job, by the jobs' names."""
        return list(self._under(_key(_NEWEST) + b"\0"))

    def newest(self, job: str) -> Record | None:
        """The newest verdict of a job; None where nothing was said of it."""
        value = self._book.get(_key(_NEWEST, job))
        return None if value is None else orjson.loads(value)

    def gates(self, job: str) -> dict[str, Record]:
        """The newest record of each of a job's gates."""
        return {record["gate"]: record for record in self._under(_key(_GATE, job) + b"\0")}

    def verdicts(self, job: str) -> list[Record]:
        """All verdicts of a job, oldest first."""
        return list(self._under(_key(_VERDICT, job) + b"\0"))

    def _under(self, prefix: bytes) -> Iterator[Record]:
        """The records whose keys begin so. A scan stops silently at a damaged block, which its status tells."""
        found = self._book.iter()
        found.seek(prefix)
        while found.valid() and found.key().startswith(prefix):
            yield orjson.loads(found.value())
            found.next()
        try:
            found.status()
        except Exception as error:
            raise _told(self._folder, error) from error


@contextmanager
def reading(folder: Path) -> Iterator[Book]:
    """The book of a folder, as it stands now, also while it is written. Raises StoreError."""
    if not folder.is_dir() or not any(entry.name.startswith(_WORDS) for entry in folder.iterdir()):
        raise StoreError(folder, f"holds no store; `wedgewatch replay --store {folder} CAPTURE` begins one")
    aside = tempfile.mkdtemp(prefix="wedgewatch-")
    try:
        try:
            book = Rdict(str(folder), _options(), access_type=AccessType.secondary(aside))
            book.try_catch_up_with_primary()
        except Exception as error:
            raise _told(folder, error) from error
        try:
            yield Book(folder, book)
        finally:
            book.close()
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _options() -> Options:
    """A quarter of RocksDB's usual memory: a fleet's book is small."""
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_write_buffer_size(_BUFFER_BYTES)
    options.set_max_write_buffer_number(2)
    options.set_max_open_files(_FILES_OPEN)
    options.set_keep_log_file_num(1)
    return options


def _key(kind: bytes, *words: str) -> bytes:
    return b"\0".join((kind, *(word.encode("utf-8", "surrogatepass") for word in words)))


def _told(folder: Path, error: Exception) -> StoreError:
    """The store's error in words, with what to do."""
    said = str(error).splitlines()[0] if str(error) else type(error).__name__
    if "lock" in said.lower():
        return StoreError(folder, "another wedgewatch writes into this store; give each its own --store")
    if isinstance(error, OSError):
        return StoreError(folder, f"cannot be used as a store: {error.strerror or said}")
    if "Corruption" in said:
        return StoreError(folder, f"the store is damaged ({said}); move it away and replay: the logs are the truth")
    return StoreError(folder, f"the store cannot be used: {said}")
