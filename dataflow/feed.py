"""A recorded capture as the beats of one job: its files read, its polls and trials opened, all merged in order."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from dataflow.blocks import LineCut, blocks
from dataflow.capture import Capture, Source, open_capture
from dataflow.merge import Merge, Stream, beats
from dataflow.polls import poll_observations, recorded_at
from dataflow.reads import READ_BYTES, chunks
from dataflow.settings import load_job
from dataflow.trials import trial_observations
from extractors.clocks import parse_iso
from extractors.extract import Reader
from extractors.quoting import quote
from extractors.record import (
    Beat,
    Block,
    Evidence,
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
    hear of its reading, as `<place>: <what>`."""

    job: str
    captured: str
    capture: Capture
    declared: JobDeclared
    as_of_us: int | None = None
    read_size: int = READ_BYTES
    notes: list[str] = field(default_factory=list)

    def beats(self) -> Iterator[Beat]:
        """The job's stream. Reads the files as it goes."""
        merge = Merge(list(self._streams()), polled=any(s.kind is SourceKind.POLL for s in self.capture.sources))
        observations = iter(merge)
        first = next(observations, None)
        start_us = first.at_us if first else self.as_of_us or 0
        every = chain(self._opening(start_us), [first] if first else [], observations)
        yield from beats(self.job, every, lambda: max(merge.end_us, start_us), self.as_of_us)

    def _streams(self) -> Iterator[Stream]:
        anchor_us = anchor(self.capture)
        for source in self.capture.sources:
            if source.kind is SourceKind.POLL:
                yield Stream(source.rank, source.kind, poll_observations(source, self.read_size, self.notes, anchor_us))
            else:
                yield Stream(source.rank, source.kind, self._log(source, anchor_us))
        for trials in self.capture.trials:
            yield Stream(trials.rank, SourceKind.TRIAL, trial_observations(trials, self.notes, anchor_us))

    def _opening(self, at_us: int) -> Iterator[Observation]:
        """What is known before the first line: the launcher's facts, and which sources there are."""
        yield observed(self.declared, "job_declared", "job.toml", at_us)
        for source in self.capture.sources:
            yield observed(SourceSeen(source.kind), "source_seen", source.relative, at_us)
        for trials in self.capture.trials:
            yield observed(SourceSeen(SourceKind.TRIAL), "source_seen", trials.relative, at_us)
        for relative, why in self.capture.failures:
            self.notes.append(f"{relative}: {why}")
            yield observed(SourceFailed(SourceKind.DAEMON, why), "source_failed", relative, at_us)

    def _log(self, source: Source, anchor_us: int) -> Iterator[Observation]:
        reader = Reader(source.relative, source.origin, source.writer.session_start_us or anchor_us)
        last: Block | None = None
        for piece in blocks(source, self.read_size):
            if isinstance(piece, Block):
                yield from reader.read(piece)
                last = piece
            elif isinstance(piece, LineCut):
                self.notes.append(
                    f"{source.relative}: line {piece.line} at byte {piece.offset} has {piece.size} bytes; "
                    "only its first 1 MiB is matched"
                )
            elif isinstance(piece, SourceFailed):
                self.notes.append(f"{source.relative}: {piece.why}")
                yield observed(piece, "source_failed", source.relative, reader.time_of(""))
            else:
                yield from reader.end()
                yield _ended(source.relative, reader, piece, last)


def observed(signal: object, name: str, source: str, at_us: int) -> Observation:
    """An observation that the feed itself makes of a source. It quotes nothing."""
    return Observation(signal, Evidence(name, source, 1, 0, None, ""), at_us, name)


def _ended(source: str, reader: Reader, ended: SourceEnded, last: Block | None) -> Observation:
    """The end of a file, with its last line for evidence of how far it was read."""
    signal = SourceEnded(ended.kind, ended.lines, ended.size, reader.unparsed + reader.torn, ended.complete, ended.gap)
    if last is None:
        return observed(signal, "source_ended", source, reader.time_of(""))
    start = last.data.rstrip(b"\n").rfind(b"\n") + 1
    raw = last.data[start:].rstrip(b"\n").decode("utf-8", "replace")
    at_us = reader.time_of(raw)
    line = last.line + last.data.count(b"\n", 0, start)
    evidence = Evidence("source_ended", source, line, last.offset + start, reader.unwrapper.clock.newest_us, quote(raw))
    return Observation(signal, evidence, at_us, "source_ended")


def anchor(capture: Capture) -> int:
    """A moment near the capture's beginning, by which clocks without a date are read: the first poll, the start of
    the Ray session, or the first date in a log's head. 0 where there is none."""
    polls = [recorded_at(_head(source)) for source in capture.sources if source.kind is SourceKind.POLL]
    known = [at_us for at_us in polls if at_us is not None]
    known = known or [s.writer.session_start_us for s in capture.sources if s.writer.session_start_us is not None]
    if known:
        return min(known)
    for source in capture.sources:
        if found := _DATED.search(_head(source)):
            date = found[1] or b"-".join(found.group(3, 4, 5))
            return parse_iso((date + b"T" + (found[2] or found[6])).decode()) or 0
    return 0


def _head(source: Source) -> bytes:
    if source.stream is not None:
        return source.head
    first = next(chunks(source.path, source.compression), b"")
    return first if isinstance(first, bytes) else b""


def open_feed(
    path: str, *, job_toml: Path | None = None, as_of_us: int | None = None, read_size: int = READ_BYTES
) -> ReplayFeed:
    """Looks at a capture and its job.toml (or the one given). Raises CaptureError or SettingsError."""
    capture = open_capture(path)
    toml = job_toml or (Path(capture.job_toml) if capture.job_toml else None)
    facts = load_job(toml).facts if toml else JobFacts()
    job = facts.id or capture.job_id
    declared = JobDeclared(facts, captured=path)
    return ReplayFeed(job, path, capture, declared, as_of_us, read_size)
