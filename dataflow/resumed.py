"""Sinks that repeat nothing after a restart: what was said of each job is read back, or kept beside.

A flow that resumes, or that reads all logs again, gives records that were given before. They come in the order of their
time, so a sink knows them by each job's newest time and the ids that were said at it.
"""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson

from dataflow.appended import Appended, force
from dataflow.sinks import Sink
from state.report import encode

Record = dict[str, Any]

BLOCK_BYTES = 1 << 20
HEAD_BYTES, TAIL_BYTES = 4_096, 64
LONGEST = 32 << 20
"""Bytes of a line that is parsed where its ends alone don't tell what it is."""
COMPACTED = 4_096
"""Lines that are added to a memory before it is written anew."""
_FORCED = b"null"
"""A memory's line: the records above it were forced to the disk."""

_HEAD = re.compile(rb'\{"schema":"[^"]*","kind":"\w+","job":("(?:[^"\\]|\\.)*"),"at":"([^"\\]*)"')
_TAIL = re.compile(rb'"id":"([^"\\]*)"\}\Z')
_BEGINNING = b'{"schema":"wedgewatch/'


class Said:
    """What was said: per job the newest time, and the ids at it."""

    def __init__(self) -> None:
        self._newest: dict[str, tuple[str, set[str]]] = {}

    def has(self, record: Record) -> bool:
        """Whether a record was said, by its own id or because later ones of its job were."""
        at, ids = self._newest.get(record["job"], ("", set()))
        return bool(record["at"] < at or (record["at"] == at and record["id"] in ids))

    def add(self, job: str, at: str, id: str) -> bool:
        """Notes a record that was said; False where it is older than what is known of its job."""
        newest, ids = self._newest.setdefault(job, (at, set()))
        if at == newest:
            ids.add(id)
        elif at > newest:
            self._newest[job] = (at, {id})
        return at >= newest

    def known(self) -> Iterator[tuple[str, str, str]]:
        """Job, time and id of all that it knows."""
        for job, (at, ids) in self._newest.items():
            for each in sorted(ids):
                yield job, at, each


class ResumedLines:
    """Appends records as JSON lines, but those that the file has. notes says what was done to a file that was torn.

    jobs are those whose records may come, None where that isn't known. The file is read from its end until an older
    record of each was met, which is a few lines where all of them were said lately; a file without one of them is read
    whole, a GB in about a second, rather than kept an index of that could be wrong. Raises OSError where it can't be
    opened or read.
    """

    def __init__(self, path: Path, jobs: Iterable[str] | None) -> None:
        self.notes: list[str] = []
        self._file = Appended(path)
        self.said = Said()
        if os.path.isfile(path):
            self._mend()
            read_back(self._file.fd, None if jobs is None else set(jobs), self.said)

    def write(self, record: Record) -> None:
        """Takes one record. Raises OSError; the file is then as it was."""
        if self.said.has(record):
            return
        self._file.append(encode(record) + b"\n")
        self.said.add(record["job"], record["at"], record["id"])

    def force(self) -> None:
        """Has the disk keep what was appended. Raises OSError."""
        self._file.force()

    def close(self) -> None:
        """Lets the file go. Raises OSError."""
        self._file.close()

    def _mend(self) -> None:
        """A last line without its end: a record that is whole is ended, half of one is cut off (the flow gives it
        again), and what is none of ours is left, with an end of its own."""
        fd = self._file.fd
        end = os.fstat(fd).st_size
        start = next(_newlines(fd, end), -1) + 1
        if start == end:
            return
        torn = os.pread(fd, min(end - start, LONGEST), start)
        if _is_whole(torn) or not (torn.startswith(_BEGINNING) or _BEGINNING.startswith(torn) or not torn.strip(b"\0")):
            self._file.append(b"\n")
            return
        os.ftruncate(fd, start)
        self.notes.append(f"{self._file.path}: its last record was cut off amid a write; that half was removed")


