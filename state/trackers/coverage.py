"""Which sources were read, to where, and which could not be. Nothing is concluded from emptiness.

Bounds: one entry a file, all files of a trial archive or folder being one; 64 failures; 64 sources of skipped pieces;
64 actor classes.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, ClassVar

import msgspec

from extractors.harbor_trials import TrialUnreadable
from extractors.metrics import MetricsUnreadable
from extractors.polls import PollFailed
from extractors.record import (
    Evidence,
    HeardAgain,
    Observation,
    SourceEnded,
    SourceFailed,
    SourceKind,
    SourceResumed,
    SourceSeen,
    Unheard,
)
from extractors.supervisor import DriverExited, UploadCut
from state.policy import SECOND_US
from state.tracker import AttemptStarted, ShowingTracker
from state.trackers.facts import JobDeclared
from state.trackers.silence import Silence
from state.trackers.skips import Skip, kept, skip_of

FAILURES_KEPT = 64
ACTORS_KEPT = 64
_LATE_AFTER_US = 5 * SECOND_US
"""A line is late where it stands so many seconds later in the job's stream than its own time says."""


class Reading(StrEnum):
    """How far a source, or a home of sources, has been read. READING counts as read up to now."""

    UNSEEN = "unseen"
    READING = "reading"
    READ = "read"
    UNREADABLE = "unreadable"


_TURNED = re.compile(r"(?<=\.log|\.out|\.err|\.txt)\.\d{1,5}(?:\.gz|\.zst)?$")
"""What rotation adds to the name of a log."""
_MADE_BY_THE_SHARD = frozenset(
    {SourceSeen, SourceEnded, SourceFailed, SourceResumed, Unheard, HeardAgain, JobDeclared, AttemptStarted}
)
_BEST = (Reading.UNSEEN, Reading.UNREADABLE, Reading.READING, Reading.READ)


class SourceCoverage(msgspec.Struct, frozen=True):
    """One file. lines and unparsed are known at its end; newest is the newest place that was read in it."""

    kind: SourceKind
    reading: Reading
    lines: int = 0
    from_us: int | None = None
    to_us: int | None = None
    complete: bool = True
    gaps: tuple[str, ...] = ()
    late: int = 0
    unparsed: int = 0
    newest: Evidence | None = None


class CoverageView(msgspec.Struct, frozen=True):
    """sources by path; homes by kind (the best reading among its sources); failures as (source, why); actors is the
    first line of each actor class; skips are what was malformed or passed over, by source; incomplete names the
    sources of which something is missing. upload_cut is where a supervisor says that it uploaded a part of its node's
    Ray logs; unheard is the outage that lasts, None while the job is heard.

    A file without a line tells nothing and counts as unread."""

    sources: dict[str, SourceCoverage]
    homes: dict[SourceKind, Reading]
    failures: tuple[tuple[str, str], ...] = ()
    actors: dict[str, Evidence] = {}
    skips: tuple[Skip, ...] = ()
    incomplete: tuple[str, ...] = ()
    upload_cut: Evidence | None = None
    unheard: Silence | None = None

    def was_read(self, kind: SourceKind) -> bool:
        """Whether a source of this home has been read up to now."""
        return self.homes.get(kind, Reading.UNSEEN) in (Reading.READING, Reading.READ)

    def absence(self, kind: SourceKind, searched: str) -> Evidence | None:
        """Evidence that this home was searched: its newest place read, saying what was looked for and how far."""
        places = [s for s in self.sources.values() if s.kind is kind and s.newest is not None]
        if not places:
            return None
        newest = max((s.newest for s in places if s.newest), key=lambda e: (e.at_us or 0, e.source, e.offset))
        return msgspec.structs.replace(
            newest, signal="absence", searched=f"{searched}: none in {len(places)} file(s), up to here"
        )


