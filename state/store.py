"""The durable book of what was said of each job: its newest verdict and gates, and every verdict before (RocksDB).

Keys are deterministic, so that a record that is written twice stands once. One process writes; any number read beside
it, each as a secondary that writes nothing into the store.
"""

import errno
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
from rocksdict import AccessType, Options, Rdict, WriteBatch

from state.ledger import configuration_of, ends_of, merged
from state.report import encode

Record = dict[str, Any]

_NEWEST, _GATE, _VERDICT, _END = b"newest", b"gate", b"verdict", b"end"
_BUFFER_BYTES = 4 << 20
_FILES_OPEN = 64
_FILE = re.compile(
    r"\d+\.(?:sst|log|blob|dbtmp)|(?:MANIFEST|OPTIONS)-.*|CURRENT|IDENTITY|LOCK|LOG.*|rocksdict-config\.json"
)
_WORDS = ("CURRENT", "MANIFEST-")
"""Files of which one stands in every store."""
_OWN = ("LOCK", "LOG", "rocksdict-config")
"""Files that whoever opens a store writes for itself."""
_LOOKS = 5
"""At a store whose files change while they are looked at."""

_OF_A_DISK = (".", "lost+found")
"""What a fresh volume holds."""
_WATCH = "watch"
"""What a watch keeps beside its store, and makes before it."""


class StoreError(OSError):
    """A store that can't be opened, read or written: filename is its folder, strerror says why and what to do. damaged
    says that its files are not what was written."""

    def __init__(self, folder: Path, why: str, *, damaged: bool = False) -> None:
        super().__init__(errno.EIO, why, str(folder))
        self.damaged = damaged

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"


class Store:
    """The book, open for writing. Raises StoreError where it can't be written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            foreign = any(not entry.name.startswith(_OF_A_DISK) for entry in folder.iterdir())
        except OSError as error:
            raise _told(folder, error) from error
        if foreign and not store_files(folder) and not (folder / _WATCH).exists():
            raise StoreError(folder, "holds other files and no store; name a folder of its own")
        try:
            self._book = Rdict(str(folder), store_options())
        except Exception as error:
            raise _told(folder, error) from error
        self._newest: dict[str, str] = {}

    def write(self, record: Record) -> None:
        """Adds one record. A verdict that is older than the job's newest goes into the history alone."""
        job, value = record["job"], encode(record)
        if record["kind"] == "gate":
            self._put([(_key(_GATE, job, record["gate"]), value)])
            return
        newest = self._newest_of(job)
        entries = [(_key(_VERDICT, job, record["at"], record["id"]), value), *self._ends(record)]
        if record["at"] >= newest:
            entries.append((_key(_NEWEST, job), value))
        self._put(entries)
        self._newest[job] = max(record["at"], newest)

    def force(self) -> None:
        """Has the disk keep what was written, also through a crash of the machine. Raises StoreError."""
        try:
            self._book.flush_wal(True)
        except Exception as error:
            raise _told(self._folder, error) from error

    def close(self) -> None:
        """Ends the writing; what was written is on the disk."""
        try:
            self._book.flush()
            self._book.close()
        except Exception as error:
            raise _told(self._folder, error) from error

    def _ends(self, record: Record) -> Iterator[tuple[bytes, bytes]]:
        """What a verdict adds to the ledger of its configuration."""
        for name, end in ends_of(record):
            key = _key(_END, end["configuration"], record["job"], name)
            known = _got(self._folder, self._book, key)
            if known is None or merged(known, end) is not known:
                yield key, orjson.dumps(end)

    def _newest_of(self, job: str) -> str:
        if job not in self._newest:
            known = _got(self._folder, self._book, _key(_NEWEST, job))
            self._newest[job] = "" if known is None else known["at"]
        return self._newest[job]

    def _put(self, entries: list[tuple[bytes, bytes]]) -> None:
        batch = WriteBatch(raw_mode=True)
        for key, value in entries:
            batch.put(key, value)
        try:
            self._book.write(batch)
        except Exception as error:
            raise _told(self._folder, error) from error


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
        return _got(self._folder, self._book, _key(_NEWEST, job))

    def gates(self, job: str) -> dict[str, Record]:
        """The newest record of each of a job's gates."""
        return {record["gate"]: record for record in self._under(_key(_GATE, job) + b"\0")}

    def verdicts(self, job: str) -> list[Record]:
        """All verdicts of a job, oldest first."""
        return list(self._under(_key(_VERDICT, job) + b"\0"))

    def ends(self, job: str) -> list[Record]:
        """How the runs and attempts of a job's configuration ended, its own included, in no order of time."""
        return list(self._under(_key(_END, configuration_of(job)) + b"\0"))

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
            raise _told(self._folder, error, self._book.path()) from error


