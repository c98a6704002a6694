"""One file as Blocks of whole lines, whose boundaries depend on the bytes alone and not on how they were read.

A block takes 256 KiB, less where so many files are merged that their blocks would fill the memory.
Block k holds the lines that start inside [k · 256 KiB, (k+1) · 256 KiB) of the uncompressed file. A window in which no
line starts gives no block. A line longer than 1 MiB is always the last of its block, and only its first 1 MiB is
there, without a newline; what follows of it is dropped and told by a LineCut. The next block stands at its true offset
and line, so `next.offset > block.offset + len(block.data)` is how a cut shows in the blocks themselves. Only a cut line
or the file's torn last one ends a block without a newline.
"""

from collections.abc import Callable, Iterator

import msgspec

from dataflow.capture import Source
from dataflow.opened import READ_BYTES, Damage, Taken, counted
from dataflow.reads import LIMITS, Limits, chunks
from extractors.record import Block, SourceEnded, SourceFailed
from extractors.scanner import newlines

BLOCK_BYTES = 262_144
LEAST_BLOCK_BYTES = 16_384
MERGED_BYTES = 67_108_864
"""What the blocks of all files that are merged may take together."""
LINE_BYTES = 1_048_576


class LineCut(msgspec.Struct, frozen=True, tag=True):
    """A line of which only the first 1 MiB is in a block. size is its true length without the newline, in bytes."""

    source: str
    line: int
    offset: int
    size: int


