"""Exceptions of trials per 10-minute slot (GATES, Gate C rules 4 and 5): steady, or one burst?

A slot is a key in a dict. Trials' own files are the first source; where none was read, the generator's log lines say
the same with less; the two are never added.
"""

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from typing import Any, ClassVar

import msgspec

from extractors.clocks import write_iso
from extractors.harbor import BatchCompleted, TrajectoryFailed
from extractors.harbor_trials import TrialEnded, TrialStarted
from extractors.record import Observation
from state.policy import slot_of
from state.progress import own_us
from state.tracker import AttemptStarted, Tracker
from state.trackers.trials_seen import TrialsSeen, begun_us, trials_of_attempt

NEWEST = 500
"""Ended trials that the reported slots count."""
SLOTS_HELD = 288
"""Slots that are held for the rules: two days of an attempt."""
CLEAN = ""
"""Stands for «no exception» where exceptions are counted by name."""
UNNAMED = "(unnamed)"


class CountedFrom(StrEnum):
    """What the slots were counted from."""

    NOTHING = "nothing"
    TRIALS = "trials"
    LOG = "log"


class Slot(msgspec.Struct, frozen=True):
    """Ten minutes from from_us on: how many attempts ended in them, and with which exceptions."""

    from_us: int
    ended: int
    exceptions: dict[str, int]

    def share(self, exception: str) -> float:
        """The part of the slot's attempts that ended with this exception."""
        return self.exceptions.get(exception, 0) / self.ended


class BurstsView(msgspec.Struct, frozen=True):
    """slots counts the newest 500 ended trials (CONTRACT §3); attempt counts all of this attempt, up to two days.
    Both are in time, without empty slots."""

    slots: tuple[Slot, ...] = ()
    attempt: tuple[Slot, ...] = ()
    source: CountedFrom = CountedFrom.NOTHING

    def record(self) -> list[dict[str, Any]] | None:
        """The slots as the outside contract has them; None where nothing was counted."""
        if not self.slots:
            return None
        return [
            {"from": write_iso(slot.from_us), "ended": slot.ended, "exceptions": slot.exceptions} for slot in self.slots
        ]


class Count(msgspec.Struct):
    """Ends by slot and exception: of the attempt, and the newest 500 one by one."""

    by_slot: dict[int, dict[str, int]] = {}
    newest: list[tuple[int, str]] = []

    def add(self, slot: int, exception: str) -> None:
        """One more attempt ended."""
        held = self.by_slot.setdefault(slot, {})
        held[exception] = held.get(exception, 0) + 1
        if len(self.by_slot) > SLOTS_HELD:
            del self.by_slot[min(self.by_slot)]
        self.newest.append((slot, exception))
        del self.newest[:-NEWEST]


class BurstsTracker(Tracker):
    """Counts ends per slot. Bounded by 288 slots and the newest 500 ends. shown is None until they are counted anew."""

    trials: Count = msgspec.field(default_factory=Count)
    logged: Count = msgspec.field(default_factory=Count)
    seen: TrialsSeen = msgspec.field(default_factory=TrialsSeen)
    shown: BurstsView | None = BurstsView()

    def trial_started(self, seen: Observation) -> None:
        """A trial began, perhaps once more."""
        self.seen.starts(seen.signal.trial, begun_us(seen), seen.signal.started_us is not None)

    def trial_ended(self, seen: Observation) -> None:
        """A trial's own file gives its end."""
        ended: TrialEnded = seen.signal
        ended_us = own_us(seen)
        if not self.seen.of_an_earlier_life(ended_us) and self.seen.ends(ended.trial, ended_us):
            self.trials.add(slot_of(ended_us), ended.exception or CLEAN)
            self.shown = None

    def trajectory_failed(self, seen: Observation) -> None:
        """The generator's log tells of an attempt that ended with an exception (Ray may have folded copies of it)."""
        self._logged(seen, seen.signal.exception or UNNAMED, seen.repeated)

    def batch_completed(self, seen: Observation) -> None:
        """The generator's log tells of attempts that ended well; those that did not have their own lines."""
        self._logged(seen, CLEAN, min(seen.signal.successful, NEWEST))

    def attempt_started(self, seen: Observation) -> None:
        """A new life of the job: nothing of the old one counts."""
        self.trials, self.logged, self.seen, self.shown = Count(), Count(), trials_of_attempt(seen), BurstsView()

    def view(self) -> BurstsView:
        """The slots as they stand."""
        if self.shown is None:
            source, count = (CountedFrom.TRIALS, self.trials) if self.trials.newest else (CountedFrom.LOG, self.logged)
            self.shown = BurstsView(_slots(_counted(count.newest)), _slots(count.by_slot), source)
        return self.shown

    def _logged(self, seen: Observation, exception: str, times: int) -> None:
        for _ in range(times):
            self.logged.add(slot_of(own_us(seen)), exception)
        if not self.trials.newest:
            self.shown = None

    FOLDS: ClassVar[dict[type, Any]] = {
        TrialStarted: trial_started,
        TrialEnded: trial_ended,
        TrajectoryFailed: trajectory_failed,
        BatchCompleted: batch_completed,
        AttemptStarted: attempt_started,
    }


def _counted(ends: Iterable[tuple[int, str]]) -> dict[int, dict[str, int]]:
    by_slot: dict[int, dict[str, int]] = {}
    for (slot, exception), times in Counter(ends).items():
        by_slot.setdefault(slot, {})[exception] = times
    return by_slot


def _slots(by_slot: dict[int, dict[str, int]]) -> tuple[Slot, ...]:
    return tuple(
        Slot(start, sum(held.values()), {name: count for name, count in sorted(held.items()) if name != CLEAN})
        for start, held in sorted(by_slot.items())
    )
