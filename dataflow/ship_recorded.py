"""A recorded capture as it is sent: every byte that a replay would read, so that it can be laid out again elsewhere.

Plain logs go as blocks of whole lines (the torn last line in the last block), polls as their lines without newlines,
everything else as parts. What is too long for a line's message, and what is no poll (a blank line), goes as a part as
well: each stands at its offset, and together they are the file.
"""

import os
from collections.abc import Iterator
from io import BytesIO

from dataflow.capture import Source, TrialTree
from dataflow.feed import ReplayFeed
from dataflow.homes import JOB_FILE, MANIFEST
from dataflow.opened import READ_BYTES, Damage, file_chunks
from dataflow.reads import Compression
from dataflow.ship_files import PART_BYTES, FilePiece, dump_parts, parts_of, tree_pieces
from dataflow.wire import Part, PollLine
from dataflow.wire_words import Begun, Ended, Failed, Word
from extractors.record import Block, SourceKind

LONG_BYTES = 1_048_576
"""A longer line goes in pieces."""

Piece = Block | Part | PollLine | Word
_FilePiece = FilePiece | Block | PollLine


class Recorded:
    """One capture, to be sent once. files are those that were sent so far, with their sizes; failures what could not be
    read, as (relative path, why)."""

    def __init__(self, feed: ReplayFeed) -> None:
        self.capture = feed.capture
        self.captured = feed.captured
        self.files: dict[str, int] = {}
        self.failures = [*feed.capture.failures]

    def pieces(self, job_toml: str | None, anew: int = 0) -> Iterator[Piece]:
        """All of it, Begun first and Ended last. job_toml is the text of the facts by which it is judged; anew counts
        how often all was sent before and lost. Never raises OSError."""
        bare = not os.path.isdir(self.capture.path)
        yield Begun(self.captured, job_toml, recorded=True, bare=bare, anew=anew)
        for piece in self._files():
            if isinstance(piece, Failed):
                self.failures.append((piece.relative, piece.why))
                continue
            if isinstance(piece, Block | Part | PollLine):
                end = piece.offset + len(piece.data)
                self.files[piece.source] = max(self.files.get(piece.source, 0), end)
            yield piece
        yield Ended(self.files, self.failures)

    def _files(self) -> Iterator[_FilePiece]:
        for path, name in ((self.capture.job_toml, JOB_FILE), (self._manifest(), MANIFEST)):
            if path:
                yield from parts_of(path, name)
        for source in self.capture.sources:
            yield from self._source(source)
        for trials in self.capture.trials:
            if isinstance(trials, TrialTree):
                yield from tree_pieces(trials)
            else:
                yield from parts_of(trials.path, trials.relative)

    def _manifest(self) -> str:
        """Where the manifest lies, "" where none is read."""
        root = os.path.realpath(self.capture.path)
        path = os.path.realpath(os.path.join(root, MANIFEST))
        return path if path.startswith(root + os.sep) and os.path.isfile(path) else ""

    def _source(self, source: Source) -> Iterator[_FilePiece]:
        if source.kind is SourceKind.FLIGHT:
            return dump_parts(source)
        if source.compression is not Compression.NONE:
            return parts_of(source.path, source.relative)
        return self._polls(source) if source.kind is SourceKind.POLL else _log(source)

    def _polls(self, source: Source) -> Iterator[_FilePiece]:
        """The lines of a poll file. Behind the last one is a newline, unless the file ends before it."""
        name = source.relative
        for piece in _log(source):
            if not isinstance(piece, Block):
                yield piece
                continue
            begins = piece.offset
            for number, line in enumerate(BytesIO(piece.data), piece.line):
                bare = line.removesuffix(b"\n")
                yield PollLine(name, begins, number, bare) if bare.strip() else Part(name, begins, line, 0, 0)
                begins += len(line)
                self.files[name] = begins


def _log(source: Source) -> Iterator[Block | Part | Failed]:
    """A plain file's bytes; one empty block of an empty file."""
    name, held, offset, line = source.relative, bytearray(), 0, 1
    for chunk in file_chunks(source.path, READ_BYTES):
        if isinstance(chunk, Damage):
            yield Failed(name, chunk.why)
            continue
        held += chunk
        whole = held.rfind(b"\n") + 1
        if whole:
            data = bytes(held[:whole])
            yield Block(name, offset, line, data)
            offset, line = offset + whole, line + data.count(b"\n")
            del held[:whole]
        elif len(held) > LONG_BYTES:
            for at in range(0, len(held), PART_BYTES):
                yield Part(name, offset + at, bytes(held[at : at + PART_BYTES]), 0, 0)
            offset += len(held)
            held.clear()
    if held or not offset:
        yield Block(name, offset, line, bytes(held))
