"""A compressed file, which is complete when it appears: it is read once, through, when nothing is written to it any
more. What is packed later at its end (a copy that was torn) is read on from where the reading stood.
"""

import os
import stat
from collections.abc import Callable, Iterator

import msgspec

from dataflow.blocks import BLOCK_BYTES, LINE_BYTES, LineCut, blocks
from dataflow.capture import Source
from dataflow.grip import Grip
from dataflow.identity import FIRST_RUNG, Mark, digest
from dataflow.opened import reason
from dataflow.tail import SETTLE_US
from dataflow.turns import How, Piece, Rotated, TailFailed, TailResumed, Trouble
from extractors.record import Block, SourceEnded, SourceFailed

_Stream = Iterator[Block | LineCut | SourceFailed | SourceEnded]


class PackedTail:
    """The same to its user as a Tail. Offsets are those of the unpacked bytes; the mark's only sample is of the first
    packed ones, its size is packed."""

    def __init__(
        self, source: Source, mark: Mark | None = None, block_bytes: int = BLOCK_BYTES, line_bytes: int = LINE_BYTES
    ) -> None:
        self.source = source
        self.mark = mark or Mark()
        self.more = False
        self.grew_us: int | None = None
        self._block_bytes = block_bytes
        self._seen: tuple[int, int, int] | None = None
        self._since_us: int | None = None
        self._stream: _Stream | None = None
        self._next: Block | LineCut | SourceFailed | SourceEnded | None = None
        self._last: Block | None = None
        self._told: tuple[Trouble, str] | None = None
        self._damaged = False
        self.elsewhere: Callable[[], Mark | None] = lambda: None
        del line_bytes

    @property
    def waiting(self) -> bool:
        """Whether the file may still be written."""
        return self._since_us is not None

    def fails_still(self, trouble: Trouble, why: str) -> None:
        """What was told of the file before this tail was made: it is not told again, but when it is over."""
        self._told = (trouble, why)

    def poll(self, now_us: int) -> list[Piece]:
        """What is new: one block at most. Nothing while the file may still be written."""
        out: list[Piece] = []
        try:
            found = os.stat(self.source.path)
        except (OSError, ValueError) as error:
            self._absent(error, now_us, out)
            return out
        seen = (found.st_size, found.st_mtime_ns, found.st_ino)
        if seen != self._seen:
            self.close()
            self._seen, self._since_us = seen, now_us
            self.grew_us = now_us
        if self._since_us is not None and now_us - self._since_us >= SETTLE_US:
            self._since_us = None
            if stat.S_ISREG(found.st_mode):
                self._open(out)
            else:
                self._failed(Trouble.NOT_A_FILE, "neither a file nor a link to one", out)
        if self._stream is not None:
            self._read(out)
        return out

    def finish(self, now_us: int) -> list[Piece]:
        """The rest of the file, also a last line without its newline."""
        out = self.poll(now_us)
        if self._since_us is not None:
            out += self.poll(now_us + SETTLE_US)
        while self.more:
            self._read(out)
        if self._last is not None:
            out.append(self._last)
        self.close()
        return out

    def snapshot(self) -> bytes:
        """The mark as bytes; `Mark.restored` reads them."""
        return msgspec.msgpack.encode(self.mark)

    def held(self, most: int = 0) -> bytes:
        """A packed file has no line that grows."""
        del most
        return b""

    def close(self) -> None:
        """Lets go of the file."""
        self._stream, self._next, self._last, self.more = None, None, None, False

    def _absent(self, error: Exception, now_us: int, out: list[Piece]) -> None:
        if self._seen is not None:
            self.close()
            self._seen, self._since_us = None, now_us
        known = self.mark.size > 0 or not isinstance(error, FileNotFoundError)
        if known and (self._since_us is None or now_us - self._since_us >= SETTLE_US):
            trouble = Trouble.VANISHED if isinstance(error, FileNotFoundError) else Trouble.UNREADABLE
            self._failed(trouble, reason(error), out)

    def _open(self, out: list[Piece]) -> None:
        """Begins to read, from the beginning of the packed bytes: nothing else can be unpacked."""
        try:
            grip = Grip(self.source.path)
            try:
                head, size = digest(os.pread(grip.fd, FIRST_RUNG, 0)), grip.size
            finally:
                grip.close()
        except (OSError, ValueError) as error:
            self._failed(Trouble.UNREADABLE, reason(error), out)
            return
        if self.mark.ladder and self.mark.ladder[0] != head:
            self._resumed(out)
            before, self.mark = self.mark, self.mark.next_generation()
            place = (before.offset, before.line, 0)
            out.append(Rotated(self.source.relative, How.ROTATED, self.mark.generation, *place))
        found = self.elsewhere() if not self.mark.offset else None
        if found is not None:
            self._passed(found.offset, found.line)
        self.mark = msgspec.structs.replace(
            self.mark, inode=grip.inode, device=grip.device, size=size, ladder=(head,), earlier=None
        )
        self._stream, self.more, self._damaged = blocks(self.source, block_bytes=self._block_bytes), True, False

    def _read(self, out: list[Piece]) -> None:
        """Takes one piece, and what belongs to it."""
        piece = self._taken()
        if isinstance(piece, Block):
            self._block(piece, out)
        elif isinstance(piece, LineCut):
            if piece.offset + piece.size >= self.mark.offset:
                self._resumed(out)
                self._passed(piece.offset + piece.size + 1, piece.line + 1)
                out.append(piece)
        elif isinstance(piece, SourceFailed):
            self._damaged = True
            self._failed(Trouble.UNREADABLE, piece.why, out)
        else:
            self._stream, self.more = None, False
            if not self._damaged:
                self._resumed(out)

    def _taken(self) -> Block | LineCut | SourceFailed | SourceEnded | None:
        piece, self._next = self._next, None
        return piece if piece is not None or self._stream is None else next(self._stream, None)

    def _block(self, block: Block, out: list[Piece]) -> None:
        """Gives of a block what was not given before. Its last line is held where the file ends so."""
        whole = len(block.data)
        if not block.data.endswith(b"\n"):
            self._next = self._taken()
            whole = whole if isinstance(self._next, LineCut) else block.data.rfind(b"\n") + 1
        skipped = max(0, self.mark.offset - block.offset)
        if whole > skipped:
            at, line = block.offset + skipped, self.mark.line if skipped else block.line
            data = block.data[skipped:whole]
            self._resumed(out)
            self._passed(at + len(data), line + data.count(b"\n"))
            out.append(Block(block.source, at, line, data, self.mark.generation))
        if whole < len(block.data):
            at, line = block.offset + whole, block.line + block.data.count(b"\n", 0, whole)
            self._last = Block(block.source, at, line, block.data[whole:], self.mark.generation)

    def _passed(self, offset: int, line: int) -> None:
        self.mark = msgspec.structs.replace(self.mark, offset=offset, line=line)

    def _resumed(self, out: list[Piece]) -> None:
        """A trouble is over: something new could be read, or all. What is damaged still is no news."""
        if self._told is not None:
            self._told = None
            out.append(TailResumed(self.source.relative, self.mark.generation, self.mark.offset))

    def _failed(self, trouble: Trouble, why: str, out: list[Piece]) -> None:
        if self._told != (trouble, why):
            self._told = (trouble, why)
            out.append(TailFailed(self.source.relative, trouble, why, self.mark.generation, self.mark.offset))
