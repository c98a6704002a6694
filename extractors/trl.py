"""TRL and other users of the Hugging Face Trainer (transformers 4 and 5; SFT, GRPO, PPO): measures, bars, checkpoints.

Its lines count epochs, not steps, so that it is read for liveness only. Where the log level is low it prints nothing
but the measures (every `logging_steps`) and a bar without a name.
"""

from typing import Any

from extractors.pattern import Nature, pattern
from extractors.signal import BringUp
from extractors.trainer import BareBar, CheckpointPart, Ending, EpochLogged, StepsPlanned, TrainingDone
from extractors.trainer_bars import bar_of

_MEASURES = ("{'loss': ", "{'eval_loss': ", "{'eps': ")
_EPOCH = "'epoch': "


@pattern(
    "trl",
    Nature.PROGRESS,
    hints=_MEASURES,
    samples={
        "{'loss': 0.5123, 'grad_norm': 1.25, 'learning_rate': 1e-05, 'num_tokens': 40960.0, 'mean_token_accuracy': "
        "0.75, 'epoch': 0.25}": EpochLogged(0.25),
        "{'loss': 0.0, 'grad_norm': 0.125, 'learning_rate': 9e-07, 'completions/mean_length': 640.5, 'rewards/tests/"
        "mean': 0.25, 'reward': 0.25, 'reward_std': 0.5, 'kl': 0.001, 'epoch': 0.02}": EpochLogged(0.02),
        "{'loss': '0.5123', 'grad_norm': '1.25', 'learning_rate': '1e-05', 'epoch': '0.25'}": EpochLogged(0.25),
        "\r                    \r{'loss': nan, 'grad_norm': nan, 'learning_rate': 0.0, 'epoch': 1.0}": EpochLogged(1.0),
        "[rank0]: {'eval_loss': 0.75, 'eval_runtime': 10.5, 'eval_samples_per_second': 9.5, 'epoch': 1.0}": (
            EpochLogged(1.0)
        ),
        "{'eps': 3, 'objective/kl': 0.5, 'objective/entropy': 20.5, 'episode': 96, 'epoch': 0.5}": EpochLogged(0.5),
    },
    rejects=(
        "{'loss': 0.5, 'accuracy': 0.75}",
        "{'loss': 0.5, 'epoch': 'first'}",
        "I saw {'loss': 0.5, 'epoch': 0.25}",
        "{'loss': 0.5, 'epoch': 0.25",
    ),
)
def epoch_logged(text: str) -> EpochLogged | None:
    """The trainer's measures of the steps since its last such line, printed as a dict."""
    said = text.rstrip()
    if not (said.startswith(_MEASURES) and said.endswith("}")):
        return None
    shown = said[said.rfind(_EPOCH) + len(_EPOCH) : -1].partition(",")[0].strip("'") if _EPOCH in said else ""
    return EpochLogged(float(shown)) if shown.replace(".", "", 1).isdigit() else None


@pattern(
    "trl",
    Nature.HEARTBEAT,
    hints=("s/it]", "it/s]"),
    regex=r"\s*\d{1,3}%\|[^|\n]{0,200}\| (\d+/\d+ \[[^\]\n]{0,80}\])",
    samples={
        "\r 12%|█▏        | 12/100 [01:02<07:34,  5.17s/it]": BareBar(12, 100),
        "\r  0%|          | 0/100 [00:00<?, ?it/s]\r  1%|          | 1/100 [00:05<08:33,  5.18s/it]": BareBar(1, 100),
        "(train_func pid=5150)  50%|█████     | 50/100 [00:25<00:25,  1.98it/s]": BareBar(50, 100),
    },
    rejects=(
        "Fetching 12 files:  50%|█████     | 6/12 [00:03<00:03,  1.98it/s]",
        "12/100 of them at 5.17s/it]",
    ),
)
def bare_bar(found: Any) -> BareBar | None:
    """A bar without a description: the Trainer's step bar, drawn by rank 0, or that of its evaluation, or of any loop
    in any library. Its rise counts only in a job whose trainer prints epochs and no timers."""
    bar = bar_of(f"| {found[1]}")
    return None if bar is None or bar[1] is None else BareBar(bar[0], bar[1])


@pattern(
    "trl",
    Nature.FACT,
    hints=("***** Running training *****",),
    regex=r"\*{5} Running training \*{5}",
    samples={
        "[INFO|trainer.py:2414] 2026-03-04 09:00:00,120 >> ***** Running training *****": BringUp("trainer ready"),
        "***** Running training *****": BringUp("trainer ready"),
    },
    rejects=("the banner ***** Running training *****",),
)
def trainer_ready(found: Any) -> BringUp:
    """The Trainer enters its loop. Printed from log level info on."""
    return BringUp("trainer ready")


@pattern(
    "trl",
    Nature.FACT,
    hints=("  Total optimization steps = ",),
    regex=r"  Total optimization steps = ([\d,]{1,15})\s*$",
    samples={
        "[INFO|trainer.py:2420] 2026-03-04 09:00:00,120 >>   Total optimization steps = 1,200": StepsPlanned(1200),
        "  Total optimization steps = 100": StepsPlanned(100),
    },
    rejects=("  Total optimization steps = many",),
)
def optimization_steps_planned(found: Any) -> StepsPlanned:
    """The Trainer's plan, below its banner. Its lines later count epochs."""
    return StepsPlanned(int(found[1].replace(",", "")))


@pattern(
    "trl",
    Nature.PROGRESS,
    hints=("Saving model checkpoint to ",),
    regex=r"Saving model checkpoint to \S*?(?:checkpoint-(\d+))?/?\s*$",
    samples={
        "[INFO|trainer.py:3993] 2026-03-04 10:00:00,120 >> Saving model checkpoint to out/run/checkpoint-500": (
            CheckpointPart("checkpoint 500 begun")
        ),
        "Saving model checkpoint to out/run": CheckpointPart("model begun"),
    },
    rejects=("Saving model checkpoint to the usual place",),
)
def model_checkpoint_begun(found: Any) -> CheckpointPart:
    """The Trainer begins to write a checkpoint. It is on storage only when a later line shows that the run went on."""
    return CheckpointPart(f"checkpoint {found[1]} begun" if found[1] else "model begun")


@pattern(
    "trl",
    Nature.PROGRESS,
    hints=("{'train_runtime': ", "Training completed. Do not forget to share your model"),
    regex=r"\{'train_runtime': '?[\d.]+'?, [^\n]*\}\s*$|Training completed\. Do not forget to share your model",
    samples={
        "{'train_runtime': 512.5, 'train_samples_per_second': 2.5, 'train_steps_per_second': 0.25, 'train_loss': 0.5, "
        "'epoch': 3.0}": TrainingDone(Ending.DONE),
        "{'train_runtime': '512.5', 'train_loss': '0.5', 'epoch': '3'}": TrainingDone(Ending.DONE),
        "[INFO|trainer.py:2676] 2026-03-04 12:00:00,120 >> Training completed. Do not forget to share your model on "
        "huggingface.co/models =)": TrainingDone(Ending.DONE),
    },
    rejects=("{'train_runtime': unknown}", "Training completed. Do not forget the cat"),
)
def trl_done(found: Any) -> TrainingDone:
    """The Trainer left its loop: the last measures, and the line before them. A script may still save its model."""
    return TrainingDone(Ending.DONE)


PATTERNS = (
    epoch_logged,
    bare_bar,
    trainer_ready,
    optimization_steps_planned,
    model_checkpoint_begun,
    trl_done,
)
