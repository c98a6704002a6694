"""The effective times of one file's observations: each line's own, but never before the file's newest.

A clock that jumps forward alone (a broken date among good ones) would hold all that follows at its time, so a jump is
weighed against the lines behind it in the same block.
"""

from itertools import islice
from operator import sub

from extractors.clocks import HOUR_US, MONTH_US
from extractors.record import Observation

UNTIMED = -1
"""The effective time of an observation whose line has no time, before it is settled."""
LOOKED_AHEAD = 32


class Ordering:
    """Settles the times of one file. anchor_us is what stands before the file has shown any; late counts the lines that
    were held at the file's newest time."""

    def __init__(self, anchor_us: int) -> None:
        self.late = 0
        self._anchor_us = anchor_us
        self._newest_us: int | None = None

    @property
    def newest_us(self) -> int | None:
        """The newest time that was settled; None before the first."""
        return self._newest_us

    def settled(self, found: list[Observation]) -> list[Observation]:
        """The observations of a block with their effective times."""
        if self._runs_well([each.at_us for each in found]):
            return found
        for number, observation in enumerate(found):
            at_us, newest = observation.at_us, self._newest_us
            if newest is None or at_us < newest or at_us - newest > HOUR_US:
                at_us = self._odd(found, number, newest)
            self._newest_us = at_us
            if at_us != observation.at_us:
                found[number] = observation.moved(at_us)
        return found

    def _runs_well(self, times: list[int]) -> bool:
        """Whether a block's times are all as they should be, as those of most blocks are."""
        if not times or times[0] < 0 or times != sorted(times):
            return False
        newest = times[0] if self._newest_us is None else self._newest_us
        if times[0] < newest:
            return False
        if times[-1] - newest > HOUR_US and max(map(sub, times, (newest, *times))) > HOUR_US:
            return False
        self._newest_us = times[-1]
        return True

    def time_of(self, at_us: int | None) -> int:
        """The effective time of a line that is no observation (the file's last one)."""
        known = [each for each in (self._newest_us, at_us) if each is not None]
        self._newest_us = max(known, default=self._anchor_us)
        return self._newest_us

    def _odd(self, found: list[Observation], number: int, newest: int | None) -> int:
        """The effective time of a line without a time, of one that runs backwards or far ahead, and of the first one:
        no job prints a line a month before all others."""
        at_us = found[number].at_us
        if at_us == UNTIMED:
            return self._anchor_us if newest is None else newest
        if newest is not None and at_us < newest:
            self.late += 1
            return newest
        following = [each.at_us for each in islice(found, number + 1, number + 1 + LOOKED_AHEAD)]
        timed = [later for later in following if later != UNTIMED]
        if runs_ahead(at_us, timed):
            self.late += 1
            return newest if newest is not None else min(timed)
        far = [later for later in timed if later > at_us + MONTH_US]
        return min(far) if newest is None and 2 * len(far) > len(timed) else at_us


def runs_ahead(at_us: int, following: list[int]) -> bool:
    """Whether a clock that jumped forward was wrong to: most of what follows it is earlier again by over an hour."""
    return sum(1 if later < at_us - HOUR_US else -1 for later in following) > 0
