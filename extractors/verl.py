"""verl: the metrics line of its console logger, its step bar and its end (0.1 to 0.6, and forks that keep the logger).

Its measures are told under our trainers' names, so that gates C and D read them: the raw score is the reward, a phase's
`timing_s/` its time. The SFT trainer prints the same line with `train/` and `val/` measures.
"""

import math
from typing import Any

from extractors.metrics import StepMetrics
from extractors.pattern import Nature, pattern
from extractors.trainer import CheckpointPart, Ending, Resumed, StepProgress, TrainingDone
from extractors.trainer_bars import bar_of

_BAR = "Training Progress: "
_HEAD = "step:"
_NAMES = {
    "actor/entropy": "policy/policy_entropy",
    "actor/entropy_loss": "policy/policy_entropy",
    "actor/grad_norm": "policy/raw_grad_norm",
    "actor/pg_loss": "policy/policy_loss",
    "critic/score/mean": "reward/avg_raw_reward",
    "train/loss": "policy/final_loss",
}
_TRAINED = ("actor/", "critic/", "train/", "timing/", "timing_s/", "global_seqlen/")
"""Measures that only a training step has; a line without any of them is a validation."""


@pattern(
    "verl",
    Nature.PROGRESS,
    hints=(" - actor/grad_norm:", " - train/loss:", " - test_score/", " - val/", " - val-core/"),
    samples={
        "(TaskRunner pid=5150) step:12 - global_seqlen/min:20480 - actor/entropy:0.75 - actor/pg_loss:-0.5 - "
        "actor/grad_norm:1.25 - critic/score/mean:0.5 - critic/rewards/mean:0.25 - timing_s/gen:80.5 - "
        "timing_s/step:120.0": StepMetrics(
            12,
            "train",
            {
                "global_seqlen/min": 20480.0,
                "policy/policy_entropy": 0.75,
                "policy/policy_loss": -0.5,
                "policy/raw_grad_norm": 1.25,
                "reward/avg_raw_reward": 0.5,
                "critic/rewards/mean": 0.25,
                "timing/gen": 80.5,
                "timing/step": 120.0,
            },
        ),
        "(main_task pid=5150) step:0 - timing/gen:20.5 - actor/grad_norm:inf - critic/lr(1e-4):0.1": StepMetrics(
            0, "train", {"timing/gen": 20.5, "policy/raw_grad_norm": math.inf, "critic/lr(1e-4)": 0.1}
        ),
        "step:7 - actor/grad_norm:np.float64(1.5) - actor/pg_loss:1e-05": StepMetrics(
            7, "train", {"policy/raw_grad_norm": 1.5, "policy/policy_loss": 1e-05}
        ),
        "step:3 - train/loss:0.25 - train/lr(1e-3):0.002": StepMetrics(
            3, "train", {"policy/final_loss": 0.25, "train/lr(1e-3)": 0.002}
        ),
        "step:0 - test_score/openai/gsm8k:0.5": StepMetrics(0, "eval", {"test_score/openai/gsm8k": 0.5}),
        "(TaskRunner pid=5150) step:20 - val-core/gsm8k/acc/mean@1:0.5": StepMetrics(
            20, "eval", {"val-core/gsm8k/acc/mean@1": 0.5}
        ),
    },
    rejects=(
        "step:nine - actor/grad_norm:1.0",
        "what I saw was step:9 - actor/grad_norm:1.0",
        "step:9 - actor/grad_norm:1.0 - actor/pg_",
    ),
)
def verl_step(text: str) -> StepMetrics | None:
    """The measures of one step, on one line (verl's `LocalLogger`). The numbers start at 0 or 1 by the version. A line
    that is cut in a measure's name is torn and not read."""
    if not text.startswith(_HEAD):
        return None
    number, *measures = text.rstrip().split(" - ")
    step = number[len(_HEAD) :]
    if not step.isdigit() or not measures:
        return None
    values: dict[str, float] = {}
    for measure in measures:
        name, colon, cell = measure.rpartition(":")
        value = _number(cell)
        if not colon:
            return None
        if value is not None:
            values[_name(name)] = value
    trained = any(measure.startswith(_TRAINED) for measure in measures)
    return StepMetrics(int(step), "train" if trained else "eval", values) if values else None