@contextmanager
def reading(folder: Path) -> Iterator[Book]:
    """The book of a folder, as it stands now, also while it is written. Nothing is written into the folder, so that it
    may be another user's, or read-only. Raises StoreError."""
    with _aside(folder) as aside:
        book = _beside(folder, aside)
        try:
            yield Book(folder, book)
        finally:
            book.close()


@contextmanager
def _aside(folder: Path) -> Iterator[Path]:
    """A temporary folder for what reading a store writes. Raises StoreError, also where there is no store."""
    try:
        if not folder.is_dir() or not any(entry.name.startswith(_WORDS) for entry in folder.iterdir()):
            begins = f"`wedgewatch watch --store {folder} CAPTURE` begins one, or `replay`"
            raise StoreError(folder, f"holds no store; {begins}")
        aside = Path(tempfile.mkdtemp(prefix="wedgewatch-"))
    except StoreError:
        raise
    except OSError as error:
        raise _told(folder, error) from error
    try:
        yield aside
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _beside(folder: Path, aside: Path, looks: int = _LOOKS) -> Rdict:
    """The store opened as a secondary in a folder of links to its files: rocksdict writes into the folder that it
    opens. A file that came meanwhile has no link, and RocksDB passes over one that it lacks, to an older state: then
    all is opened once more. Raises StoreError."""
    place, own = aside / f"look-{looks}", aside / f"own-{looks}"
    linked = _linked(folder, place)
    try:
        book = Rdict(str(place), store_options(), access_type=AccessType.secondary(str(own)))
        book.try_catch_up_with_primary()
    except Exception as error:
        if looks > 1 and linked != _names(folder):
            return _beside(folder, aside, looks - 1)
        raise _told(folder, error, place) from error
    if looks > 1 and linked != _names(folder):
        book.close()
        return _beside(folder, aside, looks - 1)
    return book


def _linked(folder: Path, place: Path) -> set[str]:
    """Makes a folder of links to a store's files; gives their names. Raises StoreError."""
    names = _names(folder)
    try:
        place.mkdir()
        for name in names:
            (place / name).symlink_to(folder.absolute() / name)
    except OSError as error:
        raise _told(folder, error) from error
    return names


def _names(folder: Path) -> set[str]:
    """The names of a store's files, but of those that whoever opens it writes for itself. Raises StoreError."""
    try:
        return {path.name for path in store_files(folder) if not path.name.startswith(_OWN)}
    except OSError as error:
        raise _told(folder, error) from error


def store_files(folder: Path) -> list[Path]:
    """RocksDB's files in a store's folder, of which sub-folders and foreign files are none."""
    return [path for path in folder.iterdir() if path.is_file() and _FILE.fullmatch(path.name)]


def store_options() -> Options:
    """A quarter of RocksDB's usual memory: a fleet's book is small."""
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_write_buffer_size(_BUFFER_BYTES)
    options.set_max_write_buffer_number(2)
    options.set_max_open_files(_FILES_OPEN)
    options.set_keep_log_file_num(1)
    return options


def _got(folder: Path, book: Rdict, key: bytes) -> Record | None:
    """What stands under a key. Raises StoreError."""
    try:
        value = book.get(key)
    except Exception as error:
        raise _told(folder, error, book.path()) from error
    return None if value is None else orjson.loads(value)


def _key(kind: bytes, *words: str) -> bytes:
    return b"\0".join((kind, *(word.encode("utf-8", "surrogatepass") for word in words)))


def _told(folder: Path, error: Exception, place: object = None) -> StoreError:
    """The store's error in words, with what to do. place is where it was opened, if that is not its folder."""
    said = str(error).splitlines()[0] if str(error) else type(error).__name__
    said = said if place is None else said.replace(str(place), str(folder))
    if isinstance(error, OSError):
        elsewhere = f": {error.filename}" if error.filename not in (None, str(folder)) else ""
        return StoreError(folder, f"cannot be used as a store: {error.strerror or said}{elsewhere}")
    if "Corruption" in said:
        why = f"the store is damaged ({said}); move it away and replay: the logs are the truth"
        return StoreError(folder, why, damaged=True)
    if "lock hold by" in said or "Resource temporarily unavailable" in said:
        return StoreError(folder, "another wedgewatch writes into this store; give each its own --store")
    if "No space left" in said:
        return StoreError(folder, "the disk is full")
    return StoreError(folder, f"the store cannot be used: {said}", damaged="No such file" in said)
