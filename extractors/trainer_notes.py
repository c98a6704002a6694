"""What the trainer says by the way: of its plan, of the groups that it waits for, of rewards without a step's number.

No rule weighs these: the steps' own lines and metrics say the same with a number, or more.
"""

from typing import Any

from extractors.pattern import Nature, pattern
from extractors.signal import Benign, Noted


@pattern(
    "trainer",
    Nature.FACT,
    hints=("Number of steps per epoch: ", "Length of train_dataloader: "),
    regex=r"(?:Number of steps per epoch|Length of train_dataloader): \d+\s*$",
    samples={
        "(skyrl_entrypoint pid=5150) Number of steps per epoch: 60": Noted("steps-per-epoch"),
        "Length of train_dataloader: 60": Noted("steps-per-epoch"),
    },
    rejects=("Number of steps per epoch: 60 or so",),
)
def steps_per_epoch(found: Any) -> Noted:
    """A part of the plan, at start. `Total training steps` is the plan's length, this is not."""
    return Noted("steps-per-epoch")


@pattern(
    "trainer",
    Nature.BENIGN,
    hints=("Global step mismatch: path=", "Waiting for fresh generation data (refilling"),
    regex=r"(Global step mismatch: path=\d+, saved=\d+)|Waiting for fresh generation data \(refilling",
    samples={
        "2026-03-04 09:00:00.000 | WARNING  | skyrl_train.trainer:load_checkpoints:910 - Global step mismatch: "
        "path=12, saved=11. Using path value.": Benign("global-step-mismatch"),
        "Waiting for fresh generation data (refilling mini-batch)...": Benign("refilling-mini-batch"),
    },
    rejects=("Global step mismatch: unknown", "Waiting for fresh generation data"),
)
def trainer_waits_by_design(found: Any) -> Benign:
    """Lines that read like a defect and are designed: a checkpoint's folder overrules the number inside it; stale
    groups are replaced before the step goes on."""
    return Benign("global-step-mismatch" if found[1] else "refilling-mini-batch")


@pattern(
    "trainer",
    Nature.HEARTBEAT,
    hints=(": effective_batch=",),
    regex=r"Step \d+: effective_batch=\d+ samples \(\d+/\d+ groups\)",
    samples={
        "(skyrl_entrypoint pid=5150) Step 9: effective_batch=256 samples (32/32 groups), discard_rate=0.0%": Noted(
            "effective-batch"
        ),
    },
    rejects=("Step 9: effective_batch=unknown",),
)
def effective_batch(found: Any) -> Noted:
    """What is left of a mini-batch after stale groups went (async trainers). The step is not done with it."""
    return Noted("effective-batch")


@pattern(
    "trainer",
    Nature.HEARTBEAT,
    hints=(
        ", reward/avg_raw_reward: ",
        "avg_final_rewards: ",
        "sequences before padding: ",
        "sequences after padding: ",
    ),
    regex=r"reward/avg_pass_at_\d+: [\w.+-]+, reward/avg_raw_reward: [\w.+-]+"
    r"|avg_final_rewards: [\w.+-]+, avg_response_length: |Number of sequences (?:before|after) padding: \d+\s*$",
    samples={
        "(skyrl_entrypoint pid=5150) reward/avg_pass_at_8: 0.25, reward/avg_raw_reward: 0.125": Noted("batch-figures"),
        "reward/avg_pass_at_4: 0.25, reward/avg_raw_reward: 0.125 (effective_batch=256 samples)": Noted(
            "batch-figures"
        ),
        "avg_final_rewards: 0.125, avg_response_length: 640.5": Noted("batch-figures"),
        "Number of sequences before padding: 256": Noted("batch-figures"),
        "Number of sequences after padding: 256": Noted("batch-figures"),
    },
    rejects=("reward/avg_pass_at_8: see wandb", "Number of sequences before padding: many"),
)
def batch_figures(found: Any) -> Noted:
    """Rewards and sizes of a batch on their way into a step, without its number. The step's metrics have them."""
    return Noted("batch-figures")


@pattern(
    "trainer",
    Nature.HEARTBEAT,
    hints=("ray_skyrl_training_phase{", "ray_skyrl_gen_buffer_qsize", "ray_skyrl_gen_group_keep_rate"),
    regex=r"ray_skyrl_(?:training_phase\{|gen_buffer_qsize|gen_group_keep_rate)[^\n]* [\d.eE+-]+$",
    samples={
        'ray_skyrl_training_phase{phase="sync_weights"} 1.0': Noted("exported-gauge"),
        "ray_skyrl_gen_buffer_qsize{} 12.0": Noted("exported-gauge"),
        "ray_skyrl_gen_group_keep_rate 0.875": Noted("exported-gauge"),
    },
    rejects=("# HELP ray_skyrl_gen_buffer_qsize Groups in the buffer",),
)
def exported_gauge(found: Any) -> Noted:
    """A gauge that upstream SkyRL exports to Prometheus, scraped into a log. It has no time of its own, so that the
    timers' lines are the better witness."""
    return Noted("exported-gauge")


PATTERNS = (steps_per_epoch, trainer_waits_by_design, effective_batch, batch_figures, exported_gauge)
