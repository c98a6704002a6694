"""From the blocks of one file to observations: scan, cut out the candidate lines, unwrap, join, ask the patterns.

The one place where a pattern's failure is caught: it becomes a count of unparsed lines, never an exception.
"""

from typing import Any

import msgspec

from extractors import kept
from extractors.catalogue import CATALOGUE, Catalogue
from extractors.clocks import Clock
from extractors.gluing import glued_messages
from extractors.joining import CONTENT_HINT, INSIDE, Joined, Joiner, Place, Shape, glued_before
from extractors.layers import CONTENT_LOGGERS, Line, Unwrapper
from extractors.ordering import UNTIMED, Ordering
from extractors.pattern import Pattern
from extractors.quoting import QUOTE_LIMIT, quote, without_ansi
from extractors.record import Block, Evidence, Observation, Origin
from extractors.scanner import Lines, hints_until, line_at, newlines, scanned
from extractors.shortcut import Shortcut

REGEX_TEXT_LIMIT = 16_384
"""Characters of a payload that a regex sees; parsers without a regex see all of it."""
FRAMES_LIMIT = 64
"""Carriage-return frames of one physical line that are looked at, from its end."""
HEADERS = (":actor_name:", ":task_name:")
UNSPOKEN_HINTS = (*HEADERS, CONTENT_HINT)
"""Hints of lines that no pattern reads, but that say how to read others."""
_TRACEBACKS = ("traceback", "detached_exception")
_DATED = tuple(bytes((first,)) for first in b"0123456789[(IWEDCF\x1b")
"""First bytes of lines that may hold a time."""


class Skew(msgspec.Struct, frozen=True):
    """How far a file's clock runs ahead: own_us of what the same lines say of their time in the aggregated log,
    stream_us of the transport's clock there, which orders the stream."""

    own_us: int = 0
    stream_us: int = 0


NO_SKEW = Skew()


