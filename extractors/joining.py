"""Messages that span lines: tracebacks (also interleaved between actors), pretty-printed dicts, and metrics lines that
the transport split become one record.

A traceback's header may be glued to what its stream had left without a newline (a progress bar, a logger's own prefix).

A join is open per stream (an origin and the prefix that its lines repeat); it is bounded in lines, bytes and time.
"""

from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

from extractors.announcing import CHAINED, DETACHED_MARK, IGNORED_HEADERS, Announced
from extractors.layers import Line
from extractors.metrics import MIRROR_HEADER, Wholeness, wholeness
from extractors.record import Origin

JOIN_LINES = 400
JOIN_BYTES = 262_144
CONTENT_LINES = 20_000
PATIENCE_LINES = 2_000
"""Foreign lines that an open join outlives; after that its own next line is not coming."""
PATIENCE_US = 60_000_000
"""Nor does it come when its stream has been silent for a minute: what is said then is another message, and must neither
date this one nor be quoted for it."""
HELD_CHARACTERS = 8_388_608
"""What all open joins may hold together; real ones hold kilobytes."""

TRACEBACK_HEADER = "Traceback (most recent call last)"
_REMOTE_HEADERS = ("ray::", "\x1b[36mray::")
_QUOTING = frozenset("\"'`{\\")
_FRAME_STARTS = (" ", "\t", ">", "│", "|", "^", "~")
MEMORY_TABLE = "PID\tMEM(GB)\tCOMMAND"
"""The head of Ray's table of a node's largest processes; its first row is the largest."""
DICT_HEADERS = ("{'async/", "{'generate/")
CONTENT_HEADER = "Example:"
"""SkyRL's `log_example` prints a whole trajectory below this: agents' words, never events."""
CONTENT_HINT = "log_example"
_CUT = "\0cut"
"""In place of a logger: the tail of a line that the transport split has no prefix of its own."""
TAIL_WITHIN = 64
"""Lines of its own stream that may come between a split line's head and its tail (another file of the process)."""
SPLIT_CHARACTERS = 4_096
"""A middle piece of a split line is at least so long; shorter lines are the stream's own."""
_REMOTE_ERROR = "RayTaskError("
_STARTS = (*_REMOTE_HEADERS, CONTENT_HEADER, *DICT_HEADERS, MEMORY_TABLE, MIRROR_HEADER)
"""Beginnings of joined messages, other than a traceback's, so that most lines are told from them at one glance."""
STARTS = (*_STARTS, *IGNORED_HEADERS)
"""Beginnings of lines that say how those below them are read."""
INSIDE = (TRACEBACK_HEADER, _REMOTE_ERROR, DETACHED_MARK)
"""What stands somewhere in a line that may begin a traceback, or announce one."""


class Shape(StrEnum):
    """What kind of message is being joined."""

    TRACEBACK = "traceback"
    IGNORED = "ignored"
    DICT = "dict"
    TABLE = "table"
    CONTENT = "content"
    SPLIT = "split"


_UNREAD = (Shape.CONTENT, Shape.IGNORED)
_LOGGER_OF = {Shape.CONTENT: "", Shape.SPLIT: _CUT}
"""Joins whose further lines don't wear their speaker's prefix."""


class Place(msgspec.Struct, frozen=True, gc=False):
    """Where a physical line stands."""

    raw: str
    line: int
    offset: int


@dataclass(slots=True)
class Join:
    """A message whose end has not come yet. size counts characters (lines, of content), since is the number of foreign
    lines before it, others that of its own stream's other lines. over: its traceback has ended, but a chain may go on.
    """

    shape: Shape
    first: Line
    place: Place
    texts: list[str]
    size: int = 0
    since: int = 0
    others: int = 0
    over: bool = False

    @property
    def text(self) -> str:
        """What has come of it."""
        return ("" if self.shape is Shape.SPLIT else "\n").join(self.texts)


@dataclass(slots=True)
class Joined:
    """A whole message: its text, the line that carries its conclusion and that line's place. torn says that its end
    never came."""

    shape: Shape
    text: str
    line: Line
    place: Place
    torn: bool = False


