"""One capture that is watched: found, named, and then a feed. It may not be there yet when the watch begins."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from dataflow.capture import shown
from dataflow.journal import Journal, journal_of
from dataflow.live import LiveFeed
from dataflow.naming import SETTINGS_US, Naming
from dataflow.probing import Probing
from extractors.record import Beat
from state.trackers.facts import JobDeclared, JobFacts


def place_of(path: str) -> str:
    """Where a capture lies, the same however its path is spelled: by it a later watch knows it again. The links of
    folders are followed; that of a log is not, since it may lead to another file each day."""
    if os.path.isdir(path):
        return os.path.realpath(path)
    folder, name = os.path.split(path.rstrip("/"))
    return os.path.join(os.path.realpath(folder), name)


class Kept(msgspec.Struct):
    """What a watch knows of a capture that a later one must: the job's name and its feed's snapshot, and the time at
    which it was last looked at."""

    job: str
    feed: bytes
    now_us: int = 0


@dataclass(slots=True)
class LiveJob:
    """A capture's path, and what is known of it so far. job_toml is one that is read instead of the capture's own;
    journals the folder of the journals; probing runs what job.toml asks for; names are those of all jobs, by which two
    captures of one job are told. Notes gather as `<place>: <what>`."""

    path: str
    job_toml: Path | None
    journals: Path
    lateness_us: int
    probing: Probing
    clock: Callable[[], int] = lambda: 0
    names: dict[str, str] = field(default_factory=dict)
    feed: LiveFeed | None = None
    notes: list[str] = field(default_factory=list)
    _kept: Kept | None = None
    _now_us: int = 0
    _looked_us: int | None = None
    _naming: Naming = field(init=False)

    def __post_init__(self) -> None:
        self._naming = Naming(self.path, self.job_toml, self.notes)

    @property
    def job(self) -> str:
        """The job's name; the path while it is not known."""
        return self.feed.job if self.feed is not None else shown(self.path)

    @property
    def stands(self) -> str:
        """What is waited for while nothing of it is read."""
        return "for its first line, or its name"

    @property
    def brisk(self) -> bool:
        """Whether something of it is being read, or grew lately."""
        return self.feed is not None and self.feed.brisk

    def poll(self, now_us: int) -> list[Beat]:
        """The beats that are over. Nothing while the job has no name."""
        self._now_us = now_us
        if self.feed is None or self._looked_us is None or now_us - self._looked_us >= SETTINGS_US:
            self._looked_us = now_us
            self._settle(now_us)
        if self.feed is None:
            return []
        beats = self.feed.poll(now_us)
        self.feed.lag.synced = self.probing.synced(self.path)
        self.notes += [f"{self.job}: {note}" for note in self.feed.notes]
        self.feed.notes.clear()
        return beats

    def snapshot(self) -> Kept | None:
        """What `restore` goes on from."""
        return self._kept if self.feed is None else Kept(self.feed.job, self.feed.snapshot(), self._now_us)

    def restore(self, kept: Kept | None) -> None:
        """Goes on from a snapshot, once the capture is there."""
        self._kept = kept

    def close(self) -> None:
        """Lets go of all files."""
        if self.feed is not None:
            self.feed.close()

    def _settle(self, now_us: int) -> None:
        """Reads job.toml where it is new or another, asks for its probes, and names the job when that can be done."""
        before = self._naming.settings
        if not self._naming.look() or (settings := self._naming.settings) is None:
            return
        if self.feed is not None and settings is not before:
            self.feed.declare(JobDeclared(settings.facts, captured=shown(self.path)))
        self.probing.ask(self.path, Path(self.path), settings)
        if self.feed is None and (job := self._kept.job if self._kept else self._naming.name(now_us)):
            self._begin(job, settings.facts)

    def _begin(self, job: str, facts: JobFacts) -> None:
        owner = self.names.setdefault(job, self.path)
        if owner != self.path:
            self._naming.tell(f"{shown(self.path)}: is of the job {job}, as {shown(owner)} is; it is not watched")
            return
        declared = JobDeclared(facts, captured=shown(self.path))
        kept, self._kept = self._kept, None
        for snapshot in (kept.feed, b"") if kept is not None else (b"",):
            self.feed = LiveFeed(
                job,
                self.path,
                declared,
                lateness_us=self.lateness_us,
                journal=Journal(journal_of(self.journals, job)),
                holds=lambda now_us: self.probing.holds(self.path, now_us),
                clock=self.clock,
            )
            try:
                if snapshot:
                    self.feed.restore(snapshot)
                return
            except Exception as error:
                self.notes.append(f"{shown(self.path)}: what was kept of it can't be used ({error}); it is read anew")
