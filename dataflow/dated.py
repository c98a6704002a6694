"""Dated reports: the text report of each changed verdict, appended to the day's file of its job (CONTRACT §2, --log).

A comment under each report's heading, which no Markdown reader shows, says which record it is and what it comes to, so
that a report that stands in a file is not appended again after a restart.
"""

import hashlib
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from dataflow.appended import Appended, force
from state.report import text_report

Record = dict[str, Any]

_NAME_BYTES = 200
_TAIL_BYTES = 64 << 10
_MARK = re.compile(rb"<!-- wedgewatch job=(\w+) at=(\S+) id=(\S+) says=(\w+) -->\n")
_BEGUN = re.compile(rb"## \d{4}-[0-9T:.Z-]*\n<!-- wedgewatch [^\n]*-->\n", re.DOTALL)
_BARELY = re.compile(rb"(?:\A|\n)(##?(?: [0-9T:.Z-]*)?|## \d{4}-\d\d-\d\dT[\d:.]+Z\n(?:<[^\n]*)?)\Z")
_FENCE = b"\n```\n"


class _Last(NamedTuple):
    """The newest report of a job: its record's time and id, and what it comes to."""

    at: str = ""
    id: str = ""
    says: str = ""


class DatedReports:
    """Appends the text report of each changed verdict to `<date>_<job>.md` in a folder. A heartbeat that says what the
    job's last report said is none. resumes says whether the folder's reports are its own, of an earlier run: then what
    stands there, and what is older, is not appended. Raises OSError, with the file's name; the file is then as it was.
    """

    def __init__(self, folder: Path, *, resumes: bool = False) -> None:
        self._folder = folder
        self._resumes = resumes
        self._last: dict[str, _Last] = {}
        self._unforced: set[Path] = set()

    def write(self, record: Record) -> None:
        """Takes one record; only verdicts count."""
        if record["kind"] != "verdict":
            return
        job, says = record["job"], _comes_to(record)
        if job not in self._last:
            self._last[job] = self._read_back(job) if self._resumes else _Last()
        last = self._last[job]
        if record["at"] < last.at or record["id"] == last.id or says == last.says:
            return
        mark = f"<!-- wedgewatch job={_digest(job)} at={record['at']} id={record['id']} says={says} -->"
        report = f"## {record['at']}\n{mark}\n\n```\n{text_report(record)}\n```\n\n"
        file = Appended(self._folder / f"{record['at'][:10]}_{_file_name(job)}.md")
        try:
            file.append(report.encode("utf-8", "backslashreplace"))
        finally:
            file.close()
        self._unforced.add(file.path)
        self._last[job] = _Last(record["at"], record["id"], says)

    def force(self) -> None:
        """Has the disk keep what was appended. Raises OSError."""
        for path in sorted(self._unforced):
            with suppress(FileNotFoundError):
                force(path)
            self._unforced.discard(path)

    def _read_back(self, job: str) -> _Last:
        """The job's newest report in the folder. Half a report, which a kill left at a file's end, is cut off."""
        ending = f"_{_file_name(job)}.md"
        for name in sorted((name for name in os.listdir(self._folder) if name[10:] == ending), reverse=True):
            with (self._folder / name).open("r+b") as file:
                _cut_torn(file.fileno())
                last = _newest_mark(file.fileno(), _digest(job).encode())
            if last is not None:
                return last
        return _Last()


def _newest_mark(fd: int, job: bytes) -> _Last | None:
    """The last report of a job in a file, read from the file's end."""
    end, looked = os.fstat(fd).st_size, _TAIL_BYTES
    while True:
        tail = os.pread(fd, looked, max(0, end - looked))
        marks = [mark for mark in _MARK.finditer(tail) if mark[1] == job]
        if marks:
            return _Last(*(word.decode("ascii", "replace") for word in marks[-1].groups()[1:]))
        if looked >= end:
            return None
        looked *= 8


def _cut_torn(fd: int) -> None:
    """Cuts off a report that has a beginning and no end."""
    end = os.fstat(fd).st_size
    start = max(0, end - (_TAIL_BYTES << 6))
    tail = os.pread(fd, end - start, start)
    begun = list(_BEGUN.finditer(tail))
    if begun and tail.count(_FENCE, begun[-1].end() - 1) < 2:
        os.ftruncate(fd, start + begun[-1].start())
    elif barely := _BARELY.search(tail):
        os.ftruncate(fd, start + barely.start(1))


def _comes_to(record: Record) -> str:
    """A digest of what a verdict says, its numbers and words apart."""
    gates = [(letter, gate["status"], gate["condition"]) for letter, gate in sorted(record["gates"].items())]
    cause = record["cause"]["code"] if record["cause"] else None
    said = (record["verdict"], record["terminal"], record["final"], cause, gates)
    return hashlib.blake2b(orjson.dumps(said), digest_size=8).hexdigest()


def _digest(job: str) -> str:
    """A job's name in a comment, which it could end."""
    return hashlib.blake2b(job.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _file_name(job: str) -> str:
    """The job's name as part of a file's name: no slash, nothing unprintable, within the 255 bytes of a file system."""
    name = re.sub(r"[/\\]+", "-", job.strip("/"))
    name = "".join(character if character.isprintable() else "_" for character in name)
    return name.encode()[:_NAME_BYTES].decode("utf-8", "ignore") or "job"
