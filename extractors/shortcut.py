"""The short way for the lines that most signals stand on: one message, no joining, prefixes that were read before.

Whatever is unusual of a line is left to the reader, which takes the long way; both come to the same observations.
"""

import re
import string
from typing import Any

from extractors import kept
from extractors.clocks import SECOND_US
from extractors.gluing import glued_messages
from extractors.joining import INSIDE, STARTS
from extractors.layers import HEAD_LIMIT, TAG_LIMIT, Unwrapper
from extractors.literals import Hit
from extractors.ordering import UNTIMED
from extractors.quoting import QUOTE_LIMIT
from extractors.rare_layers import LABEL
from extractors.record import Evidence, Observation, Origin
from extractors.repeats import dedup
from extractors.scanner import LONG, Ask, Lines, Scanned, hints_until, newlines

ODD_US = 60 * SECOND_US
"""A line whose own time is so far before the stream's takes the long way, on which that is told."""
_AS_ASCII = bytes(byte if 0x20 <= byte < 0x7F else 0x80 for byte in range(256))
"""Makes no ASCII of what can't be printed: asking the result costs half of taking all that can be printed out."""
_COLOUR = re.compile(rb"\x1b\[[0-9;]*m")
"""What Ray and loguru put around the parts of a line. Whatever else a terminal reads is left to the long way."""
_SECOND = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
_SECOND_OF_DAY = re.compile(r"(\d\d)-(\d\d) (\d\d:\d\d:\d\d)")
_BARE = frozenset("ABGHJKLMNOPQRSTUVXYZ" + string.ascii_lowercase)
"""First letters of messages without a prefix: no speaker's begins with them."""
_BRACKETED = ("[rank", "[default", "[pod/")
"""The only prefixes in brackets that begin with a small letter (torchrun's and kubectl's)."""
_INSIDE = tuple(word.encode() for word in INSIDE)
_START_LETTERS = frozenset(start[:2] for start in STARTS)
LEVEL_LIMIT = 10
"""Characters in which a level ends."""
Head = tuple[int, int | None, int, Origin]
"""Where the payload begins, the line's own time, its time in the stream, and who printed it."""
Layout = tuple[int, int, int]
"""Where the transport's part of a head ends, where the speaker's own clock begins (-1 where there is none), and where
the payload does."""


