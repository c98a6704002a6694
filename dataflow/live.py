"""One live job as beats: its files tailed, what they say held for the lateness and released in order of time.

What comes of it depends on the files and their times, not on the moments of reading: but for lines that come later than
the lateness, and lines from the future, which the journal tells of.
"""

import os
import pickle
import time
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from typing import Any

import msgspec

from dataflow.beats import BeatCutter
from dataflow.blocks import block_bytes_of
from dataflow.capture import Source, shown
from dataflow.families import Families
from dataflow.homes import home_of_failure
from dataflow.identity import Mark
from dataflow.journal import Journal
from dataflow.lag import Lag
from dataflow.live_source import LiveSource, order_of
from dataflow.live_trials import LiveDumps, LiveTrials
from dataflow.log_reading import observed
from dataflow.node_clocks import NodeClocks
from dataflow.rescan import Found, Rescan
from dataflow.rounds import AnyTail, Rounds
from dataflow.waiting import Waiting
from extractors.record import Beat, SourceFailed, SourceKind
from state.trackers.facts import JobDeclared

LOOK_US = 2_000_000
"""How often a capture is looked at for what came and went; within three fifths of the lateness in any case."""
PEEK_US = 10_000_000
"""How often a line that only grows is looked into."""
LEAST_QUIET_US, MOST_QUIET_US = 250_000, 3_000_000
"""Between these, a quiet file is polled within three fifths of the lateness."""
BACKLOG = 256
"""A look that finds so many trials is still at those that were there before; so many don't come in a second."""
TURN_SECONDS = 0.2
"""How long one job may be read at a time, while others wait."""


