"""One log as observations, whoever brings its blocks: a file that is read through, or a tail."""

from typing import Any

from dataflow.beats import Run
from dataflow.beginning import Beginning, own_time_us
from dataflow.blocks import LineCut
from dataflow.capture import Source
from dataflow.notes import LogNotes
from extractors.clocks import HALF_DAY_US
from extractors.extract import Reader, Skew
from extractors.quoting import quote
from extractors.record import Block, Evidence, Observation, SourceEnded, SourceFailed, SourceKind, SourceSeen


class LogReading:
    """Reads the blocks of one log in order. anchor_us is a moment near its first line, where its path tells none;
    notes gets what the user should hear. begun says that its beginning was told before (what it holds was read under
    another name)."""

    def __init__(self, source: Source, anchor_us: int, skew: Skew, notes: list[str], begun: bool = False) -> None:
        told_us = source.writer.session_start_us or source.writer.written_us
        near_us = told_us or anchor_us
        self.reader = Reader(source.relative, source.origin, near_us, skew=skew)
        self._guessed_us = None if told_us else anchor_us
        self._kind = source.kind
        self._notes = LogNotes(source.relative, notes)
        self._beginning = None if begun else Beginning(self.reader, near_us)
        self._last: Block | None = None

    def read(self, block: Block) -> Run:
        """What a block says; the first time one shows it, that the file is there."""
        self._notes.look(block)
        if self._guessed_us is not None:
            self._begin_near(block, self._guessed_us)
        self._last = block
        return self._with_beginning(block, self._notes.heard(self.reader.read(block)))

    def _begin_near(self, block: Block, guessed_us: int) -> None:
        """Where the polls began more than half a day from the log, its own first date says near what it began."""
        self._guessed_us = None
        own_us = None if block.offset else own_time_us(block.data)
        if own_us is not None and abs(own_us - guessed_us) > HALF_DAY_US:
            self.reader.begin_near(own_us)
            if self._beginning is not None:
                self._beginning.begin_near(own_us)

    def cut(self, piece: LineCut) -> None:
        """Tells of a line that is matched in part."""
        self._notes.say(
            f"line {piece.line} at byte {piece.offset} has {piece.size} bytes; only its first 1 MiB is matched"
        )

    def failed(self, piece: SourceFailed) -> Run:
        """A failure of the file, at the newest time of its lines."""
        self._notes.say(piece.why)
        return [observed(piece, "source_failed", self.reader.source, self.reader.time_of(""))]

    def flush(self) -> Run:
        """What the end of the file lets go."""
        return self._with_beginning(None, self._notes.heard(self.reader.end()))

    def end(self, ended: SourceEnded) -> Run:
        """What the end of the file lets go, and the end itself."""
        found = self.flush()
        self._notes.end(self._last)
        return [*found, _ended(self.reader, ended, self._last)]

    def rest(self) -> None:
        """Lets go of the last block but for what the next one needs of it."""
        self.reader.rest()
        self._last = None

    def tell_to(self, notes: list[str]) -> None:
        """Tells to another list from now on (after it was kept and taken up again)."""
        self._notes = LogNotes(self.reader.source, notes)

    def __getstate__(self) -> dict[str, Any]:
        kept = {"reader": self.reader, "_kind": self._kind, "_beginning": self._beginning}
        return kept | {"_last": None, "_guessed_us": self._guessed_us}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.tell_to([])

    def _with_beginning(self, block: Block | None, run: Run) -> Run:
        if self._beginning is None or (begun_us := self._beginning.of(block, run)) is None:
            return run
        self._beginning = None
        return [source_seen(self._kind, self.reader.source, begun_us), *run]


def source_seen(kind: SourceKind, source: str, at_us: int) -> Observation:
    """That a file is there."""
    return observed(SourceSeen(kind), "source_seen", source, at_us)


def observed(signal: object, name: str, source: str, at_us: int) -> Observation:
    """An observation that the feed itself makes of a source. It quotes nothing."""
    return Observation(signal, Evidence(name, source, 1, 0, None, ""), at_us, name)


def _ended(reader: Reader, ended: SourceEnded, last: Block | None) -> Observation:
    """The end of a file, with its last line for evidence of how far it was read."""
    source = reader.source
    signal = SourceEnded(ended.kind, ended.lines, ended.size, reader.unparsed + reader.torn, ended.complete, ended.gap)
    if last is None:
        return observed(signal, "source_ended", source, reader.time_of(""))
    end = _end_of_words(last.data)
    start = last.data.rfind(b"\n", 0, end) + 1
    raw = last.data[start:end].decode("utf-8", "replace")
    at_us = reader.time_of(raw)
    blank = len(last.data) - end - 1
    line = ended.lines - max(0, blank) if end else last.line
    evidence = Evidence("source_ended", source, line, last.offset + start, reader.unwrapper.clock.newest_us, quote(raw))
    return Observation(signal, evidence, at_us, "source_ended")


def _end_of_words(data: bytes) -> int:
    """Where the newlines at the end of a block begin."""
    end = len(data)
    while end and data[end - 1] == 0x0A:
        end -= 1
    return end