class Reader:
    """Reads one file's blocks in order.

    base is what the file's name says of its lines' origin; anchor_us a moment near its first line; skew is taken off
    its clock. unparsed counts lines that a pattern claimed and could not read, torn the messages whose end never came.
    """

    def __init__(
        self, source: str, base: Origin, anchor_us: int, catalogue: Catalogue | None = None, skew: Skew = NO_SKEW
    ) -> None:
        self._ahead_us = skew.stream_us - skew.own_us
        self.unparsed = 0
        self.torn = 0
        self._joiner = Joiner()
        self._lines: Lines | None = None
        self._ordering = Ordering(anchor_us)
        self._begin(source, Unwrapper(Clock(anchor_us, skew.own_us), base), catalogue or CATALOGUE.whole)

    def _begin(self, source: str, unwrapper: Unwrapper, catalogue: Catalogue) -> None:
        """Makes ready what is the same for all files of a catalogue."""
        self.source, self.unwrapper, self.catalogue = source, unwrapper, catalogue
        known = scanned(catalogue, UNSPOKEN_HINTS, INSIDE)
        self._scanner, self._hints, self._by_hint = known.scanner, known.hints, known.by_hint
        self._shortcut = Shortcut(source, unwrapper, self._ahead_us, known)

    def begin_near(self, anchor_us: int) -> None:
        """The file's first lines are near this moment after all. Before anything is read."""
        self.unwrapper.clock.anchor_us = anchor_us
        self._ordering = Ordering(anchor_us)

    def read(self, block: Block) -> list[Observation]:
        """The observations of one block. While a message is open all lines are read, since its continuations hold no
        hint; else only those with a hint."""
        out: list[Observation] = []
        self._lines = lines = Lines(block, self._lines)
        data, joiner = block.data, self._joiner
        hits = self._scanner.hits(data)
        at = 0
        while True:
            if joiner.open:
                start = max(0, lines.after)
                end = data.find(b"\n", start)
                end = len(data) if end < 0 else end
                hints, at = hints_until(hits, at, end)
            else:
                at = self._shortcut.read(lines, hits, at, out)
                if at == len(hits):
                    break
                start, end, hints, at = line_at(data, hits, at)
            if start >= len(data):
                break
            lines.after = end + 1
            place = Place(data[start:end].decode("utf-8", "replace"), lines.number_at(start), block.offset + start)
            self._line(place, hints, lines, out)
        return self._ordering.settled(out)

    def rest(self) -> None:
        """Lets go of the block that was read last, but for the little that the next one needs of it."""
        if self._lines is not None:
            self._lines = self._lines.kept()

    @property
    def newest_us(self) -> int | None:
        """The effective time before which nothing more comes of this file; None while it has shown none."""
        return self._ordering.newest_us

    def __getstate__(self) -> tuple[Any, ...]:
        """What a later reader goes on from. Scanners and caches are made anew."""
        self.rest()
        known = (self.source, self.unwrapper.clock, self.unwrapper.base, self._ahead_us, self.unparsed, self.torn)
        return (*known, self._joiner, self._ordering, self._lines)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        source, clock, base, self._ahead_us, *rest = state
        self._begin(source, Unwrapper(clock, base), CATALOGUE.whole)
        self.unparsed, self.torn, self._joiner, self._ordering, self._lines = rest

    def newlines_of(self, block: Block) -> int:
        """The newlines of a block. Of the one that was just read most are counted already."""
        read = self._lines
        return read.newlines() if read is not None and read.block is block else newlines(block.data, 0, len(block.data))

    def end(self) -> list[Observation]:
        """What the end of the file still lets go."""
        out: list[Observation] = []
        for joined in self._joiner.end():
            self._conclude(joined, [], out)
        return self._ordering.settled(out)

    def _line(self, place: Place, hints: list[int], lines: Lines, out: list[Observation]) -> None:
        if place.raw.startswith(HEADERS):
            self._header(place.raw)
            return
        if "\r" in place.raw and place.raw.rstrip("\r").count("\r"):
            self._frames(place, hints, lines, out)
            return
        line = self._unwrap(place.raw, place.offset, lines)
        if line.logger.startswith(CONTENT_LOGGERS):
            return
        if self._joiner.open:
            taken, joined = self._joiner.takes(line, place)
            if joined is not None:
                self._conclude(joined, hints, out)
            if taken:
                return
            for patience_over in self._joiner.wait(line):
                self._conclude(patience_over, [], out)
        if not hints:
            return
        self._message(line, place, hints, out)

    def _message(self, line: Line, place: Place, hints: list[int], out: list[Observation]) -> None:
        """One message, or its beginning; or several that are glued on one line, which shows where the line holds more
        than one hint or nothing can be read from its begin."""
        if self._joiner.starts(line, place):
            if glued := glued_before(line.text):
                self._ask(msgspec.structs.replace(line, text=glued), place, hints, out)
            return
        before = len(out)
        if len(hints) == 1:
            self._ask(line, place, hints, out)
        if len(out) > before:
            return
        messages = glued_messages(line.text)
        if len(messages) == 1:
            if len(hints) > 1:
                self._ask(line, place, hints, out)
            return
        for number, text in enumerate(messages):
            inner = self._inner(text, line) if number else msgspec.structs.replace(line, text=text)
            wanted = [hint for hint in dict.fromkeys(hints) if self._hints[hint] in text]
            if wanted and not inner.logger.startswith(CONTENT_LOGGERS):
                self._ask(inner, place, wanted, out)

    def _unwrap(self, raw: str, offset: int, lines: Lines) -> Line:
        """The line at an offset without its prefixes. One without a time has that of the nearest line before it, which
        is looked for from the last one whose time is known."""
        line = self.unwrapper.unwrap(raw)
        if line.at_us is None:
            for earlier in reversed(lines.behind(offset - lines.block.offset)):
                if earlier[:1] in _DATED and self._is_dated(earlier):
                    break
            line = msgspec.structs.replace(line, at_us=self.unwrapper.clock.newest_us)
        lines.timed = lines.block.offset + lines.after
        return line

    def _is_dated(self, earlier: bytes) -> bool:
        """Whether a line that was not read has a time, which is the newest then."""
        return self.unwrapper.unwrap(earlier.decode("utf-8", "replace")).at_us is not None

    def _header(self, raw: str) -> None:
        """Ray writes who runs in a worker at the head of its files, and again when the worker is reused."""
        base = self.unwrapper.base
        actor = raw.split(":", 2)[2].strip()
        self.unwrapper.rebase(Origin(base.task, base.attempt, actor, base.pid, base.host, base.rank))

    def _frames(self, place: Place, hints: list[int], lines: Lines, out: list[Observation]) -> None:
        """Redrawn frames in one physical line: the newest frame that each pattern can read counts."""
        frames = [frame for frame in place.raw.split("\r") if without_ansi(frame).strip()]
        if not frames:
            return
        first = self._unwrap(frames[0], place.offset, lines)
        if first.logger.startswith(CONTENT_LOGGERS):
            return
        asked = set(hints)
        read: dict[str, Observation] = {}
        for frame in reversed(frames[-FRAMES_LIMIT:]):
            wanted = [hint for hint in asked if self._hints[hint] in frame]
            if not wanted:
                continue
            line = first if frame is frames[0] else self._inner(frame, first)
            found: list[Observation] = []
            (self._message if frame is frames[-1] else self._ask)(line, place, wanted, found)
            for observation in found:
                read.setdefault(observation.pattern, observation)
        out.extend(reversed(read.values()))

    def _inner(self, frame: str, first: Line) -> Line:
        line = self.unwrapper.unwrap(frame)
        origin = line.origin if line.origin != self.unwrapper.base else first.origin
        return msgspec.structs.replace(
            line,
            at_us=line.at_us if line.at_us is not None else first.at_us,
            transport_us=line.transport_us if line.transport_us is not None else first.transport_us,
            origin=origin,
        )

    def _conclude(self, joined: Joined, hints: list[int], out: list[Observation]) -> None:
        if joined.torn:
            self.torn += 1
        if joined.shape is Shape.IGNORED:
            return
        if joined.shape is Shape.TRACEBACK:
            if hints and not joined.torn:
                before = len(out)
                self._ask(joined.line, joined.place, hints, out)
                if len(out) > before:
                    return
            known = self.catalogue.by_name
            wanted = tuple(known[name] for name in _TRACEBACKS if name in known)
        else:
            wanted = self._patterns([n for n, hint in enumerate(self._hints) if hint in joined.text[:REGEX_TEXT_LIMIT]])
        self._try(wanted, msgspec.structs.replace(joined.line, text=joined.text), joined.place, out)

    def _ask(self, line: Line, place: Place, hints: list[int], out: list[Observation]) -> None:
        self._try(self._patterns(hints), line, place, out)

    def _patterns(self, hints: list[int]) -> tuple[Pattern, ...]:
        if len(hints) == 1:
            return self._by_hint[hints[0]]
        return tuple({pattern.name: pattern for hint in hints for pattern in self._by_hint[hint]}.values())

    def _try(self, patterns: tuple[Pattern, ...], line: Line, place: Place, out: list[Observation]) -> None:
        """The first pattern that can read the line speaks for it."""
        for pattern in patterns:
            text = line.text
            try:
                signal = pattern.build(text) if pattern.regex is None else pattern.read(text[:REGEX_TEXT_LIMIT])
                if signal is not None:
                    kept.check(signal)
            except Exception:
                self.unparsed += 1
                continue
            if signal is not None:
                out.append(self._observe(pattern, signal, line, place))
                return

    def _observe(self, pattern: Pattern, signal: object, line: Line, place: Place) -> Observation:
        raw, name = place.raw, pattern.name
        effective = self.streamed(line)
        if effective is None:
            effective = UNTIMED
        if len(raw) > QUOTE_LIMIT or not raw.isprintable():
            raw = quote(raw, next((hint for hint in pattern.hints if hint in line.text), ""))
        evidence = Evidence(name, self.source, place.line, place.offset, line.at_us, raw)
        return Observation(signal, evidence, effective, name, line.origin, line.repeated)

    def time_of(self, raw: str) -> int:
        """The effective time of a line that no pattern reads (the file's last one)."""
        return self._ordering.time_of(self.streamed(self.unwrapper.unwrap(raw)) if raw else None)

    def streamed(self, line: Line) -> int | None:
        """A line's time by the clock that orders the stream."""
        if line.transport_us is not None:
            return line.transport_us
        return None if line.at_us is None else line.at_us - self._ahead_us