class LiveFeed:
    """The live stream of one job. declared is what its launcher knew; lateness_us how long a line may be on its way;
    holds gives a time up to which no more is known yet (a poll or sync that runs), or None; clock is the one by which
    poll is called.

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
        self._rescan = Rescan(path)
        soon_us = max(LEAST_QUIET_US, lateness_us * 3 // 5)
        self._look_us, self._rounds = min(soon_us, LOOK_US), Rounds(min(soon_us, MOST_QUIET_US))
        self._sources: dict[str, LiveSource] = {}
        self._families = Families()
        self._reading_out: set[str] = set()
        self._kept: dict[str, tuple[Source, Any]] = {}
        self._trials, self._dumps = LiveTrials(self.notes), LiveDumps(self.notes)
        self._waiting = Waiting(journal, clock)
        self._behind: list[tuple[int, str]] = []
        self._cutter = BeatCutter(job)
        self._clocks = NodeClocks()
        self._now_us = 0
        self._looked_us: int | None = None
        self._peeked_us = 0
        self._fresh = self._settling = True

    def poll(self, now_us: int) -> list[Beat]:
        """Reads what is new, for a fraction of a second at most, and gives the beats that are over. Never raises
        OSError."""
        self._now_us = now_us
        looks = self._settling or self._looked_us is None or now_us - self._looked_us >= self._look_us
        if looks:
            self._looked_us = now_us
            found = self._rescan.look(now_us)
            self._revive(now_us)
            self._settling = self._settling and len(found.trials) >= BACKLOG
            self._found(found, now_us)
            for name, run in self._dumps.look(now_us):
                self._waiting.whole(name, run)
            self._peeked(now_us)
        self._read(now_us)
        beats = [] if self._settling else list(self._release(self._known_up_to(now_us)))
        self._fare(looks)
        return [msgspec.structs.replace(beat, blind=True) for beat in beats] if self.lag.blind else beats

    @property
    def brisk(self) -> bool:
        """Whether something is being read, or grew lately."""
        return bool(self._behind or self._settling or self._rounds.is_brisk)

    def _known_up_to(self, now_us: int) -> int:
        """The time up to which everything was read."""
        limits = [now_us - self._lateness_us]
        if (held_us := self._holds(now_us)) is not None:
            limits.append(held_us)
        if self._behind:
            limits.append(self._behind[0][0] - 1)
        return min(limits)

    def declare(self, declared: JobDeclared) -> None:
        """The launcher's facts have become known, or others."""
        self._declared = declared
        if self._waiting.begun:
            self._told(declared, "job_declared", "job.toml")

    def snapshot(self) -> bytes:
        """All that `restore` needs to go on from here."""
        sources = {name: (each.source, each.snapshot()) for name, each in self._sources.items()} | self._kept
        rest = {
            "rescan": self._rescan.snapshot(),
            "dumps": self._dumps.read,
            "trials": (self._trials.open, self._trials.told),
            "waiting": self._waiting.snapshot(),
            "cutter": self._cutter,
            "clocks": self._clocks.known,
            "fresh": self._fresh,
            "families": self._families.past,
        }
        return pickle.dumps((sources, rest, self._declared), pickle.HIGHEST_PROTOCOL)

    def restore(self, snapshot: bytes) -> None:
        """Goes on where a snapshot was made; declares facts that changed since. Raises whatever a broken one causes."""
        self._kept, rest, declared = pickle.loads(snapshot)
        self._rescan = Rescan(self.path, rest["rescan"])
        self._trials.open, self._trials.told = rest["trials"]
        self._waiting.restore(rest["waiting"])
        self._cutter, self._dumps.read = rest["cutter"], rest["dumps"]
        self._clocks = NodeClocks(rest["clocks"])
        self._fresh, self._families = rest["fresh"], Families(rest["families"])
        if declared != self._declared:
            self.declare(self._declared)

    def close(self) -> None:
        """Lets go of all files."""
        self._rounds.close()

    def _found(self, found: Found, now_us: int) -> None:
        if found.new:
            self._clocks.look(self._rescan.sources.values(), now_us)
        for source in found.new:
            self._add(source, now_us)
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

    def _revive(self, now_us: int) -> None:
        """Goes on with files that went while nobody watched: their contents may stand under other names."""
        for name in [name for name in self._kept if name not in self._rescan.sources]:
            self._add(self._kept[name][0], now_us)

    def _add(self, source: Source, now_us: int) -> None:
        name, known = source.relative, self._sources.get(source.relative)
        if known is not None and known.source.path == source.path:
            return
        if source.kind is SourceKind.FLIGHT:
            self._dumps.add(source)
            return
        if known is not None:
            self._read_out(name)
            self._kept[name] = (source, known.snapshot())
        block_bytes = block_bytes_of(len(self._rescan.sources))
        anchor_us, skew = self._clocks.anchor_us or now_us, self._clocks.skew_of(source)
        mark = Mark(generation=self._journal.generation_of(name))
        added = LiveSource(source, anchor_us, skew, self.notes, block_bytes, mark)
        if name in self._kept:
            added.restore(self._kept.pop(name)[1], block_bytes)
        added.tail.elsewhere = lambda: self._elsewhere(added)
        self._sources[name] = added
        self._families.add(name)
        self._rounds.add(added.tail)

    def _elsewhere(self, source: LiveSource) -> Mark | None:
        """How far a content was read under another name of its log, which is read to its end first."""
        name, tail = source.source.relative, source.tail
        self._reading_out.add(name)
        found = self._families.goes_on(source.source, self._rounds.tails, self._read_out)
        self._reading_out.discard(name)
        if tail.mark.generation > self._journal.generation_of(name):
            self._journal.turned(name, tail.mark.generation)
        if found is None:
            return None
        if found.current:
            self._sources[found.content.name].tail.close()
        if tail.mark.earlier is None:
            source.goes_on()
        self._journal.renamed(found.content.name, found.content.mark.generation, name, tail.mark.generation)
        return found.mark

    def _read_out(self, name: str) -> None:
        """Reads what is left of a file."""
        source = self._sources[name]
        if name in self._reading_out:
            return
        self._reading_out.add(name)
        self._poll(source, self._now_us)
        while source.tail.more:
            self._poll(source, self._now_us)
        self._reading_out.discard(name)

    def _peeked(self, now_us: int) -> None:
        """Looks into lines without end, every ten seconds."""
        if now_us - self._peeked_us < PEEK_US:
            return
        self._peeked_us = now_us
        for tail in self._rounds.brisk():
            source = self._sources[tail.source.relative]
            if run := source.peek(now_us):
                self._waiting.hold(source.source.relative, run)

    def _read(self, now_us: int) -> None:
        """Polls what is due, then reads on in the file that is furthest behind."""
        for tail in self._rounds.due(now_us):
            if not tail.more:
                self._poll_tail(tail, now_us)
        until = time.monotonic() + TURN_SECONDS
        while self._behind and time.monotonic() < until:
            _, name = heappop(self._behind)
            source = self._sources.get(name)
            if source is not None:
                self._poll_tail(source.tail, now_us)

    def _poll_tail(self, tail: AnyTail, now_us: int) -> None:
        source = self._sources[tail.source.relative]
        self._poll(source, now_us)
        if tail.more:
            heappush(self._behind, (source.newest_us, tail.source.relative))

    def _poll(self, source: LiveSource, now_us: int) -> None:
        for generation, run in source.poll(now_us):
            self._waiting.line(source.source.relative, generation, run, now_us)

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
        for beat in (*self._cutter.take(run), *self._cutter.reach(upto_us)):
            yield msgspec.structs.replace(beat, fresh=True) if self._fresh else beat
            self._fresh = False

    def _order(self, name: str) -> tuple[int, str]:
        source = self._sources.get(name)
        return source.order if source is not None else order_of(home_of_failure(name), name)

    def _fare(self, looked: bool) -> None:
        """How the watching fares now."""
        self._journal.retry()
        if self._journal.trouble != self._troubled:
            self._troubled = self._journal.trouble
            self.notes.append(f"its journal {_journal_said(self._troubled)}")
        lag = self.lag
        lag.released_us, lag.late, lag.sources = self._waiting.released_us, self._waiting.late, len(self._sources)
        if looked:
            lag.unreadable = {name: each.trouble for name, each in self._sources.items() if each.trouble}
            gone = self._waiting.begun and not os.path.exists(self.path)
            lag.blind = gone or 0 < len(self._sources) == len(lag.unreadable)


def _journal_said(trouble: str) -> str:
    if not trouble:
        return "can be used again"
    return f"can't be used: {trouble}; what comes late waits to be noted there"
