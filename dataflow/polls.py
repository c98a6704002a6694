"""The poll files of a capture as observations: one record a line, failures included."""

from collections.abc import Iterator

from dataflow.blocks import LineCut, blocks
from dataflow.capture import Source
from extractors.poll_reading import PollReading, PollUnreadable, read_poll
from extractors.record import Block, Evidence, Observation, SourceEnded, SourceFailed

PATTERN = "poll"
"""The name under which polls are observed: their signals come from a tool's output, not from a pattern."""


def poll_observations(source: Source, read_size: int, notes: list[str], anchor_us: int) -> Iterator[Observation]:
    """The polls of one file in order of time. A line that is no record is told in notes and observed as a failure."""
    lines = _Lines(source, anchor_us)
    for piece in blocks(source, read_size):
        if isinstance(piece, Block):
            for found in lines.read(piece):
                if isinstance(found.signal, SourceFailed):
                    notes.append(f"{source.relative}: {found.signal.why}")
                yield found
        elif isinstance(piece, LineCut):
            notes.append(f"{source.relative}: line {piece.line} has {piece.size} bytes and is not read as a poll")
        elif isinstance(piece, SourceFailed):
            notes.append(f"{source.relative}: {piece.why}")
            yield lines.observe(piece, "source_failed", lines.newest)
        else:
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
        offset = block.offset
        for number, line in enumerate(block.data.split(b"\n"), start=block.line):
            if line.strip():
                yield from self._record(line, number, offset)
            offset += len(line) + 1

    def _record(self, line: bytes, number: int, offset: int) -> Iterator[Observation]:
        reading = read_poll(line)
        if isinstance(reading, PollUnreadable):
            self.unreadable += 1
            place = Evidence("poll_unreadable", self.source.relative, number, offset, None, reading.quote)
            failed = SourceFailed(self.source.kind, f"line {number}: {reading.why}", whole=False)
            yield self.observe(failed, "source_failed", place)
            return
        self.effective_us = max(self.effective_us, reading.at_us)
        for signal, quote in zip(reading.signals, reading.quotes, strict=True):
            name = f"{reading.record.probe}_poll"
            self.newest = Evidence(name, self.source.relative, number, offset, reading.at_us, quote)
            yield self.observe(signal, PATTERN, self.newest)

    def observe(self, signal: object, pattern: str, evidence: Evidence) -> Observation:
        return Observation(signal, evidence, self.effective_us, pattern)
