"""What a shipper says of a capture beside its bytes, in the order in which it says it. Each travels as JSON whose
`type` is the name of its struct; fields that a later version adds are passed over.

Paths are relative to the capture, times are microseconds.
"""

from collections.abc import Iterable

import msgspec

from dataflow.blocks import LineCut
from dataflow.homes import Writer
from dataflow.reads import Compression
from dataflow.turns import Continued, Gap, Held, Rotated, TailFailed, TailResumed
from extractors.extract import Skew
from extractors.record import SourceKind


class Begun(msgspec.Struct, frozen=True, tag=True):
    """The first word of a session, said again when job.toml changes and every ten minutes. captured is the path as it
    was given, bare that it is one log file; job_toml the text of what the launcher knew; recorded that all of it is
    there and Ended will come; lateness_us within what time a live one's quiet files are read. anew counts how often all
    is sent anew in this session, since the topics had lost what came."""

    captured: str
    job_toml: str | None
    recorded: bool
    bare: bool = False
    lateness_us: int = 0
    anew: int = 0


class Listed(msgspec.Struct, frozen=True, tag=True):
    """A file of the capture is there and will be read."""

    relative: str
    kind: SourceKind
    compression: Compression
    writer: Writer


class Told(msgspec.Struct, frozen=True, tag=True):
    """What happened to a file."""

    piece: Rotated | TailFailed | TailResumed | LineCut | Continued | Gap | Held


class TrialSeen(msgspec.Struct, frozen=True, tag=True):
    """A trial began or ended; the parts of its files came before. Without a name it is a job's own result."""

    name: str
    relative: str
    ended: bool


class ArchiveSeen(msgspec.Struct, frozen=True, tag=True):
    """An archive of trials is there, whole; its parts came before."""

    relative: str
    compression: Compression


class DumpSeen(msgspec.Struct, frozen=True, tag=True):
    """A dump of a flight recorder is there, whole; its parts came before."""

    relative: str


class FolderSeen(msgspec.Struct, frozen=True, tag=True):
    """A folder of trials, or a trial's own, of which no file may be worth sending."""

    relative: str


class LinkSeen(msgspec.Struct, frozen=True, tag=True):
    """A link stands among trials, where none is followed."""

    relative: str


class Failed(msgspec.Struct, frozen=True, tag=True):
    """A file or folder that can't be listed or read, and why. relative is for people."""

    relative: str
    why: str


class Tick(msgspec.Struct, frozen=True, tag=True):
    """Up to now_us all of the capture was sent, but of the sources (and folders and archives of trials) in behind.
    polls tells how far each poll file was sent on the other topic, as (generation, offset behind its newest line that
    is not blank). anchor_us and skews are the clocks of the nodes, as far as known; stands says that the capture is
    there."""

    now_us: int
    behind: list[str] = []
    polls: dict[str, tuple[int, int]] = {}
    anchor_us: int = 0
    skews: dict[str, Skew] = {}
    stands: bool = True


class Ended(msgspec.Struct, frozen=True, tag=True):
    """All of a recorded capture was sent: its files with the bytes of each that were sent, and what could not be read,
    with why."""

    files: dict[str, int]
    failures: list[tuple[str, str]] = []


class Stopped(msgspec.Struct, frozen=True, tag=True):
    """A live shipper ended in order."""

    now_us: int


Word = (
    Begun | Listed | Told | TrialSeen | ArchiveSeen | DumpSeen | FolderSeen | LinkSeen | Failed | Tick | Ended | Stopped
)
"""All of them."""


def names_of(word: Word) -> Iterable[str]:
    """The paths that a word names as places of the capture."""
    if isinstance(word, Told):
        other = (word.piece.from_source,) if isinstance(word.piece, Continued) else ()
        return (word.piece.source, *other)
    if isinstance(word, Tick):
        return (*word.behind, *word.polls)
    if isinstance(word, Ended):
        return word.files
    if isinstance(word, Begun | Failed | Stopped):
        return ()
    return (word.relative,)


def times_of(word: Word) -> Iterable[int]:
    """The times in a word, microseconds."""
    if isinstance(word, Tick):
        return (word.now_us, word.anchor_us)
    if isinstance(word, Stopped):
        return (word.now_us,)
    return (word.lateness_us,) if isinstance(word, Begun) else ()


def numbers_of(word: Word) -> Iterable[int]:
    """The places in files, sizes and counts in a word."""
    if isinstance(word, Told):
        fields = (getattr(word.piece, name) for name in word.piece.__struct_fields__)
        return [each for each in fields if isinstance(each, int)]
    if isinstance(word, Tick):
        return [each for place in word.polls.values() for each in place]
    if isinstance(word, Ended):
        return word.files.values()
    return (word.anew,) if isinstance(word, Begun) else ()
