"""Which trials of a live job began and ended since the last look, without ever looking at all of them.

A trial's folder is looked at until its result is there and stands still, then never again. Of the trials that are open
the newest are looked at each time; the older ones, which may never end, in turn. A folder of trials is listed when it
changed, the more seldom the more trials it holds.
"""

import os
from collections import deque
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice

import msgspec

from dataflow.capture import TrialTree, shown
from dataflow.opened import reason
from dataflow.trial_files import JOB_RESULT, is_trial

NEWEST = 512
"""Open trials that are looked at each time: a job runs some hundred at once."""
OLDER = 2_048
"""Older ones that are looked at each time, in turn. A hundred thousand that were there before take fifty looks."""
LISTING_US_PER_NAME = 20
"""How long to wait after a listing, for each name in it: listing takes a microsecond or less a name."""
STANDS_US = 2_000_000
_DIGEST = 8
_Stamp = tuple[int, int]


class TrialSeen(msgspec.Struct, frozen=True):
    """A trial that began (its config is there) or ended (its result is there, whole). Its files are for `one_trial`.
    Without a name it is a job's own result, told again when it changes."""

    name: str
    relative: str
    path: str
    ended: bool


class _Book(msgspec.Struct):
    """What a watch knows that a later one must: digests of the ended trials, and which open ones were told."""

    ended: bytes = b""
    begun: list[str] = []


@dataclass(slots=True)
class _Open:
    """A trial's folder without a result that stands still. odd is one that has no trial's name: it may be a job's."""

    relative: str
    path: str
    odd: bool = False
    begun: bool = False
    config: _Stamp | None = None
    result: _Stamp | None = None


@dataclass(slots=True)
class _Folder:
    """A folder of trials."""

    relative: str
    path: str
    inside_job: bool
    names: set[str] = field(default_factory=set)
    stamp: _Stamp = (0, 0)
    again: int = 0
    due_us: int = 0
    result: _Stamp | None = None
    told: _Stamp | None = None


class TrialWatch:
    """Watches one folder of trials. troubles are folders that can't be listed: why, by relative path."""

    def __init__(self, tree: TrialTree, snapshot: bytes = b"") -> None:
        book = msgspec.msgpack.decode(snapshot, type=_Book) if snapshot else _Book()
        self.troubles: dict[str, str] = {}
        self._ended = bytearray(book.ended)
        self._known = {bytes(self._ended[at : at + _DIGEST]) for at in range(0, len(self._ended), _DIGEST)}
        self._begun = set(book.begun)
        self._folders = [_Folder(tree.relative, tree.path, inside_job=False)]
        self._open: dict[str, _Open] = {}
        self._turn: deque[str] = deque()

    def look(self, now_us: int) -> list[TrialSeen]:
        """What began or ended. Never raises OSError."""
        out: list[TrialSeen] = []
        for folder in list(self._folders):
            self._list(folder, now_us)
            self._job_result(folder, now_us, out)
        looked = list(islice(reversed(self._open), NEWEST))
        newest = set(looked)
        for _ in range(min(OLDER, len(self._turn))):
            path = self._turn.popleft()
            if path in self._open:
                self._turn.append(path)
                if path not in newest:
                    looked.append(path)
        for path in looked:
            self._look_at(self._open[path], now_us, out)
        return out

    def snapshot(self) -> bytes:
        """What was told, as bytes: eight for each trial that ended."""
        looked = bool(self._folders[0].stamp[1])
        begun = [each.relative for each in self._open.values() if each.begun] if looked else sorted(self._begun)
        return msgspec.msgpack.encode(_Book(bytes(self._ended), begun))

    def _list(self, folder: _Folder, now_us: int) -> None:
        """Takes in the folders that are new. A folder is listed twice after a change: its time has coarse steps."""
        if now_us < folder.due_us:
            return
        try:
            found = os.stat(folder.path)
            stamp = (found.st_mtime_ns, found.st_ino)
            if stamp == folder.stamp and not folder.again:
                return
            with os.scandir(folder.path) as entries:
                fresh = [each for each in entries if each.name not in folder.names]
            fresh = [each for each in fresh if each.is_dir(follow_symlinks=False)]
        except OSError as error:
            self.troubles[folder.relative] = f"cannot be listed: {reason(error)}"
            return
        self.troubles.pop(folder.relative, None)
        folder.again = 1 if stamp != folder.stamp else folder.again - 1
        folder.stamp = stamp
        for entry in fresh:
            folder.names.add(entry.name)
            self._appeared(entry, folder)
        folder.due_us = now_us + LISTING_US_PER_NAME * len(folder.names)

    def _appeared(self, entry: "os.DirEntry[str]", folder: _Folder) -> None:
        relative = f"{folder.relative}/{shown(entry.name)}"
        if self._known and _digest(relative) in self._known:
            return
        odd = not folder.inside_job and not is_trial(entry.name)
        self._open[entry.path] = _Open(relative, entry.path, odd, begun=relative in self._begun)
        self._turn.append(entry.path)

    def _look_at(self, trial: _Open, now_us: int, out: list[TrialSeen]) -> None:
        """Tells what is new of a trial. One that was deleted stays open: it costs a look in turn."""
        if trial.odd and self._is_job(trial):
            del self._open[trial.path]
            self._folders.append(_Folder(trial.relative, trial.path, inside_job=True))
            return
        stamp = _stamp_of(trial.path, JOB_RESULT)
        if stamp is not None and (stamp == trial.result or _stands(stamp, now_us)):
            del self._open[trial.path]
            self._ended += _digest(trial.relative)
            out.append(_seen(trial, ended=True))
            return
        trial.result = stamp
        if trial.begun or trial.odd:
            return
        stamp = _stamp_of(trial.path, "config.json")
        if stamp is not None and (stamp == trial.config or _stands(stamp, now_us)):
            trial.begun = True
            out.append(_seen(trial, ended=False))
        trial.config = stamp

    def _is_job(self, folder: _Open) -> bool:
        """Whether trials lie in a folder that has no trial's name."""
        try:
            with os.scandir(folder.path) as entries:
                return any(is_trial(each.name) and each.is_dir() for each in entries)
        except OSError:
            return False

    def _job_result(self, folder: _Folder, now_us: int, out: list[TrialSeen]) -> None:
        stamp = _stamp_of(folder.path, JOB_RESULT)
        if stamp is not None and stamp != folder.told and (stamp == folder.result or _stands(stamp, now_us)):
            folder.told = stamp
            out.append(TrialSeen("", f"{folder.relative}/{JOB_RESULT}", os.path.join(folder.path, JOB_RESULT), True))
        folder.result = stamp


def _seen(trial: _Open, ended: bool) -> TrialSeen:
    return TrialSeen(trial.relative.rsplit("/", 1)[-1], trial.relative, trial.path, ended)


def _stamp_of(folder: str, name: str) -> _Stamp | None:
    """The size and time of a file that has bytes."""
    try:
        found = os.stat(f"{folder}/{name}", follow_symlinks=False)
    except OSError:
        return None
    return (found.st_size, found.st_mtime_ns) if found.st_size else None


def _stands(stamp: _Stamp, now_us: int) -> bool:
    """Whether a file was last written a while ago."""
    return now_us - stamp[1] // 1_000 >= STANDS_US


def _digest(relative: str) -> bytes:
    return blake2b(relative.encode(), digest_size=_DIGEST).digest()
