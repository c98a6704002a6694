"""Which tail follows a source, and where a file goes on that was renamed, copied or packed."""

import re
from collections.abc import Sequence

import msgspec

from dataflow.blocks import BLOCK_BYTES, LINE_BYTES
from dataflow.capture import Source
from dataflow.grip import Grip
from dataflow.identity import FIRST_RUNG, SAMPLE_BYTES, Likeness, Mark, digest, likeness
from dataflow.packed_tail import PackedTail
from dataflow.reads import Compression, chunks, unpacked_name
from dataflow.rounds import AnyTail
from dataflow.tail import Tail

_TURNED = re.compile(r"\.\d+$")


def tail_of(
    source: Source, mark: Mark | None = None, block_bytes: int = BLOCK_BYTES, line_bytes: int = LINE_BYTES
) -> Tail | PackedTail:
    """The tail of a source, from its mark on, where it has one. Nothing is opened before it is polled."""
    kind = Tail if source.compression is Compression.NONE else PackedTail
    return kind(source, mark, block_bytes, line_bytes)


def family(relative: str) -> str:
    """The name of a log without what rotation adds to it: `x.log` of `x.log.2.gz`."""
    return _TURNED.sub("", unpacked_name(relative))


class Content(msgspec.Struct, frozen=True):
    """A content that was read, up to a mark, and the name that it had. packed says that the mark's sample is of packed
    bytes."""

    name: str
    mark: Mark
    packed: bool = False


def contents_of(tail: AnyTail) -> list[Content]:
    """What a tail reads, and what it read before its file was replaced, where there is such."""
    marks = (tail.mark, *([tail.mark.earlier] if tail.mark.earlier is not None else []))
    return [Content(tail.source.relative, mark, isinstance(tail, PackedTail)) for mark in marks]


def continued_in(source: Source, contents: Sequence[Content]) -> tuple[Content, Mark] | None:
    """Where to go on in a source that holds one of these contents (`x.log` was renamed or copied to `x.log.1`, that one
    to `x.log.1.gz`): that of which most was read. None where it holds none of them, or too little was read to tell.
    Never raises OSError."""
    known = sorted((each for each in contents if each.mark.ladder), key=lambda each: -each.mark.offset)
    if not known:
        return None
    if source.compression is Compression.NONE:
        return _in_plain(source, [each for each in known if not each.packed])
    head, packed_head = _head(source), _packed_head(source)
    for each in known:
        if each.mark.ladder[0] == packed_head if each.packed else _begins(head, each.mark):
            return each, Mark(offset=each.mark.offset, line=each.mark.line, cut_from=each.mark.cut_from)
    return None


def _in_plain(source: Source, known: list[Content]) -> tuple[Content, Mark] | None:
    """A copy that is still being written is shorter than what was read, and told from its first kilobyte on."""
    try:
        grip = Grip(source.path)
    except (OSError, ValueError):
        return None
    try:
        size = grip.size
        alike = [(each, likeness(grip.fd, each.mark, size, thorough=True)) for each in known]
    except OSError:
        return None
    finally:
        grip.close()
    same = [each for each, how in alike if how is Likeness.SAME and each.mark.offset]
    same += [each for each, how in alike if how is Likeness.SHORTER and size >= SAMPLE_BYTES]
    return (same[0], msgspec.structs.replace(same[0].mark, generation=0, earlier=None)) if same else None


def _packed_head(source: Source) -> bytes:
    try:
        with open(source.path, "rb") as file:
            return digest(file.read(FIRST_RUNG))
    except (OSError, ValueError):
        return b""


def _head(source: Source) -> bytes:
    chunk = next(chunks(source.path, source.compression), b"")
    return chunk[:SAMPLE_BYTES] if isinstance(chunk, bytes) else b""


def _begins(head: bytes, mark: Mark) -> bool:
    """Whether these unpacked bytes are the beginning of what was read."""
    rungs = min(len(mark.ladder), (len(head) // FIRST_RUNG).bit_length())
    return rungs > 0 and digest(head[: FIRST_RUNG << rungs - 1]) == mark.ladder[rungs - 1]
