"""What the trainer says of itself (MarinSkyRL and SkyRL): its phase timers, its forward marker, and all its signals.

Serves the words Progress and Heartbeat of GATES.md. Every trainer signal is defined here; the other lines are read in
`trainer_steps`, `trainer_bars`, `trainer_lifecycle` and `trainer_faults`.
"""

from enum import StrEnum
from typing import Any

import msgspec

from extractors.pattern import Nature, pattern


class PhaseStarted(msgspec.Struct, frozen=True):
    """A phase timer opened."""

    phase: str


class PhaseFinished(msgspec.Struct, frozen=True):
    """A phase timer closed after so many seconds. It closes on an exception as well: it proves no success."""

    phase: str
    seconds: float


class BufferProgress(msgspec.Struct, frozen=True):
    """The generation buffer holds `held` of the `needed` groups; elapsed is the bar's own clock, in seconds."""

    held: int
    needed: int
    elapsed: float | None


class StepProgress(msgspec.Struct, frozen=True):
    """The trainer's step bar stands at `done`. total is None where the bar was made without one."""

    done: int
    total: int | None


class StepCompleted(msgspec.Struct, frozen=True):
    """A training step ended, with its 1-based number, the plan's total and its duration in seconds."""

    step: int
    total: int | None
    seconds: float | None


class PolicyProgress(msgspec.Struct, frozen=True):
    """Micro-batches that policy rank 0 has done in the open policy_train phase."""

    done: int
    total: int | None


class ForwardEntered(msgspec.Struct, frozen=True):
    """A policy rank entered its forward."""

    rank: int


class Marker(StrEnum):
    """A diagnostic that a policy rank or the driver prints on its way through a call."""

    DRAIN_BARRIER = "drain_barrier"
    DISPATCH_RENDEZVOUS = "dispatch_rendezvous"
    MESH_DISPATCH = "mesh_dispatch"
    EXPERTS_GROUPED = "experts_grouped"
    EXPERTS_LOOPED = "experts_looped"
    REPLAY_RESIDENT = "replay_resident"


class RankMarker(msgspec.Struct, frozen=True):
    """A rank (None: the driver, or not said) passed a marker. It tells where a call stands, and is no progress."""

    marker: Marker
    rank: int | None


class EvaluationProgress(msgspec.Struct, frozen=True):
    """Batches of the evaluation that are done."""

    done: int
    total: int | None


class RolloutBatch(msgspec.Struct, frozen=True):
    """Collection of a step's groups began (groups: the required number) or completed (groups and seconds it took)."""

    step: int
    completed: bool
    groups: int | None
    seconds: float | None


class OptimizerStepped(msgspec.Struct, frozen=True):
    """The optimizer step of this training step is done."""

    step: int


class WeightsUpdated(msgspec.Struct, frozen=True):
    """Policy weights reached the engines. reason is `initial`, `training_step` or `checkpoint_restore`."""

    step: int
    reason: str
    seconds: float


class ExpertBlocksSynced(msgspec.Struct, frozen=True):
    """The expert blocks of this step's weights reached the engines; seconds is the longest of its parts."""

    step: int
    seconds: float


class CheckpointPart(msgspec.Struct, frozen=True):
    """A part of a checkpoint is on storage (or, where said, is being written). what names it."""

    what: str


class CheckpointSaved(msgspec.Struct, frozen=True):
    """A complete checkpoint of this step is on storage."""

    step: int


class Resumed(msgspec.Struct, frozen=True):
    """The step from which training goes on; 0 is a fresh run."""

    step: int


class EpochLogged(msgspec.Struct, frozen=True):
    """A trainer that counts no steps in its log lines printed its measures; epoch is a fraction of the data."""

    epoch: float


class BareBar(msgspec.Struct, frozen=True):
    """A progress bar without a description: the trainer's own in stacks that print no other, or any loop's."""

    done: int
    total: int


