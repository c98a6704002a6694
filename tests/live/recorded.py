"""When each piece of a recorded capture was written, as far as its files tell: the schedule of the writer.

A line of a log is due at its effective time in a replay (transport's clock, else its own, else that of the nearest line
before it), never so late that an observation of it or of a line behind it came late. A poll's record is due when its
command had ended, a trial's config at the trial's start, the rest of its files at its end, a dump whole. What the
reader passes over is there from the start.
"""

import os
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import orjson

from dataflow.blocks import blocks
from dataflow.capture import Capture, Source, TrialTar, TrialTree
from dataflow.feed import anchor, open_feed
from dataflow.flights import flight_observations
from dataflow.homes import JOB_FILE
from dataflow.opened import READ_BYTES
from dataflow.reads import chunks, unpacked_name
from dataflow.skew import measured
from dataflow.trial_files import TrialFiles, trial_files
from extractors.clocks import HOUR_US, parse_iso
from extractors.extract import NO_SKEW, Reader, Skew
from extractors.harbor_trials import TrialEnded, read_trial
from extractors.ordering import LOOKED_AHEAD, runs_ahead
from extractors.record import Block, SourceKind

_PROBES = re.compile(rb"^\[(?:probes|sync)\b[^\n]*\n(?:(?!\[)[^\n]*(?:\n|\Z))*", re.MULTILINE)

FROM_THE_START = 0
"""The time of files that no reader dates: job.toml, a manifest, notes beside the logs."""


@dataclass(frozen=True, slots=True)
class Played:
    """One file to be written. Its piece n ends at ends[n] and is due at dues[n], in microseconds; a log's pieces are
    its lines. grows says that it is written line by line, and not at once."""

    relative: str
    data: bytes
    dues: list[int]
    ends: list[int]
    grows: bool

    def due(self, at_us: int) -> int:
        """Up to where it stands at a time; -1 before it is there."""
        pieces = bisect_right(self.dues, at_us)
        return self.ends[pieces - 1] if pieces else -1

    def due_of(self, offset: int) -> int:
        """When the byte at an offset is due."""
        return self.dues[min(bisect_right(self.ends, offset), len(self.dues) - 1)]


@dataclass(frozen=True, slots=True)
class Recorded:
    """The files of a capture in the order of their names, and when the first and the last piece is due."""

    files: tuple[Played, ...]
    begin_us: int
    end_us: int


def recorded(folder: Path) -> Recorded:
    """The schedule of a capture. Packed logs and archived trials are played unpacked, as they were written."""
    capture = open_feed(str(folder)).capture
    anchor_us = anchor(capture.sources)
    skews = measured(capture.sources, anchor_us)
    files = [_source(source, anchor_us, skews.get(source.writer.host, NO_SKEW)) for source in capture.sources]
    for trials in capture.trials:
        files += _trials(trials)
    files += _rest(folder, capture, {file.relative for file in files})
    dated = [due for file in files for due in (file.dues[0], file.dues[-1]) if due != FROM_THE_START]
    return Recorded(tuple(sorted(files, key=lambda file: file.relative)), min(dated, default=0), max(dated, default=0))


def _source(source: Source, anchor_us: int, skew: Skew) -> Played:
    data, name = _content(source), unpacked_name(source.relative)
    if source.kind is SourceKind.FLIGHT:
        at_us = min(each.at_us for each in flight_observations(source, READ_BYTES, [], anchor_us))
        return Played(name, data, [at_us], [len(data)], grows=False)
    lines = _lines(data)
    dues = _polled(lines, anchor_us) if source.kind is SourceKind.POLL else _said(source, lines, anchor_us, skew)
    return Played(name, data, dues or [anchor_us], list(accumulate(map(len, lines))) or [0], grows=True)


def _lines(data: bytes) -> list[bytes]:
    """Physical lines: a redrawn bar's frames are one."""
    lines = data.split(b"\n")
    last = [lines.pop()]
    return [line + b"\n" for line in lines] + [line for line in last if line]


def _content(source: Source) -> bytes:
    return b"".join(chunk for chunk in chunks(source.path, source.compression) if isinstance(chunk, bytes))


def _polled(lines: list[bytes], anchor_us: int) -> list[int]:
    """When each record was appended: when its command had ended."""
    dues, newest = [], anchor_us
    for line in lines:
        try:
            record = orjson.loads(line)
            at_us = parse_iso(record["at"])
            took = int(1000 * (record.get("elapsed_ms") or 0))
        except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
            at_us, took = None, 0
        newest = newest if at_us is None else max(newest, at_us + took)
        dues.append(newest)
    return dues


