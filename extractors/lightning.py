"""PyTorch Lightning and NeMo: steps, checkpoints, the end."""

from typing import Any

from extractors.pattern import Nature, pattern
from extractors.trainer import CheckpointPart, Ending, StepCompleted, TrainingDone


@pattern(
    "lightning",
    Nature.PROGRESS,
    hints=(", global_step=",),
    regex=r"(?:Training: +)?(?:Epoch|Training epoch) \d+[:,][^\n]{0,200}?\[[^\n\]]{0,400}?, "
    r"global_step=(?P<step>\d{1,9}(?:\.\d{1,6})?(?:e\+\d{1,2})?)[,\]]",
    samples={
        "Epoch 0:  12%|█▏        | 24/200 [00:17<02:11,  1.34it/s, loss=4.98, v_num=, reduced_train_loss=4.450, "
        "global_step=23.00, consumed_samples=1.88e+5]": StepCompleted(24, None, None),
        "Epoch 1:   2%|▏         | 4/200 [00:17<02:11,  1.34it/s, v_num=1, reduced_train_loss=4.450, "
        "global_step=1.2e+3]": StepCompleted(1201, None, None),
    },
    rejects=("global_step=23.00, says the table", "Epoch 0: 12% of [the water, global_step=many]"),
)
def lightning_step(found: Any) -> StepCompleted:
    """Lightning's bar with NeMo's measures (1.x to 2.x): the step that ended last counts from 0. Four digits and more
    are rounded to three."""
    return StepCompleted(int(float(found["step"])) + 1, None, None)


@pattern(
    "lightning",
    Nature.PROGRESS,
    hints=(", saving model to '", " was not in top "),
    regex=r"Epoch \d+, global step (?P<step>\d{1,12}): '[^'\n]{1,80}' (?:reached [^\n]{1,80}, saving model to '"
    r"|(?P<passed>was not in top \d+))",
    samples={
        "0: Epoch 0, global step 50: 'val_loss' reached 3.25 (best 3.25), saving model to '/r/50.ckpt' as top 3": (
            CheckpointPart("checkpoint 50 begun")
        ),
        "Epoch 2, global step 90: 'val_loss' was not in top 3": CheckpointPart("checkpoint 90 passed over"),
    },
    rejects=("Epoch 0, global step 50: the end", "we are saving model to 'x'"),
)
def lightning_checkpoint(found: Any) -> CheckpointPart:
    """A validation ended, and its checkpoint is written if it is among the best."""
    return CheckpointPart(f"checkpoint {found['step']} {'passed over' if found['passed'] else 'begun'}")


@pattern(
    "lightning",
    Nature.PROGRESS,
    hints=("`Trainer.fit` stopped: ",),
    regex=r"`Trainer\.fit` stopped: (?:`max_(?:steps|epochs|time)=[^`\n]{1,40}` reached)",
    samples={
        "0: `Trainer.fit` stopped: `max_steps=100` reached.": TrainingDone(Ending.MAX_STEPS),
        "`Trainer.fit` stopped: `max_epochs=3` reached.": TrainingDone(Ending.MAX_STEPS),
    },
    rejects=("`Trainer.fit` stopped: signal 15", "why `Trainer.fit` stopped: `max_steps=100` reached."),
)
def lightning_done(found: Any) -> TrainingDone:
    """Lightning's trainer reached its limit (1.6 on)."""
    return TrainingDone(Ending.MAX_STEPS)


PATTERNS = (lightning_step, lightning_checkpoint, lightning_done)
