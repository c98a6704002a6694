"""One capture that is watched: found, named, and then a feed. It may not be there yet when the watch begins."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from dataflow.capture import CaptureError, open_capture, shown
from dataflow.homes import JOB_FILE
from dataflow.journal import Journal, journal_of
from dataflow.live import LiveFeed
from dataflow.outcome import SettingsError
from dataflow.probing import Probing
from dataflow.settings import Settings, load_job
from extractors.record import Beat
from state.trackers.facts import JobDeclared, JobFacts

NAMED_BY_PATH_US = 10_000_000
"""How long after its first file a capture that names no job is given time to; then its folder's name is the job's."""
SETTINGS_US = 5_000_000
"""How often job.toml is looked at."""


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
    _first_us: int | None = None
    _looked_us: int | None = None
    _stamp: tuple[int, int] | None = None
    _settings: Settings | None = None
    _told: str = ""
    _missed: bool = False

    @property
    def job(self) -> str:
        """The job's name; the path while it is not known."""
        return self.feed.job if self.feed is not None else shown(self.path)

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
        toml = self.job_toml or Path(self.path) / JOB_FILE
        stamp = _stamp(toml)
        if stamp is None and self.job_toml and not self._missed:
            self.notes.append(f"{shown(str(toml))}: is not there or can't be read; it is waited for")
        self._missed = stamp is None
        if self._settings is None or (stamp is not None and stamp != self._stamp):
            settings = self._read(toml) if stamp is not None else Settings()
            if settings is None:
                return
            if self.feed is not None:
                self.feed.declare(JobDeclared(settings.facts, captured=shown(self.path)))
            self._settings, self._stamp = settings, stamp
        self.probing.ask(self.path, Path(self.path), self._settings)
        if self.feed is None and (job := self._kept.job if self._kept else self._named(self._settings.facts, now_us)):
            self._begin(job, self._settings.facts)

    def _read(self, toml: Path) -> Settings | None:
        """What job.toml says; None, and told once, where it can't be used."""
        try:
            return load_job(toml)
        except SettingsError as error:
            self._tell(*error.message.split("\n"))
            return None

    def _tell(self, *lines: str) -> None:
        """Notes something, once."""
        if self._told != lines[0]:
            self._told = lines[0]
            self.notes += lines

    def _named(self, facts: JobFacts, now_us: int) -> str:
        """The job's name, "" while it can't be known."""
        if facts.id:
            return facts.id
        try:
            capture = open_capture(self.path)
        except CaptureError as error:
            self._tell(f"{error}; it is waited for")
            return ""
        if capture.job_id_from != "name":
            return capture.job_id
        if not capture.sources and not capture.trials:
            return ""
        self._first_us = now_us if self._first_us is None else self._first_us
        return capture.job_id if now_us - self._first_us >= NAMED_BY_PATH_US else ""

    def _begin(self, job: str, facts: JobFacts) -> None:
        owner = self.names.setdefault(job, self.path)
        if owner != self.path:
            self._tell(f"{shown(self.path)}: is of the job {job}, as {shown(owner)} is; it is not watched")
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


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
