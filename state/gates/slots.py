"""How an exception lies over the 10-minute slots of the attempt: does it prevail, or did it come in one burst?

Serves gate C rules 3–6. A rate over the whole attempt forgets an outage that began late; the newest three slots,
each full of it, remember it. Two slots would not do: a burst may straddle the border between them.
"""

from collections.abc import Callable
from dataclasses import dataclass

from extractors.record import Evidence
from state.case import Case
from state.exceptions import is_infrastructure
from state.policy import (
    BURST_NOTED,
    BURST_SHARE,
    CLEAN_SHARE,
    ENDED_FEWEST,
    PRESENT_FEWEST,
    PRESENT_SHARE,
    PREVAILING_SLOTS,
    SECOND_US,
    SLOT,
)
from state.trackers.bursts import CountedFrom, Slot
from state.wording import clock, plural, slot_said

SLOT_US = int(SLOT * SECOND_US)

Counted = Callable[[Slot], int]


@dataclass(frozen=True, slots=True)
class Prevalence:
    """hits of `of` attempts in these slots."""

    hits: int
    of: int
    slots: tuple[Slot, ...]

    @property
    def since(self) -> str:
        """When the first of the slots began, in words."""
        return clock(self.slots[0].from_us)


@dataclass(frozen=True, slots=True)
class Burst:
    """count of an exception's total in one slot (or in two that touch), with clean attempts before or after."""

    exception: str
    count: int
    total: int
    from_us: int
    slots: int
    before: bool
    after: bool

    @property
    def said(self) -> str:
        """The burst in words."""
        sides = [word for word, clean in (("before", self.before), ("after", self.after)) if clean]
        count = f"{self.count}" if self.count == self.total else f"{self.count} of {self.total}"
        return (
            f"{count} {self.exception} {'sits' if self.count == 1 else 'sit'} in "
            f"{plural(self.slots, 'slot')} ({slot_said(self.from_us, self.slots)}), clean {' and '.join(sides)}: "
            "a transient burst"
        )


def hits_of(exception: str) -> Counted:
    """Counts one exception of a slot."""
    return lambda slot: slot.exceptions.get(exception, 0)


def all_ended(slot: Slot) -> int:
    """Counts a slot's attempts."""
    return slot.ended


def prevalence(case: Case, hits: Counted, share: float, of: Counted = all_ended) -> Prevalence | None:
    """Where hits make up this share of at least 20 attempts: over all of the job's present attempt, or over each of
    its newest three slots. None where neither holds, or where no trial was opened."""
    slots = case.bursts.attempt
    if case.bursts.source is not CountedFrom.TRIALS:
        return None
    newest = slots[-PREVAILING_SLOTS:]
    if _makes_up(slots, hits, share, of):
        return _prevalence(slots, hits, of)
    full = len(newest) == PREVAILING_SLOTS and all(of(slot) and hits(slot) >= share * of(slot) for slot in newest)
    return _prevalence(newest, hits, of) if full and _makes_up(newest, hits, share, of) else None


def present_slots(prevailing: Prevalence, hits: Counted) -> int:
    """In how many of the slots the exception is present; the stragglers of one full slot are none beside it."""
    fullest = max(map(hits, prevailing.slots), default=0)
    return sum(hits(slot) >= max(PRESENT_FEWEST, PRESENT_SHARE * fullest) for slot in prevailing.slots)


def burst_of(slots: tuple[Slot, ...], exception: str, width: int = 1) -> Burst | None:
    """The burst that holds at least 80 % of an exception in `width` touching slots; None where it is spread wider, or
    where no clean attempts stand before or after it."""
    hits = hits_of(exception)
    total = sum(map(hits, slots))
    if not total:
        return None
    start = max(slots, key=lambda slot: sum(map(hits, _touching(slots, slot.from_us, width)))).from_us
    held = _touching(slots, start, width)
    count = sum(map(hits, held))
    before = _clean([slot for slot in slots if slot.from_us < start], hits)
    after = _clean([slot for slot in slots if slot.from_us >= start + width * SLOT_US], hits)
    if count < BURST_SHARE * total or not (before or after):
        return None
    return Burst(exception, count, total, start, width, before, after)


def noted_bursts(case: Case) -> tuple[Burst, ...]:
    """The bursts of infrastructure exceptions (five or more) that are worth a word, in time."""
    slots = case.bursts.attempt
    names = {name for slot in slots for name in slot.exceptions if is_infrastructure(name)}
    found = (burst_of(slots, name) or burst_of(slots, name, width=2) for name in sorted(names))
    return tuple(sorted((b for b in found if b and b.count >= BURST_NOTED), key=lambda burst: burst.from_us))


def burst_evidence(case: Case, bursts: tuple[Burst, ...]) -> tuple[Evidence, ...]:
    """A file that was opened for each burst."""
    counted = case.rollouts.exceptions
    return tuple(counted[burst.exception].first for burst in bursts if burst.exception in counted)


def _makes_up(slots: tuple[Slot, ...], hits: Counted, share: float, of: Counted) -> bool:
    whole = sum(map(of, slots))
    return whole >= ENDED_FEWEST and sum(map(hits, slots)) >= share * whole


def _prevalence(slots: tuple[Slot, ...], hits: Counted, of: Counted) -> Prevalence:
    return Prevalence(sum(map(hits, slots)), sum(map(of, slots)), slots)


def _touching(slots: tuple[Slot, ...], start: int, width: int) -> list[Slot]:
    return [slot for slot in slots if start <= slot.from_us < start + width * SLOT_US]


def _clean(slots: list[Slot], hits: Counted) -> bool:
    ended = sum(slot.ended for slot in slots)
    return ended > 0 and sum(map(hits, slots)) <= CLEAN_SHARE * ended