@dataclass(slots=True)
class Joiner:
    """The open joins of one file, in the order of their beginnings. passed counts foreign lines, held the characters of
    open joins."""

    open: dict[tuple[Origin, str], Join] = field(default_factory=dict)
    announced: Announced = field(default_factory=Announced)
    passed: int = 0
    held: int = 0

    def starts(self, line: Line, place: Place) -> bool:
        """Whether the line begins a message that spans lines; it is taken then."""
        shape = _shape_of(line.text)
        if shape is None:
            self.announced.hear(line, place.line)
            return False
        key, text = (line.origin, _LOGGER_OF.get(shape, line.logger)), line.text
        if shape is Shape.TRACEBACK and (said := self.announced.of(line, place.line)) is not None:
            shape, text = (Shape.TRACEBACK, f"{said}\n{text}") if said else (Shape.IGNORED, text)
        self._forget(key)
        self.open[key] = Join(shape, line, place, [text], 0 if shape is Shape.CONTENT else len(text), self.passed)
        self.held += len(text) + len(place.raw)
        return True

    def _forget(self, key: tuple[Origin, str]) -> None:
        """A join is over; its length is no longer held."""
        join = self.open.pop(key, None)
        if join is not None:
            self.held -= sum(map(len, join.texts)) + len(join.place.raw)

    def takes(self, line: Line, place: Place) -> tuple[bool, Joined | None]:
        """(whether the line belongs to an open message, the message if the line ended it)."""
        key = (line.origin, line.logger)
        content = self.open.get((line.origin, ""))
        if content is not None and content.shape is Shape.CONTENT:
            return self._content(line, content), None
        split = self.open.get((line.origin, _CUT))
        if split is not None:
            taken, joined = self._split(line, split)
            if taken or joined:
                return taken, joined
        join = self.open.get(key)
        if join is None:
            return False, None
        if join.over:
            return self._chained(line, place, join), None
        another = join.shape is not Shape.DICT and len(join.texts) > 1 and is_traceback_header(line.text)
        if another or _too_late(join, line):
            return False, self._close(key, join, torn=True)
        join.texts.append(line.text)
        join.size += len(line.text)
        self.held += len(line.text)
        if _ends(join, line.text):
            if join.shape is Shape.IGNORED:
                join.over = True
                return True, None
            self._forget(key)
            self.announced.chain(line, place.line, join.texts[0])
            conclusion = join.first if join.shape is Shape.DICT else line
            where = join.place if join.shape is Shape.DICT else place
            return True, Joined(join.shape, join.text, conclusion, where)
        if len(join.texts) > JOIN_LINES or join.size > JOIN_BYTES:
            return True, self._close(key, join, torn=True)
        return True, None

    def _chained(self, line: Line, place: Place, join: Join) -> bool:
        """Whether the line still belongs to an ignored traceback that has ended: Python chains the next one to it."""
        if not line.text.strip():
            return True
        self._forget((line.origin, line.logger))
        if line.text.startswith(CHAINED):
            self.announced.ignore(line, place.line)
            return True
        return False

    def _split(self, line: Line, join: Join) -> tuple[bool, Joined | None]:
        """Whether the line is the tail (or a middle piece) of a split one, and the whole line with its tail."""
        key = (line.origin, _CUT)
        so_far = Wholeness.BROKEN if line.logger else wholeness(join.text + line.text)
        if so_far is Wholeness.WHOLE:
            self._forget(key)
            return True, Joined(join.shape, join.text + line.text, join.first, join.place)
        if so_far is Wholeness.CUT and len(line.text) >= SPLIT_CHARACTERS and join.size < JOIN_BYTES:
            join.texts.append(line.text)
            join.size += len(line.text)
            self.held += len(line.text)
            return True, None
        join.others += 1
        if join.others > TAIL_WITHIN or line.text.startswith(MIRROR_HEADER):
            return False, self._close(key, join, torn=True)
        return False, None

    def _content(self, line: Line, join: Join) -> bool:
        """Whether the line is still content: until its speaker writes a line with its own prefix again."""
        join.size += 1
        if line.logger or join.size > CONTENT_LINES:
            self._forget((line.origin, ""))
            return False
        return True

    def wait(self, line: Line) -> list[Joined]:
        """A foreign line passed; gives the joins whose patience is over, and the oldest while too much is held."""
        self.passed += 1
        over = []
        while self.open:
            key, oldest = next(iter(self.open.items()))
            patient = self.passed - oldest.since <= PATIENCE_LINES and not _too_late(oldest, line)
            if patient and self.held <= HELD_CHARACTERS:
                break
            over.append(self._close(key, oldest, torn=True))
        return [joined for joined in over if joined.shape not in _UNREAD]

    def end(self) -> list[Joined]:
        """The file ended: what is still open, torn."""
        over = [self._close(key, join, torn=True) for key, join in list(self.open.items())]
        return [joined for joined in over if joined.shape not in _UNREAD]

    def _close(self, key: tuple[Origin, str], join: Join, torn: bool) -> Joined:
        self._forget(key)
        return Joined(join.shape, join.text, join.first, join.place, torn)


def _too_late(join: Join, line: Line) -> bool:
    """Whether a line comes so long after a message's beginning that it is none of it. Content has no such end."""
    first_us = join.first.at_us
    if join.shape is Shape.CONTENT or first_us is None or line.at_us is None:
        return False
    return line.at_us - first_us > PATIENCE_US


def is_traceback_header(text: str) -> bool:
    """Whether the line is, or ends with, a traceback's header. Quoted ones (an agent's words, a JSON) are content."""
    if text.startswith(TRACEBACK_HEADER):
        return True
    glued, header, rest = text.partition(TRACEBACK_HEADER)
    return bool(header) and rest.strip() == ":" and not _QUOTING.intersection(glued)


def glued_before(text: str) -> str:
    """What stands before a traceback's header on its own line."""
    return text.partition(TRACEBACK_HEADER)[0] if is_traceback_header(text) else ""


def _shape_of(text: str) -> Shape | None:
    if not text.startswith(_STARTS) and TRACEBACK_HEADER not in text and _REMOTE_ERROR not in text:
        return None
    if text.startswith(_REMOTE_HEADERS) or is_traceback_header(text) or _is_remote_header(text):
        return Shape.TRACEBACK
    if text.rstrip() == CONTENT_HEADER:
        return Shape.CONTENT
    if text.startswith(MEMORY_TABLE):
        return Shape.TABLE
    if text.startswith(MIRROR_HEADER):
        return Shape.SPLIT if not text.endswith("}") and wholeness(text) is Wholeness.CUT else None
    if text.startswith(DICT_HEADERS) and not text.rstrip().endswith("}"):
        return Shape.DICT
    return None


def _is_remote_header(text: str) -> bool:
    """Ray's header in place of the word Traceback: `…RayTaskError(Cause): ray::Actor.method() (pid=…`."""
    return _REMOTE_ERROR in text[:80] and ": ray::" in text[:160] and not text.startswith(_FRAME_STARTS)


def _ends(join: Join, text: str) -> bool:
    if join.shape is Shape.TABLE:
        return True
    if join.shape is Shape.DICT:
        return text.rstrip().endswith("}")
    if not text.strip() or text.startswith(_FRAME_STARTS):
        return False
    return not (text.startswith(_REMOTE_HEADERS) or _is_remote_header(text))