class StepsPlanned(msgspec.Struct, frozen=True):
    """The plan's number of training steps."""

    total: int


class Ending(StrEnum):
    """How training came to its orderly end."""

    DONE = "done"
    ALREADY_COMPLETE = "already_complete"
    MAX_STEPS = "max_steps"
    STOPPED_EARLY = "stopped_early"


class TrainingDone(msgspec.Struct, frozen=True):
    """Training is over and its work is banked."""

    how: Ending


class StaleGroups(msgspec.Struct, frozen=True):
    """So many collected groups were thrown away as too stale."""

    count: int


_STARTED = "Started: '"
_FINISHED = "Finished: '"
_COST = "', time cost: "


@pattern(
    "trainer",
    Nature.PROGRESS,
    hints=(_STARTED,),
    samples={
        "(skyrl_entrypoint pid=5150) 2026-03-04 09:10:11.120 | INFO     | "
        "skyrl_train.fully_async_trainer:_train_loop:658 - Started: 'wait_for_generation_buffer'": PhaseStarted(
            "wait_for_generation_buffer"
        ),
        "2026-03-04 09:10:11.120 | INFO     | skyrl.train.trainer:train:227 - Started: 'generate'": PhaseStarted(
            "generate"
        ),
    },
    rejects=("Started: 'nightly import' of 3 tables", "Started: 'step' 4 minutes ago, says the agent"),
)
def phase_started(text: str) -> PhaseStarted | None:
    """The `Timer` of MarinSkyRL and SkyRL opened a phase, on the driver. It carries no step number."""
    name = text.rstrip()[len(_STARTED) : -1]
    closed = text.startswith(_STARTED) and text.rstrip().endswith("'")
    return PhaseStarted(name) if closed and name.isidentifier() else None


@pattern(
    "trainer",
    Nature.PROGRESS,
    hints=(_FINISHED,),
    samples={
        "[09:41:02] task=/bob/rl-14b/0 | (skyrl_entrypoint pid=5150) 2026-03-04 09:41:02.500 | INFO     | "
        "skyrl_train.trainer:train:210 - Finished: 'policy_train', time cost: 866.49s": PhaseFinished(
            "policy_train", 866.49
        ),
        "Finished: 'step', time cost: 0.01s": PhaseFinished("step", 0.01),
    },
    rejects=("Finished: 'step', time cost: unknown", "Finished: 'report.md' in 3 turns"),
)
def phase_finished(text: str) -> PhaseFinished | None:
    """The `Timer` closed a phase. Written by the context manager's exit, also while an exception passes through:
    it is not proof that the phase succeeded, and `Finished: 'step'` must not be counted as a step."""
    name, _, cost = text.partition(_COST)
    seconds, unit, _ = cost.partition("s")
    if not (unit and name.startswith(_FINISHED) and seconds.replace(".", "", 1).isdigit()):
        return None
    return PhaseFinished(name[len(_FINISHED) :], float(seconds))


@pattern(
    "trainer",
    Nature.PROGRESS,
    hints=("WORKER_FORWARD_ENTER rank=",),
    regex=r"WORKER_FORWARD_ENTER rank=(\d+)",
    samples={
        "(FSDPPolicyWorkerBase pid=6001, ip=10.0.1.9) WORKER_FORWARD_ENTER rank=17": ForwardEntered(17),
        "(FSDPPolicyWorkerBase pid=6001) WORKER_FORWARD_ENTER rank=3 [repeated 15x across cluster]": ForwardEntered(3),
    },
    rejects=("WORKER_FORWARD_ENTER rank=unknown",),
)
def forward_entered(found: Any) -> ForwardEntered:
    """A policy worker entered its forward (MarinSkyRL, not gated to rank 0). In the aggregated log Ray swallows the
    other ranks' copies: only per-actor files tell which rank is absent."""
    return ForwardEntered(int(found[1]))


PATTERNS = (phase_started, phase_finished, forward_entered)
