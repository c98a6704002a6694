"""The trainer's coming up, its plan, its resume, its orderly end, and what it prints then that only looks like death.

Serves the words Stage and Attempt, and gate A rules 3 and 8.
"""

from typing import Any

from extractors.pattern import Nature, pattern
from extractors.signal import Benign, BringUp, Teardown
from extractors.trainer import Ending, Resumed, StepsPlanned, TrainingDone

_MILESTONES = (
    ("init policy/ref/critic models done", "policy models loaded"),
    ("Initializing process group for RayActorGroup", "policy process group forming"),
    ("Initialized process group for RayActorGroup", "policy process group formed"),
    ("Initialized weight sync state for policy model", "weight sync ready"),
    ("Weight sync ready: policy_workers=", "weight sync ready"),
    ("Mesh Ranks: [", "policy mesh up"),
    ("[weight-sync] ", "weight-sync group forming"),
    ("Generator startup complete", "trajectory runner ready"),
    ("Starting trajectory runner: implementation=", "trajectory runner starting"),
    ("Trajectory runner ready: implementation=", "trajectory runner ready"),
    ("TerminalBenchGenerator startup complete", "generator ready"),
    ("Loading checkpoint from: ", "checkpoint loading"),
    ("InferenceEngineClient initialized with ", "engine client ready"),
    ("InferenceEngineClient HTTP endpoint started on ", "engine endpoint up"),
)


@pattern(
    "trainer",
    Nature.FACT,
    hints=tuple(start for start, _ in _MILESTONES),
    samples={
        "(skyrl_entrypoint pid=5150) 2026-03-04 09:00:00.000 | INFO     | skyrl_train.trainer:build_models:640 - "
        "init policy/ref/critic models done": BringUp("policy models loaded"),
        "Initializing process group for RayActorGroup": BringUp("policy process group forming"),
        "Initialized process group for RayActorGroup": BringUp("policy process group formed"),
        "Initialized weight sync state for policy model and inference engines.": BringUp("weight sync ready"),
        "Weight sync ready: policy_workers=16 inference_engines=4": BringUp("weight sync ready"),
        "Mesh Ranks: [MeshRank(dp=0, sp=0, tp=0, pp=0, world_size=16, dp_size=16, pp_size=1)]": BringUp(
            "policy mesh up"
        ),
        "[weight-sync] hostname=node-7": BringUp("weight-sync group forming"),
        "[weight-sync] get_node_ip_address()=10.0.1.1": BringUp("weight-sync group forming"),
        "[weight-sync] _global_node.node_ip_address=10.0.1.1": BringUp("weight-sync group forming"),
        "[weight-sync] Using master_addr=10.0.1.1, master_port=40123": BringUp("weight-sync group forming"),
        "Generator startup complete": BringUp("trajectory runner ready"),
        "Starting trajectory runner: implementation=HarborRunner": BringUp("trajectory runner starting"),
        "Trajectory runner ready: implementation=HarborRunner": BringUp("trajectory runner ready"),
        "TerminalBenchGenerator startup complete. Shared orchestrator ready with n_concurrent_trials=96": BringUp(
            "generator ready"
        ),
        "Loading checkpoint from: s3://bucket/rl-14b/global_step_12": BringUp("checkpoint loading"),
        "InferenceEngineClient initialized with 4 engines.": BringUp("engine client ready"),
        "InferenceEngineClient HTTP endpoint started on 10.0.1.1:8000": BringUp("engine endpoint up"),
    },
    rejects=("Next: Generator startup complete, then the first batch",),
)
def trainer_coming_up(text: str) -> BringUp | None:
    """A milestone of the trainer's start, printed by the driver (and by policy rank 0 for the weight-sync group).
    It says that bring-up moves, not that training has begun."""
    return next((BringUp(what) for start, what in _MILESTONES if text.startswith(start)), None)


