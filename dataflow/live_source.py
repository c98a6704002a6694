"""One file of a live job: its tail, and what reads the blocks that it gives."""

import pickle
from collections.abc import Callable
from threading import local
from typing import Any

import msgspec
import zstandard

from dataflow.beats import Run
from dataflow.blocks import LINE_BYTES, LineCut
from dataflow.capture import Source
from dataflow.identity import Mark
from dataflow.log_reading import LogReading, observed, source_seen
from dataflow.outcome import told
from dataflow.poll_files import RECORD_BYTES
from dataflow.polls import PollReadings
from dataflow.reads import unpacked_name
from dataflow.rounds import AnyTail
from dataflow.shipped_tail import ShippedTail
from dataflow.tailing import tail_of
from dataflow.turns import Continued, Gap, Held, Piece, Rotated, TailFailed, Trouble
from extractors.extract import Skew
from extractors.record import Block, Observation, SourceFailed, SourceKind, SourceResumed
from extractors.trainer import BufferProgress, EvaluationProgress, PolicyProgress, StepProgress

BARS = frozenset({BufferProgress, StepProgress, PolicyProgress, EvaluationProgress})
"""Signals of bars that are redrawn in place."""
_ORDER = tuple(SourceKind)

Kept = tuple[bytes, bytes, tuple[str, tuple[Trouble, str] | None, bool], int, bool]
"""What a later source must know: the reader, the tail, how the file fares, its newest time, whether it has begun."""


class _Zstd(local):
    """Packs and unpacks; its objects are not for two threads at once."""

    def __init__(self) -> None:
        self.packed = zstandard.ZstdCompressor(level=1).compress
        self.unpacked = zstandard.ZstdDecompressor().decompress


_ZSTD = _Zstd()


