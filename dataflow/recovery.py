"""The engine's recovery databases (bytewax 0.21.1: SQLite): begun, looked over before a start, blamed after one.

There is one partition. The engine writes what a worker remembers first and how far it came afterwards; within one
database each cut of the log leaves an earlier state that is whole. Over several databases it does not notice that one
of them is older than the others, and would go on with a memory that lacks what was read since.
"""

import pickle
import sqlite3
import struct
from contextlib import closing
from enum import StrEnum
from pathlib import Path

import msgspec
from bytewax.recovery import (
    InconsistentPartitionsError,
    MissingPartitionsError,
    NoPartitionsError,
    init_db_dir,
)

PARTITIONS = 1
ROOM_BYTES = 256 << 10
"""What new databases take at first. The engine panics, with a backtrace on standard error, where it isn't there."""

_DATABASE = "part-0.sqlite3"
_TABLES = {"parts", "exs", "fronts", "commits", "snaps"}
_WAL_HEADER, _FRAME_HEADER = 32, 24
_INDEX = struct.Struct("=12xB x H I 4x 8x 8s")
"""The head of SQLite's wal-index (walformat, WalIndexHdr): whether it is in use, page size, frames, salts."""


class Refusal(StrEnum):
    """Why the engine gave up over its databases: they are damaged, or the disk is full."""

    DAMAGED = "damaged"
    FULL = "full"


def refusal(error: BaseException) -> Refusal | None:
    """What an error that ended the engine says of the recovery databases; None where it is no matter of theirs."""
    said = str(error)
    if "DiskFull" in said or "disk is full" in said:
        return Refusal.FULL
    if isinstance(error, NoPartitionsError | MissingPartitionsError | InconsistentPartitionsError):
        return Refusal.DAMAGED
    unread = isinstance(error, pickle.UnpicklingError | msgspec.DecodeError)
    return Refusal.DAMAGED if unread or "src/recovery.rs" in said or "recovery partitions" in said else None


def begin(folder: Path) -> None:
    """Makes the folder with fresh databases. Raises OSError where there is no room for them."""
    folder.mkdir()
    room = folder / "room"
    room.write_bytes(b"\0" * ROOM_BYTES)
    room.unlink()
    try:
        init_db_dir(folder, PARTITIONS)  # type: ignore[no-untyped-call]
    except BaseException as error:
        # A panic of the engine is no Exception.
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        raise OSError(f"no recovery database can be made: {error}") from None


def damage(folder: Path) -> str:
    """What is wrong with a recovery folder, "" where nothing is. Raises OSError where the disk has no room to tell."""
    database = folder / _DATABASE
    found = {path.name for path in folder.glob("part-*.sqlite3")}
    if not found:
        return "its database is missing"
    if found != {_DATABASE}:
        return f"it holds the databases {', '.join(sorted(found))}, where {_DATABASE} alone is expected"
    if _log_was_cut(database):
        return "the database's log was cut"
    try:
        with closing(sqlite3.connect(database, timeout=1)) as opened:
            return _within(opened)
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorname", "") == "SQLITE_FULL":
            raise OSError(f"{database}: {error}") from None
        return f"the database can't be read ({error})"


def _within(database: sqlite3.Connection) -> str:
    checked = [row[0] for row in database.execute("PRAGMA quick_check(1)")]
    if checked != ["ok"]:
        return f"the database is damaged ({str(checked[0]).splitlines()[0] if checked else 'no answer'})"
    tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not tables >= _TABLES:
        return "the database is not one of recovery"
    if list(database.execute("SELECT part_index, part_count FROM parts")) != [(0, PARTITIONS)]:
        return "the database is one of several, and the others are missing"
    return ""


def _log_was_cut(database: Path) -> bool:
    """Whether the database's write-ahead log is shorter than its index says, or another one. SQLite itself takes what
    is left for all there was. The index outlives a kill -9; an orderly end removes log and index."""
    index, log = (database.with_name(f"{database.name}-{end}") for end in ("shm", "wal"))
    try:
        with index.open("rb") as opened:
            in_use, page, frames, salts = _INDEX.unpack(opened.read(_INDEX.size))
    except (OSError, struct.error):
        return False
    if not in_use or not frames:
        return False
    try:
        size = log.stat().st_size
        with log.open("rb") as opened:
            head = opened.read(_WAL_HEADER)
    except OSError:
        return True
    page = 65_536 if page == 1 else page
    return bool(head[16:24] != salts or size < _WAL_HEADER + frames * (_FRAME_HEADER + page))
