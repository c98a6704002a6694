"""Messages that span lines: tracebacks (also interleaved between actors) and pretty-printed dicts become one record.

A join is open per stream (an origin and the prefix that its lines repeat); it is bounded in lines, bytes and time.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from extractors.layers import Line
from extractors.record import Origin

JOIN_LINES = 400
JOIN_BYTES = 262_144
CONTENT_LINES = 20_000
PATIENCE_LINES = 2_000
"""Foreign lines that an open join outlives; after that its own next line is not coming."""

TRACEBACK_HEADER = "Traceback (most recent call last)"
_REMOTE_HEADERS = ("ray::", "\x1b[36mray::")
_FRAME_STARTS = (" ", "\t", ">", "│", "|", "^", "~")
DICT_HEADERS = ("{'async/", "{'generate/")
CONTENT_HEADER = "Example:"
"""SkyRL's `log_example` prints a whole trajectory below this: agents' words, never events."""
CONTENT_HINT = "log_example"


class Shape(StrEnum):
    """What kind of message is being joined."""

    TRACEBACK = "traceback"
    DICT = "dict"
    CONTENT = "content"


@dataclass(slots=True)
class Place:
    """Where a physical line stands."""

    raw: str
    line: int
    offset: int


@dataclass(slots=True)
class Join:
    """A message whose end has not come yet. told is the newest line; size counts characters."""

    shape: Shape
    first: Line
    place: Place
    texts: list[str]
    size: int = 0
    waited: int = 0


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
    """The open joins of one file."""

    open: dict[tuple[Origin, str], Join] = field(default_factory=dict)

    def starts(self, line: Line, place: Place) -> bool:
        """Whether the line begins a message that spans lines; it is taken then."""
        shape = _shape_of(line.text)
        if shape is None:
            return False
        key = (line.origin, "" if shape is Shape.CONTENT else line.logger)
        self.open[key] = Join(shape, line, place, [line.text])
        return True

    def takes(self, line: Line, place: Place) -> tuple[bool, Joined | None]:
        """(whether the line belongs to an open message, the message if the line ended it)."""
        key = (line.origin, line.logger)
        content = self.open.get((line.origin, ""))
        if content is not None and content.shape is Shape.CONTENT:
            return self._content(line, content), None
        join = self.open.get(key)
        if join is None:
            return False, None
        if join.shape is Shape.TRACEBACK and len(join.texts) > 1 and line.text.startswith(TRACEBACK_HEADER):
            return False, self._close(key, join, torn=True)
        join.texts.append(line.text)
        join.size += len(line.text)
        if _ends(join, line.text):
            del self.open[key]
            conclusion = join.first if join.shape is Shape.DICT else line
            where = join.place if join.shape is Shape.DICT else place
            return True, Joined(join.shape, "\n".join(join.texts), conclusion, where)
        if len(join.texts) > JOIN_LINES or join.size > JOIN_BYTES:
            return True, self._close(key, join, torn=True)
        return True, None

    def _content(self, line: Line, join: Join) -> bool:
        """Whether the line is still content: until its speaker writes a line with its own prefix again."""
        join.size += 1
        if line.logger or join.size > CONTENT_LINES:
            del self.open[(line.origin, "")]
            return False
        return True

    def wait(self) -> list[Joined]:
        """A foreign line passed; gives the joins whose patience is over."""
        over = []
        for key, join in list(self.open.items()):
            join.waited += 1
            if join.waited > PATIENCE_LINES:
                over.append(self._close(key, join, torn=True))
        return [joined for joined in over if joined.shape is not Shape.CONTENT]

    def end(self) -> list[Joined]:
        """The file ended: what is still open, torn."""
        over = [self._close(key, join, torn=True) for key, join in list(self.open.items())]
        return [joined for joined in over if joined.shape is not Shape.CONTENT]

    def _close(self, key: tuple[Origin, str], join: Join, torn: bool) -> Joined:
        del self.open[key]
        return Joined(join.shape, "\n".join(join.texts), join.first, join.place, torn)


def _shape_of(text: str) -> Shape | None:
    if text.startswith((TRACEBACK_HEADER, *_REMOTE_HEADERS)) or _is_remote_header(text):
        return Shape.TRACEBACK
    if text.rstrip() == CONTENT_HEADER:
        return Shape.CONTENT
    if text.startswith(DICT_HEADERS) and not text.rstrip().endswith("}"):
        return Shape.DICT
    return None


def _is_remote_header(text: str) -> bool:
    """Ray's header in place of the word Traceback: `…RayTaskError(Cause): ray::Actor.method() (pid=…`."""
    return "RayTaskError(" in text[:80] and ": ray::" in text[:160] and not text.startswith(_FRAME_STARTS)


def _ends(join: Join, text: str) -> bool:
    if join.shape is Shape.DICT:
        return text.rstrip().endswith("}")
    if not text.strip() or text.startswith(_FRAME_STARTS):
        return False
    return not (text.startswith(_REMOTE_HEADERS) or _is_remote_header(text))
