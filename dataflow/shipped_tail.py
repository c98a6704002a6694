"""One file of a job that a shipper sends: its pieces as they come, each once, whatever comes twice or not at all."""

from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from dataflow.blocks import BLOCK_BYTES, LINE_BYTES, LineCut
from dataflow.capture import Source
from dataflow.identity import Mark
from dataflow.turns import Continued, Gap, Held, How, Piece, Rotated, TailFailed, TailResumed
from extractors.record import Block, SourceKind

PAST = 8
"""Generations of a file of which it is remembered how far they were taken."""
FileWord = Rotated | TailFailed | TailResumed | LineCut | Continued | Gap | Held
"""What a shipper says of a file beside its lines."""


class ShippedTail:
    """The same to its user as a Tail. What is given it (`take`, `told`) is read at the next poll.

    mark holds offset, line and generation of what was taken; the generation counts on over the sessions of shippers.
    missed says that bytes never came.
    """

    more = False
    waiting = False
    grew_us: int | None = None

    def __init__(
        self, source: Source, mark: Mark | None = None, block_bytes: int = BLOCK_BYTES, line_bytes: int = LINE_BYTES
    ) -> None:
        del block_bytes, line_bytes
        self.source = source
        self.mark = mark or Mark()
        self.elsewhere: Callable[[], Mark | None] = lambda: None
        self.says: deque[Held] = deque(maxlen=1)
        self.missed = False
        self._pieces: list[Piece] = []
        self._first = self.mark.generation
        self._anywhere = False
        self._failed: TailFailed | None = None
        self._past: dict[int, tuple[int, int]] = {}

    @property
    def stands(self) -> tuple[int, int]:
        """The generation by the shipper's count, and the offset up to which all came."""
        return self.mark.generation - self._first, self.mark.offset

    @property
    def due(self) -> bool:
        """Whether there is something to be polled."""
        return bool(self._pieces)

    @property
    def head(self) -> bytes:
        """The first lines that were not polled."""
        return next((piece.data for piece in self._pieces if isinstance(piece, Block)), b"")

    def poll(self, now_us: int) -> list[Piece]:
        """What has come since the last poll, in order."""
        del now_us
        pieces, self._pieces = self._pieces, []
        return pieces

    def take(self, block: Block) -> None:
        """Takes lines. What was taken before is dropped; what is missing before them is told."""
        if not self._is_of_now(block.generation):
            return
        mark, data, offset, line = self.mark, block.data, block.offset, block.line
        if offset < mark.offset:
            known = data[: mark.offset - offset]
            data, offset, line = data[len(known) :], mark.offset, line + known.count(b"\n")
        if not data:
            return
        # Blank lines of a poll file are not sent.
        if offset > mark.offset and not self._anywhere and self.source.kind is not SourceKind.POLL:
            self._miss(offset)
        self._anywhere = False
        self._pieces.append(Block(self.source.relative, offset, line, data, mark.generation))
        end = offset + len(data)
        self.mark = msgspec.structs.replace(mark, offset=end, line=line + data.count(b"\n"), size=end)

    def told(self, piece: FileWord) -> None:
        """Takes a word of what happened to the file."""
        if isinstance(piece, Rotated):
            self._turned(piece)
        elif isinstance(piece, LineCut):
            self._cut(piece)
        elif isinstance(piece, Continued):
            self._continued(piece, None)
        elif isinstance(piece, Gap):
            if piece.offset + piece.size > self.mark.offset:
                self._miss(piece.offset + piece.size)
        elif isinstance(piece, Held):
            if piece.offset == self.mark.offset:
                self.says.append(piece)
        elif self._is_of_now(piece.generation):
            self._fared(piece)

    def goes_on(self, piece: Continued, other: "ShippedTail") -> None:
        """What comes is what the other one took up to some place, under another name."""
        self._continued(piece, other.stood(piece.from_generation))

    def stood(self, generation: int) -> tuple[int, int] | None:
        """Up to which offset and line a generation, by the shipper's count, was taken; None where that isn't known."""
        if generation + self._first == self.mark.generation:
            return self.mark.offset, self.mark.line
        return self._past.get(generation + self._first)

    def begin_again(self) -> None:
        """Another session of the shipper counts from nothing: what comes is another content as far as is known."""
        if not self.mark.offset and not self.mark.generation:
            return
        self._turn(How.ROTATED, 0)
        self._first = self.mark.generation

    def snapshot(self) -> bytes:
        """The mark as bytes; `Mark.restored` reads them, and `go_on` takes the rest."""
        return msgspec.msgpack.encode(self.mark)

    @property
    def rest(self) -> tuple[Any, ...]:
        """What else must be known to go on."""
        flags = self._anywhere, self.missed
        return self.mark, self._first, flags, self._failed, self._pieces, self.says, self._past

    def go_on(self, rest: tuple[Any, ...]) -> None:
        """Goes on with the rest of a snapshot."""
        self.mark, self._first, flags, self._failed, self._pieces, self.says, self._past = rest
        self._anywhere, self.missed = flags

    def close(self) -> None:
        """Nothing is open."""

    def _is_of_now(self, generation: int) -> bool:
        """Whether this is of the content that is read now. A later one is turned to, though no word of it came."""
        generation += self._first
        if generation > self.mark.generation:
            self._turn(How.ROTATED, 0, generation)
        return generation == self.mark.generation

    def _continued(self, piece: Continued, place: tuple[int, int] | None) -> None:
        if not self._is_of_now(piece.generation) or self.mark.offset:
            return
        self._pieces.append(piece)
        if place is None:
            self._anywhere = True
        else:
            self.mark = msgspec.structs.replace(self.mark, offset=place[0], line=place[1], size=place[0])

    def _turned(self, piece: Rotated) -> None:
        if piece.generation + self._first > self.mark.generation:
            missing = max(0, piece.offset - self.mark.offset)
            if missing:
                self._miss(piece.offset)
            self._turn(piece.how, piece.unread, piece.generation + self._first)

    def _turn(self, how: How, unread: int, generation: int | None = None) -> None:
        mark = self.mark
        generation = mark.generation + 1 if generation is None else generation
        self._pieces.append(Rotated(self.source.relative, how, generation, mark.offset, mark.line, unread))
        self._past[mark.generation] = (mark.offset, mark.line)
        if len(self._past) > PAST:
            del self._past[min(self._past)]
        self.mark, self._anywhere = Mark(generation=generation), False

    def _cut(self, piece: LineCut) -> None:
        """Behind the beginning of a line that is too long, its rest isn't sent."""
        end = piece.offset + piece.size + 1
        if end > self.mark.offset:
            self._pieces.append(msgspec.structs.replace(piece, source=self.source.relative))
            self.mark = msgspec.structs.replace(self.mark, offset=end, line=piece.line + 1, size=end)

    def _fared(self, piece: TailFailed | TailResumed) -> None:
        failed = piece if isinstance(piece, TailFailed) else None
        if failed != self._failed:
            self._failed = failed
            self._pieces.append(piece)

    def _miss(self, offset: int) -> None:
        mark = self.mark
        self.missed = True
        self._pieces.append(Gap(self.source.relative, mark.offset, offset - mark.offset))
        self.mark = msgspec.structs.replace(mark, offset=offset, size=offset)
