"""The files of one Harbor trial after another, from a folder or straight from an archive. Nothing is unpacked to disk.

Layout: `trace_jobs/<trial>/…`, or `trace_jobs/<job>/<trial>/…` where a Harbor job lies between. What lies beside the
trials is no trial's and is passed over, but for the job's own result.json (a TrialFiles without a name).
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from dataflow.archive import Member, Passed, members
from dataflow.capture import TrialTar, TrialTree, shown
from dataflow.opened import Damage, Taken, reason
from dataflow.reads import LIMITS, Limits, chunks
from extractors.harbor_trials import wanted

TEXT_BYTES = 4_194_304
JSON_BYTES = 33_554_432
"""A result with the token ids of its rollout takes megabytes, and half a JSON document says nothing."""
HELD_BYTES = 67_108_864
HELD_TRIALS = 512
"""How much of unfinished trials is held while an archive mixes them, and how many."""
JOB_RESULT = "result.json"
"""Beside the trials lies their job's own file of this name."""

_ENTERED = re.compile(r"agent|steps|steps/[^/]+|steps/[^/]+/agent")
_TRIAL = re.compile(r".+__[A-Za-z0-9]{7}")
_ROOT = re.compile(r"(.*_)?trace_jobs")


class Trouble(msgspec.Struct, frozen=True):
    """A file, a member, a folder or a whole archive of which something was not read. source is its name in evidence."""

    source: str
    why: str
    whole: bool = False


class Wanted(NamedTuple):
    """A file to be read. file is its path inside the trial's folder, source its name in evidence."""

    entry: "os.DirEntry[str]"
    file: str
    source: str


@dataclass(slots=True)
class TrialFiles:
    """One trial. files maps a path inside the trial's folder to its content, sources the same to its name in evidence;
    unread says why a file that is there has no content here. size is the bytes held."""

    name: str
    files: dict[str, bytes] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    size: int = 0

    def add(self, file: str, source: str, content: bytes) -> None:
        """Takes a file in; a later one of the same name replaces it."""
        self.size += len(content) - len(self.files.get(file, b""))
        self.files[file] = content
        self.sources[file] = source


def trial_files(
    trials: TrialTree | TrialTar, limits: Limits = LIMITS, taken: Taken | None = None
) -> Iterator[TrialFiles | Trouble]:
    """Every trial in order (of names in a folder, of first members in an archive), and what was not read. taken is told
    of an archive's bytes."""
    if isinstance(trials, TrialTree):
        return _of_folder(trials.path, trials.relative, inside_job=False)
    return _of_tar(trials, limits, taken)


def most_of(file: str) -> int:
    """How many bytes of a wanted file are read."""
    return JSON_BYTES if file.endswith(".json") else TEXT_BYTES


def _of_folder(path: str, relative: str, inside_job: bool) -> Iterator[TrialFiles | Trouble]:
    """The trials of a folder, and those of the job's folders in it."""
    entries = entries_in(path)
    if isinstance(entries, str):
        yield Trouble(relative, entries, whole=True)
        return
    for entry in entries:
        source = f"{relative}/{shown(entry.name)}"
        if entry.is_symlink():
            yield Trouble(source, "a link: not followed")
        elif entry.name == JOB_RESULT and entry.is_file(follow_symlinks=False):
            job = TrialFiles("")
            yield from _file(job, entry, JOB_RESULT, source)
            yield job
        elif not entry.is_dir(follow_symlinks=False):
            continue
        elif not inside_job and not is_trial(entry.name) and holds_trials(entry.path):
            yield from _of_folder(entry.path, source, inside_job=True)
        else:
            yield from one_trial(entry.path, source)


def job_result(path: str, relative: str) -> Iterator[TrialFiles | Trouble]:
    """What of a job's own result was not read, then the result, as a trial without a name."""
    job = TrialFiles("")
    with os.scandir(os.path.dirname(path)) as entries:
        found = [entry for entry in entries if entry.path == path]
    for entry in found:
        yield from _file(job, entry, JOB_RESULT, relative)
        yield job


def one_trial(path: str, relative: str) -> Iterator[TrialFiles | Trouble]:
    """What of the trial in this folder was not read, then the trial."""
    trial = TrialFiles(relative.rsplit("/", 1)[-1])
    yield from _filled(trial, path, relative)
    yield trial


def is_trial(name: str) -> bool:
    """Whether a folder is a trial's by its name."""
    return _TRIAL.fullmatch(name) is not None


def entries_in(path: str) -> list["os.DirEntry[str]"] | str:
    """A folder's entries by name, or why there are none to be had."""
    try:
        with os.scandir(path) as entries:
            return sorted(entries, key=lambda entry: os.fsencode(entry.name))
    except OSError as error:
        return f"cannot be listed: {reason(error)}"


