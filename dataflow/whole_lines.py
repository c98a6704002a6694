"""What of the bytes behind a mark may be given now: whole lines, in blocks that lie inside those of blocks.py.

A line without its newline is held back, also one that a progress bar redraws with carriage returns for hours. The
records of a live run are those of a replay, which sees such a line once, whole, and reads in it the newest frame for
each pattern; frames given one by one would be observations that no replay has. What bounds the wait is what bounds a
line: of one that outgrows 1 MiB the first 1 MiB is given at once, as blocks.py does, and the rest is passed over until
its newline comes. Whoever wants to show the bar meanwhile may look at what is held (`Tail.held`); it is no record.

NUL bytes at a file's end may be a hole whose bytes are still to come (copies written out of order, a node that died):
they have no newline, so that they are held, and alone they don't make a line too long.
"""

import msgspec

from dataflow.blocks import BLOCK_BYTES, LINE_BYTES, Cutter, LineCut
from dataflow.grip import Stretch
from dataflow.identity import Mark
from extractors.record import Block

Given = list[Block | LineCut]


def given(
    source: str, mark: Mark, seen: Stretch, block_bytes: int = BLOCK_BYTES, line_bytes: int = LINE_BYTES
) -> tuple[Given, Mark]:
    """The blocks that begin at the mark, and the mark behind them.

    Where more of the file follows on what was seen, only blocks that are whole as in blocks.py are given, if there is
    one: so a file that was there before it was tailed gives the same blocks as in a replay.
    """
    out: Given = []
    read, since = seen.read, seen.since
    at, line = mark.offset - since, mark.line
    if mark.cut_from >= 0:
        stop = read.find(b"\n", at)
        if stop < 0:
            return out, mark.passed(read, since, since + len(read), line, mark.cut_from)
        out.append(LineCut(source, line, mark.cut_from, since + stop - mark.cut_from))
        at, line = stop + 1, line + 1
    cut_from, end = -1, read.rfind(b"\n", at) + 1
    if end > at:
        cutter = Cutter(source, block_bytes, line_bytes, offset=since + at, line=line)
        whole = [*cutter.feed(read[at:end])]
        if seen.at_end or not whole:
            whole += cutter.end()
        out += whole
        at, line = cutter.start - since, cutter.lines + 1
    elif len(read) - at > line_bytes:
        out.append(Block(source, since + at, line, read[at : at + line_bytes]))
        cut_from, at = since + at, at + line_bytes
    return _of(mark, out), mark.passed(read, since, since + at, line, cut_from)


def torn(source: str, mark: Mark, seen: Stretch, size: int, line_bytes: int = LINE_BYTES) -> tuple[Given, Mark]:
    """The last line of a file that ends at this size, as blocks.py gives it, and the mark behind it, when `given` has
    nothing more to give."""
    if size <= mark.offset and mark.cut_from < 0:
        return [], mark
    begin = mark.offset if mark.cut_from < 0 else mark.cut_from
    out: Given = []
    if mark.cut_from < 0:
        at = mark.offset - seen.since
        out.append(Block(source, begin, mark.line, seen.read[at : at + line_bytes]))
    if size - begin > line_bytes:
        out.append(LineCut(source, mark.line, begin, size - begin))
    end = seen.since + len(seen.read)
    return _of(mark, out), mark.passed(seen.read, seen.since, end, mark.line + 1) if end == size else mark


def _of(mark: Mark, pieces: Given) -> Given:
    """The pieces, as those of the mark's generation."""
    if not mark.generation:
        return pieces
    return [
        msgspec.structs.replace(piece, generation=mark.generation) if isinstance(piece, Block) else piece
        for piece in pieces
    ]
