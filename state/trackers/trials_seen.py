"""Which trials began and ended, so that each life of a trial counts once.

A trial may lie in two homes, its exception.txt comes before its result.json, and a retry uses its name again: it is a
second life only when it began after its end. Names are kept as checksums.
"""

from zlib import crc32

import msgspec

from extractors.record import Observation
from state.policy import SECOND_US
from state.progress import HEARD_WITHIN, own_us

OPEN_HELD = 4096
ENDED_HELD = 512


class TrialsSeen(msgspec.Struct):
    """open and ended map a trial to the time it began and ended. Bounded by 4,096 open trials, 512 ended ones.
    since_us is when this attempt of the job began, None for the first one."""

    open: dict[int, int] = {}
    ended: dict[int, int] = {}
    since_us: int | None = None

    def of_an_earlier_life(self, at_us: int) -> bool:
        """Whether what happened then, and is read only now, belongs to an attempt before this one."""
        return self.since_us is not None and at_us < self.since_us

    def unknown(self, trial: str) -> bool:
        """Whether neither a start nor an end of this trial is remembered."""
        key = checksum(trial)
        return key not in self.open and key not in self.ended

    def is_open(self, trial: str) -> bool:
        """Whether this trial has begun and not ended."""
        return checksum(trial) in self.open

    def starts(self, trial: str, at_us: int, dated: bool = True) -> bool:
        """Remembers a start; false where this life of the trial is known. A start whose files do not date it begins
        no second life: it may be the first one's, read in another home."""
        key = checksum(trial)
        if key in self.open or (key in self.ended and (not dated or at_us <= self.ended[key])):
            return False
        self.open[key] = at_us
        _keep_newest(self.open, OPEN_HELD)
        return True

    def ends(self, trial: str, at_us: int) -> bool:
        """Remembers an end; false where this life of the trial has ended before."""
        key = checksum(trial)
        if self.open.pop(key, None) is None and key in self.ended:
            return False
        self.ended.pop(key, None)
        self.ended[key] = at_us
        _keep_newest(self.ended, ENDED_HELD)
        return True


def trials_of_attempt(seen: Observation) -> TrialsSeen:
    """No trials yet, of the attempt that this AttemptStarted begins."""
    return TrialsSeen(since_us=seen.at_us if seen.signal.number else None)


def begun_us(seen: Observation) -> int:
    """When a trial began, of its TrialStarted: as its files say, else when its config came."""
    said: int | None = seen.signal.started_us
    return own_us(seen) if said is None or said > seen.at_us + HEARD_WITHIN * SECOND_US else said


def checksum(trial: str) -> int:
    """A small stable number for a trial's name (crc32: of hundreds of names, two alike are one in ten thousand)."""
    return crc32(trial.encode())


def _keep_newest(held: dict[int, int], bound: int) -> None:
    while len(held) > bound:
        del held[next(iter(held))]
