"""What a phase may take without progress (GATES, Cadence), and the phases of trainers that print no timers."""

from collections.abc import Mapping

import msgspec

from extractors.metrics import StepMetrics
from extractors.trainer import EpochLogged, OptimizerStepped, RolloutBatch, StepCompleted, WeightsUpdated
from state.policy import CADENCE_FACTOR, SECOND_US, STAGE_FLOORS, UNSEEN_PHASE_FACTOR, Stage
from state.wording import span

WHOLE_STEP = "step"
_PARTS = {
    "rollout batch": Stage.GENERATION,
    "optimizer step": Stage.TRAINING,
    "weight update": Stage.WEIGHT_SYNC,
    WHOLE_STEP: Stage.TRAINING,
}
"""The parts of a step as step lines part it, each with its stage. A step that no line parts generates and trains; it
may take what the longer of them may."""


class Turns(msgspec.Struct):
    """Where a trainer without timers is in its step, and how long its parts have taken, in seconds.

    name is the part since since_us; banked_us when the newest step was banked.
    """

    name: str = WHOLE_STEP
    since_us: int | None = None
    banked_us: int | None = None
    longest: dict[str, float] = {}

    @property
    def stage(self) -> Stage:
        """The stage of the part that is on its way."""
        return _PARTS[self.name]

    def hears(self, signal: object, at_us: int) -> None:
        """Folds a line of a step's course."""
        if isinstance(signal, RolloutBatch):
            self._turns("optimizer step" if signal.completed else "rollout batch", at_us)
        elif isinstance(signal, OptimizerStepped):
            self._turns("weight update", at_us)
        elif isinstance(signal, WeightsUpdated):
            self._turns(WHOLE_STEP, at_us)
        elif isinstance(signal, StepCompleted | StepMetrics | EpochLogged):
            self._banked(at_us)

    def _turns(self, name: str, at_us: int) -> None:
        if self.since_us is not None and name != self.name and self.name != WHOLE_STEP:
            self._took(self.name, self.since_us, at_us)
        if name != self.name:
            self.name, self.since_us = name, at_us

    def _banked(self, at_us: int) -> None:
        if self.banked_us is not None:
            self._took(WHOLE_STEP, self.banked_us, at_us)
        self.banked_us = at_us

    def _took(self, name: str, began_us: int, at_us: int) -> None:
        self.longest[name] = max(self.longest.get(name, 0.0), (at_us - began_us) / SECOND_US)


def allowance(stage: Stage, phase: str, longest: Mapping[str, float], expect: Mapping[str, float]) -> tuple[float, str]:
    """What a phase may take without progress, in seconds, and where that comes from (GATES, Cadence)."""
    if stage is Stage.BRING_UP:
        if "bring_up" in expect:
            return expect["bring_up"], f"[expect] bring_up = {span(expect['bring_up'])}"
        return STAGE_FLOORS[stage], f"bring-up floor of {span(STAGE_FLOORS[stage])}"
    said = expect.get(f"phases.{phase}")
    if said is not None:
        return said, f"[expect] {phase} = {span(said)}"
    floor = STAGE_FLOORS.get(stage, STAGE_FLOORS[Stage.GENERATION])
    if phase and phase not in longest:
        doubled = floor * UNSEEN_PHASE_FACTOR
        return doubled, f"twice the {stage} floor of {span(floor)}, as '{phase}' is seen for the first time"
    cadence = CADENCE_FACTOR * longest.get(phase, 0.0)
    if cadence > floor:
        return cadence, f"3 times the longest '{phase}' of this run, {span(longest[phase])}"
    return floor, f"{stage} floor of {span(floor)}"
