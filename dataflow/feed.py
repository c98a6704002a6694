"""A recorded capture as the beats of one job: its files read, its polls and trials opened, all merged in order."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from dataflow.beats import Run, beats
from dataflow.blocks import BLOCK_BYTES, LineCut, block_bytes_of, blocks
from dataflow.capture import HEAD_BYTES, Capture, Source, head_of, open_capture, shown
from dataflow.flights import flight_observations
from dataflow.homes import home_of_failure
from dataflow.journal import Journal, journal_of
from dataflow.log_reading import LogReading, observed, source_seen
from dataflow.merge import ACTOR_KINDS, Merge, Stream
from dataflow.opened import READ_BYTES, STDIN
from dataflow.outcome import Halted, Outcome
from dataflow.polls import poll_observations, recorded_at
from dataflow.read_so_far import ReadSoFar
from dataflow.reads import Compression, chunks
from dataflow.skew import measured
from dataflow.trials import trial_observations
from extractors.clocks import MONTH_US, parse_iso
from extractors.extract import NO_SKEW, Skew
from extractors.record import (
    Beat,
    Block,
    Observation,
    SourceEnded,
    SourceFailed,
    SourceKind,
    SourceSeen,
)
from state.trackers.facts import JobDeclared, JobFacts

_DATED = re.compile(
    rb"(20\d\d-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)|^[IWEF](20\d\d)(\d\d)(\d\d) (\d\d:\d\d:\d\d)", re.MULTILINE
)


@dataclass(slots=True)
class ReplayFeed:
    """One capture, ready to be read. captured is its path as the user gave it; notes gathers what the user should
    hear of its reading, as `<place>: <what>`; read counts what was read so far; journal is the folder of a live watch's
    journals, by which what it read late stands where it stood then."""

    job: str
    captured: str
    capture: Capture
    declared: JobDeclared
    as_of_us: int | None = None
    read_size: int = READ_BYTES
    notes: list[str] = field(default_factory=list)
    read: ReadSoFar = field(default_factory=ReadSoFar)
    journal: Path | None = None

    def beats(self, outcome: Outcome | None = None) -> Iterator[Beat]:
        """The job's stream. Reads the files as it goes. Raises Halted where the outcome says so."""
        outcome = outcome or Outcome()
        streams = list(self._streams(outcome))
        if self.journal is not None:
            journal = Journal(journal_of(self.journal, self.job))
            streams = [_as_then(each, journal) for each in streams]
        merge = Merge(streams, any(s.kind is SourceKind.POLL for s in self.capture.sources))
        runs = iter(merge)
        first = next(runs, [])
        start_us = first[0].at_us if first else self.as_of_us or 0
        if self.as_of_us is not None:
            start_us = min(start_us, self.as_of_us)
        every = chain([list(self._opening(start_us))], [first] if first else [], runs)
        yield from beats(self.job, every, lambda: max(merge.end_us, start_us), self.as_of_us, merge.endings)

    def _streams(self, outcome: Outcome) -> Iterator[Stream]:
        anchor_us = anchor(self.capture.sources)
        skews = self._skews(anchor_us, outcome)
        small = {source.relative for source in self.capture.sources if _is_small(source)}
        block_bytes = block_bytes_of(len(self.capture.sources) - len(small))
        found: Iterator[Run]
        for source in self.capture.sources:
            if source.kind is SourceKind.POLL:
                polls = poll_observations(source, self.read_size, self.notes, anchor_us, outcome.go_on)
                found = self.read.whole(([observation] for observation in polls), source.path)
            elif source.kind is SourceKind.FLIGHT:
                dumps = flight_observations(source, self.read_size, self.notes, anchor_us)
                found = self.read.whole(([observation] for observation in dumps), source.path)
            else:
                skew = skews.get(source.writer.host, NO_SKEW) if source.kind in ACTOR_KINDS else NO_SKEW
                if source.relative in small:
                    found = _at_once(self._log(source, anchor_us, skew, BLOCK_BYTES, outcome.go_on))
                else:
                    found = self._log(source, anchor_us, skew, block_bytes, outcome.go_on)
            yield Stream(source.rank, source.kind, self._kept(source.relative, source.kind, found, outcome))
        for trials in self.capture.trials:
            go_on = self.read.each_trial(outcome.go_on)
            ends = trial_observations(trials, self.notes, anchor_us, go_on=go_on, taken=self.read.take)
            found = ([observation] for observation in ends)
            yield Stream(trials.rank, SourceKind.TRIAL, self._kept(trials.relative, SourceKind.TRIAL, found, outcome))

    def _skews(self, anchor_us: int, outcome: Outcome) -> dict[str, Skew]:
        """How far the nodes' clocks run ahead; none is known where measuring them fails."""
        try:
            return measured(self.capture.sources, anchor_us)
        except Exception as error:
            outcome.failed(f"{self.job}: the clocks of its files", error)
            return {}

    def _kept(self, relative: str, kind: SourceKind, found: Iterator[Run], outcome: Outcome) -> Iterator[Run]:
        """A source's observations up to an error of our own reader, which costs that source and no other."""
        at_us, seen = 0, False
        try:
            for run in found:
                at_us = run[-1].at_us if run else at_us
                told, seen = seen, seen or bool(run)
                yield run if told or not run else _with_beginning(kind, relative, run)
        except Halted:
            raise
        except Exception as error:
            why = f"its reader failed: {outcome.failed(f'{self.job}: {relative}', error)}"
            yield [observed(SourceFailed(kind, why, whole=False), "source_failed", relative, at_us)]

    def _opening(self, at_us: int) -> Iterator[Observation]:
        """What is known before the first line: the launcher's facts, and which sources can't be read."""
        yield observed(self.declared, "job_declared", "job.toml", at_us)
        for relative, why in self.capture.failures:
            self.notes.append(f"{relative}: {why}")
            yield observed(SourceFailed(home_of_failure(relative), why), "source_failed", relative, at_us)

    def _log(
        self, source: Source, anchor_us: int, skew: Skew, block_bytes: int, go_on: Callable[[], None]
    ) -> Iterator[Run]:
        reading = LogReading(source, anchor_us, skew, self.notes)
        count = reading.reader.newlines_of
        for piece in blocks(source, self.read_size, block_bytes=block_bytes, count=count, taken=self.read.take):
            go_on()
            if isinstance(piece, Block):
                yield reading.read(piece)
            elif isinstance(piece, LineCut):
                reading.cut(piece)
            else:
                yield reading.failed(piece) if isinstance(piece, SourceFailed) else reading.end(piece)


