"""Which tail follows a source, and where a file goes on that was renamed, copied or packed."""

import re

import msgspec

from dataflow.blocks import BLOCK_BYTES, LINE_BYTES
from dataflow.capture import Source
from dataflow.grip import Grip
from dataflow.identity import FIRST_RUNG, SAMPLE_BYTES, Likeness, Mark, digest, likeness
from dataflow.packed_tail import PackedTail
from dataflow.reads import Compression, chunks, unpacked_name
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


def continued_in(source: Source, tail: Tail | PackedTail) -> Mark | None:
    """Where to go on in a source that appears and holds what this tail has read, or had read before its file was
    replaced (`x.log` was renamed or copied to `x.log.1`, that one to `x.log.1.gz`). None where it does not, or too
    little was read to tell. Never raises OSError."""
    marks = [mark for mark in (tail.mark, tail.mark.earlier) if mark is not None and mark.ladder]
    if isinstance(tail, PackedTail) or not marks:
        return None
    if source.compression is not Compression.NONE:
        head = _head(source)
        return next((_packed(mark) for mark in marks if _begins(head, mark)), None)
    try:
        grip = Grip(source.path)
    except (OSError, ValueError):
        return None
    try:
        size = grip.size
        same = [mark for mark in marks if likeness(grip.fd, mark, size, thorough=True) is Likeness.SAME]
    except OSError:
        return None
    finally:
        grip.close()
    return msgspec.structs.replace(same[0], generation=0, earlier=None) if same else None


def _head(source: Source) -> bytes:
    chunk = next(chunks(source.path, source.compression), b"")
    return chunk[:SAMPLE_BYTES] if isinstance(chunk, bytes) else b""


def _begins(head: bytes, mark: Mark) -> bool:
    """Whether these unpacked bytes are the beginning of what was read."""
    rungs = min(len(mark.ladder), (len(head) // FIRST_RUNG).bit_length())
    return rungs > 0 and digest(head[: FIRST_RUNG << rungs - 1]) == mark.ladder[rungs - 1]


def _packed(mark: Mark) -> Mark:
    return Mark(offset=mark.offset, line=mark.line, cut_from=mark.cut_from)
