"""What the attempts spend their time on, from the timings in their own files (GATES, Duty cycle).

The word churn needs numbers: a setup tail above 10 s, or a sandbox life cycle above 10 % of the trial, outside the
first slot after a start, which is provisioning.
"""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import msgspec

from extractors.harbor_trials import TrialEnded, TrialStarted, TrialTiming
from extractors.record import Evidence, Observation
from state.policy import CHURN_SETUP_SECONDS, CHURN_SHARE, SECOND_US, slot_of
from state.progress import own_us
from state.tracker import AttemptStarted, Tracker
from state.trackers.trials_seen import TrialsSeen, begun_us, trials_of_attempt

NEWEST = 200


class Spread(msgspec.Struct, frozen=True):
    """How a quantity is spread over the trials."""

    median: float
    p10: float
    p90: float
    max: float


class DutyCycleView(msgspec.Struct, frozen=True):
    """shares maps `llm`, `tool`, `lifecycle`, `verifier` and `idle` to the spread of their part (0–1) of a trial's
    wall time, over the newest 200 trials with timings; setup_seconds is the sandbox setup's spread.

    release_races counts verifiers that finished after their trial had. settled_* are the same over trials that began
    after the first slot, None where there is none yet. newest is the newest trial that was read.
    """

    trials: int = 0
    shares: dict[str, Spread] = {}
    setup_seconds: Spread | None = None
    release_races: int = 0
    settled_setup_seconds: Spread | None = None
    settled_lifecycle: Spread | None = None
    newest: Evidence | None = None

    @property
    def churn(self) -> str:
        """Real churn of sandboxes in words with its numbers, empty where the numbers show none (or are not there)."""
        setup, lifecycle = self.settled_setup_seconds, self.settled_lifecycle
        signs = []
        if setup is not None and setup.p90 > CHURN_SETUP_SECONDS:
            signs.append(f"setup takes {setup.p90:.0f} s at p90 after the first slot")
        if lifecycle is not None and lifecycle.median > CHURN_SHARE:
            signs.append(f"the life cycle takes {lifecycle.median:.0%} of a trial after the first slot")
        return " and ".join(signs)

    def record(self) -> dict[str, Any] | None:
        """The duty cycle as the outside contract has it; None where no trial gave timings."""
        if not self.trials:
            return None
        return {
            "trials": self.trials,
            "shares": {name: msgspec.to_builtins(spread) for name, spread in self.shares.items()},
            "setup_seconds": msgspec.to_builtins(self.setup_seconds),
            "release_races": self.release_races,
        }


class Timed(msgspec.Struct, frozen=True):
    """One trial's timing, and the start of the slot that it began in."""

    timing: TrialTiming
    slot: int


class DutyCycleTracker(Tracker):
    """Holds the newest 200 timings of this attempt; unshown is the evidence of the newest that the view lacks.
    first_slot is the first slot in which a trial is known to have begun: its sandboxes were being provisioned."""

    newest: list[Timed] = msgspec.field(default_factory=list)
    first_slot: int | None = None
    seen: TrialsSeen = msgspec.field(default_factory=TrialsSeen)
    shown: DutyCycleView = DutyCycleView()
    unshown: Evidence | None = None

    def trial_started(self, seen: Observation) -> None:
        """A trial began, perhaps once more. A start that its files date may be the attempt's first."""
        dated, at_us = seen.signal.started_us is not None, begun_us(seen)
        if self.seen.of_an_earlier_life(at_us):
            return
        begins = self.seen.starts(seen.signal.trial, at_us, dated)
        if dated and (begins or self.seen.is_open(seen.signal.trial)):
            self._began(slot_of(at_us))

    def trial_ended(self, seen: Observation) -> None:
        """A trial's file gives its timing, or does not."""
        ended: TrialEnded = seen.signal
        timing, ended_us = ended.timing, own_us(seen)
        if timing is None or not timing.total or self.seen.of_an_earlier_life(ended_us):
            return
        if not self.seen.ends(ended.trial, ended_us):
            return
        slot = slot_of(ended_us - round(timing.total * SECOND_US))
        self._began(slot)
        self.newest.append(Timed(timing, slot))
        del self.newest[:-NEWEST]
        self.unshown = seen.evidence

    def attempt_started(self, seen: Observation) -> None:
        """A new life of the job: its own provisioning, its own figures."""
        self.newest, self.first_slot, self.seen = [], None, trials_of_attempt(seen)
        self.unshown, self.shown = None, DutyCycleView()

    def view(self) -> DutyCycleView:
        """The figures as they stand. They are counted once a beat: thousands of trials may end in one."""
        if self.unshown is not None:
            self.shown, self.unshown = _shown(self.newest, self.first_slot, self.unshown), None
        return self.shown

    def _began(self, slot: int) -> None:
        self.first_slot = slot if self.first_slot is None else min(self.first_slot, slot)

    FOLDS: ClassVar[dict[type, Any]] = {
        TrialStarted: trial_started,
        TrialEnded: trial_ended,
        AttemptStarted: attempt_started,
    }


def _lifecycle(timing: TrialTiming) -> float | None:
    parts = [part for part in (timing.setup, timing.teardown) if part is not None]
    return sum(parts) if parts else None


def _idle(timing: TrialTiming) -> float | None:
    parts = (timing.llm, timing.tool, _lifecycle(timing), timing.verifier)
    if timing.total is None or any(part is None for part in parts):
        return None
    return max(0.0, timing.total - sum(part for part in parts if part is not None))


_PARTS: dict[str, Callable[[TrialTiming], float | None]] = {
    "llm": lambda timing: timing.llm,
    "tool": lambda timing: timing.tool,
    "lifecycle": _lifecycle,
    "verifier": lambda timing: timing.verifier,
    "idle": _idle,
}


def _shown(newest: list[Timed], first_slot: int | None, evidence: Evidence) -> DutyCycleView:
    timings = [timed.timing for timed in newest]
    settled = [timed.timing for timed in newest if timed.slot != first_slot]
    shares = {name: _share(timings, part) for name, part in _PARTS.items()}
    return DutyCycleView(
        trials=len(timings),
        shares={name: spread for name, spread in shares.items() if spread is not None},
        setup_seconds=spread_of(timing.setup for timing in timings),
        release_races=sum(timing.release_race for timing in timings),
        settled_setup_seconds=spread_of(timing.setup for timing in settled),
        settled_lifecycle=_share(settled, _lifecycle),
        newest=evidence,
    )


def _share(timings: list[TrialTiming], part: Callable[[TrialTiming], float | None]) -> Spread | None:
    parts = ((part(timing), timing.total) for timing in timings)
    return spread_of(min(1.0, used / total) for used, total in parts if used is not None and total)


def spread_of(values: Iterable[float | None]) -> Spread | None:
    """The spread of the known values, interpolated between neighbours; None where none is known."""
    known = sorted(value for value in values if value is not None)
    if not known:
        return None
    return Spread(_quantile(known, 0.5), _quantile(known, 0.1), _quantile(known, 0.9), round(known[-1], 4))


def _quantile(known: list[float], part: float) -> float:
    at = part * (len(known) - 1)
    lower = int(at)
    upper = min(lower + 1, len(known) - 1)
    return round(known[lower] + (known[upper] - known[lower]) * (at - lower), 4)
