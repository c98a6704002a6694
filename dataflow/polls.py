"""The poll files of a capture as observations: one record a line, failures included."""

from collections.abc import Callable, Iterator
from typing import Any

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
    lines = PollReadings(source, anchor_us, told)
    for piece in blocks(source, read_size, line_bytes=RECORD_BYTES):
        go_on()
        if isinstance(piece, Block):
            yield from lines.read(piece)
        elif isinstance(piece, LineCut):
            lines.cut(piece)
        elif isinstance(piece, SourceFailed):
            yield from lines.failed(piece)
        else:
            yield from lines.end(piece)


def recorded_at(head: bytes) -> int | None:
    """The time of the first readable record in a poll file's head, in microseconds."""
    for line in head.split(b"\n")[:16]:
        if line.strip() and isinstance(found := read_poll(line), PollReading):
            return found.at_us
    return None


class PollReadings:
    """Reads the blocks of one poll file in order; remembers its newest time, since records must not run backwards.
    told gets what the user should hear."""

    def __init__(self, source: Source, anchor_us: int, told: list[str]) -> None:
        self.source = source
        self.effective_us = anchor_us
        self.unreadable = 0
        self.newest = Evidence("poll", source.relative, 1, 0, None, "")
        self._notes = Notes(source.relative, told)

    def read(self, block: Block) -> list[Observation]:
        """The records of a block; what is no record is told, and observed as a failure: the first ones each, all of
        them counted. A clock that jumps forward alone is held, as in a log."""
        found: list[Observation] = []
        records = [(place, read_poll(line)) for place, line in _placed(block)]
        times = [reading.at_us for _, reading in records if isinstance(reading, PollReading)]
        read = 0
        for (number, offset), reading in records:
            if isinstance(reading, PollUnreadable):
                found += self._unreadable(reading, number, offset)
                continue
            read += 1
            ahead = reading.at_us - self.effective_us > HOUR_US
            if not ahead or not runs_ahead(reading.at_us, times[read : read + LOOKED_AHEAD]):
                self.effective_us = max(self.effective_us, reading.at_us)
            found += self._said(reading, number, offset)
        return found

    def cut(self, piece: LineCut) -> None:
        """Tells of a line that is longer than any record."""
        self._notes.say(f"line {piece.line} at byte {piece.offset} has {piece.size} bytes and is not read as a poll")

    def failed(self, piece: SourceFailed) -> list[Observation]:
        """A failure of the file."""
        self._notes.say(piece.why)
        return [self._observe(piece, "source_failed", self.newest)]

    def flush(self) -> list[Observation]:
        """Nothing: a record is one line."""
        return []

    def end(self, piece: SourceEnded) -> list[Observation]:
        """The end of the file."""
        self._notes.rest()
        ended = SourceEnded(piece.kind, piece.lines, piece.size, self.unreadable, piece.complete, piece.gap)
        return [self._observe(ended, "source_ended", self.newest)]

    def rest(self) -> None:
        """Nothing is held of a block."""

    def tell_to(self, notes: list[str]) -> None:
        """Tells to another list from now on (after it was kept and taken up again)."""
        self._notes = Notes(self.source.relative, notes)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_notes": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.tell_to([])

    def _unreadable(self, reading: PollUnreadable, number: int, offset: int) -> Iterator[Observation]:
        self.unreadable += 1
        self._notes.say(f"line {number}: {reading.why}")
        if self.unreadable > MOST:
            return
        place = Evidence("poll_unreadable", self.source.relative, number, offset, None, reading.quote)
        failed = SourceFailed(self.source.kind, f"line {number}: {reading.why}", whole=False)
        yield self._observe(failed, "source_failed", place)

    def _said(self, reading: PollReading, number: int, offset: int) -> Iterator[Observation]:
        for signal, quote in zip(reading.signals, reading.quotes, strict=True):
            name = f"{reading.record.probe}_poll"
            self.newest = Evidence(name, self.source.relative, number, offset, reading.at_us, quote)
            yield self._observe(signal, PATTERN, self.newest)

    def _observe(self, signal: object, pattern: str, evidence: Evidence) -> Observation:
        return Observation(signal, evidence, self.effective_us, pattern)


def _placed(block: Block) -> Iterator[tuple[tuple[int, int], bytes]]:
    """The lines of a block that are not blank, each with its number and offset."""
    offset = block.offset
    for number, line in enumerate(block.data.split(b"\n"), start=block.line):
        if line.strip():
            yield (number, offset), line
        offset += len(line) + 1
