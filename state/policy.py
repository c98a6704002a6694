"""Every threshold, with unit and reason (GATES.md), and the stage that each trainer phase belongs to.

Durations are seconds.
"""

from enum import StrEnum

SECOND_US = 1_000_000
MINUTE = 60.0
HOUR = 3600.0


class Stage(StrEnum):
    """What the trainer is about, named by its innermost open phase."""

    BRING_UP = "bring_up"
    GENERATION = "generation"
    TRAINING = "training"
    WEIGHT_SYNC = "weight_sync"
    CHECKPOINT = "checkpoint"
    EVALUATION = "evaluation"
    OVER = "over"


PHASE_STAGES: dict[str, Stage] = {
    "generate": Stage.GENERATION,
    "wait_for_generation_buffer": Stage.GENERATION,
    "wait_for_teacher_evidence": Stage.GENERATION,
    "assemble_generation_group_mini_batch": Stage.GENERATION,
    "postprocess_generator_output": Stage.TRAINING,
    "sync_weights": Stage.WEIGHT_SYNC,
    "sync_weights_to_inference_engines": Stage.WEIGHT_SYNC,
    "init_weight_sync_state": Stage.WEIGHT_SYNC,
    "weight_broadcast": Stage.WEIGHT_SYNC,
    "weight_pause": Stage.WEIGHT_SYNC,
    "weight_resume": Stage.WEIGHT_SYNC,
    "policy_startup_drain": Stage.WEIGHT_SYNC,
    "policy_pre_sync_drain": Stage.WEIGHT_SYNC,
    "policy_post_sync_drain": Stage.WEIGHT_SYNC,
    "offload_policy_model_to_cpu": Stage.WEIGHT_SYNC,
    "offload_policy_optimizer_to_cpu": Stage.WEIGHT_SYNC,
    "load_checkpoints": Stage.CHECKPOINT,
    "save_checkpoints": Stage.CHECKPOINT,
    "save_checkpoint": Stage.CHECKPOINT,
    "cleanup_old_checkpoints": Stage.CHECKPOINT,
    "save_hf_model": Stage.CHECKPOINT,
    "eval": Stage.EVALUATION,
    "log_eval_results": Stage.EVALUATION,
    "dump_eval_results": Stage.EVALUATION,
}
"""Phases not named here are training phases; `step` itself keeps the stage of its newest inner phase."""

STAGE_FLOORS: dict[Stage, float] = {
    Stage.BRING_UP: 60 * MINUTE,
    Stage.GENERATION: 30 * MINUTE,
    Stage.TRAINING: 90 * MINUTE,
    Stage.WEIGHT_SYNC: 30 * MINUTE,
    Stage.CHECKPOINT: 45 * MINUTE,
    Stage.EVALUATION: 120 * MINUTE,
}
CADENCE_FACTOR = 3.0
"""The allowance of a phase is the larger of its floor and this many times its longest completed duration."""
UNSEEN_PHASE_FACTOR = 2.0
"""A phase seen for the first time has this many times its floor (bring-up never)."""

STATE_POLL_INTERVAL_UNKNOWN = 10 * MINUTE
STATE_POLL_MAX_INTERVALS = 3
ABORTED_ALLOWANCE = 15 * MINUTE
"""Silence that is enough after a signature that itself ended a policy process."""
STACKS_MIN_APART = 60.0
EMPTY_PODS_MIN_APART = 2 * MINUTE
DONE_NOT_EXITED = 15 * MINUTE

GPU_POLL_MAX_AGE = 15 * MINUTE
GENERATION_WINDOW = 10 * MINUTE
FIRST_TRIAL_ALLOWANCE = 90 * MINUTE
SLOT = 10 * MINUTE
BEAT = 10.0


def slot_of(at_us: int) -> int:
    """The start of the 10-minute slot, aligned to the hour, that holds a time (both in microseconds)."""
    return at_us - at_us % int(SLOT * SECOND_US)


# --- gate B (GATES, Gate B)
OOM_FATAL_SHARE = 0.25
OOM_FATAL_AT_LEAST = 5 * MINUTE
"""This share of the open phase's allowance without progress, and at least five minutes, make an OOM fatal."""
RAM_WARNING_SHARE = 0.95
IDLE_UTILIZATION_PERCENT = 5.0
BACKPRESSURE_STEPS = 3
BACKPRESSURE_WAIT_SHARE = 0.05
"""A trainer that waits less than this share of its steps for the buffer is the slow side itself."""
STARVED_RUNNING_SHARE = 0.15
STARVED_IDLE_LINES = 0.9
STARVED_KV_PERCENT = 10.0
STARVED_RATE_SHARE = 0.25
DISPATCHER_BOUND_PERCENT = 90.0
"""Of one core: a coordinator is one Python process and can't use more."""
THRASHING_WAITING_FACTOR = 4.0
FLAT_SHARE = 0.1
FLOOR_RUNNING = 8
"""Below this many running requests a low rate says nothing of the engine."""
FLOOR_LINES = 0.8
DENSE_FLOORS: tuple[tuple[float, float], ...] = ((10.0, 500.0), (20.0, 400.0), (40.0, 200.0))
MOE_FLOORS: tuple[tuple[float, float], ...] = ((8.0, 500.0), (30.0, 200.0))
"""Tokens per second of one engine on an H100-class GPU, by billions of (active) parameters up to the first number."""
H100_MEMORY_MIB = 79_000.0
ENGINE_FRESH = 2 * MINUTE
"""Within this an engine's line counts as fresh: four intervals of 30 s."""

# --- Gate C
ENDED_FEWEST = 20
"""Ended attempts below which no rate is said."""
PREVAILING_SLOTS = 3
"""An outage that began late prevails when it fills so many newest slots. Two would not do: a burst may straddle the
border between them."""
PRESENT_FEWEST = 2
"""An exception is present in a slot from so many on: one straggler over the border is none."""
BURST_SHARE = 0.80
CLEAN_SHARE = 0.10
"""Attempts beside a burst are clean up to this share of its exception."""
BURST_NOTED = 5
CONTAINER_SHARE = 0.95
INFRA_SHARE = 0.90
INFRA_SLOTS = 2
VERIFIER_SHARE = 0.90
INCOHERENT_SHARE = 0.50
INCOHERENT_FEWEST = 5
DEAD_LOOP_TURNS = 1.2
DEAD_LOOP_EMPTY = 0.80
MANY_COMPLETED = 64
NO_REWARD_STEPS = 10
"""Steps whose reward metrics are all 0 that are a failure in standard mode: the window that gate D asks for."""
CHURN_SETUP_SECONDS = 10.0
CHURN_SHARE = 0.10

# --- Gate D
WINDOW_FEWEST = 10
"""Completed steps below which nothing is said of the dynamics."""
SIGNS_NEEDED = 2
NON_FINITE_STEPS = 2
"""Steps with a non-finite loss or gradient in the newest third that are collapse by themselves."""
BLOWN_STEPS = 2
GRAD_NORM_CEILING = 1.0
MEDIAN_FACTOR = 2.0
"""A gradient norm or log ratio is blown above this many times its window median."""
ENTROPY_OFF = 0.30
TREND_STEPS = 10
TREND_FEWEST = 5
PASS_RATE_FLOOR = 0.10
PASS_WINDOW = 100
PASS_FEWEST = 20
"""Scored attempts that a pass rate needs at least."""
REWARDS_FEWEST = 30
"""Scored attempts that are compared by thirds at least."""
