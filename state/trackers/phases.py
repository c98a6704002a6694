"""The trainer's open phases, the stage they name, and the allowance that the run's own cadence gives (GATES, Words).

Bounds: 32 open phases, 128 phase names, 256 configuration keys.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import msgspec

from extractors.facts import ConfigFacts
from extractors.metrics import StepMetrics
from extractors.record import Evidence, Observation
from extractors.signal import Fault
from extractors.supervisor import DriverExited
from extractors.trainer import (
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
    RolloutBatch,
    StepCompleted,
    StepProgress,
    TrainingDone,
    WeightsUpdated,
)
from state.cadence import WHOLE_STEP, Turns, allowance
from state.policy import PHASE_STAGES, SECOND_US, Stage
from state.progress import Echoes, own_us
from state.tracker import AttemptStarted, ShowingTracker
from state.trackers.facts import JobDeclared

OPEN_KEPT = 32
NAMES_KEPT = 128
CONFIGURATION_KEPT = 256
FAILED_WITHIN = 1.0
"""An exception stands within so many seconds of the `Finished` line that it wrote while passing through."""

STEP = "step"
INTERLEAVED = "generate"
"""The phase that a producer task of the one-step-off trainer opens beside the trainer's own stack."""


_INSIDE: dict[type, Stage] = {
    BufferProgress: Stage.GENERATION,
    StepProgress: Stage.GENERATION,
    PolicyProgress: Stage.TRAINING,
    ForwardEntered: Stage.TRAINING,
    EvaluationProgress: Stage.EVALUATION,
}
"""The stage of lines that only stand inside a phase."""


class OpenPhase(msgspec.Struct, frozen=True):
    """A phase that started and has not finished."""

    name: str
    started_us: int
    evidence: Evidence


class PhasesView(msgspec.Struct, frozen=True):
    """open is outermost first. opened says that a trainer phase has opened in this attempt. newest is the newest
    phase-timer or step line, done the training-done line. longest maps a phase to its longest completed seconds in
    this attempt (or an earlier one of the same configuration), counts to how often it completed. driver_exit is the
    exit code of the training driver, once it has ended.

    allowance_seconds is what the innermost open phase may take without progress, allowance_source says in words
    where that comes from.
    """

    stage: Stage = Stage.BRING_UP
    open: tuple[OpenPhase, ...] = ()
    opened: bool = False
    newest: Evidence | None = None
    newest_us: int | None = None
    done: Evidence | None = None
    done_us: int | None = None
    driver_exit: int | None = None
    driver: Evidence | None = None
    longest: dict[str, float] = {}
    counts: dict[str, int] = {}
    allowance_seconds: float = 3600.0
    allowance_source: str = "bring-up floor of 60 min"

    @property
    def innermost(self) -> OpenPhase | None:
        """The innermost open phase."""
        return self.open[-1] if self.open else None


class Completion(msgspec.Struct, frozen=True):
    """A phase's newest end. longest_before is what it would go back to if an exception wrote the line."""

    name: str
    own_us: int
    pid: int
    longest_before: float | None


