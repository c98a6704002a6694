"""Which content of a file has which number, also after a kill: what was sent just before it is not known to have
arrived, and no number may stand for two contents, nor two numbers for one.

So before the first byte of a content is sent it is noted by what it can be told again: its mark. What stands at the
path after a kill is compared with that. Another content gets the next number.
"""

import msgspec

from dataflow.capture import Source
from dataflow.grip import Grip
from dataflow.identity import FIRST_RUNG, Likeness, Mark, likeness
from dataflow.reads import Compression

Noted = tuple[int, Mark]
"""The number of a content, and a mark by which it is known. Of a packed file it is a mark of the packed bytes."""


def noted(source: Source, mark: Mark) -> Noted:
    """What is noted of a content that is read up to a mark."""
    if source.compression is Compression.NONE or not mark.ladder:
        return mark.generation, msgspec.structs.replace(mark, earlier=None)
    return mark.generation, Mark(offset=FIRST_RUNG, ladder=mark.ladder[:1], before=mark.ladder[0])


def gone_on(source: Source, arrived: Mark | None, begun: Noted | None) -> Mark:
    """From where to go on in a file after a kill. arrived is how far all is known to have arrived, begun the content
    that was begun last. Never raises OSError."""
    known = arrived if arrived is not None and arrived.offset else None
    if begun is None:
        return arrived or Mark()
    if (known is None or begun[0] > known.generation) and stands(source, begun[1]):
        return Mark(generation=begun[0], earlier=known)
    least = begun[0] + 1
    if known is not None:
        return msgspec.structs.replace(known, least=least)
    return Mark(generation=least, earlier=None if arrived is None else arrived.earlier)


def stands(source: Source, mark: Mark) -> bool:
    """Whether this content stands at the path. Never raises OSError."""
    if not mark.offset:
        return False
    try:
        grip = Grip(source.path)
    except (OSError, ValueError):
        return False
    try:
        return likeness(grip.fd, mark, grip.size, thorough=True) is Likeness.SAME
    except OSError:
        return False
    finally:
        grip.close()
