"""What the attempts came to: started, ended, scored, rewarded, their exceptions, turns and coherence. Serves gate C.

Trials' own files are the evidence. A listing only counts, and the trainer's reward metrics stand apart.
"""

from typing import Any, ClassVar

import msgspec

from extractors.coherence import Coherence
from extractors.harbor import BatchCompleted, RolloutsStarted, TrajectoryFailed, TrajectoryPassed
from extractors.harbor_trials import TrialEnded, TrialStarted, TrialUnreadable
from extractors.metrics import StepMetrics
from extractors.polls import TrialsListed
from extractors.record import Evidence, Observation
from extractors.vllm_reload import Edge, WeightReload
from state.policy import ENDED_FEWEST, PASS_FEWEST, PASS_WINDOW
from state.progress import own_us
from state.tracker import AttemptStarted, Tracker
from state.trackers.outcomes import Outcome, Sample, outcome_of, sample_of
from state.trackers.rewards import RewardMetrics, RewardMetricsView
from state.trackers.trials_seen import TrialsSeen, begun_us, checksum, trials_of_attempt

NEWEST = 200
"""Ended attempts that turns, emptiness and coherence are measured over."""
BROKEN_HELD = 512
TYPES_HELD = 48
SHOWN = 3


class ExceptionCount(msgspec.Struct, frozen=True):
    """How many attempts ended with this exception, and the first and newest file that was opened and says so."""

    count: int
    first: Evidence
    newest: Evidence


class ReloadBracket(msgspec.Struct, frozen=True):
    """The newest lines in which an engine names the edges of its weight reload."""

    begin: Evidence | None = None
    finish: Evidence | None = None


class RolloutsView(msgspec.Struct, frozen=True):
    """Counts of this attempt of the job. scored trials have a reward, whatever exception they also have; passes are
    the newest 200 scored in order, True for a reward above 0; best_pass_rate is the best over any 100 (at least
    20) before the newest 100.

    sample is over the newest 200 ended attempts, recent over the newest 20 (what began late shows there first).
    newest_* are the newest files read of their kind; incoherent and empty hold up to three. started counts a trial
    that ended without its start having been seen as well; silent those whose transcript was on file at their
    start and held nothing. announced and logged are the newest lines of the generator's
    log that tell of attempts begun and ended, logged_exceptions the newest of each
    exception; listing is the newest count of artifacts that nobody opened.
    """

    started: int = 0
    silent: int = 0
    ended: int = 0
    scored: int = 0
    rewarded: int = 0
    first_started_us: int | None = None
    newest_started: Evidence | None = None
    newest_ended: Evidence | None = None
    newest_scored: Evidence | None = None
    newest_rewarded: Evidence | None = None
    exceptions: dict[str, ExceptionCount] = {}
    sample: Sample = Sample()
    recent: Sample = Sample()
    passes: tuple[bool, ...] = ()
    best_pass_rate: float | None = None
    incoherent: tuple[Evidence, ...] = ()
    empty: tuple[Evidence, ...] = ()
    coherent: Evidence | None = None
    unreadable: int = 0
    unreadable_why: str = ""
    unreadable_evidence: Evidence | None = None
    announced: Evidence | None = None
    logged: Evidence | None = None
    logged_exceptions: dict[str, Evidence] = {}
    listing: TrialsListed | None = None
    first_listed_us: int | None = None
    listing_evidence: Evidence | None = None
    reload_bracket: ReloadBracket = ReloadBracket()
    metrics: RewardMetricsView = RewardMetricsView()