def block_bytes_of(files: int) -> int:
    """The size of the blocks of so many files that are read at once: each keeps one while the others are read."""
    return max(LEAST_BLOCK_BYTES, min(BLOCK_BYTES, MERGED_BYTES // max(1, files) // 4_096 * 4_096))


Newlines = Callable[[Block], int]
"""Counts the newlines of a block. A reader of lines has counted most of them already: one pass over a file is saved."""


def newlines_of(block: Block) -> int:
    """The newlines of a block."""
    return newlines(block.data, 0, len(block.data))


class Cutter:
    """Cuts a stream of chunks into blocks. Holds at most one block, one line's first 1 MiB and one chunk.

    size is the offset up to which bytes were fed, lines how many lines end before it (a torn last one included, once
    ended), torn whether the last line has no newline. It may begin amid a file, where a line begins.
    """

    def __init__(
        self,
        source: str,
        block_bytes: int = BLOCK_BYTES,
        line_bytes: int = LINE_BYTES,
        count: Newlines = newlines_of,
        offset: int = 0,
        line: int = 1,
    ) -> None:
        self.source = source
        self._newlines = count
        self._given: Block | None = None
        self.size = offset
        self.torn = False
        self._block_bytes = block_bytes
        self._line_bytes = line_bytes
        self._held: list[memoryview] = []
        self._line = line
        self._dropping_from: int | None = None
        self._next(offset)

    @property
    def start(self) -> int:
        """Where the next block begins."""
        return self._start

    @property
    def lines(self) -> int:
        """Lines that have ended so far, and the torn one."""
        return self._here() - 1

    def _here(self) -> int:
        """The number of the next line. The newest block's newlines are counted only now, when it has been read."""
        if self._given is not None:
            self._line += self._newlines(self._given)
            self._given = None
        return self._line

    def feed(self, chunk: bytes) -> Iterator[Block | LineCut]:
        """The blocks that this chunk completes."""
        base, at, view = self.size, 0, memoryview(chunk)
        self.size += len(chunk)
        while at < len(chunk):
            if self._dropping_from is not None:
                at = chunk.find(b"\n", at) + 1
                if not at:
                    return
                yield self._dropped(self._dropping_from, base + at, newline=1)
                continue
            stop = chunk.find(b"\n", max(self._edge - base, at)) + 1
            self._held.append(view[at:stop] if stop else view[at:])
            if not stop:
                if self.size - self._edge > self._line_bytes:
                    yield self._overlong()
                return
            at = stop
            yield from self._whole(base + at, newline=1)

    def end(self) -> Iterator[Block | LineCut]:
        """The last lines, whole or torn."""
        if self._dropping_from is not None:
            self.torn = True
            yield self._dropped(self._dropping_from, self.size, newline=0)
        elif self._held:
            self.torn = self._held[-1][-1] != 0x0A
            yield from self._whole(self.size, newline=0 if self.torn else 1)

    def _whole(self, end: int, newline: int) -> Iterator[Block | LineCut]:
        """The block of what is held, which ends at this offset, its last line cut where that is too long."""
        data = self._join()
        begin = 0
        if len(data) > self._line_bytes:
            begin = data.rfind(b"\n", 0, len(data) - newline) + 1
        length = len(data) - newline - begin
        if length > self._line_bytes:
            cut_from = self._start + begin
            yield self._block(data[: begin + self._line_bytes])
            yield self._dropped(cut_from, end, newline)
            return
        yield self._block(data)
        self._line = self._here() + 1 - newline
        self._next(end)

    def _overlong(self) -> Block:
        """The block whose last line has already outgrown what is kept of a line; the rest will be dropped."""
        data = self._join()
        begin = data.rfind(b"\n") + 1
        self._dropping_from = self._start + begin
        return self._block(data[: begin + self._line_bytes])

    def _dropped(self, begin: int, end: int, newline: int) -> LineCut:
        cut = LineCut(self.source, self._here(), begin, end - newline - begin)
        self._dropping_from = None
        self._line += 1
        self._next(end)
        return cut

    def _block(self, data: bytes) -> Block:
        self._given = Block(self.source, self._start, self._here(), data)
        return self._given

    def _join(self) -> bytes:
        """What is held, in one piece. A small file's only chunk need not be copied."""
        first, chunk = self._held[0], self._held[0].obj
        if isinstance(chunk, bytes) and len(self._held) == 1 and len(first) == len(chunk):
            data = chunk
        else:
            data = b"".join(self._held)
        self._held.clear()
        return data

    def _next(self, start: int) -> None:
        self._start = start
        self._edge = start - start % self._block_bytes + self._block_bytes - 1


def blocks(
    source: Source,
    read_size: int = READ_BYTES,
    limits: Limits = LIMITS,
    block_bytes: int = BLOCK_BYTES,
    count: Newlines = newlines_of,
    line_bytes: int = LINE_BYTES,
    taken: Taken | None = None,
) -> Iterator[Block | LineCut | SourceFailed | SourceEnded]:
    """The blocks of a file in order, then a SourceFailed for each damage, then one SourceEnded.

    SourceEnded counts all lines and uncompressed bytes; it is complete unless the last line has no newline or bytes are
    missing, and its unparsed is 0 (readers of lines count that). A SourceFailed is whole when not one byte was read.
    count is asked of a block after it was given, taken is told of the bytes read. Never raises for what is in or
    around the file.
    """
    cutter, damages = Cutter(source.relative, block_bytes, line_bytes, count), []
    for chunk in _chunks(source, min(read_size, block_bytes), limits, taken):
        if isinstance(chunk, Damage):
            damages.append(chunk.why)
        else:
            yield from cutter.feed(chunk)
    yield from cutter.end()
    for why in damages:
        yield SourceFailed(source.kind, why, whole=cutter.size == 0)
    gaps = [*damages, *([f"line {cutter.lines}, the last, has no newline"] if cutter.torn else [])]
    yield SourceEnded(source.kind, cutter.lines, cutter.size, 0, complete=not gaps, gap="; ".join(gaps))


def _chunks(source: Source, read_size: int, limits: Limits, taken: Taken | None) -> Iterator[bytes | Damage]:
    """A stream's head was taken to find the job, so it comes first. A packed stream is counted unpacked."""
    if source.stream is None:
        return chunks(source.path, source.compression, read_size, limits, taken, by_lines=True)
    stream = _stream(source.head, source.stream)
    return stream if taken is None else counted(stream, taken)


def _stream(head: bytes, rest: Iterator[bytes | Damage]) -> Iterator[bytes | Damage]:
    if head:
        yield head
    yield from rest
