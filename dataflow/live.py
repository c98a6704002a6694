"""One live job as beats: its files tailed, what they say held for the lateness and released in order of time.

What comes of it depends on the files and their times, not on the moments of reading: but for lines that come later than
the lateness, and lines from the future, which the journal tells of.
"""

import pickle
from collections.abc import Callable, Iterator

import msgspec

from dataflow.beats import BeatCutter
from dataflow.capture import Source, shown
from dataflow.families import GoesOn
from dataflow.following import Files, Following
from dataflow.homes import home_of_failure
from dataflow.identity import Mark
from dataflow.journal import Journal
from dataflow.lag import Lag
from dataflow.live_source import LiveSource, order_of
from dataflow.live_trials import LiveDumps, LiveTrials
from dataflow.log_reading import observed
from dataflow.rescan import Found
from dataflow.waiting import Waiting
from extractors.record import Beat, SourceFailed, SourceKind, SourceResumed
from state.trackers.facts import JobDeclared

LOOK_US = 2_000_000
"""How often a capture is looked at for what came and went; within three fifths of the lateness in any case."""
LEAST_LOOK_US = 250_000
BACKLOG = 256
"""A look that finds so many trials is still at those that were there before; so many don't come in a second."""


Asked = Callable[[LiveSource, GoesOn | None], None]
Follow = Callable[
    [str, int, Callable[[Source, int], LiveSource], Callable[[LiveSource], None], Asked], Files[LiveSource]
]


_POLLS = "polls/"