class RolloutsTracker(Tracker):
    """Bounded by the newest 200 outcomes, 48 exception types, and 512 unreadable and unscored trials by checksum."""

    counts: RolloutsView = RolloutsView()
    outcomes: list[Outcome] = msgspec.field(default_factory=list)
    passes: list[bool] = msgspec.field(default_factory=list)
    trials: TrialsSeen = msgspec.field(default_factory=TrialsSeen)
    unscored: list[int] = msgspec.field(default_factory=list)
    broken: list[int] = msgspec.field(default_factory=list)
    rewards: RewardMetrics = msgspec.field(default_factory=RewardMetrics)

    def trial_started(self, seen: Observation) -> None:
        """A trial's config is on file."""
        at_us = begun_us(seen)
        dated = seen.signal.started_us is not None
        if not self.trials.of_an_earlier_life(at_us) and self.trials.starts(seen.signal.trial, at_us, dated):
            self._started(at_us)
            silent = self.counts.silent + bool(seen.signal.silent)
            self._set(newest_started=seen.evidence, silent=silent)

    def trial_ended(self, seen: Observation) -> None:
        """A trial's result (or, before it, its exception) is on file."""
        signal: TrialEnded = seen.signal
        at_us = own_us(seen)
        if self.trials.of_an_earlier_life(at_us):
            return
        if self.trials.unknown(signal.trial):
            self._started(at_us)
        if self.trials.ends(signal.trial, at_us):
            self._mended(signal.trial)
            self._count(signal, seen.evidence)
        elif signal.reward is not None and checksum(signal.trial) in self.unscored:
            self._score(signal, seen.evidence)

    def trial_unreadable(self, seen: Observation) -> None:
        """A trial's file is there and can't be read."""
        trial = checksum(seen.signal.trial)
        if trial in self.trials.ended or trial in self.broken:
            return
        self.broken.append(trial)
        del self.broken[:-BROKEN_HELD]
        self._set(
            unreadable=self.counts.unreadable + 1, unreadable_why=seen.signal.why, unreadable_evidence=seen.evidence
        )

    def rollouts_started(self, seen: Observation) -> None:
        """The generator announces a batch; no trial is proved by it."""
        self._set(announced=seen.evidence)

    def end_logged(self, seen: Observation) -> None:
        """The generator's log tells that attempts ended; only their files prove how."""
        self._set(logged=seen.evidence)

    def failure_logged(self, seen: Observation) -> None:
        """The generator's log tells that an attempt ended with an exception."""
        self.end_logged(seen)
        name, held = seen.signal.exception, self.counts.logged_exceptions
        if name and (name in held or len(held) < TYPES_HELD):
            self._set(logged_exceptions={**held, name: seen.evidence})

    def trials_listed(self, seen: Observation) -> None:
        """A listing counts artifacts."""
        self._set(listing=seen.signal, listing_evidence=seen.evidence)
        if seen.signal.started and self.counts.first_listed_us is None:
            self._set(first_listed_us=seen.at_us)

    def weight_reload(self, seen: Observation) -> None:
        """An engine names an edge of its weight reload."""
        bracket = self.counts.reload_bracket
        edge = {"begin" if seen.signal.edge is Edge.BEGIN else "finish": seen.evidence}
        self._set(reload_bracket=msgspec.structs.replace(bracket, **edge))

    def step_metrics(self, seen: Observation) -> None:
        """The trainer's reward metrics of a step."""
        if self.rewards.fold(seen):
            self._set(metrics=self.rewards.view())

    def attempt_started(self, seen: Observation) -> None:
        """A new life of the job: its own trials only."""
        fresh = RolloutsTracker(trials=trials_of_attempt(seen))
        for name in self.__struct_fields__:
            setattr(self, name, getattr(fresh, name))

    def view(self) -> RolloutsView:
        """The counts as they stand."""
        return self.counts

    def _started(self, at_us: int) -> None:
        first = self.counts.first_started_us
        self._set(started=self.counts.started + 1, first_started_us=at_us if first is None else min(first, at_us))

    def _mended(self, trial: str) -> None:
        if checksum(trial) in self.broken:
            self.broken.remove(checksum(trial))
            self._set(unreadable=self.counts.unreadable - 1)

    def _count(self, ended: TrialEnded, evidence: Evidence) -> None:
        outcome = outcome_of(ended)
        self.outcomes.append(outcome)
        del self.outcomes[:-NEWEST]
        self._set(ended=self.counts.ended + 1, newest_ended=evidence, sample=sample_of(self.outcomes, NEWEST))
        self._set(recent=sample_of(self.outcomes, ENDED_FEWEST))
        if ended.exception:
            self._except(ended.exception, evidence)
        if ended.reward is not None:
            self._score(ended, evidence)
        else:
            self.unscored.append(checksum(ended.trial))
            del self.unscored[:-BROKEN_HELD]
        if outcome.coherence is Coherence.INCOHERENT:
            self._set(incoherent=(*self.counts.incoherent, evidence)[-SHOWN:])
        elif outcome.coherence is Coherence.COHERENT:
            self._set(coherent=evidence)
        if outcome.empty:
            self._set(empty=(*self.counts.empty, evidence)[-SHOWN:])

    def _except(self, name: str, evidence: Evidence) -> None:
        held = self.counts.exceptions
        known = held.get(name)
        if known is None and len(held) >= TYPES_HELD:
            return
        counted = ExceptionCount(1, evidence, evidence)
        if known is not None:
            counted = ExceptionCount(known.count + 1, known.first, evidence)
        self._set(exceptions={**held, name: counted})

    def _score(self, ended: TrialEnded, evidence: Evidence) -> None:
        passed = (ended.reward or 0.0) > 0
        if checksum(ended.trial) in self.unscored:
            self.unscored.remove(checksum(ended.trial))
        self.passes.append(passed)
        earlier = self.passes[:-PASS_WINDOW][-PASS_WINDOW:]
        best = self.counts.best_pass_rate
        if len(earlier) >= PASS_FEWEST:
            best = max(best or 0.0, sum(earlier) / len(earlier))
        del self.passes[:-NEWEST]
        self._set(
            scored=self.counts.scored + 1,
            rewarded=self.counts.rewarded + passed,
            newest_scored=evidence,
            newest_rewarded=evidence if passed else self.counts.newest_rewarded,
            passes=tuple(self.passes),
            best_pass_rate=best,
        )

    def _set(self, **fields: Any) -> None:
        self.counts = msgspec.structs.replace(self.counts, **fields)

    FOLDS: ClassVar[dict[type, Any]] = {
        TrialStarted: trial_started,
        TrialEnded: trial_ended,
        TrialUnreadable: trial_unreadable,
        RolloutsStarted: rollouts_started,
        BatchCompleted: end_logged,
        TrajectoryFailed: failure_logged,
        TrajectoryPassed: end_logged,
        TrialsListed: trials_listed,
        WeightReload: weight_reload,
        StepMetrics: step_metrics,
        AttemptStarted: attempt_started,
    }
