"""The trainer's progress bars: generation buffer, training steps, policy micro-batches, evaluation.

Two forms of each: tqdm frames (` 19%|█▉  | 12/64 [1:30:12<6:30:11, 451.2s/it]`) and the newline form of MarinSkyRL's
`utils/progress.py` (2026-07 on: `12/64 (19%) [5412s] | buffer qsize=3`). A bar proves that its process lives; only a
rise of its count is progress. High-volume: split, no regex.
"""

from extractors.pattern import Nature, pattern
from extractors.trainer import BufferProgress, EvaluationProgress, PolicyProgress, StepProgress

_BUFFER = "Generation Buffer Progress: "
_STEPS = ("Training Step Progress: ", "Training Batches Processed: ")
_POLICY = "Policy Train epoch ["
_EVALUATION = "Evaluation Progress: "


@pattern(
    "trainer",
    Nature.HEARTBEAT,
    hints=(_BUFFER,),
    samples={
        "2026-03-04 09:30:00.000 | INFO     | skyrl_train.utils.progress:_emit:88 - Generation Buffer Progress: "
        "12/64 (19%) [5412s] | buffer qsize=3": BufferProgress(12, 64, 5412.0),
        "Generation Buffer Progress: 0/64 (0%) [0s]": BufferProgress(0, 64, 0.0),
        "(skyrl_entrypoint pid=5150) \rGeneration Buffer Progress:   0%|          | 0/64 [00:00<?, ?it/s]"
        "\rGeneration Buffer Progress:  25%|██▌       | 16/64 [31:02<1:33:06, 116.38s/it, buffer qsize=2]\x1b[A": (
            BufferProgress(16, 64, 1862.0)
        ),
    },
    rejects=("Generation Buffer Progress: stalled, I think", "Generation Buffer Progress: 12 [40s]"),
)
def buffer_progress(text: str) -> BufferProgress | None:
    """The async trainers' buffer bar (until the unified trainer, which has none). With the same count and a growing
    clock it is a heartbeat; no line at all may only mean that nothing was added."""
    if not text.startswith(_BUFFER):
        return None
    bar = bar_of(text[text.rfind(_BUFFER) + len(_BUFFER) :])
    return None if bar is None or bar[1] is None else BufferProgress(bar[0], bar[1], bar[2])


@pattern(
    "trainer",
    Nature.HEARTBEAT,
    hints=_STEPS,
    samples={
        "\rTraining Step Progress:   3%|▎         | 2/80 [1:02:03<40:21:09, 1862.37s/it]": StepProgress(2, 80),
        "(skyrl_entrypoint pid=5150) Training Step Progress: 7/80 (9%) [12604s]": StepProgress(7, 80),
        "Training Step Progress: 7 / 20": StepProgress(7, 20),
        "Training Batches Processed:  14%|█▍        | 1/7 [22:36<2:15:37, 1356.23s/it]": StepProgress(1, 7),
        "Training Batches Processed: 3 [900s]": StepProgress(3, None),
    },
    rejects=("Training Step Progress: see wandb", "Training Batches Processed: 1/seven"),
)
def step_progress(text: str) -> StepProgress | None:
    """The step bar: `Training Step Progress` of the async, one-step-off and unified trainers, `Training Batches
    Processed` of the sync one, where a rejected batch moves it without a step."""
    for name in _STEPS:
        if text.startswith(name):
            bar = bar_of(text[text.rfind(name) + len(name) :])
            return None if bar is None else StepProgress(bar[0], bar[1])
    return None


@pattern(
    "trainer",
    Nature.HEARTBEAT,
    hints=(_POLICY,),
    samples={
        "(FSDPPolicyWorkerBase pid=6001) Policy Train epoch [1/1]:  50%|█████     | 2/4 [05:20<05:20, 160.00s/it, "
        "pg=-0.02, glen=640, policy_lr=1e-6, ent=0.9, grad_norm=0.01]": PolicyProgress(2, 4),
        "Policy Train epoch [1/2]:   0%|          | 0/4 [00:00<?, ?it/s]": PolicyProgress(0, 4),
        "Policy Train epoch [1/1]: 3/4 (75%) [480s] | pg=-0.02, glen=640": PolicyProgress(3, 4),
    },
    rejects=("Policy Train epoch [1/1] begins", "Non-Policy Train epoch [1/1]:  50%|█████     | 2/4 [05:20<05:20]"),
)
def policy_progress(text: str) -> PolicyProgress | None:
    """The policy worker's micro-batch bar, drawn by rank 0 only: the silence of other ranks proves nothing."""
    if not text.startswith(_POLICY):
        return None
    _, closed, frame = text[text.rfind(_POLICY) :].partition("]: ")
    bar = bar_of(frame) if closed else None
    return None if bar is None else PolicyProgress(bar[0], bar[1])


@pattern(
    "trainer",
    Nature.HEARTBEAT,
    hints=(_EVALUATION,),
    samples={
        "(skyrl_entrypoint pid=5150) \rEvaluation Progress:  25%|██▌       | 2/8 [10:20<31:00, 310.00s/it]": (
            EvaluationProgress(2, 8)
        ),
        "Evaluation Progress: 3/8 (38%) [940s]": EvaluationProgress(3, 8),
    },
    rejects=("Evaluation Progress: promising", "My Evaluation Progress:  25%|██▌       | 2/8 [10:20<31:00]"),
)
def evaluation_progress(text: str) -> EvaluationProgress | None:
    """The evaluation's bar, by batches: up to hours for long tasks. It restarts with each evaluation."""
    bar = bar_of(text[text.rfind(_EVALUATION) + len(_EVALUATION) :]) if text.startswith(_EVALUATION) else None
    return None if bar is None else EvaluationProgress(bar[0], bar[1])


def bar_of(frame: str) -> tuple[int, int | None, float | None] | None:
    """(done, total, elapsed seconds) of one frame, after its description."""
    counts, _, clock = frame.partition(" [")
    done, slash, rest = counts[counts.rfind("| ") + 1 :].partition("/")
    done = done.strip().removesuffix("it")
    total = rest.partition(" (")[0].strip()
    if not done.isdigit() or (slash and not total.isdigit()):
        return None
    return int(done), int(total) if slash else None, _elapsed(clock)


def _elapsed(clock: str) -> float | None:
    """Seconds of `5412s]`, `31:02<1:33:06, …` or `1:02:03<…`; None where the bar shows none."""
    shown = clock.partition("]")[0].partition("<")[0].partition(",")[0].removesuffix("s")
    if shown.isdigit():
        return float(shown)
    parts = shown.split(":")
    if not all(part.replace(".", "", 1).isdigit() for part in parts):
        return None
    seconds = 0.0
    for part in parts:
        seconds = seconds * 60 + float(part)
    return seconds


PATTERNS = (buffer_progress, step_progress, policy_progress, evaluation_progress)