def _said(source: Source, lines: list[bytes], anchor_us: int, skew: Skew) -> list[int]:
    """When each line of a log was written."""
    writer = source.writer
    near = writer.session_start_us or writer.written_us or anchor_us
    observed = _observed(source, near, skew)
    clock = Reader(source.relative, source.origin, near, skew=skew)
    shown = [clock.streamed(clock.unwrapper.unwrap(line.decode("utf-8", "replace"))) for line in lines]
    levels = _levels(shown, near)
    offset = 0
    for number, line in enumerate(lines):
        levels[number] = observed.get(offset, levels[number])
        offset += len(line)
    return list(accumulate(reversed(levels), min))[::-1]


def _levels(shown: list[int | None], near: int) -> list[int]:
    """The times of lines, each at least that of the one before it, a clock that jumped forward alone left out."""
    newest = next((at_us for at_us in shown if at_us is not None), near)
    levels = []
    for number, at_us in enumerate(shown):
        if at_us is not None and at_us > newest:
            following = [each for each in shown[number + 1 : number + 1 + LOOKED_AHEAD] if each is not None]
            if at_us - newest <= HOUR_US or not runs_ahead(at_us, following):
                newest = at_us
        levels.append(newest)
    return levels


def _observed(source: Source, near: int, skew: Skew) -> dict[int, int]:
    """The effective times of what a replay observes in a log, by the offsets of the lines."""
    reader = Reader(source.relative, source.origin, near, skew=skew)
    found = [each for block in blocks(source) if isinstance(block, Block) for each in reader.read(block)]
    times: dict[int, int] = {}
    for each in [*found, *reader.end()]:
        times[each.evidence.offset] = min(each.at_us, times.get(each.evidence.offset, each.at_us))
    return times


def _trials(trials: TrialTree | TrialTar) -> Iterator[Played]:
    """The files of trials. Those that no file dates stand where a replay has them: at the newest time of all."""
    found = [each for each in trial_files(trials) if isinstance(each, TrialFiles)]
    times = [_times(each) for each in found]
    newest = max((at_us for pair in times for at_us in pair if at_us is not None), default=FROM_THE_START)
    for trial, (begun_us, ended_us) in zip(found, times, strict=True):
        begun = next((at_us for at_us in (begun_us, ended_us) if at_us is not None), newest)
        ended = begun if ended_us is None else ended_us
        for name, content in _files_of(trial, trials):
            at_us = begun if name.endswith("/config.json") else ended
            yield Played(name, content, [at_us], [len(content)], grows=False)


def _times(trial: TrialFiles) -> tuple[int | None, int | None]:
    """When a trial began and ended by its own files."""
    begun = ended = None
    for reading in read_trial(trial.name, trial.files):
        if not trial.name or isinstance(reading.signal, TrialEnded):
            ended = reading.at_us
        elif reading.at_us is not None:
            begun = reading.at_us
    return begun, ended


def _files_of(trial: TrialFiles, trials: TrialTree | TrialTar) -> Iterator[tuple[str, bytes]]:
    """All files of a trial's folder; of an archive's what its reader wants."""
    if isinstance(trials, TrialTar):
        folder = f"trace_jobs/{trial.name}/" if trial.name else "trace_jobs/"
        yield from ((folder + file, content) for file, content in trial.files.items())
        return
    if not trial.name:
        yield from ((trial.sources[file], content) for file, content in trial.files.items())
        return
    file, source = next(iter(trial.sources.items()))
    place = source.removesuffix(file)
    home = Path(trials.path, place.removeprefix(trials.relative).strip("/"))
    for path in sorted(each for each in home.rglob("*") if each.is_file()):
        yield place + path.relative_to(home).as_posix(), path.read_bytes()


def _rest(folder: Path, capture: Capture, played: set[str]) -> Iterator[Played]:
    """The files beside the logs."""
    known = played | {each.relative for each in (*capture.sources, *capture.trials)}
    homes = tuple(f"{each.relative}/" for each in capture.trials)
    for path in sorted(Path(place, name) for place, _, names in os.walk(folder) for name in names):
        relative = path.relative_to(folder).as_posix()
        if relative not in known and not relative.startswith(homes):
            data = _without_probes(path.read_bytes()) if relative == JOB_FILE else path.read_bytes()
            yield Played(relative, data, [FROM_THE_START], [len(data)], grows=False)


def _without_probes(toml: bytes) -> bytes:
    """A job.toml that asks for no probes and no sync: what they said is played, and the watch must not add to it."""
    return b"".join(_PROBES.split(toml))
