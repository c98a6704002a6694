"""What the user should hear of the reading of one file: `<source>: <what, where>`, bounded, the rest counted."""

from extractors.metrics import MetricsUnreadable
from extractors.record import Block, Evidence, Observation

MOST = 20
"""Messages of one file; a million bad lines are told by the first few and their number."""
BACKWARDS_US = 60_000_000
"""A clock so far behind its file's newest is told; lines of two threads differ by less."""
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_SLICE = 4_096
_TORN = 3
"""Bytes at a block's end that may be a character cut in two, where a line is cut; a whole line ends with a newline."""


class Notes:
    """The messages of one file, put into the list that the feed's user gets."""

    def __init__(self, source: str, told: list[str]) -> None:
        self._source = source
        self._told = told
        self._count = 0

    def say(self, what: str) -> None:
        """Tells one thing, unless enough has been told of the file."""
        self._count += 1
        if self._count <= MOST:
            self._told.append(f"{self._source}: {what}")

    def rest(self) -> None:
        """Tells how many messages there would have been more."""
        if self._count > MOST:
            self._told.append(f"{self._source}: {self._count - MOST} more like these")


class LogNotes(Notes):
    """Also what a log's bytes and lines show: NUL bytes, broken UTF-8, a clock that runs backwards (each once, with
    the first place), metrics that can't be read, a torn last line.
    """

    def __init__(self, source: str, told: list[str]) -> None:
        super().__init__(source, told)
        self._nul_told = False
        self._broken_told = False
        self._backwards = 0

    def look(self, block: Block) -> None:
        """Looks at a block's bytes. Most of a log is ASCII, which is seen in nanoseconds."""
        data = block.data
        if not block.offset and data.startswith(_UTF16):
            self.say("line 1 at byte 0: the file is UTF-16, in which no line can be read; convert it to UTF-8")
        if not self._nul_told and (at := data.find(b"\0")) >= 0:
            self._nul_told = True
            self.say(f"{_place(block, at)}: NUL bytes; the lines that hold them are read without")
        if not self._broken_told and 0 <= (at := broken_utf8(data)) < len(data) - _TORN:
            self._broken_told = True
            self.say(f"{_place(block, at)}: the bytes are no UTF-8; they are read as U+FFFD")

    def heard(self, run: list[Observation]) -> list[Observation]:
        """Listens to what was read in the file, and gives it on."""
        for observation in run:
            place = observation.evidence
            if place.at_us is not None and observation.at_us - place.at_us > BACKWARDS_US:
                self._runs_backwards(place, (observation.at_us - place.at_us) // 1_000_000)
            if type(observation.signal) is MetricsUnreadable:
                self.say(f"line {place.line} at byte {place.offset}: {observation.signal.why}")
        return run

    def _runs_backwards(self, place: Evidence, seconds: int) -> None:
        self._backwards += 1
        if self._backwards == 1:
            self.say(f"line {place.line} at byte {place.offset}: the clock runs {seconds} s backwards here")

    def end(self, last: Block | None) -> None:
        """The file has ended with this block."""
        if self._backwards > 1:
            self.say(f"{self._backwards} lines have a clock that runs backwards")
        if last is not None and not last.data.endswith(b"\n"):
            at = last.data.rfind(b"\n") + 1
            self.say(f"{_place(last, at)}: the last line has no newline: it may be torn")
        self.rest()


def _place(block: Block, at: int) -> str:
    line = block.line + block.data.count(b"\n", 0, at)
    return f"line {line} at byte {block.offset + at}"


def broken_utf8(data: bytes) -> int:
    """Where the first bytes stand that are no UTF-8, -1 where all are.

    Only slices that are not ASCII are decoded: decoding the whole would cost a quarter of a replay's time. Slices that
    lie together are decoded together, since a character may span them.
    """
    if data.isascii():
        return -1
    start = -1
    for at in range(0, len(data) + _SLICE, _SLICE):
        ascii_only = data[at : at + _SLICE].isascii()
        if start < 0 and not ascii_only:
            start = at
        elif start >= 0 and ascii_only:
            try:
                data[start:at].decode()
            except UnicodeDecodeError as error:
                return start + error.start
            start = -1
    return -1