class LiveSource:
    """A file that is tailed. anchor_us is a moment near its first line; notes gets what the user should hear.

    trouble says why the file can't be read now, and is empty where it can; newest_us is the time before which nothing
    more comes of it.
    """

    def __init__(
        self,
        source: Source,
        anchor_us: int,
        skew: Skew,
        notes: list[str],
        block_bytes: int,
        mark: Mark | None = None,
        tail_of: Callable[..., AnyTail] = tail_of,
    ) -> None:
        self.source = source
        self.trouble = ""
        self.newest_us = 0
        self._notes = notes
        self._given = (anchor_us, skew)
        self._begun = self._stumbled = False
        self._failing: tuple[Trouble, str] | None = None
        self._reading = self._new_reading()
        self._asleep: bytes | None = None
        self._tail_of = tail_of
        self.tail: AnyTail = self._tail(mark, block_bytes)

    @property
    def order(self) -> tuple[int, str]:
        """Its place among lines of the same time: by home, then by name."""
        return order_of(self.source.kind, self.source.relative)

    @property
    def generation(self) -> int:
        """How often the file was replaced."""
        return self.tail.mark.generation

    def goes_on(self) -> None:
        """What will be read of it goes on what was read under another name. Nothing was read of it yet."""
        self._begun = True
        self._reading, self._asleep = self._new_reading(), None

    def poll(self, now_us: int) -> list[tuple[int, Run]]:
        """What is new, each run with the generation of the file that it is of: one block at most, or one line where
        that is longer."""
        out: list[tuple[int, Run]] = []
        generation = self.generation
        for piece in self.tail.poll(now_us):
            run = self._heard(piece)
            if run:
                self.newest_us = run[-1].at_us
                out.append((generation, run))
            if isinstance(piece, Rotated):
                generation = piece.generation
        return out

    def held(self, held: Held, now_us: int) -> Run:
        """What a bar says that is redrawn in one line without end. It has no time of its own, so it is of now."""
        reading = _woken(self._asleep or _put_to_sleep(self._reading))
        try:
            found = reading.reader.read(Block(held.source, held.offset, held.line, held.data))
        except Exception:
            return []
        return [_of_now(each, now_us) for each in found if type(each.signal) in BARS]

    def snapshot(self) -> Kept:
        """How far it was read, for `restored`. What was not read since the last one is let go of, and taken up again
        when the file grows."""
        if self._asleep is None:
            self._asleep = _put_to_sleep(self._reading)
        else:
            self._reading = None
        fares = self.trouble, self._failing, self._stumbled
        return self._asleep, self.tail.snapshot(), fares, self.newest_us, self._begun

    def restore(self, snapshot: Kept, block_bytes: int) -> None:
        """Goes on where a snapshot was made. Raises what unpickling raises where it is none."""
        self._asleep, mark, fares, self.newest_us, self._begun = snapshot
        self.trouble, self._failing, self._stumbled = fares
        self._reading = None
        self.tail = self._tail(Mark.restored(mark), block_bytes)
        if self._failing is not None and not isinstance(self.tail, ShippedTail):
            self.tail.fails_still(*self._failing)

    def _tail(self, mark: Mark | None, block_bytes: int) -> AnyTail:
        longest = RECORD_BYTES if self.source.kind is SourceKind.POLL else LINE_BYTES
        return self._tail_of(self.source, mark, block_bytes, longest)

    def _new_reading(self) -> LogReading | PollReadings | None:
        if self.source.kind is SourceKind.POLL:
            return PollReadings(self.source, self._given[0], self._notes)
        return LogReading(self.source, *self._given, self._notes, self._begun)

    def _awake(self) -> LogReading | PollReadings:
        if self._reading is None:
            assert self._asleep is not None
            self._reading = _woken(self._asleep)
            self._reading.tell_to(self._notes)
        self._asleep = None
        return self._reading

    def _heard(self, piece: Piece) -> Run:
        """What a piece says. An error of our own reader costs the piece and no other."""
        try:
            run = self._said(piece)
            if self._stumbled and isinstance(piece, Block):
                self._stumbled, self.trouble = False, ""
            return run
        except Exception as error:
            self._stumbled, self.trouble = True, f"its reader failed: {told(error)}"
            return [self._failure(SourceFailed(self.source.kind, self.trouble, whole=False))]

    def _said(self, piece: Piece) -> Run:
        if isinstance(piece, Block):
            reading = self._awake()
            run = reading.read(piece)
            reading.rest()
            return run if isinstance(reading, LogReading) else self._with_beginning(run)
        if isinstance(piece, LineCut):
            self._awake().cut(piece)
            return []
        if isinstance(piece, Rotated):
            return self._turned(piece)
        if isinstance(piece, TailFailed):
            return self._failed(piece)
        if isinstance(piece, Gap):
            return self._missed(piece)
        if isinstance(piece, Continued):
            self.goes_on()
            return []
        resumed, self.trouble, self._failing = self.trouble, "", None
        return [self._failure(SourceResumed(self.source.kind, resumed))] if resumed else []

    def _with_beginning(self, run: Run) -> Run:
        if self._begun or not run:
            return run
        self._begun = True
        return [source_seen(self.source.kind, self.source.relative, run[0].at_us), *run]

    def _turned(self, piece: Rotated) -> Run:
        """Another content stands under the name: what was open ends, and a new reader begins near it."""
        run = self._awake().flush()
        self._given, self._begun = (self.newest_us or self._given[0], self._given[1]), True
        self._reading = self._new_reading()
        if not piece.unread:
            return run
        why = f"{piece.how} before its last {piece.unread} bytes were read"
        self._notes.append(f"{self.source.relative}: {why}")
        return [*run, self._failure(SourceFailed(self.source.kind, why, whole=False))]

    def _failed(self, piece: TailFailed) -> Run:
        """A file that was deleted when all of it was read has told all that it had to tell."""
        self.trouble, self._failing = piece.why, (piece.trouble, piece.why)
        self._notes.append(f"{self.source.relative}: {piece.why}")
        if piece.trouble is Trouble.VANISHED and piece.offset >= self.tail.mark.size:
            self.trouble = ""
            return []
        return [self._failure(SourceFailed(self.source.kind, piece.why, whole=not piece.offset))]

    def _missed(self, piece: Gap) -> Run:
        why = f"{piece.size} bytes from byte {piece.offset} on never came"
        self._notes.append(f"{self.source.relative}: {why}")
        return [self._failure(SourceFailed(self.source.kind, why, whole=False))]

    def _failure(self, signal: Any) -> Any:
        name = "source_resumed" if isinstance(signal, SourceResumed) else "source_failed"
        return observed(signal, name, self.source.relative, self.newest_us or self._given[0])


def _put_to_sleep(reading: LogReading | PollReadings | None) -> bytes:
    """A reader as bytes: packed, since most of them are the last lines that it read, and thousands lie there."""
    return _ZSTD.packed(pickle.dumps(reading, pickle.HIGHEST_PROTOCOL))


def _woken(asleep: bytes) -> Any:
    return pickle.loads(_ZSTD.unpacked(asleep))


def _of_now(observation: Observation, now_us: int) -> Observation:
    evidence = msgspec.structs.replace(observation.evidence, at_us=now_us)
    return msgspec.structs.replace(observation, evidence=evidence, at_us=now_us)


def order_of(kind: SourceKind, relative: str) -> tuple[int, str]:
    """The place of a source among lines of the same time, packed or not."""
    return _ORDER.index(kind), unpacked_name(relative)