class CoverageTracker(ShowingTracker):
    """Notes each source's begin, end and failure, and the newest place read in it; and whether the job is heard.

    beside is set while the newest beat is one of an outage. Places that were read are settled with the beat after it,
    as they would have been without it: between them only the two ends of a beat count."""

    sources: dict[str, SourceCoverage] = {}
    failures: list[tuple[str, str]] = []
    actors: dict[str, Evidence] = {}
    newest: dict[str, Evidence] = {}
    late: dict[str, int] = {}
    skips: dict[str, Skip] = {}
    homes: dict[SourceKind, Reading] | None = None
    incomplete: tuple[str, ...] = ()
    cut: Evidence | None = None
    heard: Evidence | None = None
    heard_us: int = 0
    unheard: Silence | None = None
    beside: bool = False
    shown: CoverageView | None = None

    def _every(self, observations: Sequence[Observation]) -> None:
        newest, actors, heard = self.newest, self.actors, None
        for observation in observations:
            if type(observation.signal) in _MADE_BY_THE_SHARD:
                continue
            evidence, actor, heard = observation.evidence, observation.origin.actor, observation
            newest[evidence.source] = evidence
            if evidence.at_us is not None and observation.at_us - evidence.at_us > _LATE_AFTER_US:
                self.late[evidence.source] = self.late.get(evidence.source, 0) + 1
            if actor and actor not in actors and len(actors) < ACTORS_KEPT:
                actors[actor] = evidence
        self.beside = False
        if heard is not None:
            self.heard, self.heard_us = heard.evidence, heard.at_us

    def _seen(self, observation: Observation) -> None:
        kind = observation.signal.kind
        name = entry_name(observation.evidence.source, kind)
        known = self.sources.get(name)
        if known is None or known.reading is Reading.UNREADABLE:
            self._keep(name, SourceCoverage(kind, Reading.READING))

    def _ended(self, observation: Observation) -> None:
        ended: SourceEnded = observation.signal
        name = entry_name(observation.evidence.source, ended.kind)
        known = self.sources.get(name) or SourceCoverage(ended.kind, Reading.READING)
        several = ended.kind is SourceKind.TRIAL or known.reading is Reading.READ
        self._keep(
            name,
            msgspec.structs.replace(
                known,
                reading=Reading.READ,
                lines=ended.lines + (known.lines if several else 0),
                unparsed=ended.unparsed + (known.unparsed if several else 0),
                complete=ended.complete and (known.complete or not several),
                gaps=_with(known.gaps, ended.gap),
            ),
        )

    def _skipped(self, observation: Observation) -> None:
        skip = skip_of(observation)
        if skip is not None:
            kept(self.skips, skip)
            self.shown = None

    def _failed(self, observation: Observation) -> None:
        self._skipped(observation)
        failed: SourceFailed = observation.signal
        source = observation.evidence.source
        if len(self.failures) < FAILURES_KEPT:
            self.failures.append((source, failed.why))
        name = entry_name(source, failed.kind)
        known = self.sources.get(name)
        if known is None and failed.whole:
            self._keep(name, SourceCoverage(failed.kind, Reading.UNREADABLE, complete=False, gaps=(failed.why,)))
        else:
            known = known or SourceCoverage(failed.kind, Reading.READING)
            self._keep(name, msgspec.structs.replace(known, complete=False, gaps=_with(known.gaps, failed.why)))

    def _resumed(self, observation: Observation) -> None:
        resumed: SourceResumed = observation.signal
        source = observation.evidence.source
        self.failures = [each for each in self.failures if each != (source, resumed.why)]
        if (skip := self.skips.get(source)) is not None and skip.why == resumed.why:
            del self.skips[source]
        name = entry_name(source, resumed.kind)
        known = self.sources.get(name)
        if known is not None:
            gaps = tuple(gap for gap in known.gaps if gap != resumed.why)
            self._keep(name, msgspec.structs.replace(known, reading=Reading.READING, complete=not gaps, gaps=gaps))

    def _cut(self, observation: Observation) -> None:
        signal: DriverExited | UploadCut = observation.signal
        if isinstance(signal, UploadCut) or signal.upload_cut:
            self.cut, self.shown = observation.evidence, None

    def _attempt(self, observation: Observation) -> None:
        self.cut = self.shown = None

    def _silent(self, observation: Observation) -> None:
        self.unheard = Silence(observation.signal, self.heard_us or observation.at_us, self.heard)
        self.beside, self.shown = True, None

    def _again(self, observation: Observation) -> None:
        self.unheard, self.beside, self.shown = None, True, None

    def tick(self, now_us: int) -> bool:
        """Whether places were read that no view shows yet."""
        return bool(self.newest)

    def _keep(self, name: str, coverage: SourceCoverage) -> None:
        self.sources[name] = coverage
        self.homes = self.shown = None

    def view(self) -> CoverageView:
        """The sources as they were read so far."""
        if self.newest and not self.beside:
            self._settle()
        if self.homes is None:
            found = {
                (source.kind, source.reading)
                for source in self.sources.values()
                if source.reading is not Reading.READ or source.lines
            }
            self.incomplete = tuple(sorted(name for name, source in self.sources.items() if not source.complete))
            self.homes = dict(sorted(found, key=lambda each: (_BEST.index(each[1]), each[0])))
        if self.shown is None:
            self.shown = CoverageView(
                dict(self.sources),
                self.homes,
                tuple(self.failures),
                dict(self.actors),
                tuple(self.skips.values()),
                self.incomplete,
                self.cut,
                self.unheard,
            )
        return self.shown

    def _settle(self) -> None:
        for source, evidence in self.newest.items():
            name = source if source in self.sources else _TURNED.sub("", source)
            name = name if name in self.sources else entry_name(source, SourceKind.TRIAL)
            known = self.sources.get(name)
            if known is not None:
                self.sources[name] = _read_to(known, evidence, self.late.get(source, 0))
        self.newest, self.late, self.shown = {}, {}, None

    EVERY: ClassVar[Callable[[Any, Sequence[Observation]], None] | None] = _every
    FOLDS: ClassVar[Mapping[type, Callable[[Any, Observation], None]]] = {
        SourceSeen: _seen,
        SourceEnded: _ended,
        SourceFailed: _failed,
        SourceResumed: _resumed,
        TrialUnreadable: _skipped,
        MetricsUnreadable: _skipped,
        PollFailed: _skipped,
        DriverExited: _cut,
        UploadCut: _cut,
        AttemptStarted: _attempt,
        Unheard: _silent,
        HeardAgain: _again,
    }


def entry_name(source: str, kind: SourceKind) -> str:
    """The entry that a source is counted in: itself, the log of which it is a rotated part, or the archive or folder of
    a trial's file."""
    if kind is not SourceKind.TRIAL:
        return _TURNED.sub("", source)
    return source.split("!", 1)[0].split("/", 1)[0]


def _with(gaps: tuple[str, ...], gap: str) -> tuple[str, ...]:
    return gaps if not gap or gap in gaps else (*gaps, gap)[-FAILURES_KEPT:]


def _read_to(known: SourceCoverage, evidence: Evidence, late: int) -> SourceCoverage:
    at_us, from_us, to_us = evidence.at_us, known.from_us, known.to_us
    if at_us is not None:
        from_us = at_us if from_us is None or at_us < from_us else from_us
        to_us = at_us if to_us is None or at_us > to_us else to_us
    return SourceCoverage(
        kind=known.kind,
        reading=known.reading,
        lines=known.lines,
        from_us=from_us,
        to_us=to_us,
        complete=known.complete,
        gaps=known.gaps,
        late=known.late + late,
        unparsed=known.unparsed,
        newest=evidence,
    )