def _as_then(stream: Stream, journal: Journal) -> Stream:
    """A source's observations at the times that they had live. Trials, each in its own files, change places by it."""
    moved = (journal.of_replay(run) for run in stream.runs)
    if stream.kind is not SourceKind.TRIAL:
        return replace(stream, runs=moved)
    every = [each for run in moved for each in run]
    return replace(stream, runs=[sorted(every, key=lambda each: (type(each.signal) is SourceEnded, each.at_us))])


def _is_small(source: Source) -> bool:
    """Whether a file's bytes fit into one block."""
    if source.stream is not None or source.compression is not Compression.NONE or source.path == STDIN:
        return False
    try:
        return os.stat(source.path).st_size <= BLOCK_BYTES
    except OSError:
        return False


def _at_once(runs: Iterator[Run]) -> Iterator[Run]:
    """What a small file says as one run. Thousands of open files cost more than what was read in them."""
    yield [observation for run in runs for observation in run]


def _with_beginning(kind: SourceKind, source: str, run: Run) -> Run:
    """A source's first run, which tells first that the source is there. A file that could not be opened is not, and
    one without a line tells nothing."""
    first = run[0].signal
    if type(first) in (SourceSeen, SourceEnded) or (type(first) is SourceFailed and first.whole):
        return run
    return [source_seen(kind, source, run[0].at_us), *run]


def anchor(sources: Sequence[Source]) -> int:
    """A moment near the beginning of a capture of these sources, by which clocks without a date are read: the first
    poll, the start of the Ray session, or the first date in a log's head. 0 where there is none. One that is a month
    before all others is broken."""
    polls = [recorded_at(_head(source)) for source in sources if source.kind is SourceKind.POLL]
    known = [at_us for at_us in polls if at_us is not None]
    known = known or [s.writer.session_start_us for s in sources if s.writer.session_start_us is not None]
    known.sort()
    while len(known) > 2 and known[1] - known[0] > MONTH_US:
        del known[0]
    if known:
        return known[0]
    return next((at_us for source in sources if (at_us := first_date(_head(source)))), 0)


def first_date(head: bytes) -> int:
    """The first date in a log's head, in microseconds; 0 where there is none."""
    for found in _DATED.finditer(head):
        date = found[1] or b"-".join(found.group(3, 4, 5))
        at_us = parse_iso((date + b"T" + (found[2] or found[6])).decode())
        if at_us is not None:
            return at_us
    return 0


def _head(source: Source) -> bytes:
    if source.stream is not None:
        return source.head[:HEAD_BYTES]
    return head_of(chunks(source.path, source.compression))[0][:HEAD_BYTES]


def open_feed(
    path: str,
    *,
    job_toml: Path | None = None,
    as_of_us: int | None = None,
    read_size: int = READ_BYTES,
    journal: Path | None = None,
) -> ReplayFeed:
    """Looks at a capture and its job.toml (or the one given). Raises CaptureError or SettingsError."""
    capture = open_capture(path)
    toml = job_toml or (Path(capture.job_toml) if capture.job_toml else None)
    facts = _facts(toml) if toml else JobFacts()
    job = facts.id or capture.job_id
    declared = JobDeclared(facts, captured=shown(path))
    return ReplayFeed(job, shown(path), capture, declared, as_of_us, read_size, journal=journal)


def _facts(job_toml: Path) -> JobFacts:
    """The facts of a job.toml. Its reader takes longer to load than a small capture to read."""
    from dataflow.settings import load_job

    return load_job(job_toml).facts
