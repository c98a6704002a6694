"""What came and went in a live capture since the last look: sources, archives and folders of trials, trials.

A look asks each folder of logs for its time and lists those that changed; a minute later all of them, since not every
file system tells times truly. Which files are read, and as what, is for homes.py, walk.py and capture.py to say.
"""

import os
import stat

import msgspec

from dataflow.capture import Source, TrialTar, TrialTree, read_of, shown
from dataflow.folders import Folders
from dataflow.homes import JOB_FILE, Unread
from dataflow.opened import reason
from dataflow.reads import compression_of
from dataflow.trial_watch import STANDS_US, TrialSeen, TrialWatch
from dataflow.walk import Walk
from extractors.record import SourceKind

FULL_EVERY_US = 60_000_000

Told = tuple[tuple[str, str], ...]


class Found(msgspec.Struct, frozen=True):
    """What one look found. new are also names that lead to another path than before (a link). gone are names that are
    listed no more: their tails tell what became of the files, and keep their marks, for they may come again. archives
    are new ones, and such as were written to again. failures and skipped are new, as (relative path, why). ranks says
    that the ranks of known sources may be others now."""

    new: tuple[Source, ...] = ()
    gone: tuple[str, ...] = ()
    archives: tuple[TrialTar, ...] = ()
    trials: tuple[TrialSeen, ...] = ()
    failures: Told = ()
    skipped: Told = ()
    ranks: bool = False


NOTHING = Found()


class _Archive(msgspec.Struct):
    """How an archive's file looked when it was last seen, and last told: size and time."""

    seen: tuple[int, int] | None = None
    told: tuple[int, int] | None = None


class _Before(msgspec.Struct, frozen=True, array_like=True):
    """What an earlier rescan had told: each watch of trials its own, and what could not be read."""

    trials: dict[str, bytes]
    failures: Told


class Rescan:
    """Looks at a capture's directory (or its one bare file) again and again. snapshot is what an earlier one gave; a
    broken one raises msgspec.DecodeError.

    sources are those that are listed now, by relative name, each with its rank among them; job_toml is the path of the
    launcher's facts, when they are there.
    """

    def __init__(self, path: str, snapshot: bytes = b"") -> None:
        self.path = path
        self.sources: dict[str, Source] = {}
        self.job_toml: str | None = None
        self.trees: dict[str, TrialTree | TrialTar] = {}
        before = msgspec.msgpack.decode(snapshot, type=_Before) if snapshot else _Before({}, ())
        self._before = before.trials
        self._folders = Folders()
        self._known: dict[str, Source | TrialTar | Unread] = {}
        self._watches: dict[str, TrialWatch] = {}
        self._archives: dict[str, _Archive] = {}
        self._told: set[tuple[str, str]] = set(before.failures)
        self._full_us: int | None = None

    def look(self, now_us: int) -> Found:
        """What is new since the last look; at first, all. Never raises OSError."""
        if self._full_us is None or now_us - self._full_us >= FULL_EVERY_US:
            self._full_us = now_us
            self._folders.forget()
        found = self._walked() if self._folders.changed() else NOTHING
        trials = [seen for watch in self._watches.values() for seen in watch.look(now_us)]
        archives = [each for each in self.trees.values() if isinstance(each, TrialTar) and self._written(each, now_us)]
        troubles = self._new([pair for watch in self._watches.values() for pair in watch.troubles.items()])
        if not trials and not archives and not troubles:
            return found
        return msgspec.structs.replace(
            found, trials=tuple(trials), archives=tuple(archives), failures=(*found.failures, *troubles)
        )

    def snapshot(self) -> bytes:
        """What was told of trials and of what can't be read, as bytes. Sources are told anew by the next one: their
        marks say how far they are read; and so is a capture of which nothing can be listed."""
        trials = {name: watch.snapshot() for name, watch in self._watches.items()}
        failures = sorted((relative, why) for relative, why in self._told if relative != shown(self.path))
        return msgspec.msgpack.encode(_Before({**self._before, **trials}, tuple(failures)))

    def _walked(self) -> Found:
        try:
            if not stat.S_ISDIR(os.stat(self.path).st_mode):
                return self._bare()
            walk = Walk(self.path, self._folders.entries).run()
        except (OSError, ValueError) as error:
            self._folders.forget()
            return Found(failures=self._new([(shown(self.path), f"cannot be listed: {reason(error)}")]))
        self._folders.walked(walk.listed)
        self.job_toml = walk.files.get(JOB_FILE)
        every, skipped = read_of(walk, self._known)
        before, self.sources = self.sources, {each.relative: each for each in every if isinstance(each, Source)}
        self.trees = {each.relative: each for each in every if not isinstance(each, Source)}
        for tree in self.trees.values():
            if isinstance(tree, TrialTree) and tree.relative not in self._watches:
                self._watches[tree.relative] = TrialWatch(tree, self._before.get(tree.relative, b""))
        new = tuple(each for name, each in self.sources.items() if name not in before or before[name].path != each.path)
        gone = tuple(name for name in before if name not in self.sources)
        failures, passed = self._new(walk.failures), self._new(skipped)
        return Found(new, gone, failures=failures, skipped=passed, ranks=bool(before and (new or gone)))

    def _bare(self) -> Found:
        name = shown(os.path.basename(self.path))
        if name in self.sources:
            return NOTHING
        self.sources[name] = Source(name, self.path, SourceKind.AGGREGATED, compression_of(name))
        return Found(new=(self.sources[name],))

    def _written(self, archive: TrialTar, now_us: int) -> bool:
        """Whether an archive of trials is new, or was written again, and stands still."""
        try:
            found = os.stat(archive.path)
        except OSError:
            return False
        stamp = (found.st_size, found.st_mtime_ns)
        known = self._archives.setdefault(archive.relative, _Archive())
        stands, known.seen = stamp == known.seen or now_us - stamp[1] // 1_000 >= STANDS_US, stamp
        if stamp == known.told or not stands:
            return False
        known.told = stamp
        return True

    def _new(self, pairs: list[tuple[str, str]]) -> Told:
        """What was not told before."""
        fresh = {(shown(relative), shown(why)) for relative, why in pairs} - self._told
        self._told |= fresh
        return tuple(sorted(fresh))
