"""A recorded capture that a shipper sends: put on a shelf as it comes, and replayed when all of it is there."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec

from dataflow.capture import CaptureError, open_capture
from dataflow.feed import ReplayFeed
from dataflow.outcome import Outcome, SettingsError
from dataflow.settings import read_job
from dataflow.shelf import Shelf
from dataflow.wire import Arrived, Part, PollLine
from dataflow.wire_words import Begun, Ended, FolderSeen, LinkSeen
from extractors.record import Beat, Block
from state.trackers.facts import JobDeclared, JobFacts


class Recording:
    """What came of a recorded capture. notes gets what the user should hear."""

    def __init__(self, job: str, begun: Begun, shelf: Shelf, notes: list[str]) -> None:
        self.job = job
        self.begun = begun
        self.ended: Ended | None = None
        self._shelf = shelf
        self._notes = notes

    def take(self, arrived: Arrived) -> None:
        """Takes a message. Raises OSError where the shelf has no room."""
        what = arrived.what
        if isinstance(what, Begun):
            self.begun = what
        elif isinstance(what, Block | Part):
            self._shelf.put(what.source, what.offset, what.data, what.mtime_ns if isinstance(what, Part) else 0)
        elif isinstance(what, PollLine):
            self._shelf.put(what.source, max(0, what.offset), what.data + b"\n")
        elif isinstance(what, FolderSeen):
            self._shelf.folder_of(what.relative)
        elif isinstance(what, LinkSeen):
            self._shelf.link(what.relative)
        elif isinstance(what, Ended):
            self.ended = what

    @property
    def missing(self) -> dict[str, tuple[int, int]]:
        """What has not come of it, once its end was told."""
        return {} if self.ended is None else self._shelf.missing(self.ended.files)

    def beats(self) -> Iterator[Beat]:
        """Its replay. The first beat is fresh: nothing that was known of the job counts. What is missing by now is
        evidence. All say that they are recorded. Raises OSError."""
        assert self.ended is not None
        lost = [(name, f"bytes {a} to {b} never came") for name, (a, b) in self.missing.items()]
        self._shelf.finish({name: size for name, size in self.ended.files.items() if name not in dict(lost)})
        feed = self._feed([*self.ended.failures, *lost])
        fresh = True
        for beat in feed.beats(Outcome()):
            yield msgspec.structs.replace(beat, fresh=fresh, recorded=True)
            fresh = False
            self._notes += [f"{self.job}: {note}" for note in feed.notes]
            feed.notes.clear()

    def snapshot(self) -> tuple[Any, ...]:
        """What `restored` needs; its files stay where they are."""
        return self.begun, self.ended, self._shelf.snapshot()

    @classmethod
    def restored(cls, job: str, shelf: Shelf, notes: list[str], snapshot: tuple[Any, ...]) -> "Recording":
        """The recording as it stood. Raises ShelfError where its files are not there."""
        begun, ended, kept = snapshot
        shelf.restore(kept, {} if ended is None else ended.files)
        recording = cls(job, begun, shelf, notes)
        recording.ended = ended
        return recording

    def _feed(self, failures: list[tuple[str, str]]) -> ReplayFeed:
        assert self.ended is not None
        folder = self._shelf.folder
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / next(iter(self.ended.files), "") if self.begun.bare else folder
        try:
            capture = open_capture(str(path))
        except CaptureError:
            capture = open_capture(str(folder))
        capture = replace(capture, failures=tuple(sorted({*capture.failures, *failures})))
        declared = JobDeclared(facts_of(self.begun, self.job, self._notes), captured=self.begun.captured)
        return ReplayFeed(self.job, self.begun.captured, capture, declared)


def facts_of(begun: Begun, job: str, notes: list[str]) -> JobFacts:
    """What the launcher knew; nothing, and a note, where its words can't be used."""
    if begun.job_toml is None:
        return JobFacts()
    try:
        return read_job(begun.job_toml.encode("utf-8", "replace"), f"job.toml of {job}").facts
    except SettingsError as error:
        notes += error.message.split("\n")
        return JobFacts()
