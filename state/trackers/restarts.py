"""The restart ledger: how many attempts burned, of what, and whether they died the same way (GATES, Restart ledger).

Bound: the newest 32 ended attempts; the errors of the current one (a tracker of its own).
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from extractors.fingerprint import fingerprint
from extractors.metrics import StepMetrics
from extractors.polls import JobState, PodsPolled, StatePolled
from extractors.record import Evidence, Observation
from extractors.signal import Fault, Teardown
from extractors.trainer import CheckpointSaved, Resumed, StepCompleted, StepsPlanned, TrainingDone
from state.causality import by_unknown_hand
from state.causes import CAUSES, Transient
from state.progress import PROGRESS
from state.tracker import AttemptStarted, ShowingTracker, Tracker
from state.trackers.facts import JobDeclared
from state.trackers.fault_list import FaultEvent
from state.trackers.faults import FaultsTracker

ENDED_KEPT = 32
EVICTING = frozenset({"external_signal", "preempted"})
WALL_CLOCK = "wall_clock"


class RestartPattern(StrEnum):
    """What the ended attempts have in common."""

    NONE = "none"
    SAME_FAILURE = "same-failure"
    DIFFERENT_FAILURES = "different-failures"
    TRANSIENT_RECOVERED = "transient-recovered"
    UNKNOWN = "unknown"


class Ending(StrEnum):
    """How an attempt ended."""

    DIED = "died"
    EVICTED = "evicted"
    TIMED_OUT = "timed_out"
    COMPLETED = "completed"


class AttemptEnd(msgspec.Struct, frozen=True):
    """One ended attempt. cause is a code, "" where unknown; step the furthest step that it banked."""

    number: int
    ended_us: int
    ending: Ending
    cause: str = ""
    fingerprint: str = ""
    step: int = 0
    evidence: tuple[Evidence, ...] = ()


class RestartsView(msgspec.Struct, frozen=True):
    """burned of max (None: not said). fingerprint is the newest ended attempt's. attempts are the ended ones, oldest
    first, the current one included once it has ended the job; attempt is the current number. recovered_us is when this
    attempt banked its first step past the furthest one where one died."""

    burned: int = 0
    max: int | None = None
    remaining: int | None = None
    pattern: RestartPattern = RestartPattern.NONE
    fingerprint: str = ""
    evidence: tuple[Evidence, ...] = ()
    attempts: tuple[AttemptEnd, ...] = ()
    attempt: int = 0
    recovered_us: int | None = None


class RestartsTracker(ShowingTracker):
    """An attempt is closed when the next one starts; a job that is over closes its last one for the view only, as a
    scheduler may still requeue it. Attempts that ended before the first line on file are counted, their cause unknown.
    """

    number: int = 0
    ended: list[AttemptEnd] = []
    unseen: int = 0
    faults: FaultsTracker = msgspec.field(default_factory=FaultsTracker)
    state: StatePolled | None = None
    state_us: int | None = None
    state_evidence: Evidence | None = None
    preempted: bool = False
    timed_out: bool = False
    preemptions_before: int = 0
    maximum: int | None = None
    step: int = 0
    resumed: int = 0
    planned: int | None = None
    progressed: bool = False
    done: bool = False
    seen: bool = False
    over: bool = False
    recovered_us: int | None = None
    shown: RestartsView | None = None

    def _polled(self, observation: Observation) -> None:
        polled: StatePolled = observation.signal
        if polled.state is JobState.ABSENT:
            return
        self.seen, self.over = True, polled.state.over
        self._preempted_before(polled)
        changed = self.state is None or self.state != polled
        self.state, self.state_us, self.state_evidence = polled, observation.at_us, observation.evidence
        self.preempted |= polled.state is JobState.PREEMPTED
        self.timed_out |= polled.state is JobState.TIMED_OUT
        if changed or polled.state.over:
            self.shown = None

    def _preempted_before(self, polled: StatePolled) -> None:
        """A count of pre-emptions that rose alone since the last poll before this attempt is of the attempt before,
        whose end the count only now tells."""
        known, ended = self.state, self.ended[-1] if self.ended else None
        if known is None or ended is None or (self.state_us or 0) > ended.ended_us:
            return
        risen = (polled.preemptions or 0) > self.preemptions_before
        if risen and polled.failures == known.failures and ended.ending is Ending.DIED:
            self.ended[-1] = msgspec.structs.replace(ended, ending=Ending.EVICTED)
            self.preemptions_before = polled.preemptions or 0

    def _stepped(self, observation: Observation) -> None:
        self._moved(observation)
        if getattr(observation.signal, "kind", "train") == "train" and observation.signal.step > self.step:
            self.step, self.shown = observation.signal.step, None
            self._recovers(observation.at_us)

    def _recovers(self, at_us: int) -> None:
        burned = [end for end in self.ended if self._burned(end, last=False)]
        if self.recovered_us is None and burned and self._is_past(burned):
            self.recovered_us = at_us

    def _moved(self, observation: Observation) -> None:
        self.seen = True
        if not self.progressed:
            self.progressed, self.shown = True, None

    def _resumed(self, observation: Observation) -> None:
        self.resumed = observation.signal.step

    def _planned(self, observation: Observation) -> None:
        self.planned = observation.signal.total

    def _declared(self, observation: Observation) -> None:
        facts = observation.signal.facts
        self.maximum, self.planned, self.shown = facts.max_retries, facts.max_steps or self.planned, None

    def _done(self, observation: Observation) -> None:
        self._moved(observation)
        self.done, self.shown = True, None

    def _attempt(self, observation: Observation) -> None:
        started: AttemptStarted = observation.signal
        if self.seen:
            self.ended = [*self.ended, self._end(observation.at_us)][-ENDED_KEPT:]
            self.unseen += started.number - self.number - 1
        else:
            self.unseen += started.number - self.number
        self.number = started.number
        self.preemptions_before = (self.state.preemptions or 0) if self.state is not None else 0
        self.preempted = self.timed_out = self.progressed = self.done = self.over = False
        self.step = self.resumed = 0
        self.recovered_us = None
        self.faults._attempt(observation)
        self.shown = None

    def _end(self, at_us: int) -> AttemptEnd:
        """The current attempt as it ended."""
        first = self.faults.view().first
        if first and self.over and self.state and by_unknown_hand(first, self.state.exit_code):
            first = None
        return AttemptEnd(
            number=self.number,
            ended_us=at_us,
            ending=self._ending(first),
            cause=first.fault.cause if first else "",
            fingerprint=fingerprint(first.fault) if first else "",
            step=max(self.step, self.resumed),
            evidence=first.sources[:2] if first else (),
        )

    def _ending(self, first: FaultEvent | None) -> Ending:
        preemptions = (self.state.preemptions or 0) if self.state is not None else 0
        if self.preempted or preemptions > self.preemptions_before or (first and first.fault.cause in EVICTING):
            return Ending.EVICTED
        if self.timed_out or (first and first.fault.cause == WALL_CLOCK):
            return Ending.TIMED_OUT
        finished = self.done or (self.planned is not None and self.step >= self.planned)
        succeeded = self.state is not None and self.state.state is JobState.SUCCEEDED
        return Ending.COMPLETED if finished and succeeded else Ending.DIED

    def view(self) -> RestartsView:
        """The ledger as it stands."""
        if self.shown is None:
            self.shown = self._ledger()
        return self.shown

    def parts(self) -> Mapping[str, Tracker]:
        """The errors of the attempt, by which its end is told."""
        return {"faults": self.faults}

    def snapshot(self) -> bytes:
        """This memory as msgpack bytes, without views."""
        self.faults.shown = None
        return super().snapshot()

    def _ledger(self) -> RestartsView:
        ended = (*self.ended, self._end(self.state_us or 0)) if self.over else tuple(self.ended)
        burned_ends = [end for place, end in enumerate(ended) if self._burned(end, last=place == len(ended) - 1)]
        burned = max(len(burned_ends) + self._unseen_burned(), (self.state.failures or 0) if self.state else 0)
        newest = burned_ends[-1] if burned_ends else None
        evidence = tuple(item for end in burned_ends[-2:] for item in end.evidence[:1])
        if self.state_evidence is not None and burned:
            evidence = (*evidence, self.state_evidence)
        return RestartsView(
            burned=burned,
            max=self.maximum,
            remaining=None if self.maximum is None else max(0, self.maximum - burned),
            pattern=self._pattern(ended, burned_ends, burned),
            fingerprint=newest.fingerprint if newest else "",
            evidence=evidence,
            attempts=ended,
            attempt=self.number,
            recovered_us=self.recovered_us,
        )

    def _burned(self, end: AttemptEnd, last: bool) -> bool:
        if end.ending is Ending.TIMED_OUT:
            return last and (self.over or not self.progressed)
        return end.ending is Ending.DIED

    def _unseen_burned(self) -> int:
        """Attempts that ended before the first line on file, as far as they were not pre-empted; a requeue does not
        say of what it came."""
        state = self.state
        preemptions = max(state.preemptions or 0, state.requeues or 0) if state is not None else 0
        evicted = sum(end.ending is Ending.EVICTED for end in self.ended)
        return max(0, self.unseen - max(0, preemptions - evicted))

    def _pattern(self, ended: tuple[AttemptEnd, ...], ends: list[AttemptEnd], burned: int) -> RestartPattern:
        earlier = [end for end in ends if end.number < self.number]
        if earlier and earlier == ends and (self._is_past(earlier) or ended[-1].ending is Ending.COMPLETED):
            return RestartPattern.TRANSIENT_RECOVERED
        if burned < 2:
            return RestartPattern.NONE
        newest = ends[-2:]
        if len(newest) < 2 or not all(end.cause for end in newest):
            return RestartPattern.UNKNOWN
        if newest[0].fingerprint != newest[1].fingerprint:
            return RestartPattern.DIFFERENT_FAILURES
        known = CAUSES.get(newest[1].cause)
        transient = known is not None and known.transient is Transient.YES
        return RestartPattern.NONE if transient else RestartPattern.SAME_FAILURE

    def _is_past(self, earlier: list[AttemptEnd]) -> bool:
        return self.step > max(end.step for end in earlier)


def _faulted(signal: type) -> Callable[[RestartsTracker, Observation], None]:
    """Lets the ledger's own fault tracker fold a signal."""
    folding, own, telling = FaultsTracker.FOLDS[signal], _OWN.get(signal), signal in _TELLING

    def fold(tracker: RestartsTracker, observation: Observation) -> None:
        folding(tracker.faults, observation)
        if own is not None:
            own(tracker, observation)
        elif telling:
            tracker.seen, tracker.shown = True, None

    return fold


_TELLING = frozenset({Fault, PodsPolled, Teardown})

_OWN: Mapping[type, Callable[[Any, Observation], None]] = {
    **dict.fromkeys(PROGRESS, RestartsTracker._moved),
    StatePolled: RestartsTracker._polled,
    StepMetrics: RestartsTracker._stepped,
    StepCompleted: RestartsTracker._stepped,
    CheckpointSaved: RestartsTracker._stepped,
    Resumed: RestartsTracker._resumed,
    StepsPlanned: RestartsTracker._planned,
    TrainingDone: RestartsTracker._done,
    JobDeclared: RestartsTracker._declared,
    AttemptStarted: RestartsTracker._attempt,
}

RestartsTracker.FOLDS = {
    **_OWN,
    **{signal: _faulted(signal) for signal in FaultsTracker.FOLDS if signal is not AttemptStarted},
}