class LiveFeed:
    """The live stream of one job. declared is what its launcher knew; lateness_us how long a line may be on its way;
    holds gives a time up to which no more is known yet (a poll or sync that runs), or None; clock is the one by which
    poll is called; follow makes what finds and tails its files.

    Its notes gather what the user should hear. A snapshot goes into `restore`.
    """

    def __init__(
        self,
        job: str,
        path: str,
        declared: JobDeclared,
        *,
        lateness_us: int,
        journal: Journal,
        holds: Callable[[int], int | None] = lambda _: None,
        clock: Callable[[], int] = lambda: 0,
        follow: Follow = Following,
    ) -> None:
        self.job = job
        self.path = path
        self.notes: list[str] = []
        self.lag = Lag()
        self._declared = declared
        self._lateness_us = lateness_us
        self._holds = holds
        self._journal = journal
        self._troubled = ""
        self._look_us = min(max(LEAST_LOOK_US, lateness_us * 3 // 5), LOOK_US)
        self._files = follow(path, lateness_us, self._make, self._poll, self._asked)
        self._trials, self._dumps = LiveTrials(self.notes), LiveDumps(self.notes)
        self._waiting = Waiting(journal, clock)
        self._cutter = BeatCutter(job)
        self._now_us = self._aside_us = 0
        self._looked_us: int | None = None
        self._fresh = self._settling = True

    def poll(self, now_us: int) -> list[Beat]:
        """Reads what is new, for a fraction of a second at most, and gives the beats that are over. Never raises
        OSError."""
        self._now_us = now_us
        looks = self._settling or self._looked_us is None or now_us - self._looked_us >= self._look_us
        if looks:
            self._looked_us = now_us
            found = self._files.look(now_us)
            self._settling = self._settling and len(found.trials) >= BACKLOG
            self._found(found, now_us)
            for name, run in self._dumps.look(now_us):
                self._waiting.whole(name, run)
            for held in self._files.held(now_us):
                self._waiting.hold(held.source, self._files.entries[held.source].held(held, now_us))
        self._files.read(now_us)
        beats = [] if self._settling else list(self._release(self._known_up_to(now_us)))
        self._fare(looks)
        return [msgspec.structs.replace(beat, blind=True) for beat in beats] if self.lag.blind else beats

    @property
    def brisk(self) -> bool:
        """Whether something is being read, or grew lately."""
        return self._settling or self._files.brisk

    def _known_up_to(self, now_us: int) -> int:
        """The time up to which everything was read."""
        limits = [now_us - self._lateness_us]
        if (held_us := self._holds(now_us)) is not None:
            limits.append(held_us)
        if (behind_us := self._files.behind_us) is not None:
            limits.append(behind_us - 1)
        return min(limits)

    def declare(self, declared: JobDeclared) -> None:
        """The launcher's facts have become known, or others."""
        self._declared = declared
        if self._waiting.begun:
            self._told(declared, "job_declared", "job.toml")

    def redeclare(self, declared: JobDeclared) -> None:
        """The same, where they may be those that are known."""
        if declared != self._declared:
            self.declare(declared)

    def aside(self, signal: object, name: str) -> list[Beat]:
        """A beat of its own for what is known of the stream itself while its time stands still. None before the first
        line: of a job of which nothing is known nothing can be said."""
        if not self._waiting.begun:
            return []
        self._aside_us = max(self._aside_us, self._waiting.released_us) + 1
        return [self._cutter.aside(observed(signal, name, self.path, self._aside_us))]

    def missed(self, source: LiveSource, why: str) -> None:
        """What a file says is not known any more, for this reason."""
        source.trouble = why
        failed = SourceFailed(source.source.kind, why, whole=False)
        self._told(failed, "source_failed", source.source.relative)

    def regained(self, source: LiveSource, why: str) -> None:
        """What was missed for this reason has come after all."""
        source.trouble = ""
        self._told(SourceResumed(source.source.kind, why), "source_resumed", source.source.relative)

    def poisoned(self, place: str, why: str) -> None:
        """Something of the job's came that can't be read."""
        self._told(SourceFailed(SourceKind.ARTIFACT, why, whole=False), "source_failed", place)

    def snapshot(self) -> bytes:
        """All that `restore` needs to go on from here. What the journal notes of it is on the disk before."""
        self._journal.force()
        rest = {
            "dumps": self._dumps.read,
            "trials": (self._trials.open, self._trials.told),
            "waiting": self._waiting.snapshot(),
            "cutter": self._cutter,
            "fresh": self._fresh,
            "aside": self._aside_us,
        }
        return pickle.dumps((self._files.snapshot(), rest, self._declared), pickle.HIGHEST_PROTOCOL)

    def restore(self, snapshot: bytes) -> None:
        """Goes on where a snapshot was made; declares facts that changed since. Raises whatever a broken one causes."""
        known = self._declared
        self.take_up(snapshot)
        self.redeclare(known)

    def take_up(self, snapshot: bytes) -> None:
        """The same, with the facts of the snapshot."""
        files, rest, self._declared = pickle.loads(snapshot)
        self._files.restore(files)
        self._trials.open, self._trials.told = rest["trials"]
        self._waiting.restore(rest["waiting"])
        self._cutter, self._dumps.read = rest["cutter"], rest["dumps"]
        self._fresh, self._aside_us = rest["fresh"], rest["aside"]

    def close(self) -> None:
        """Lets go of all files."""
        self._files.close()

    def _found(self, found: Found, now_us: int) -> None:
        for source in found.new:
            if source.kind is SourceKind.FLIGHT:
                self._dumps.add(source)
        for relative, why in found.failures:
            self.notes.append(f"{relative}: {why}")
            if relative != shown(self.path):
                self._told(SourceFailed(home_of_failure(relative), why), "source_failed", relative)
        trials = {archive.relative: self._trials.archive(archive, now_us) for archive in found.archives}
        trials |= {trial.relative: self._trials.seen(trial, now_us) for trial in found.trials}
        for beginning in self._trials.beginnings(trials):
            self._waiting.begin(beginning)
        for name, run in trials.items():
            self._waiting.whole(name, run)

    def _make(self, source: Source, block_bytes: int) -> LiveSource:
        clocks = self._files.clocks
        mark = Mark(generation=self._journal.generation_of(source.relative))
        near = clocks.anchor_us or self._now_us, clocks.skew_of(source)
        return LiveSource(source, *near, self.notes, block_bytes, mark, self._files.tail_of)

    def _asked(self, source: LiveSource, found: GoesOn | None) -> None:
        """A content turned out to be new, or to go on what was read under another name."""
        name, generation = source.source.relative, source.generation
        if generation > self._journal.generation_of(name):
            self._journal.turned(name, generation)
        if found is None:
            return
        if source.tail.mark.earlier is None:
            source.goes_on()
        self._journal.renamed(found.content.name, found.content.mark.generation, name, generation)

    def _poll(self, source: LiveSource) -> None:
        for generation, run in source.poll(self._now_us):
            self._waiting.line(source.source.relative, generation, run, self._now_us)

    def _told(self, signal: object, name: str, source: str) -> None:
        """Holds an observation that the feed makes itself, of now."""
        self._waiting.hold(source, [observed(signal, name, source, self._waiting.released_us + 1)])

    def _release(self, upto_us: int) -> Iterator[Beat]:
        """The beats that are over when all up to a time is known."""
        if upto_us <= self._waiting.released_us:
            return
        begun, run = self._waiting.begun, self._waiting.release(upto_us, self._order)
        if run and not begun:
            run.insert(0, observed(self._declared, "job_declared", "job.toml", run[0].at_us))
        printed = [each.evidence.at_us for each in run if not each.evidence.source.startswith(_POLLS)]
        self.lag.newest_us = max((at_us for at_us in printed if at_us is not None), default=self.lag.newest_us)
        for beat in (*self._cutter.take(run), *self._cutter.reach(upto_us)):
            yield msgspec.structs.replace(beat, fresh=True) if self._fresh else beat
            self._fresh = False

    def _order(self, name: str) -> tuple[int, str]:
        source = self._files.entries.get(name)
        return source.order if source is not None else order_of(home_of_failure(name), name)

    def _fare(self, looked: bool) -> None:
        """How the watching fares now."""
        self._journal.retry()
        if self._journal.trouble != self._troubled:
            self._troubled = self._journal.trouble
            self.notes.append(f"its journal {_journal_said(self._troubled)}")
        lag = self.lag
        entries = self._files.entries
        lag.released_us, lag.late, lag.sources = self._waiting.released_us, self._waiting.late, len(entries)
        if looked:
            lag.unreadable = {name: each.trouble for name, each in entries.items() if each.trouble}
            gone = self._waiting.begun and not self._files.stands
            lag.blind = gone or 0 < len(entries) == len(lag.unreadable)


def _journal_said(trouble: str) -> str:
    if not trouble:
        return "can be used again"
    return f"can't be used: {trouble}; what comes late waits to be noted there"
