"""How a poll is written: one record, one line, appended whole to `polls/<probe>.jsonl` (CONTRACT §1)."""

import errno
import fcntl
import os
import stat
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import orjson

from dataflow.probe_run import Ran
from extractors.clocks import write_iso
from extractors.quoting import masked, masked_words

RECORD_BYTES = 20_971_520
"""A record's largest size. Two streams of 4 MiB fit in text; only what is no text takes up to six times its bytes."""
SURELY_WHOLE = 4_096
"""Bytes that a write appends as one, whatever becomes of its process."""
_LEAST_KEPT = 1_048_576


def poll_record(at_us: int, probe: str, target: str, command: Sequence[str], ran: Ran) -> bytes:
    """A run as a line of JSON with its newline. at_us is when the run began: what it shows is not older.

    stdout and stderr are as they were printed, bytes that are no UTF-8 replaced; secrets in the command are masked.
    `dropped_bytes` is there where a stream was longer than what is kept of it.
    """
    line = _encoded(at_us, probe, target, command, ran)
    if len(line) <= RECORD_BYTES:
        return line
    dropped, cut = dict(ran.dropped), {}
    for name, each in (("stdout", ran.stdout), ("stderr", ran.stderr)):
        cut[name] = each[:_LEAST_KEPT]
        if each[_LEAST_KEPT:]:
            dropped[name] = dropped.get(name, 0) + len(each) - _LEAST_KEPT
    error = ran.error or f"its output is no text and not whole: the first {_LEAST_KEPT} bytes are kept"
    return _encoded(
        at_us, probe, target, command, Ran(ran.exit, error, ran.elapsed, cut["stdout"], cut["stderr"], dropped)
    )


def _encoded(at_us: int, probe: str, target: str, command: Sequence[str], ran: Ran) -> bytes:
    record: dict[str, object] = {
        "at": write_iso(at_us),
        "probe": probe,
        "target": target,
        "command": [_text(word) for word in masked_words(command)],
        "exit": ran.exit,
        "elapsed_ms": round(ran.elapsed * 1000),
        "stdout": ran.stdout.decode("utf-8", "replace"),
        "stderr": ran.stderr.decode("utf-8", "replace"),
    }
    if ran.error:
        record["error"] = _text(masked(ran.error))
    if ran.dropped:
        record["dropped_bytes"] = ran.dropped
    return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)


def _text(word: str) -> str:
    """A word that can be written as UTF-8, whatever bytes the file system has in it."""
    return os.fsencode(word).decode("utf-8", "replace")


def append_record(folder: Path, probe: str, record: bytes) -> None:
    """Appends a record to a capture's polls; records of several writers never mix. Raises OSError where that can't be;
    the file then ends as it did.

    A line that was torn before, since its writer died or the disk was full, is ended first: it spoils no other.
    """
    polls = folder / "polls"
    polls.mkdir(exist_ok=True)
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    fd = os.open(polls / f"{probe}.jsonl", flags, 0o644)
    try:
        with suppress(OSError):
            # Half of another writer's record would look like a torn one.
            fcntl.flock(fd, fcntl.LOCK_EX)
        before = os.fstat(fd)
        if not stat.S_ISREG(before.st_mode):
            raise OSError(errno.EINVAL, "is no file")
        torn = before.st_size > 0 and os.pread(fd, 1, before.st_size - 1) != b"\n"
        _write(fd, b"\n" + record if torn else record, before.st_size)
    finally:
        os.close(fd)


def _write(fd: int, line: bytes, before: int) -> None:
    if len(line) > SURELY_WHOLE and _written_by_another(fd, line, before):
        return
    written = os.write(fd, line)
    try:
        while written < len(line):
            written += os.write(fd, line[written:])
    except OSError:
        if os.fstat(fd).st_size == before + written:
            os.ftruncate(fd, before)
        raise


def _written_by_another(fd: int, line: bytes, before: int) -> bool:
    """Lets a process of its own session append what we may not live to end: kill -9 cuts a write between two pages. It
    inherits the file's lock. False where it could not; the file then ends as it did."""
    whole = os.memfd_create("record")
    try:
        with open(whole, "wb", closefd=False) as copy:
            copy.write(line)
        os.lseek(whole, 0, os.SEEK_SET)
        nowhere = subprocess.DEVNULL
        done = subprocess.run(["cat"], stdin=whole, stdout=fd, stderr=nowhere, start_new_session=True, check=False)
    except OSError:
        return False
    finally:
        os.close(whole)
    if done.returncode != 0:
        os.ftruncate(fd, before)
    return done.returncode == 0
