"""When a file came into the job's stream: at its first line that has a time, whatever it says.

A live run meets a file when its first lines come, a replay has it from the start; both must tell of it at one time.
"""

from extractors.clocks import Clock
from extractors.extract import Reader
from extractors.layers import Unwrapper
from extractors.record import Block, Observation

LINES = 64
"""Lines of a file that are looked at; a file without a time in them begins with its first signal, or with its reader's
anchor."""


class Beginning:
    """Looks for the beginning of one file. Its clock is its own, so that looking ahead moves no other."""

    def __init__(self, reader: Reader, anchor_us: int) -> None:
        self._reader = reader
        self._unwrapper = Unwrapper(Clock(anchor_us, reader.unwrapper.clock.ahead_us), reader.unwrapper.base)
        self._looked = 0
        self._found_us: int | None = None
        self._told = False

    def of(self, block: Block, run: list[Observation]) -> int | None:
        """The time of the beginning, once, when this block and what it says show it; else None."""
        if self._told:
            return None
        if self._found_us is None and self._looked < LINES:
            self._look(block)
        if self._found_us is None and not run and self._looked < LINES:
            return None
        return self.at_us(run)

    def at_us(self, run: list[Observation]) -> int | None:
        """The time of the beginning as far as it is known; None where it was told."""
        if self._told:
            return None
        self._told = True
        known = [each for each in (self._found_us, run[0].at_us if run else None) if each is not None]
        return min(known, default=self._reader.time_of(""))

    def _look(self, block: Block) -> None:
        data, start = block.data, 0
        while self._found_us is None and self._looked < LINES and start <= len(data):
            end = data.find(b"\n", start)
            end = len(data) if end < 0 else end
            self._looked += 1
            line = self._unwrapper.unwrap(data[start:end].decode("utf-8", "replace"))
            self._found_us, start = self._reader.streamed(line), end + 1
