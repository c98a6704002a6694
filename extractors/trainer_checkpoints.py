"""The parts of a checkpoint, as the trainer writes and clears them. The whole one is `checkpoint_saved`.

A checkpoint of a large model takes the better part of an hour: its parts show that it advances.
"""

from typing import Any

from extractors.pattern import Nature, pattern
from extractors.trainer import CheckpointPart

_PARTS = (
    ("Saved trainer state to ", "trainer state"),
    ("Saved dataloader state to ", "dataloader state"),
    ("Cleaned up old checkpoint: global_step_", "old checkpoint cleared"),
    ("Successfully saved model weights", "model weights"),
    ("Saved final checkpoint", "final checkpoint"),
    ("Saved final model", "final model"),
)


@pattern(
    "trainer",
    Nature.PROGRESS,
    hints=tuple(start for start, _ in _PARTS),
    samples={
        "2026-03-04 11:00:00.000 | INFO     | skyrl_train.trainer:save_checkpoints:880 - Saved trainer state to "
        "s3://bucket/rl-14b/global_step_10/trainer_state.pt": CheckpointPart("trainer state"),
        "Saved dataloader state to s3://bucket/rl-14b/global_step_10/data.pt": CheckpointPart("dataloader state"),
        "Cleaned up old checkpoint: global_step_8 at s3://bucket/rl-14b/global_step_8": CheckpointPart(
            "old checkpoint cleared"
        ),
        "Successfully saved model weights.": CheckpointPart("model weights"),
        "Saved final checkpoint.": CheckpointPart("final checkpoint"),
        "Saved final model.": CheckpointPart("final model"),
    },
    rejects=("I have Saved final model.", "Saved trainer statistics to a.csv"),
)
def checkpoint_part_saved(text: str) -> CheckpointPart | None:
    """The driver put a part of a checkpoint on storage, or cleared an old one. It is not a checkpoint that training
    can resume from until the whole is said to be saved."""
    return next((CheckpointPart(what) for start, what in _PARTS if text.startswith(start)), None)


@pattern(
    "trainer",
    Nature.PROGRESS,
    hints=("]: Checkpoint saved to ",),
    regex=r"\[rank-(\d+)\]: Checkpoint saved to ",
    samples={
        "(FSDPPolicyWorkerBase pid=6001) [rank-0]: Checkpoint saved to s3://bucket/rl-14b/global_step_10/policy": (
            CheckpointPart("model shards of rank 0")
        ),
    },
    rejects=("[rank-x]: Checkpoint saved to nowhere",),
)
def rank_checkpoint_saved(found: Any) -> CheckpointPart:
    """A policy rank wrote its shards of a checkpoint."""
    return CheckpointPart(f"model shards of rank {int(found[1])}")


PATTERNS = (checkpoint_part_saved, rank_checkpoint_saved)