class Told:
    """Gives records on, but those that were told, as a memory on disk says: for a terminal, a pipe or text, which
    can't be read back. It is written after the record, so a kill between the two lets that one record be told twice
    (at least once), never none. file is where the sink writes: of what it lost again when the machine crashed, since
    it was not forced yet, the memory says nothing. Raises OSError where the memory can't be read.
    """

    def __init__(self, sink: Sink, memory: Path, file: Appended | None = None) -> None:
        self._sink = sink
        self._file = file
        self._memory = memory
        self._said = Said()
        self._added = COMPACTED
        self._unmarked = False
        if memory.exists():
            self._recall(memory.read_bytes().split(b"\n"))

    def write(self, record: Record) -> None:
        """Takes one record. Raises what the sink raises, and forgets nothing by it."""
        if self._said.has(record):
            return
        self._sink.write(record)
        self._said.add(record["job"], record["at"], record["id"])
        try:
            self._remember(record)
        except OSError:
            # The record is told; on a full disk it is the memory that waits, and is written anew with the next one.
            self._added = COMPACTED

    def force(self) -> None:
        """Has the disk keep what was told, if it is a file, and then that it was. Raises OSError."""
        if self._file is not None:
            self._file.force()
        with suppress(FileNotFoundError):
            if self._unmarked:
                self._note(_FORCED)
                self._unmarked = False
            force(self._memory)

    def _recall(self, lines: list[bytes]) -> None:
        """What the memory says, but of records after which the file ended farther than it does now."""
        forced = max((number for number, line in enumerate(lines) if line == _FORCED), default=-1)
        for number, line in enumerate(lines):
            with suppress(ValueError, TypeError):
                job, at, id, *place = orjson.loads(line)
                if number < forced or not place or self._reaches(*place):
                    self._said.add(str(job), str(at), str(id))

    def _reaches(self, file: int, end: int) -> bool:
        """Whether the file goes to a place, or is another one by now."""
        place = None if self._file is None else self._file.place()
        return place is None or place[0] != file or place[1] >= end

    def _remember(self, record: Record) -> None:
        if self._added >= COMPACTED:
            if self._file is not None:
                self._file.force()
            new = self._memory.with_name(f"{self._memory.name}.new")
            new.write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in self._said.known()))
            new.replace(self._memory)
            self._added = 0
            return
        place = None if self._file is None else self._file.place()
        self._note(orjson.dumps((record["job"], record["at"], record["id"], *(place or ()))))
        self._unmarked = place is not None
        self._added += 1

    def _note(self, line: bytes) -> None:
        with self._memory.open("ab") as memory:
            memory.write(line + b"\n")


def read_back(fd: int, jobs: set[str] | None, said: Said) -> None:
    """Notes what a file of JSON lines says of jobs (None: of all), read from its end. Memory is a block and what is
    noted."""
    wanted = None if jobs is None else set(jobs)
    end = os.fstat(fd).st_size
    for newline, before in pairwise(_edges(fd, end)):
        if wanted is not None and not wanted:
            return
        found = _named(fd, before + 1, newline)
        if found is not None and not said.add(*found) and wanted is not None:
            wanted.discard(found[0])


def _edges(fd: int, end: int) -> Iterator[int]:
    """The offsets of the newlines from the last to the first, and -1 before the first line."""
    yield from _newlines(fd, end)
    yield -1


def _newlines(fd: int, end: int) -> Iterator[int]:
    while end > 0:
        start = max(0, end - BLOCK_BYTES)
        block = os.pread(fd, end - start, start)
        place = block.rfind(b"\n")
        while place >= 0:
            yield start + place
            place = block.rfind(b"\n", 0, place)
        end = start


def _named(fd: int, start: int, end: int) -> tuple[str, str, str] | None:
    """Job, time and id of the record in a line; None where it is none."""
    head = _HEAD.match(os.pread(fd, min(HEAD_BYTES, end - start), start))
    tail = _TAIL.search(os.pread(fd, min(TAIL_BYTES, end - start), max(start, end - TAIL_BYTES)))
    try:
        if head and tail:
            return orjson.loads(head[1]), head[2].decode(), tail[1].decode()
        record = orjson.loads(os.pread(fd, end - start, start)) if end - start <= LONGEST else None
    except ValueError:
        return None
    if not isinstance(record, dict):
        return None
    job, at, number = (record.get(key) for key in ("job", "at", "id"))
    return (job, at, number) if isinstance(job, str) and isinstance(at, str) and isinstance(number, str) else None


def _is_whole(line: bytes) -> bool:
    try:
        return isinstance(orjson.loads(line), dict)
    except ValueError:
        return False