class PhasesTracker(ShowingTracker):
    """A stack of open phases.

    `Started` pushes (a phase does not nest in itself), `Finished` pops its phase and what was opened inside it. Where
    nothing is open between two phases, the stage is that of the newest phase. What an exception closed does not count
    as completed.
    """

    open: list[OpenPhase] = []
    stage: Stage = Stage.BRING_UP
    newest: Evidence | None = None
    newest_us: int | None = None
    done: Evidence | None = None
    done_us: int | None = None
    driver_exit: int | None = None
    driver: Evidence | None = None
    longest: dict[str, float] = {}
    counts: dict[str, int] = {}
    carried: dict[str, float] = {}
    configuration: dict[str, str] = {}
    carried_configuration: dict[str, str] = {}
    expect: dict[str, float] = {}
    last: Completion | None = None
    timed: bool = False
    turns: Turns = msgspec.field(default_factory=Turns)
    echoes: Echoes = msgspec.field(default_factory=Echoes)
    shown: PhasesView | None = None

    def _started(self, observation: Observation) -> None:
        name, self.timed = observation.signal.phase, True
        if self.echoes.repeats(f"+{name}", observation):
            return
        kept = [phase for phase in self.open if phase.name != name and (name != STEP or phase.name == INTERLEAVED)]
        self.open = [*kept, OpenPhase(name, observation.at_us, observation.evidence)][-OPEN_KEPT:]
        if name != STEP:
            self.stage = PHASE_STAGES.get(name, Stage.TRAINING)
        elif self.stage in (Stage.BRING_UP, Stage.OVER):
            self.stage = Stage.GENERATION
        self.done = self.done_us = None
        self._newest(observation)

    def _finished(self, observation: Observation) -> None:
        name, self.timed = observation.signal.phase, True
        if self.echoes.repeats(f"-{name}", observation):
            return
        self._close(name)
        self._completed(name, observation.signal.seconds, observation)
        if (innermost := self.open[-1] if self.open else None) and innermost.name != STEP:
            self.stage = PHASE_STAGES.get(innermost.name, Stage.TRAINING)
        self._newest(observation)

    def _close(self, name: str) -> None:
        places = [place for place, phase in enumerate(self.open) if phase.name == name]
        if places:
            inner = self.open[places[-1] + 1 :]
            self.open = self.open[: places[-1]] + [phase for phase in inner if phase.name == INTERLEAVED]

    def _completed(self, name: str, seconds: float, observation: Observation) -> None:
        before = self.longest.get(name)
        if before is None and len(self.longest) >= NAMES_KEPT:
            return
        self.longest[name] = max(before or 0.0, seconds)
        self.counts[name] = self.counts.get(name, 0) + 1
        self.last = Completion(name, own_us(observation), observation.origin.pid, before)

    def _fault(self, observation: Observation) -> None:
        last = self.last
        if last is None or (last.pid != observation.origin.pid and observation.origin.pid):
            return
        if abs(own_us(observation) - last.own_us) > FAILED_WITHIN * SECOND_US:
            return
        self.last = None
        self.counts[last.name] -= 1
        if last.longest_before is None:
            del self.longest[last.name]
        else:
            self.longest[last.name] = last.longest_before
        self.shown = None

    def _newest(self, observation: Observation) -> None:
        self.newest, self.newest_us = observation.evidence, observation.at_us
        self.shown = None

    def _stepped(self, observation: Observation) -> None:
        """A line of a step's course: with no phase on file since bring-up, its head is missing and steps go on."""
        if self.stage is Stage.BRING_UP:
            self.stage = Stage.GENERATION
        self.turns.hears(observation.signal, observation.at_us)
        if not self.timed and self.stage is not Stage.OVER:
            between = Stage.GENERATION if self.stage is Stage.WEIGHT_SYNC else self.stage
            self.stage = between if self.turns.name == WHOLE_STEP else self.turns.stage
        self._newest(observation)

    def _inside(self, observation: Observation) -> None:
        """A line that only stands inside a phase, in a log whose head (and with it the phase's begin) is missing."""
        if self.newest is None:
            self.stage = _INSIDE[type(observation.signal)]
            self._newest(observation)

    def _done(self, observation: Observation) -> None:
        self._newest(observation)
        if self.done is None:
            self.done, self.done_us = observation.evidence, observation.at_us
        self.stage = Stage.OVER

    def _exited(self, observation: Observation) -> None:
        self.driver_exit, self.driver, self.shown = observation.signal.code, observation.evidence, None

    def _declared(self, observation: Observation) -> None:
        self.expect = dict(observation.signal.facts.expect)
        self.shown = None

    def _configured(self, observation: Observation) -> None:
        said: ConfigFacts = observation.signal
        for fact in said.facts:
            if len(self.configuration) < CONFIGURATION_KEPT:
                self.configuration.setdefault(fact.key, fact.value)
        self.shown = None

    def _attempt(self, observation: Observation) -> None:
        if self._own() or self.configuration:
            self.carried, self.carried_configuration = self._durations(), self.configuration
        self.open, self.stage, self.longest, self.counts, self.configuration = [], Stage.BRING_UP, {}, {}, {}
        self.newest = self.newest_us = self.done = self.done_us = self.last = self.shown = None
        self.driver_exit = self.driver = None
        self.timed, self.turns = False, Turns()

    def _durations(self) -> dict[str, float]:
        """The longest durations, those of the attempt before included where its configuration was the same."""
        before = self.carried_configuration
        if any(before.get(key, value) != value for key, value in self.configuration.items()):
            return dict(self._own())
        own = self._own()
        names = self.carried.keys() | own.keys()
        return {name: max(self.carried.get(name, 0.0), own.get(name, 0.0)) for name in sorted(names)}

    def _own(self) -> dict[str, float]:
        """The longest durations of this attempt: by its timers, or by its step lines where it has none."""
        return self.longest if self.timed else self.turns.longest

    def _awaited(self) -> list[tuple[Stage, str]]:
        """The innermost phase; and, where that is the producer's, the one that the trainer is in meanwhile."""
        if not self.timed and self.newest is not None and self.stage is not Stage.OVER:
            return [(self.turns.stage, self.turns.name)]
        awaited = [(self.stage, self.open[-1].name if self.open else "")]
        if awaited[0][1] == INTERLEAVED:
            beside = (phase.name for phase in reversed(self.open[:-1]) if phase.name != STEP)
            awaited += [(PHASE_STAGES.get(name, Stage.TRAINING), name) for name in beside][:1]
        return awaited

    def view(self) -> PhasesView:
        """The open phases, their stage and their allowance."""
        if self.shown is None:
            longest = self._durations()
            given = [allowance(stage, name, longest, self.expect) for stage, name in self._awaited()]
            seconds, source = max(given, key=lambda each: each[0])
            self.shown = PhasesView(
                stage=self.stage,
                open=tuple(self.open),
                opened=self.newest is not None,
                newest=self.newest,
                newest_us=self.newest_us,
                done=self.done,
                done_us=self.done_us,
                driver_exit=self.driver_exit,
                driver=self.driver,
                longest=longest,
                counts=dict(self.counts),
                allowance_seconds=seconds,
                allowance_source=source,
            )
        return self.shown

    FOLDS: ClassVar[Mapping[type, Callable[[Any, Observation], None]]] = {
        PhaseStarted: _started,
        PhaseFinished: _finished,
        StepCompleted: _stepped,
        RolloutBatch: _stepped,
        OptimizerStepped: _stepped,
        WeightsUpdated: _stepped,
        **dict.fromkeys((ExpertBlocksSynced, CheckpointPart, CheckpointSaved), _newest),
        EpochLogged: _stepped,
        StepMetrics: _stepped,
        **dict.fromkeys(_INSIDE, _inside),
        TrainingDone: _done,
        Fault: _fault,
        DriverExited: _exited,
        JobDeclared: _declared,
        ConfigFacts: _configured,
        AttemptStarted: _attempt,
    }