def holds_trials(path: str) -> bool:
    """Whether trials lie in a folder."""
    entries = entries_in(path)
    return not isinstance(entries, str) and any(is_trial(entry.name) for entry in entries if entry.is_dir())


def _filled(trial: TrialFiles, path: str, relative: str) -> Iterator[Trouble]:
    """Reads the wanted files of a trial's folder, and of those below it."""
    for each in wanted_in(path, relative):
        if isinstance(each, Trouble):
            yield each
        else:
            yield from _file(trial, each.entry, each.file, each.source)


def wanted_in(path: str, relative: str, inside: str = "") -> Iterator[Wanted | Trouble]:
    """What is read of a trial's folder, in order; also links and devices that stand in the place of such."""
    entries = entries_in(path)
    if isinstance(entries, str):
        yield Trouble(relative, entries)
        return
    for entry in entries:
        file, source = f"{inside}{shown(entry.name)}", f"{relative}/{shown(entry.name)}"
        if _ENTERED.fullmatch(file) and entry.is_dir(follow_symlinks=False):
            yield from wanted_in(entry.path, source, f"{file}/")
        elif wanted(file) or (_ENTERED.fullmatch(file) and entry.is_symlink()):
            yield Wanted(entry, file, source)


def _file(trial: TrialFiles, entry: "os.DirEntry[str]", file: str, source: str) -> Iterator[Trouble]:
    """Reads a file into the trial; what is wrong with it is told."""
    if not entry.is_file(follow_symlinks=False):
        trial.unread[file], trial.sources[file] = "a link or a device: not read", source
        yield Trouble(source, trial.unread[file])
        return
    most, content, why = most_of(file), bytearray(), ""
    for chunk in chunks(entry.path):
        if isinstance(chunk, Damage):
            why = chunk.why
            break
        content += chunk
        if len(content) > most:
            why = _too_large(most)
            break
    if why:
        yield Trouble(source, why)
    if why and not content:
        trial.unread[file], trial.sources[file] = why, source
    else:
        trial.add(file, source, bytes(content[:most]))


def _too_large(most: int) -> str:
    return f"larger than {most} bytes: only its beginning is read"


def _of_tar(tar: TrialTar, limits: Limits, taken: Taken | None) -> Iterator[TrialFiles | Trouble]:
    """A trial is given when the archive has moved on from it, or at the end; a member that comes later is named."""
    held: dict[str, TrialFiles] = {}
    given: set[str] = set()
    for each in members(chunks(tar.path, tar.compression, limits=limits, taken=taken), _kept):
        if isinstance(each, Damage):
            yield Trouble(tar.relative, each.why, whole=not given and not held)
            continue
        source = f"{tar.relative}!/{each.name}"
        if isinstance(each, Passed):
            yield Trouble(source, each.why)
            continue
        name, file = place_in(each.name)
        if name in given:
            yield Trouble(source, "comes after its trial was read: the archive mixes too many trials")
            continue
        trial = held.setdefault(name, TrialFiles(name))
        if wanted(file):
            yield from _taken(trial, file, source, each)
        for overdue in _overdue(held):
            given.add(overdue.name)
            yield overdue
    yield from held.values()


def _taken(trial: TrialFiles, file: str, source: str, member: Member) -> Iterator[Trouble]:
    trial.add(file, source, member.content)
    if len(member.content) < member.size:
        yield Trouble(source, _too_large(most_of(file)))


def _overdue(held: dict[str, TrialFiles]) -> Iterator[TrialFiles]:
    """The oldest trials while too much is held, the newest never."""
    size = sum(trial.size for trial in held.values())
    while len(held) > 1 and (len(held) > HELD_TRIALS or size > HELD_BYTES):
        oldest = held.pop(next(iter(held)))
        size -= oldest.size
        yield oldest


def _kept(member: str) -> int:
    """How much of a member is wanted: nothing of most, but they show that their trial is there."""
    name, file = place_in(member)
    if not name:
        return most_of(file) if file == JOB_RESULT else -1
    return most_of(file) if wanted(file) else 0


def place_in(member: str) -> tuple[str, str]:
    """The trial's name and the path inside its folder, of an archive's member. The name is empty beside trials."""
    parts = [part for part in member.split("/") if part not in ("", ".")]
    if len(parts) > 1 and _ROOT.fullmatch(parts[0]):
        parts = parts[1:]
    at = next((number for number, part in enumerate(parts[:2]) if is_trial(part)), 0)
    if len(parts) < at + 2:
        return "", parts[-1] if parts else ""
    return parts[at], "/".join(parts[at + 1 :])
