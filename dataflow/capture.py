"""What a capture holds: its job, its logs and polls by home, its trials, and what of it cannot be read (CONTRACT §1).

A capture is a directory in any of three layouts, a bare log file, or `-`. It is only looked at here, not read through.
"""

import os
import re
import stat
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import orjson

from dataflow.homes import JOB_FILE, MANIFEST, NOBODY, Unread, Writer, home_of, is_trial_archive, writer_of
from dataflow.opened import STDIN, Damage, reason
from dataflow.reads import Compression, chunks, compression_of, unpacked_name
from dataflow.walk import Walk
from extractors.record import Origin, SourceKind

HEAD_BYTES = 262_144
"""How much of a log is searched for the job's name. The CLI's chatter before it takes a few hundred bytes."""
_FACTS_BYTES = 1_048_576
_TASK = re.compile(rb"task=(/[^\s|]+)(?: attempt=\d+)? \|")
_ORDER = tuple(SourceKind)


class CaptureError(Exception):
    """Input that cannot be used at all (exit 2). Its text names the path and says what is wrong."""


class Source(msgspec.Struct, frozen=True):
    """One file of logs or polls. relative is its name in evidence, path where it lies.

    rank orders files whose lines have the same time: by home, then by name, the same packed or not. stream is what is
    still to be read of standard input or a pipe, once, after head.
    """

    relative: str
    path: str
    kind: SourceKind
    compression: Compression
    rank: int = 0
    writer: Writer = NOBODY
    head: bytes = b""
    stream: Iterator[bytes | Damage] | None = None

    @property
    def origin(self) -> Origin:
        """What the path says of the origin of the file's lines."""
        return Origin(pid=self.writer.pid, host=self.writer.host)


class TrialTree(msgspec.Struct, frozen=True):
    """A folder of trials."""

    relative: str
    path: str
    rank: int = 0


class TrialTar(msgspec.Struct, frozen=True):
    """An archive of trials, which is read as a stream."""

    relative: str
    path: str
    compression: Compression
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Capture:
    """path is as given. job_id_from says where the job's name was read: job.toml, manifest.json, `<source>` or `name`.

    failures should be readable and are not, skipped are no logs by their names or are read elsewhere: (relative path,
    why). sources are in the order of their ranks.
    """

    path: str
    job_id: str
    job_id_from: str
    job_toml: str | None = None
    sources: tuple[Source, ...] = ()
    trials: tuple[TrialTree | TrialTar, ...] = ()
    failures: tuple[tuple[str, str], ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()


def open_capture(path: str) -> Capture:
    """Looks at a capture. Raises CaptureError when there is nothing at the path, or it cannot be opened."""
    if path == STDIN:
        return _bare(path, STDIN)
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError) as error:
        raise CaptureError(f"{path}: cannot be read: {reason(error)}") from error
    if stat.S_ISDIR(mode):
        return _directory(path)
    if stat.S_ISREG(mode) and not os.access(path, os.R_OK):
        raise CaptureError(f"{path}: cannot be read: Permission denied")
    return _bare(path, shown(os.path.basename(path)), pipe=not stat.S_ISREG(mode))


def _bare(path: str, name: str, pipe: bool = False) -> Capture:
    """One log. What can be read only once keeps the head that was taken to find the job."""
    compression = Compression.NONE if path == STDIN else compression_of(name)
    source = Source(name, path, SourceKind.AGGREGATED, compression)
    if path == STDIN or pipe:
        stream = chunks(path, compression)
        head, damages = head_of(stream)
        source = msgspec.structs.replace(source, head=head, stream=_chain(damages, stream))
    else:
        head, _ = head_of(chunks(path, compression))
    job = _task_job(head)
    return Capture(path, job or unpacked_name(name), name if job else "name", sources=(source,))


def _directory(path: str) -> Capture:
    try:
        walk = Walk(path).run()
    except OSError as error:
        raise CaptureError(f"{path}: cannot be listed: {reason(error)}") from error
    ranked, skipped = read_of(walk, {})
    logs = tuple(each for each in ranked if isinstance(each, Source))
    job_id, job_id_from = _job(path, walk, logs)
    return Capture(
        path=path,
        job_id=job_id,
        job_id_from=job_id_from,
        job_toml=walk.files.get(JOB_FILE),
        sources=logs,
        trials=tuple(each for each in ranked if not isinstance(each, Source)),
        failures=_listed(walk.failures),
        skipped=_listed(skipped),
    )


