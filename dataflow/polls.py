"""The poll files of a capture as observations: one record a line, failures included."""

from collections.abc import Callable, Iterator

from dataflow.blocks import LineCut, blocks
from dataflow.capture import Source
from dataflow.notes import MOST, Notes
from dataflow.poll_files import RECORD_BYTES
from extractors.clocks import HOUR_US
from extractors.ordering import LOOKED_AHEAD, runs_ahead
from extractors.poll_reading import PollReading, PollUnreadable, read_poll
from extractors.record import Block, Evidence, Observation, SourceEnded, SourceFailed

PATTERN = "poll"
"""The name under which polls are observed: their signals come from a tool's output, not from a pattern."""


def poll_observations(
    source: Source, read_size: int, told: list[str], anchor_us: int, go_on: Callable[[], None] = lambda: None
) -> Iterator[Observation]:
    """The polls of one file in order of time. A line that is no record is told and observed as a failure: the first
    ones each, all of them counted. go_on is called between two pieces of the file and may raise."""
    lines, notes = _Lines(source, anchor_us), Notes(source.relative, told)
    for piece in blocks(source, read_size, line_bytes=RECORD_BYTES):
        go_on()
        if isinstance(piece, Block):
            for found in lines.read(piece):
                if not isinstance(found.signal, SourceFailed):
                    yield found
                    continue
                notes.say(found.signal.why)
                if lines.unreadable <= MOST:
                    yield found
        elif isinstance(piece, LineCut):
            notes.say(f"line {piece.line} at byte {piece.offset} has {piece.size} bytes and is not read as a poll")
        elif isinstance(piece, SourceFailed):
            notes.say(piece.why)
            yield lines.observe(piece, "source_failed", lines.newest)
        else:
            notes.rest()
            ended = SourceEnded(piece.kind, piece.lines, piece.size, lines.unreadable, piece.complete, piece.gap)
            yield lines.observe(ended, "source_ended", lines.newest)


def recorded_at(head: bytes) -> int | None:
    """The time of the first readable record in a poll file's head, in microseconds."""
    for line in head.split(b"\n")[:16]:
        if line.strip() and isinstance(found := read_poll(line), PollReading):
            return found.at_us
    return None


class _Lines:
    """The lines of one poll file; remembers its newest time, since records must not run backwards."""

    def __init__(self, source: Source, anchor_us: int) -> None:
        self.source = source
        self.effective_us = anchor_us
        self.unreadable = 0
        self.newest = Evidence("poll", source.relative, 1, 0, None, "")

    def read(self, block: Block) -> Iterator[Observation]:
        """The records of a block. A clock that jumps forward alone is held, as in a log."""
        records = [(place, read_poll(line)) for place, line in _placed(block)]
        times = [reading.at_us for _, reading in records if isinstance(reading, PollReading)]
        read = 0
        for (number, offset), reading in records:
            if isinstance(reading, PollUnreadable):
                yield self._unreadable(reading, number, offset)
                continue
            read += 1
            ahead = reading.at_us - self.effective_us > HOUR_US
            if not ahead or not runs_ahead(reading.at_us, times[read : read + LOOKED_AHEAD]):
                self.effective_us = max(self.effective_us, reading.at_us)
            yield from self._said(reading, number, offset)

    def _unreadable(self, reading: PollUnreadable, number: int, offset: int) -> Observation:
        self.unreadable += 1
        place = Evidence("poll_unreadable", self.source.relative, number, offset, None, reading.quote)
        failed = SourceFailed(self.source.kind, f"line {number}: {reading.why}", whole=False)
        return self.observe(failed, "source_failed", place)

    def _said(self, reading: PollReading, number: int, offset: int) -> Iterator[Observation]:
        for signal, quote in zip(reading.signals, reading.quotes, strict=True):
            name = f"{reading.record.probe}_poll"
            self.newest = Evidence(name, self.source.relative, number, offset, reading.at_us, quote)
            yield self.observe(signal, PATTERN, self.newest)

    def observe(self, signal: object, pattern: str, evidence: Evidence) -> Observation:
        return Observation(signal, evidence, self.effective_us, pattern)


def _placed(block: Block) -> Iterator[tuple[tuple[int, int], bytes]]:
    """The lines of a block that are not blank, each with its number and offset."""
    offset = block.offset
    for number, line in enumerate(block.data.split(b"\n"), start=block.line):
        if line.strip():
            yield (number, offset), line
        offset += len(line) + 1
