"""How fast groups come where no bar counts them: the unified trainer (MarinSkyRL, 2026-07 on) prints none. A part of
the heartbeat tracker. Serves gate B rules 6 and 7.

Two measures stand in for the bar. A coordinator says of each group that it ended (`Batch generation complete`); Ray's
de-duplication folds such lines in the aggregated log, a coordinator's own file has them all, so each home counts for
itself. And the trainer says of each step's rollout batch when it began and when it had all its groups: while one is
open, fewer than it needs have come. Bounds: two homes, 10 s buckets of 10 min each; one batch.
"""

import msgspec

from extractors.record import Evidence, Observation
from extractors.trainer import RolloutBatch
from state.policy import GENERATION_WINDOW, SECOND_US

_BUCKET_US = 10 * SECOND_US
_WINDOW_US = int(GENERATION_WINDOW * SECOND_US)


class GroupPace(msgspec.Struct, frozen=True):
    """Groups that ended, as one home tells it: how many in the last 10 min, and groups per second at the attempt's best
    mean (over 10 min at least). evidence is the newest such line."""

    ended: int
    best_rate: float
    evidence: Evidence

    @property
    def recent_rate(self) -> float:
        """Groups per second over the last 10 min."""
        return self.ended / GENERATION_WINDOW


class OpenBatch(msgspec.Struct, frozen=True):
    """The step's rollout batch that began and has not all its groups. earlier_rate is that of the attempt's completed
    batches, in groups per second from one's end to the next one's, training included: less than what generation can."""

    step: int
    needed: int
    started_us: int
    evidence: Evidence
    earlier_rate: float | None


class Groups(msgspec.Struct):
    """The groups that one home tells of: the buckets of the last 10 min as [time, count], and all of the attempt."""

    first_us: int
    evidence: Evidence
    total: int = 0
    best_rate: float = 0.0
    buckets: list[list[int]] = []

    def add(self, seen: Observation) -> None:
        """Counts a line, with its de-duplicated copies."""
        bucket_us = seen.at_us - seen.at_us % _BUCKET_US
        if self.buckets and self.buckets[-1][0] == bucket_us:
            self.buckets[-1][1] += seen.repeated
        else:
            self.buckets.append([bucket_us, seen.repeated])
        self.total, self.evidence = self.total + seen.repeated, seen.evidence
        seconds = max((seen.at_us - self.first_us) / SECOND_US, GENERATION_WINDOW)
        self.best_rate = max(self.best_rate, self.total / seconds)

    def forget(self, now_us: int) -> None:
        """Lets buckets go that are older than the window."""
        while self.buckets and self.buckets[0][0] <= now_us - _WINDOW_US - _BUCKET_US:
            del self.buckets[0]

    def shown(self, now_us: int) -> GroupPace:
        """The pace as of now."""
        ended = sum(count for at_us, count in self.buckets if at_us > now_us - _WINDOW_US)
        return GroupPace(ended, self.best_rate, self.evidence)


class Batches(msgspec.Struct):
    """The open rollout batch, and the completed ones as two sums. A line that two homes hold counts once."""

    step: int = -1
    needed: int = 0
    started_us: int = 0
    evidence: Evidence | None = None
    since_us: int | None = None
    completed: int = -1
    groups: int = 0
    seconds: float = 0.0

    def fold(self, seen: Observation) -> None:
        """A batch began, or has all its groups."""
        said: RolloutBatch = seen.signal
        if not said.completed and said.step > max(self.step, self.completed):
            self.step, self.needed, self.started_us = said.step, said.groups or 0, seen.at_us
            self.evidence = seen.evidence
            self.since_us = seen.at_us if self.since_us is None else self.since_us
        elif said.completed and said.step > self.completed:
            if self.since_us is not None:
                self.groups += said.groups or self.needed
                self.seconds += (seen.at_us - self.since_us) / SECOND_US
            self.completed, self.since_us, self.evidence = said.step, seen.at_us, None

    def shown(self) -> OpenBatch | None:
        """The open batch, None where none is known to be open."""
        if self.evidence is None or not self.needed:
            return None
        rate = self.groups / self.seconds if self.groups and self.seconds > 0 else None
        return OpenBatch(self.step, self.needed, self.started_us, self.evidence, rate)