@pattern(
    "trainer",
    Nature.FACT,
    hints=("torch.distributed.get_rank(): ",),
    regex=r"torch\.distributed\.get_rank\(\): \d+, rank_offset: \d+, rank: (\d+), world_size: (\d+), group_name: (\w+)",
    samples={
        "(AsyncVLLMInferenceEngine pid=7001, ip=10.0.1.4) torch.distributed.get_rank(): 0, rank_offset: 3, rank: 3, "
        "world_size: 9, group_name: skyrl": BringUp("weight-sync group rank", done=3, of=9),
    },
    rejects=("torch.distributed.get_rank(): 0",),
)
def weight_sync_rank_joining(found: Any) -> BringUp:
    """An engine worker is about to join the weight-sync group as rank `done` of `of` (engines × TP × PP × DP, and one
    for policy rank 0). It joins after this line: the line is no proof that it got in."""
    return BringUp("weight-sync group rank", done=int(found[1]), of=int(found[2]))


@pattern(
    "trainer",
    Nature.FACT,
    hints=("otal training steps: ",),
    regex=r"(?:Steps per epoch: \d+, t|T)otal training steps: (\d+)",
    samples={
        "Total training steps: 120": StepsPlanned(120),
        "Steps per epoch: 60, total training steps: 120": StepsPlanned(120),
    },
    rejects=("Total training steps: unlimited",),
)
def steps_planned(found: Any) -> StepsPlanned:
    """The trainer's plan, printed once at start. `Number of steps per epoch: …` is no total."""
    return StepsPlanned(int(found[1]))


@pattern(
    "trainer",
    Nature.FACT,
    hints=(
        "Resumed training from global_step ",
        "Resuming from global_step: ",
        "starting training from scratch",
        "Successfully loaded complete checkpoint state from global_step_",
    ),
    regex=r"(?:Resumed training from global_step |Resuming from global_step: "
    r"|Successfully loaded complete checkpoint state from global_step_)(\d+)"
    r"|(?:No checkpoint found|Checkpoint resumption disabled), starting training from scratch",
    samples={
        "Resumed training from global_step 0": Resumed(0),
        "Resuming from global_step: 12": Resumed(12),
        "Successfully loaded complete checkpoint state from global_step_12": Resumed(12),
        "No checkpoint found, starting training from scratch": Resumed(0),
        "Checkpoint resumption disabled, starting training from scratch": Resumed(0),
    },
    rejects=("Resumed training from global_step seven", "I suggest starting training from scratch"),
)
def resumed(found: Any) -> Resumed:
    """Where the trainer goes on. A fresh run also prints `Resumed training from global_step 0`."""
    return Resumed(int(found[1] or 0))


_ENDINGS = (
    ("Training done!", Ending.DONE),
    ("Training already complete on resume", Ending.ALREADY_COMPLETE),
    ("Resumed at global_step ", Ending.ALREADY_COMPLETE),
    ("Reached max training steps (", Ending.MAX_STEPS),
    ("Reached max_training_steps=", Ending.MAX_STEPS),
    ("Training stopped early by callback", Ending.STOPPED_EARLY),
)


@pattern(
    "trainer",
    Nature.PROGRESS,
    hints=tuple(start for start, _ in _ENDINGS),
    samples={
        "2026-03-05 02:00:00.000 | INFO     | skyrl_train.trainer:_train_loop:1329 - Training done!": TrainingDone(
            Ending.DONE
        ),
        "Training already complete on resume — exiting cleanly.": TrainingDone(Ending.ALREADY_COMPLETE),
        "Resumed at global_step 120 >= max training steps (120); run is already COMPLETE.": TrainingDone(
            Ending.ALREADY_COMPLETE
        ),
        "Reached max training steps (120)": TrainingDone(Ending.MAX_STEPS),
        "Reached max_training_steps=120, stopping early.": TrainingDone(Ending.MAX_STEPS),
        "Training stopped early by callback": TrainingDone(Ending.STOPPED_EARLY),
        "Training stopped early by callback at epoch end": TrainingDone(Ending.STOPPED_EARLY),
    },
    rejects=("The log says Training done! at the end", "Resumed at global_step 12 of the plan"),
)
def training_done(text: str) -> TrainingDone | None:
    """The trainer reached its orderly end, in the driver's own words. Without it an exit 0 is no success: an evicted
    head also exits 0."""
    if text.startswith("Resumed at global_step ") and "already COMPLETE" not in text:
        return None
    return next((TrainingDone(how) for start, how in _ENDINGS if text.startswith(start)), None)


