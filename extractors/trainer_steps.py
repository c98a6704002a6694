"""The trainer's steps, as its lines with a step number tell them: rollout batch, optimizer, weights, step, checkpoint.

The newer MarinSkyRL trainers print them (2026-07 on); older builds have only timers, bars and metrics.
"""

from typing import Any

from extractors.pattern import Nature, pattern
from extractors.trainer import (
    CheckpointSaved,
    ExpertBlocksSynced,
    OptimizerStepped,
    RolloutBatch,
    StaleGroups,
    StepCompleted,
    WeightsUpdated,
)


@pattern(
    "trainer",
    Nature.PROGRESS,
    hints=("Training step completed: step=",),
    regex=r"Training step completed: step=(\d+)(?: total_steps=(\d+))?(?:.*? duration_seconds=([\d.]+))?",
    samples={
        "2026-03-04 10:00:00.000 | INFO     | skyrl_train.trainer:_train_loop:1290 - "
        "Training step completed: step=9 total_steps=120 epoch=0 duration_seconds=1444.250": StepCompleted(
            9, 120, 1444.25
        ),
    },
    rejects=("Training step completed: step=last",),
)
def step_completed(found: Any) -> StepCompleted:
    """The unified trainer ended a step: the best single step marker of new builds (since 2026-07)."""
    return StepCompleted(int(found[1]), _whole(found[2]), _seconds(found[3]))


@pattern(
    "trainer",
    Nature.PROGRESS,
    hints=("Rollout batch started: ", "Rollout batch completed: "),
    regex=r"Rollout batch (started|completed): step=(\d+)(?:.*?\b(?:required_)?groups=(\d+))?"
    r"(?:.*? duration_seconds=([\d.]+))?",
    samples={
        "Rollout batch started: step=9 mode=fully_async required_groups=32": RolloutBatch(9, False, 32, None),
        "Rollout batch started: step=9 required_groups=32": RolloutBatch(9, False, 32, None),
        "Rollout batch completed: step=9 mode=fully_async groups=32 trajectories=256 response_tokens=901234 "
        "staleness_mean=0.125 staleness_max=1 duration_seconds=744.500": RolloutBatch(9, True, 32, 744.5),
        "Rollout batch completed: step=10 groups=32 trajectories=256 response_tokens=881122 staleness_mean=0.000 "
        "staleness_max=0 duration_seconds=701.250": RolloutBatch(10, True, 32, 701.25),
    },
    rejects=("Rollout batch completed: everything went well",),
)
def rollout_batch(found: Any) -> RolloutBatch:
    """The fully async (2026-07 on) and the unified trainer began or completed collecting a step's groups. The start
    is no proof that any group will come."""
    return RolloutBatch(int(found[2]), found[1] == "completed", _whole(found[3]), _seconds(found[4]))


@pattern(
    "trainer",
    Nature.PROGRESS,
    hints=("Optimizer step completed: step=",),
    regex=r"Optimizer step completed: step=(\d+)",
    samples={
        "Optimizer step completed: step=9 epoch=0 sequences=256 duration_seconds=288.750": OptimizerStepped(9),
    },
    rejects=("Optimizer step completed: step=nine",),
)
def optimizer_stepped(found: Any) -> OptimizerStepped:
    """The trainer's optimizer step is done (2026-07 on). The weight sync and the step's end still come."""
    return OptimizerStepped(int(found[1]))


@pattern(
    "trainer",
    Nature.PROGRESS,
    hints=("Policy weights updated: step=",),
    regex=r"Policy weights updated: step=(\d+) reason=(\w+) duration_seconds=([\d.]+)",
    samples={
        "Policy weights updated: step=0 reason=initial duration_seconds=61.500": WeightsUpdated(0, "initial", 61.5),
        "Policy weights updated: step=9 reason=training_step duration_seconds=44.000": WeightsUpdated(
            9, "training_step", 44.0
        ),
        "Policy weights updated: step=12 reason=checkpoint_restore duration_seconds=70.125": WeightsUpdated(
            12, "checkpoint_restore", 70.125
        ),
    },
    rejects=("Policy weights updated: step=9 reason=",),
)
def weights_updated(found: Any) -> WeightsUpdated:
    """The trainer handed its weights to every engine (2026-07 on). It says nothing of what the engines then serve."""
    return WeightsUpdated(int(found[1]), found[2], float(found[3]))


@pattern(
    "trainer",
    Nature.PROGRESS,
    hints=("Expert-block sync: step=",),
    regex=r"Expert-block sync: step=(\d+)((?: \w+_seconds=[\d.]+)+)",
    samples={
        "Expert-block sync: step=9 install_seconds=4.500 policy_seconds=12.250 receiver_seconds=11.750 "
        "expert_seconds=9.000 dense_seconds=3.250": ExpertBlocksSynced(9, 12.25),
    },
    rejects=("Expert-block sync: step=9 begins",),
)
def expert_blocks_synced(found: Any) -> ExpertBlocksSynced:
    """The experts of a mixture-of-experts model reached the engines block by block (2026-07 on), before
    `Policy weights updated`. Its parts overlap."""
    return ExpertBlocksSynced(int(found[1]), max(float(part.partition("=")[2]) for part in found[2].split()))


@pattern(
    "trainer",
    Nature.PROGRESS,
    hints=("Successfully saved checkpoint for global_step_",),
    regex=r"Successfully saved checkpoint for global_step_(\d+)",
    samples={
        "2026-03-04 11:00:00.000 | INFO     | skyrl_train.trainer:save_checkpoints:900 - Successfully saved "
        "checkpoint for global_step_10 to: s3://bucket/rl-14b/global_step_10": CheckpointSaved(10),
    },
    rejects=("Successfully saved checkpoint for global_step_latest",),
)
def checkpoint_saved(found: Any) -> CheckpointSaved:
    """The trainer banked a complete checkpoint. `Saved trainer state to …` is one part of it."""
    return CheckpointSaved(int(found[1]))


@pattern(
    "trainer",
    Nature.HEARTBEAT,
    hints=(
        "Discarding stale group uid=",
        " groups in mini-batch were stale and discarded",
        " completed groups before ",
    ),
    regex=r"Discarding stale group uid=\S+ staleness=\d+"
    r"|All (\d+) groups in mini-batch were stale and discarded"
    r"|Rejected \d+ completed groups before step \d+; reasons=\{[^}]*?'\w*stale\w*': (\d+)",
    samples={
        "Discarding stale group uid=9f31c staleness=5 > max=4": StaleGroups(1),
        "All 32 groups in mini-batch were stale and discarded (max_staleness_steps=4). Refilling.": StaleGroups(32),
        "Rejected 6 completed groups before step 9; reasons={'empty': 2, 'stale': 4}. Waiting produced a full "
        "32-group replacement batch.": StaleGroups(4),
    },
    rejects=(
        "Rejected 2 completed groups before step 9; reasons={'empty': 2}. Waiting produced a full 32-group batch.",
    ),
)
def stale_groups(found: Any) -> StaleGroups:
    """The async trainers threw away groups that lag too far: generation ran ahead of training. No fault by itself."""
    return StaleGroups(int(found[1] or found[2] or 1))


def _whole(digits: str | None) -> int | None:
    return None if digits is None else int(digits)


def _seconds(number: str | None) -> float | None:
    return None if number is None else float(number.rstrip("."))


PATTERNS = (
    step_completed,
    rollout_batch,
    optimizer_stepped,
    weights_updated,
    expert_blocks_synced,
    checkpoint_saved,
    stale_groups,
)