def _name(name: str) -> str:
    return "timing/" + name[len("timing_s/") :] if name.startswith("timing_s/") else _NAMES.get(name, name)


def _number(cell: str) -> float | None:
    """`0.25`, `1e-05`, `nan`, `np.float64(0.25)`; None for words and flags."""
    bare = cell.partition("(")[2].removesuffix(")") if cell.startswith(("np.", "tensor(")) else cell
    try:
        return float(bare)
    except ValueError:
        return None


@pattern(
    "verl",
    Nature.HEARTBEAT,
    hints=(_BAR,),
    samples={
        "(TaskRunner pid=5150) \rTraining Progress:   3%|▎         | 13/435 [1:02:03<33:21:09, 286.37s/it]": (
            StepProgress(13, 435)
        ),
    },
    rejects=("Training Progress: see wandb", "My Training Progress:   3%|▎         | 13/435 [1:02:03<33:21:09]"),
)
def verl_step_bar(text: str) -> StepProgress | None:
    """The step bar of verl's trainers (0.2 on)."""
    bar = bar_of(text[text.rfind(_BAR) + len(_BAR) :]) if text.startswith(_BAR) else None
    return None if bar is None else StepProgress(bar[0], bar[1])


@pattern(
    "verl",
    Nature.PROGRESS,
    hints=("Final validation metrics: ",),
    regex=r"[(\"']{0,2}Final validation metrics: (?:\{|None)",
    samples={
        "(TaskRunner pid=5150) \"Final validation metrics: {'val-core/gsm8k/acc/mean@1': 0.5}\"": (
            TrainingDone(Ending.DONE)
        ),
        "(TaskRunner pid=5150) (\"Final validation metrics: {'val-core/gsm8k/acc/mean@1': \"": (
            TrainingDone(Ending.DONE)
        ),
    },
    rejects=("Initial validation metrics: {'val': 0.5}", "see the Final validation metrics: {}"),
)
def verl_done(found: Any) -> TrainingDone:
    """The trainer's last word, after its last step and the validation behind it."""
    return TrainingDone(Ending.DONE)


@pattern(
    "verl",
    Nature.FACT,
    hints=("Setting global step to ", "Training from scratch"),
    regex=r"(?:\[\w+\] )?Setting global step to (\d+)|Training from scratch\s*$",
    samples={
        "(TaskRunner pid=5150) Setting global step to 20": Resumed(20),
        "(FullyAsyncTaskRunner pid=5150) [FullyAsyncTrainer] Setting global step to 21, current_param_version to 5": (
            Resumed(21)
        ),
        "(TaskRunner pid=5150) Training from scratch": Resumed(0),
    },
    rejects=("Setting global step to the newest", "Training from scratch is dear"),
)
def verl_resumed(found: Any) -> Resumed:
    """Where the trainer goes on: after the step of a checkpoint, or at the beginning."""
    return Resumed(int(found[1] or 0))


@pattern(
    "verl",
    Nature.PROGRESS,
    hints=("local_global_step_folder: ",),
    regex=r"local_global_step_folder: \S*global_step_(\d+)\s*$",
    samples={
        "(TaskRunner pid=5150) local_global_step_folder: checkpoints/proj/run/global_step_20": (
            CheckpointPart("checkpoint 20 begun")
        ),
    },
    rejects=("local_global_step_folder: unset",),
)
def verl_checkpoint_begun(found: Any) -> CheckpointPart:
    """The trainer begins to write a checkpoint of this step; no line says that it is whole."""
    return CheckpointPart(f"checkpoint {found[1]} begun")


PATTERNS = (verl_step, verl_step_bar, verl_done, verl_resumed, verl_checkpoint_begun)
