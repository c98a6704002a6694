"""DeepSpeed's engine and DeepSpeed-Chat: steps. Its launcher stands in `launchers` and `relaunches`."""

from typing import Any

from extractors.pattern import Nature, pattern
from extractors.signal import Benign
from extractors.trainer import StepCompleted


@pattern(
    "deepspeed",
    Nature.PROGRESS,
    hints=("] [Rank 0] step=",),
    regex=r"\[INFO\] \[logging\.py:\d+:\w+\] \[Rank 0\] step=(?P<step>[1-9]\d{0,11}), skipped=\d+, lr=",
    samples={
        "[2031-03-14 09:12:00,310] [INFO] [logging.py:96:log_dist] [Rank 0] step=40, skipped=2, lr=[1e-05, 1e-05], "
        "mom=[(0.9, 0.95), (0.9, 0.95)]": StepCompleted(40, None, None),
        "[2031-03-14 09:12:00,310] [INFO] [logging.py:128:log_dist] [Rank 0] step=5, skipped=0, lr=[0.0001]": (
            StepCompleted(5, None, None)
        ),
    },
    rejects=(
        "[2031-03-14 09:12:00,310] [INFO] [logging.py:96:log_dist] [Rank 0] Overflow detected. Skipping step.",
        "[2031-03-14 09:12:00,310] [INFO] [logging.py:96:log_dist] [Rank 0] step=0, skipped=0, lr=[0.0001]",
        "the plan [Rank 0] step=40, skipped=2, lr=1",
    ),
)
def deepspeed_step(found: Any) -> StepCompleted:
    """DeepSpeed's engine took an optimizer step (0.7 to 0.17, every `steps_per_print`); skipped ones are counted too.
    With an actor and a critic both engines say so. Step 0 is an engine that was made."""
    return StepCompleted(int(found["step"]), None, None)


@pattern(
    "deepspeed",
    Nature.PROGRESS,
    hints=("|ppo_ep: ", " | PPO Epoch: "),
    regex=r"[Ee]poch: (?P<epoch>\d+) ?\| ?[Ss]tep: (?P<step>\d{1,12}) ?\| ?(?:ppo_ep|PPO Epoch): ",
    samples={
        "epoch: 0|step: 41|ppo_ep: 1|act_loss: 0.125|cri_loss: 0.25|unsuper_loss: 0.0": StepCompleted(42, None, None),
        "Epoch: 0 | Step: 41 | PPO Epoch: 1 | Actor Loss: 0.125 | Critic Loss: 0.25 | Unsupervised Loss: 0.0": (
            StepCompleted(42, None, None)
        ),
    },
    rejects=("step: 41|ppo_ep: 1", "my epoch: 0|step: 41|ppo_ep: 1"),
)
def dschat_ppo_step(found: Any) -> StepCompleted:
    """DeepSpeed-Chat's third stage ended a step; they count from 0 in each epoch."""
    return StepCompleted(int(found["step"]) + 1, None, None)


@pattern(
    "deepspeed",
    Nature.BENIGN,
    hints=("OVERFLOW! Rank ", "] Overflow detected. Skipping step."),
    regex=r"\[INFO\] \[\w+\.py:\d+:\w+\] \[(?:deepspeed|Rank \d+)\] "
    r"(?:OVERFLOW! Rank \d+ Skipping step|Overflow detected)",
    samples={
        "[2031-03-14 09:12:00,310] [INFO] [loss_scaler.py:188:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping "
        "step. Attempted loss scale: 65536, reducing to 32768": Benign("loss-scale-overflow"),
        "[2031-03-14 09:12:00,310] [INFO] [logging.py:96:log_dist] [Rank 0] Overflow detected. Skipping step. "
        "Attempted loss scale: 65536, reducing to 32768.0": Benign("loss-scale-overflow"),
    },
    rejects=("OVERFLOW! Rank 0 of the river",),
)
def loss_scale_overflow(found: Any) -> Benign:
    """Mixed precision looks for a loss scale: steps are skipped until it fits, as a rule in the first minutes."""
    return Benign("loss-scale-overflow")


PATTERNS = (deepspeed_step, dschat_ppo_step, loss_scale_overflow)
