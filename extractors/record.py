"""The words that travel: Block, Record, Evidence, Origin, Observation, Tick.

Times are integer microseconds since the epoch, UTC. All structs are immutable.
"""

from enum import StrEnum
from typing import Any

import msgspec


class SourceKind(StrEnum):
    """Which of a job's homes a file belongs to (CONTRACT §1)."""

    AGGREGATED = "aggregated"
    ACTOR = "actor"
    DAEMON = "daemon"
    POD = "pod"
    SLURM = "slurm"
    TRIAL = "trial"
    POLL = "poll"
    ARTIFACT = "artifact"
    FLIGHT = "flight_recorder"


class Block(msgspec.Struct, frozen=True):
    """Bytes of whole lines of one file.

    offset is the byte offset of the first byte in the uncompressed file, line its 1-based line number;
    generation counts how often the file was replaced under the same name.
    """

    source: str
    offset: int
    line: int
    data: bytes
    generation: int = 0


class Evidence(msgspec.Struct, frozen=True, gc=False):
    """A place that was read. Also the form of an absence, when `searched` says what was looked for and how far.

    at_us is the line's own time (or the nearest earlier one of its file), None where there is neither.
    """

    signal: str
    source: str
    line: int
    offset: int
    at_us: int | None
    quote: str
    searched: str = ""


class Origin(msgspec.Struct, frozen=True, gc=False):
    """Who printed a line, as far as its prefixes (or its file's name and header) say. Empty means not said.

    task is the Iris task path without its attempt, e.g. `/alice/rl-80b/0`; host is the node's name (folder or prefix).
    """

    task: str = ""
    attempt: int = 0
    actor: str = ""
    pid: int = 0
    host: str = ""
    rank: int | None = None


NOWHERE = Origin()


class Record(msgspec.Struct, frozen=True):
    """One message as printed: unwrapped from its prefixes, joined where it spans lines.

    text is the payload; raw the physical line that holds what was read (the last one, for a traceback).
    """

    text: str
    raw: str
    line: int
    offset: int
    at_us: int | None
    origin: Origin
    repeated: int = 1
    logger: str = ""


class Observation(msgspec.Struct, frozen=True, gc=False):
    """A signal with its evidence. at_us is the effective time by which the job's stream is ordered.

    pattern is the name of the pattern that read it; repeated counts Ray's de-duplicated copies, itself included.
    """

    signal: Any
    evidence: Evidence
    at_us: int
    pattern: str
    origin: Origin = NOWHERE
    repeated: int = 1

    def moved(self, at_us: int) -> "Observation":
        """The same at another time of the stream."""
        return Observation(self.signal, self.evidence, at_us, self.pattern, self.origin, self.repeated)


class Tick(msgspec.Struct, frozen=True):
    """The clock, as a member of the stream. final marks the end of a replay."""

    at_us: int
    final: bool = False


class Beat(msgspec.Struct, frozen=True):
    """The observations of one job up to a tick, in order: the unit that travels through the flow.

    partial says that more of the same beat follows, so that it is folded but nothing is judged yet. fresh says that the
    stream begins with it, so that nothing that is remembered of the job counts, and recorded beside it that the stream
    is that of a finished capture, in which nothing is repeated at heartbeats; blind that the job's sources could not
    be read when it was cut; forgotten that nothing more comes of the job, so that no memory of it is kept. kinds are
    the types of its signals, so that a tracker is not asked of what none of them is.
    """

    job: str
    tick: Tick
    observations: tuple[Observation, ...] = ()
    partial: bool = False
    fresh: bool = False
    recorded: bool = False
    blind: bool = False
    forgotten: bool = False
    kinds: frozenset[type] = frozenset()

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "kinds", frozenset([type(each.signal) for each in self.observations]))


class SourceSeen(msgspec.Struct, frozen=True):
    """A file of the job exists and its reading began. Made by the shard, not by a pattern."""

    kind: SourceKind


class SourceEnded(msgspec.Struct, frozen=True):
    """A file was read to its end. unparsed counts lines that a pattern should have read and could not;
    complete is False where its head or tail is missing, and `gap` then says which."""

    kind: SourceKind
    lines: int
    size: int
    unparsed: int
    complete: bool
    gap: str = ""


class SourceFailed(msgspec.Struct, frozen=True):
    """A file that could not be read, or a part of it (a torn tail, a skipped archive member)."""

    kind: SourceKind
    why: str
    whole: bool = True


class SourceResumed(msgspec.Struct, frozen=True):
    """A file that could not be read, for this reason, is read on after all, and nothing of it was missed."""

    kind: SourceKind
    why: str


class Unheard(msgspec.Struct, frozen=True):
    """Nothing is heard of the job: its lines and polls don't arrive, for this reason. command and output are what shows
    it, where something was asked. Made by the feed, in a beat of its own; event time stands still from then on."""

    why: str
    command: tuple[str, ...] = ()
    output: str = ""


class HeardAgain(msgspec.Struct, frozen=True):
    """The job is heard again; why says by what. Made by the feed, in a beat of its own."""

    why: str