class Shortcut:
    """Reads the plain lines of one file, with the same unwrapper as the file's reader."""

    def __init__(self, source: str, unwrapper: Unwrapper, ahead_us: int, scanned: Scanned) -> None:
        self._source = source
        self._unwrapper = unwrapper
        self._ahead_us = ahead_us
        self._plain = scanned.plain
        self._known: dict[tuple[int, ...], tuple[Ask, ...]] = {}
        self._layouts: dict[int, Layout] = {}

    def read(self, lines: Lines, hits: list[Hit], at: int, out: list[Observation]) -> int:
        """Observes the lines of the hits from `at` on, up to one that must go the long way. Gives that one's hit."""
        data, every, plain, base = lines.data, len(hits), self._plain, lines.block.offset
        source, layouts, laid_out = self._source, self._layouts, self._laid_out
        begun, timed, counted, number = at, lines.timed - base, lines.counted, lines.number
        while at < every:
            end_of_hit, hint = hits[at]
            asks = plain[hint]
            if asks is None:
                break
            start, end, beyond = data.rfind(b"\n", 0, end_of_hit) + 1, data.find(b"\n", end_of_hit), at + 1
            if end - start > QUOTE_LIMIT or end < 0:
                break
            if beyond < every and hits[beyond][0] <= end:
                hints, beyond = hints_until(hits, at, end)
                asks = self._of_several(tuple(dict.fromkeys(hints)))
            line = data[start:end]
            if not line.translate(_AS_ASCII).isascii():
                line = _COLOUR.sub(b"", line)
                if not line.translate(_AS_ASCII).isascii() or _shows_a_beginning(line):
                    break
            raw = line.decode()
            head = laid_out(raw, layouts[hint]) if hint in layouts else None
            if head is None:
                head = self._head(raw, hint, start == timed)
            if head is None or asks is None:
                break
            began, own_us, at_us, origin = head
            text, repeated = raw[began:], 1
            if text[-1:] == "]" or "(Ray deduplicates" in text:
                repeated, text = dedup(text)
            if beyond - at > 1 and len(glued_messages(text)) > 1:
                break
            signal, name = _asked(asks, text)
            if signal is None:
                break
            near = start - counted < LONG
            number += data.count(b"\n", counted, start) if near else newlines(data, counted, start)
            counted = start
            evidence = Evidence(name, source, number, base + start, own_us, raw)
            out.append(Observation(signal, evidence, at_us, name, origin, repeated))
            at, timed = beyond, end + 1
        if at > begun:
            lines.after, lines.timed, lines.counted, lines.number = timed, base + timed, counted, number
        return at

    def _of_several(self, hints: tuple[int, ...]) -> tuple[Ask, ...] | None:
        """How the patterns are asked that speak for several hints of one line."""
        known = self._known.get(hints)
        if known is None:
            found = [self._plain[hint] for hint in hints]
            if None in found:
                return None
            every = {name: (ask, name) for asks in found for ask, name in asks or ()}
            known = self._known[hints] = tuple(every.values())
        return known

    def _laid_out(self, raw: str, layout: Layout) -> Head | None:
        """What the prefixes of a line say that has the layout of the last line with its hint, so that nothing need be
        looked for; None where it has another one, or words that were not read before."""
        at, begin, end = layout
        unwrapper = self._unwrapper
        clock, origin, own_us = unwrapper.clock, unwrapper.heads.get(raw[9:at]), None
        if origin is None or raw[0] != "[" or (transport_us := clock.time_of_day(raw[1:9])) is None:
            return None
        if begin == at:
            digits = raw[at + 20 : at + 23]
            own_us = clock.seconds.get(raw[at : at + 19])
            if (
                own_us is None
                or raw[at + 19 : at + 20] + raw[at + 23 : end] not in unwrapper.plain
                or not digits.isdecimal()
            ):
                return None
            own_us += int(digits) * 1000
        elif begin > 0:
            own_us = clock.days.get(raw[begin : begin + 14])
            if own_us is None or raw[at:begin] + raw[begin + 14 : end] not in unwrapper.plain:
                return None
        elif not _is_bare(raw, at):
            return None
        if own_us is not None and not -ODD_US < own_us - transport_us < ODD_US:
            return None
        if raw[end : end + 2] in _START_LETTERS and raw.startswith(STARTS, end):
            return None
        settled_us = clock.settle(transport_us, own_us)
        return end, settled_us, transport_us, origin

    def _head(self, raw: str, hint: int, next_to_read: bool) -> Head | None:
        """What the prefixes of a line say, all of whose words but the clocks were read before; None where they were
        not, and where the line must be told apart from content or from a beginning. A line without a time has that of
        the one before it, where that was just read."""
        if raw[9:16] == "] task=" and raw[0] == "[":
            bar = raw.find(" | ", 16, HEAD_LIMIT)
            at = raw.find(") ", bar, bar + HEAD_LIMIT) + 2 if raw[bar + 3 : bar + 4] == "(" else bar + 3
            if raw[9:at] not in self._unwrapper.heads:
                return None
            begin, end, own_us = self._speaker(raw, at)
            if begin >= 0 and own_us is None:
                return None
            self._layouts[hint] = at, begin, end
            return self._laid_out(raw, (at, begin, end))
        if "task=/" in raw:
            return None
        begin, end, own_us = self._speaker(raw, 0)
        if (own_us is None and (begin >= 0 or not next_to_read)) or raw.startswith(STARTS, end):
            return None
        settled_us = self._unwrapper.clock.settle(None, own_us)
        if settled_us is None:
            settled_us = self._unwrapper.clock.newest_us
        streamed_us = UNTIMED if settled_us is None else settled_us - self._ahead_us
        return end, settled_us, streamed_us, self._unwrapper.base

    def _speaker(self, raw: str, at: int) -> tuple[int, int, int | None]:
        """Where the clock of a speaker's prefix that begins at a place stands (-1 where there is no prefix), where the
        prefix ends, and its time; None where its words were not read before."""
        if _is_bare(raw, at):
            return -1, at, None
        begin = at if raw[at : at + 1] == "2" else raw.find(" ", at, at + LEVEL_LIMIT) + 1
        own_us, end = self._dated(raw, at) if begin == at else self._dated_by_day(raw, at, begin)
        return begin, end, own_us

    def _dated(self, raw: str, at: int) -> tuple[int | None, int]:
        """The time of loguru's prefix, which begins at a place, and where it ends."""
        unwrapper = self._unwrapper
        clock, second, digits = unwrapper.clock, raw[at : at + 19], raw[at + 20 : at + 23]
        end = raw.find(" - ", at + 23, at + HEAD_LIMIT) + 3
        if raw[at + 19 : at + 20] + raw[at + 23 : end] not in unwrapper.plain or not digits.isdecimal():
            return None, 0
        own_us = clock.seconds.get(second)
        if own_us is None and _SECOND.fullmatch(second):
            own_us = clock.full(second)
        return (None if own_us is None else own_us + int(digits) * 1000), end

    def _dated_by_day(self, raw: str, at: int, begin: int) -> tuple[int | None, int]:
        """The time of vLLM's prefix, which begins at a place, its clock at another, and where it ends."""
        unwrapper = self._unwrapper
        end = raw.find("] ", begin + 15, begin + HEAD_LIMIT) + 2
        if raw[at:begin] + raw[begin + 14 : end] not in unwrapper.plain:
            return None, 0
        clock, second = unwrapper.clock, raw[begin : begin + 14]
        own_us = clock.days.get(second)
        if own_us is None and (found := _SECOND_OF_DAY.fullmatch(second)):
            own_us = clock.month_day(int(found[1]), int(found[2]), found[3])
        return own_us, end


def _shows_a_beginning(line: bytes) -> bool:
    """Whether a line without its colours may begin a joined message: the scan sees no word that a colour tears."""
    return any(word in line for word in _INSIDE)


def _is_bare(raw: str, at: int) -> bool:
    """Whether a message without a prefix of its own begins at a place; a word in brackets (`[fd-monitor] …`) is part
    of one."""
    first = raw[at : at + 1]
    if first not in _BARE and (first != "[" or not raw[at + 1 : at + 2].islower() or raw.startswith(_BRACKETED, at)):
        return False
    return raw.find("] ", at + 20, at + TAG_LIMIT) < 0 or LABEL.match(raw, at) is None


def _asked(asks: tuple[Ask, ...], text: str) -> tuple[Any, str]:
    """What the first pattern that can read the payload says, and its name; (None, "") also where one fails."""
    try:
        for ask, name in asks:
            signal = ask(text)
            if signal is not None:
                kept.check(signal)
                return signal, name
    except Exception:
        return None, ""
    return None, ""