def read_of(
    walk: Walk, known: dict[str, Source | TrialTar | Unread]
) -> tuple[list[Source | TrialTree | TrialTar], list[tuple[str, str]]]:
    """All that is read of what a walk found, in order, each with its place in the order; and what is skipped, with why.
    known remembers what files are by their paths, for the next walk."""
    found: list[Source | TrialTree | TrialTar] = []
    skipped = list(walk.skipped)
    for relative, real in walk.files.items():
        each = known.get(relative)
        if each is None or (not isinstance(each, Unread) and each.path != real):
            each = known[relative] = _read_as(relative, real)
        if not isinstance(each, Unread):
            found.append(each)
        elif each.why:
            skipped.append((relative, each.why))
    found += [TrialTree(shown(relative), real) for relative, real in walk.folders_of_trials.items()]
    found.sort(key=lambda each: (_ORDER.index(_kind(each)), unpacked_name(each.relative)))
    return [msgspec.structs.replace(each, rank=rank) for rank, each in enumerate(found)], skipped


def _read_as(relative: str, real: str) -> Source | TrialTar | Unread:
    """What a file at this path of a capture is read as."""
    name, home = shown(relative), home_of(relative)
    if "/" not in relative and is_trial_archive(relative):
        return TrialTar(name, real, Compression.GZ if relative.endswith(".tgz") else compression_of(relative))
    if isinstance(home, SourceKind):
        return Source(name, real, home, compression_of(relative), writer=writer_of(name))
    return home


def _kind(each: Source | TrialTree | TrialTar) -> SourceKind:
    return each.kind if isinstance(each, Source) else SourceKind.TRIAL


def _listed(entries: list[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((shown(relative), why) for relative, why in entries))


def shown(relative: str) -> str:
    """A name that can be written as UTF-8, whatever bytes the file system has."""
    return os.fsencode(relative).decode("utf-8", "replace")


def _job(path: str, walk: Walk, sources: tuple[Source, ...]) -> tuple[str, str]:
    """The job's name and where it was read. A job.toml that cannot be parsed is for its reader to report."""
    for name, said in ((JOB_FILE, _toml_job), (MANIFEST, _manifest_job)):
        if name in walk.files and (job := said(_start(walk.files[name], _FACTS_BYTES))):
            return job, name
    for source in sources:
        if source.kind in (SourceKind.AGGREGATED, SourceKind.POD, SourceKind.SLURM):
            head, _ = head_of(chunks(source.path, source.compression))
            if job := _task_job(head):
                return job, source.relative
    return shown(os.path.basename(os.path.abspath(path))) or "capture", "name"


def _start(path: str, size: int) -> bytes:
    first = next(chunks(path, read_size=size), b"")
    return first if isinstance(first, bytes) else b""


def _toml_job(content: bytes) -> str:
    try:
        return _named(tomllib.loads(content.decode()).get("job"), "id")
    except (ValueError, RecursionError):
        return ""


def _manifest_job(content: bytes) -> str:
    try:
        return _named(orjson.loads(content), "job_id")
    except orjson.JSONDecodeError:
        return ""


def _named(table: Any, key: str) -> str:
    value = table.get(key) if isinstance(table, dict) else None
    return value if isinstance(value, str) else ""


def head_of(stream: Iterator[bytes | Damage]) -> tuple[bytes, list[Damage]]:
    """The stream's first HEAD_BYTES, and what it gave beyond them: all of it, but only so much is to be searched, lest
    what is found depend on the pieces in which a pipe or a packed file gives its bytes."""
    head, damages = bytearray(), []
    for chunk in stream:
        if isinstance(chunk, Damage):
            damages.append(chunk)
            continue
        head += chunk
        if len(head) >= HEAD_BYTES:
            break
    return bytes(head), damages


def _chain(damages: list[Damage], stream: Iterator[bytes | Damage]) -> Iterator[bytes | Damage]:
    yield from stream
    yield from damages


def _task_job(head: bytes) -> str:
    """The job of the first `task=<path>` prefix: the task's path without its rank and its attempt."""
    found = _TASK.search(head, 0, HEAD_BYTES)
    if found is None:
        return ""
    task = re.sub(r":\d+$", "", found[1].decode("utf-8", "replace"))
    return re.sub(r"(?<=.)/\d+$", "", task)