_CLOSING = (
    "HTTP endpoint shutdown",
    "Generator shutdown",
    "Trajectory runner shutdown",
    "Trajectory retention shutdown",
    "Teacher oracle shutdown",
    "Expert-block weight sync shutdown",
    "Draft refresh completion",
    "Inference engine teardown",
    "Ray actor cleanup",
)


@pattern(
    "trainer",
    Nature.BENIGN,
    hints=(
        *_CLOSING,
        "_model actors...",
        " inference engine actor(s)",
        "Process still alive ",
        "Shutting down Ray on head node",
    ),
    regex=rf"({'|'.join(_CLOSING)}) (?:complete|timed out after|error \(non-fatal\))"
    r"|(Killing \w+_model actors|Killed \d+ inference engine actor\(s\)|Process still alive \d+s after teardown"
    r"|Shutting down Ray on head node)",
    samples={
        "HTTP endpoint shutdown complete": Teardown("HTTP endpoint shutdown"),
        "Generator shutdown complete": Teardown("Generator shutdown"),
        "Trajectory retention shutdown complete": Teardown("Trajectory retention shutdown"),
        "Teacher oracle shutdown complete": Teardown("Teacher oracle shutdown"),
        "Expert-block weight sync shutdown complete": Teardown("Expert-block weight sync shutdown"),
        "Draft refresh completion complete": Teardown("Draft refresh completion"),
        "Ray actor cleanup complete": Teardown("Ray actor cleanup"),
        "Trajectory runner shutdown timed out after 60s, proceeding with cleanup": Teardown(
            "Trajectory runner shutdown"
        ),
        "Inference engine teardown error (non-fatal): actor is gone": Teardown("Inference engine teardown"),
        "Killing policy_model actors...": Teardown("Killing policy_model actors"),
        "Killed 4 inference engine actor(s)": Teardown("Killed 4 inference engine actor(s)"),
        "Process still alive 120s after teardown — forcing exit to prevent zombie process": Teardown(
            "Process still alive 120s after teardown"
        ),
        "Shutting down Ray on head node...": Teardown("Shutting down Ray on head node"),
    },
    rejects=("Generator shutdown was requested by the agent", "Process still alive after all"),
)
def trainer_closing(found: Any) -> Teardown:
    """The trainer takes itself down, after success and after failure alike: look before it for the reason."""
    return Teardown(found[1] or found[2])


@pattern(
    "trainer",
    Nature.BENIGN,
    hints=(
        "Checkpoint save failed at global step ",
        " unconsumed generation output(s)",
        " orphaned generator tasks",
        " generation buffer items from checkpoint",
        " pending retries from checkpoint",
    ),
    regex=r"(Checkpoint save failed at global step \d+; continuing)"
    r"|(Drained|Cancelling) (\d+) (?:unconsumed generation output\(s\)|orphaned generator tasks)"
    r"|(Restored) (\d+) (?:generation buffer items|completed, .{0,200}?pending retries) from checkpoint",
    samples={
        "Checkpoint save failed at global step 12; continuing from the last complete checkpoint": Benign(
            "checkpoint-save-failed"
        ),
        "Drained 5 unconsumed generation output(s) at epoch boundary (global_step=60)": Benign("epoch-boundary", 5),
        "Cancelling 9 orphaned generator tasks": Benign("epoch-boundary", 9),
        "Restored 14 generation buffer items from checkpoint": Benign("buffer-restored", 14),
        "Restored 14 completed, 3 admitted generation groups, and 1 pending retries from checkpoint": Benign(
            "buffer-restored", 14
        ),
    },
    rejects=("Checkpoint save failed at global step 12; giving up",),
)
def trainer_benign(found: Any) -> Benign:
    """Trainer lines that read like loss and are designed: a storage error of a checkpoint (training goes on), the
    clearing of an epoch's boundary, a restored buffer."""
    if found[1]:
        return Benign("checkpoint-save-failed")
    return Benign("buffer-restored", int(found[5])) if found[4] else Benign("epoch-boundary", int(found[3]))


PATTERNS = (
    trainer_coming_up,
    weight_sync_rank_joining,
    steps_planned,
    resumed,
    training_done,
    trainer_closing,
    trainer_benign,
)
