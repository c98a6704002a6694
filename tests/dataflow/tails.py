"""Builders for tests of tails: a log that is written to, a tail of it with a clock that is turned by hand."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from dataflow.blocks import BLOCK_BYTES, LINE_BYTES, LineCut
from dataflow.capture import Source
from dataflow.identity import Mark
from dataflow.reads import compression_of
from dataflow.tail import SETTLE_US
from dataflow.tailing import tail_of
from dataflow.turns import Piece
from extractors.record import Block, SourceKind

TICK_US = 250_000


def source_at(path: Path) -> Source:
    return Source(path.name, str(path), SourceKind.AGGREGATED, compression_of(path.name))


def lines(first: int, count: int, word: str = "still here") -> bytes:
    """Lines of a log whose clock runs, so that no two logs begin alike."""
    return b"".join(
        b"2026-05-04 08:%02d:%02d %s %d\n" % (n // 60 % 60, n % 60, word.encode(), n)
        for n in range(first, first + count)
    )


@dataclass
class Followed:
    """A tail and what it gave."""

    path: Path
    block_bytes: int = BLOCK_BYTES
    line_bytes: int = LINE_BYTES
    now_us: int = 1_000_000_000
    given: list[Piece] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tail = tail_of(source_at(self.path), None, self.block_bytes, self.line_bytes)

    def poll(self, times: int = 1, after_us: int = TICK_US) -> list[Piece]:
        """What so many polls give, each a quarter of a second after the one before it; reads on while there is more."""
        out: list[Piece] = []
        for _ in range(times):
            self.now_us += after_us
            out += self.tail.poll(self.now_us)
            while self.tail.more:
                out += self.tail.poll(self.now_us)
        self.given += out
        return out

    def settle(self) -> list[Piece]:
        """What is told once everything has stood still for long enough."""
        return [*self.poll(), *self.poll(after_us=SETTLE_US)]

    def finish(self) -> list[Piece]:
        out = self.tail.finish(self.now_us)
        self.given += out
        return out

    def restart(self) -> None:
        """Goes on with a tail that knows but the mark."""
        snapshot = self.tail.snapshot()
        self.tail.close()
        self.tail = tail_of(source_at(self.path), Mark.restored(snapshot), self.block_bytes, self.line_bytes)


def text(pieces: list[Piece]) -> bytes:
    return b"".join(piece.data for piece in pieces if isinstance(piece, Block))


def told(pieces: list[Piece]) -> list[Piece]:
    """What is no bytes."""
    return [piece for piece in pieces if not isinstance(piece, Block)]


def joined(pieces: list[Piece]) -> dict[int, bytes]:
    """The bytes of each generation; checks that each piece stands where the one before it ended. What was cut off a
    line stands as dots."""
    contents: dict[int, bytes] = {}
    at: dict[int, tuple[int, int]] = {}
    generation = 0
    for piece in pieces:
        if isinstance(piece, Block):
            generation = piece.generation
            begun = contents.get(generation, b"")
            assert (piece.offset, piece.line) == at.get(generation, (0, 1))
            contents[generation] = begun + piece.data
            at[generation] = (piece.offset + len(piece.data), piece.line + piece.data.count(b"\n"))
        elif isinstance(piece, LineCut):
            begun = contents[generation]
            assert piece.line == at[generation][1]
            contents[generation] = begun + b"." * (piece.offset + piece.size - len(begun)) + b"\n"
            at[generation] = (len(contents[generation]), piece.line + 1)
    return contents


def replace(path: Path, content: bytes) -> None:
    """Another file under the same name, with another inode."""
    new = path.with_name(f".{path.name}.new")
    new.write_bytes(content)
    os.replace(new, path)


def append(path: Path, content: bytes) -> None:
    with path.open("ab") as file:
        file.write(content)
