"""When a file came into the job's stream: at its first line that has a time, whatever it says.

A live run meets a file when its first lines come, a replay has it from the start; both must tell of it at one time.
"""

import re
from typing import Any

from extractors.clocks import Clock, parse_iso
from extractors.extract import Reader
from extractors.layers import Unwrapper
from extractors.record import Block, Observation

_OWN_TIME = re.compile(
    rb"^(?:\[(?P<transport>\d\d:\d\d):\d\d\] task=[^\n]{0,400}?[ m](?P<said>20\d\d-\d\d-\d\d)[ T](?P<at>\d\d:\d\d):\d\d"
    rb"|[IWEF](?P<year>20\d\d)(?P<month>\d\d)(?P<day>\d\d) (?P<klog>\d\d:\d\d):\d\d"
    rb"|(?P<date>20\d\d-\d\d-\d\d)[ T](?P<time>\d\d:\d\d):\d\d)",
    re.MULTILINE,
)
"""A line that begins with a date, or whose speaker's date stands beside the same minute of the transport's clock: none
that is merely spoken of."""
_HEAD_BYTES = 16_384
LINES = 64
"""Lines of a file that are looked at; a file without a time in them begins with its first signal. One without either
is known from its end alone."""


def own_time_us(data: bytes) -> int | None:
    """The first minute that a log's first lines give with a date; None where they give none."""
    for found in _OWN_TIME.finditer(data, 0, _HEAD_BYTES):
        if found["said"] and found["transport"] != found["at"]:
            continue
        date = found["said"] or found["date"] or b"-".join(found.group("year", "month", "day"))
        minute = found["at"] or found["time"] or found["klog"]
        if (at_us := parse_iso(f"{date.decode()} {minute.decode()}:00")) is not None:
            return at_us
    return None


class Beginning:
    """Looks for the beginning of one file. Its clock is its own, so that looking ahead moves no other."""

    def __init__(self, reader: Reader, anchor_us: int) -> None:
        self._reader = reader
        self._unwrapper = Unwrapper(Clock(anchor_us, reader.unwrapper.clock.ahead_us), reader.unwrapper.base)
        self._looked = 0
        self._found_us: int | None = None
        self._told = False

    def __getstate__(self) -> tuple[Any, ...]:
        return self._reader, self._unwrapper.clock, self._unwrapper.base, self._looked, self._found_us, self._told

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._reader, clock, base, self._looked, self._found_us, self._told = state
        self._unwrapper = Unwrapper(clock, base)

    def begin_near(self, anchor_us: int) -> None:
        """The file's first lines are near this moment after all."""
        self._unwrapper.clock.anchor_us = anchor_us

    def of(self, block: Block | None, run: list[Observation]) -> int | None:
        """The time of the beginning, once, when this block (None at the end) and what it says show it; else None."""
        if self._told:
            return None
        if self._found_us is None and self._looked < LINES and block is not None:
            self._look(block)
        known = [each for each in (self._found_us, run[0].at_us if run else None) if each is not None]
        self._told = bool(known)
        return min(known, default=None)

    def _look(self, block: Block) -> None:
        data, start = block.data, 0
        while self._found_us is None and self._looked < LINES and start < len(data):
            end = data.find(b"\n", start)
            end = len(data) if end < 0 else end
            self._looked += 1
            line = self._unwrapper.unwrap(data[start:end].decode("utf-8", "replace"))
            self._found_us, start = self._reader.streamed(line), end + 1
