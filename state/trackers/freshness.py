"""When the trainer last moved, and how many steps it has done. A heartbeat is never progress.

Bound: one of each matter, one count per bar.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import msgspec

from extractors.metrics import StepMetrics
from extractors.nccl import CommInit
from extractors.record import Evidence, Observation
from extractors.relaunches import Launched
from extractors.signal import BringUp
from extractors.supervisor import NodesJoined, RoleAssigned
from extractors.trainer import (
    BareBar,
    BufferProgress,
    CheckpointPart,
    CheckpointSaved,
    EpochLogged,
    EvaluationProgress,
    ExpertBlocksSynced,
    ForwardEntered,
    OptimizerStepped,
    PhaseFinished,
    PhaseStarted,
    PolicyProgress,
    Resumed,
    RolloutBatch,
    StepCompleted,
    StepProgress,
    StepsPlanned,
    TrainingDone,
    WeightsUpdated,
)
from extractors.vllm import EngineConfigured
from state.progress import Bar, own_us
from state.tracker import AttemptStarted, ShowingTracker
from state.trackers.facts import JobDeclared


class FreshnessView(msgspec.Struct, frozen=True):
    """progress is the newest trainer-side change of this attempt, first its first; bring_up the newest bring-up signal.

    step_done counts completed steps (resumed ones included), step_of is the plan's total, step the evidence.
    """

    progress_us: int | None = None
    progress: Evidence | None = None
    bring_up_us: int | None = None
    bring_up: Evidence | None = None
    first_us: int | None = None
    first: Evidence | None = None
    step_done: int = 0
    step_of: int | None = None
    step: Evidence | None = None
    step_us: int | None = None

    @property
    def known_us(self) -> int | None:
        """When the newest progress was, if a clock says so: a file whose lines have no time is placed by its neighbours
        in the stream, which is no measure of a silence."""
        return None if self.progress is None or self.progress.at_us is None else self.progress_us


class FreshnessTracker(ShowingTracker):
    """Newest progress, newest bring-up signal, steps done.

    Steps are counted by metrics records and step lines; the step bar counts only where there are neither, as it also
    moves for rejected batches.
    """

    progress_us: int | None = None
    progress: Evidence | None = None
    bring_up_us: int | None = None
    bring_up: Evidence | None = None
    first_us: int | None = None
    first: Evidence | None = None
    step_done: int = 0
    step_of: int | None = None
    step: Evidence | None = None
    step_us: int | None = None
    step_counted: bool = False
    timed: bool = False
    by_epochs: bool = False
    bars: dict[str, Bar] = {}
    shown: FreshnessView | None = None

    def _moved(self, observation: Observation) -> None:
        self.progress_us, self.progress = observation.at_us, observation.evidence
        if self.first_us is None:
            self.first_us, self.first = observation.at_us, observation.evidence
        self.shown = None

    def _risen(self, observation: Observation, name: str, count: int, *, redrawn: bool = False) -> None:
        at_us, source, bar = own_us(observation), observation.evidence.source, self.bars.get(name)
        if bar is None:
            self.bars[name] = Bar(count, at_us, source if redrawn else "")
            moved = redrawn
        else:
            moved = bar.moves(count, at_us, source) if redrawn else bar.rises(count, at_us, source)
        if moved:
            self._moved(observation)

    def _buffer(self, observation: Observation) -> None:
        self._risen(observation, "buffer", observation.signal.held)

    def _phase(self, observation: Observation) -> None:
        self.timed = True
        self._moved(observation)

    def _epoch(self, observation: Observation) -> None:
        self.by_epochs = True
        self._moved(observation)

    def _bare_bar(self, observation: Observation) -> None:
        """A bar without a name is the trainer's only where it logs epochs and has no timers; before, it comes up."""
        if self.timed:
            return
        if self.by_epochs:
            self._risen(observation, "bare", observation.signal.done, redrawn=True)
        else:
            self._coming_up(observation)

    def _evaluation(self, observation: Observation) -> None:
        self._risen(observation, "evaluation", observation.signal.done, redrawn=True)

    def _policy(self, observation: Observation) -> None:
        self._risen(observation, "policy", observation.signal.done, redrawn=True)

    def _step_bar(self, observation: Observation) -> None:
        bar: StepProgress = observation.signal
        self._risen(observation, "step", bar.done)
        if self.step_of is None:
            self._planned_as(bar.total)
        if not self.step_counted:
            self._done(observation, bar.done)

    def _stepped(self, observation: Observation) -> None:
        completed: StepCompleted = observation.signal
        self._planned_as(completed.total)
        self._counted(observation, completed.step)

    def _metrics(self, observation: Observation) -> None:
        metrics: StepMetrics = observation.signal
        if metrics.kind == "train":
            self._counted(observation, metrics.step)
        else:
            self._moved(observation)

    def _saved(self, observation: Observation) -> None:
        self._moved(observation)
        self._done(observation, observation.signal.step)

    def _counted(self, observation: Observation, step: int) -> None:
        self._moved(observation)
        if not self.step_counted:
            self.step_counted, self.step_done = True, 0
        self._done(observation, step)

    def _done(self, observation: Observation, step: int) -> None:
        if step > self.step_done:
            self.step_done, self.step, self.step_us = step, observation.evidence, observation.at_us
            self.shown = None

    def _resumed(self, observation: Observation) -> None:
        self._done(observation, observation.signal.step)

    def _planned(self, observation: Observation) -> None:
        self._planned_as(observation.signal.total)

    def _declared(self, observation: Observation) -> None:
        if self.step_of is None:
            self._planned_as(observation.signal.facts.max_steps)

    def _planned_as(self, total: int | None) -> None:
        if total is not None and total != self.step_of:
            self.step_of, self.shown = total, None

    def _coming_up(self, observation: Observation) -> None:
        self.bring_up_us, self.bring_up, self.shown = observation.at_us, observation.evidence, None

    def _communicator(self, observation: Observation) -> None:
        if observation.signal.complete:
            self._coming_up(observation)

    def _attempt(self, observation: Observation) -> None:
        self.progress_us = self.progress = self.bring_up_us = self.bring_up = self.first_us = self.first = None
        self.step = self.step_us = self.shown = None
        self.step_done, self.step_counted, self.bars = 0, False, {}
        self.timed = self.by_epochs = False

    def view(self) -> FreshnessView:
        """The newest change and the steps done."""
        if self.shown is None:
            self.shown = FreshnessView(
                progress_us=self.progress_us,
                progress=self.progress,
                bring_up_us=self.bring_up_us,
                bring_up=self.bring_up,
                first_us=self.first_us,
                first=self.first,
                step_done=self.step_done,
                step_of=self.step_of,
                step=self.step,
                step_us=self.step_us,
            )
        return self.shown

    FOLDS: ClassVar[Mapping[type, Callable[[Any, Observation], None]]] = {
        PhaseStarted: _phase,
        PhaseFinished: _phase,
        ForwardEntered: _moved,
        RolloutBatch: _moved,
        OptimizerStepped: _moved,
        WeightsUpdated: _moved,
        TrainingDone: _moved,
        ExpertBlocksSynced: _moved,
        CheckpointPart: _moved,
        EpochLogged: _epoch,
        BareBar: _bare_bar,
        EvaluationProgress: _evaluation,
        BufferProgress: _buffer,
        PolicyProgress: _policy,
        StepProgress: _step_bar,
        StepCompleted: _stepped,
        StepMetrics: _metrics,
        CheckpointSaved: _saved,
        Resumed: _resumed,
        StepsPlanned: _planned,
        JobDeclared: _declared,
        BringUp: _coming_up,
        RoleAssigned: _coming_up,
        Launched: _coming_up,
        NodesJoined: _coming_up,
        EngineConfigured: _coming_up,
        CommInit: _communicator,
        AttemptStarted: _attempt,
    }
