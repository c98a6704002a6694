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
"""The least that a phase of each stage may take without progress."""
CADENCE_FACTOR = 3.0
"""The allowance of a phase is the larger of its floor and this many times its longest completed duration."""
UNSEEN_PHASE_FACTOR = 2.0
"""A phase seen for the first time has this many times its floor (bring-up never)."""

STATE_POLL_INTERVAL_UNKNOWN = 10 * MINUTE
"""The age that a state poll may have where too few polls show their interval."""
STATE_POLL_MAX_INTERVALS = 3
"""A state poll may be so many of its own intervals old."""
ABORTED_ALLOWANCE = 15 * MINUTE
"""Silence that is enough after a signature that itself ended a policy process."""
STACKS_MIN_APART = MINUTE
"""Two stack captures this far apart in the same frames show that a process stands still."""
EMPTY_PODS_MIN_APART = 2 * MINUTE
"""Two empty pod lists this far apart end a job whose state poll says running."""
DONE_NOT_EXITED = 15 * MINUTE
"""A job that still runs so long after its trainer was done is wedged."""

GPU_POLL_MAX_AGE = 15 * MINUTE
"""An older GPU poll says nothing of the present."""
GENERATION_WINDOW = 10 * MINUTE
"""Engine lines and the buffer are judged over this much of generation."""
STAGE_SETTLES = MINUTE
"""A stage that began within this has not shown itself yet: engines print every 10 s at best."""
FIRST_TRIAL_ALLOWANCE = 90 * MINUTE
"""What the first trials may take to complete; with none scored after it, none is expected any more."""
SLOT = 10 * MINUTE
"""The width of the slots in which exceptions are counted."""
BEAT = 10.0
"""The stream is cut, and the gates are weighed, every so many seconds of event time."""


def slot_of(at_us: int) -> int:
    """The start of the 10-minute slot, aligned to the hour, that holds a time (both in microseconds)."""
    return at_us - at_us % int(SLOT * SECOND_US)


# --- gate B (GATES, Gate B)
OOM_FATAL_SHARE = 0.25
"""This share of the open phase's allowance without progress makes an out-of-memory fatal."""
OOM_FATAL_AT_LEAST = 5 * MINUTE
"""But not a shorter silence than this."""
RAM_WARNING_SHARE = 0.95
"""From this share of its limit on, host memory is a warning in the reason."""
IDLE_UTILIZATION_PERCENT = 5.0
"""A GPU up to this utilisation counts as idle."""
BACKPRESSURE_STEPS = 3
"""So many newest steps say how long the trainer waits for the buffer."""
BACKPRESSURE_WAIT_SHARE = 0.05
"""A trainer that waits less than this share of its steps for the buffer is the slow side itself."""
STARVED_RUNNING_SHARE = 0.15
"""Engines are hungry up to this share of their decode slots, summed over the fleet."""
STARVED_IDLE_LINES = 0.9
"""And nothing may wait on this share of their lines."""
STARVED_KV_PERCENT = 10.0
"""And no KV cache may be fuller than this."""
STARVED_RATE_SHARE = 0.25
"""And the buffer must rise slower than this share of its own earlier rate."""
GROUPS_EXPECTED = 8.0
"""Where no bar counts the groups: so many must be due within 10 min for their absence to mean anything."""
DISPATCHER_BOUND_PERCENT = 90.0
"""Of one core: a coordinator is one Python process and can't use more."""
THRASHING_WAITING_FACTOR = 4.0
"""Engines thrash where so many times more requests wait than run."""
FLAT_SHARE = 0.1
"""A throughput that changes by no more than this share is flat."""
FLOOR_RUNNING = 8
"""Below this many running requests a low rate says nothing of the engine."""
FLOOR_LINES = 0.8
"""An engine is below its floor where this share of its lines is."""
DENSE_FLOORS: tuple[tuple[float, float], ...] = ((10.0, 500.0), (20.0, 400.0), (40.0, 200.0))
"""Least tokens per second of one engine on an H100-class GPU, dense models, by billions of parameters."""
MOE_FLOORS: tuple[tuple[float, float], ...] = ((8.0, 500.0), (30.0, 200.0))
"""The same for mixture-of-experts models, by billions of active parameters."""
H100_MEMORY_MIB = 79_000.0
"""Memory from which on a GPU is taken for H100-class."""
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
PRESENT_SHARE = 0.10
"""And from this share of the fullest slot's on: nor are a few of many."""
BURST_SHARE = 0.80
"""An exception of which this share lies inside one slot is a burst."""
CLEAN_SHARE = 0.10
"""Attempts beside a burst are clean up to this share of its exception."""
BURST_NOTED = 5
"""A burst of so many is noted."""
CONTAINER_SHARE = 0.95
"""Share of ended attempts with the add-tests error that is a container fault."""
INFRA_SHARE = 0.90
"""Share of ended attempts with one other infrastructure exception that is an infrastructure fault."""
INFRA_SLOTS = 2
"""Slots in which it must be present: fewer are a burst."""
VERIFIER_SHARE = 0.90
"""Share of scored attempts with a verifier's error that is a verifier fault."""
INCOHERENT_SHARE = 0.50
"""Share of read outputs that are no language which is a fault of the weights."""
INCOHERENT_FEWEST = 5
"""Outputs that must have been read for it."""
DEAD_LOOP_TURNS = 1.2
"""Up to so many turns on average, agents don't act."""
DEAD_LOOP_EMPTY = 0.80
"""Nor where this share of their outputs is empty."""
MANY_COMPLETED = 64
"""Completed attempts after which rewards that are all 0 are no accident."""
NO_REWARD_STEPS = 10
"""Steps whose reward metrics are all 0 that are a failure in standard mode: the window that gate D asks for."""
CHURN_SETUP_SECONDS = 10.0
"""A longer p90 of sandbox setup, in seconds, is churn."""
CHURN_SHARE = 0.10
"""So is a larger median share of a trial spent on the sandbox's life cycle."""

# --- Gate D
WINDOW_FEWEST = 10
"""Completed steps below which nothing is said of the dynamics."""
SIGNS_NEEDED = 2
"""Signs of collapse that must hold together."""
NON_FINITE_STEPS = 2
"""Steps with a non-finite loss or gradient in the newest third that are collapse by themselves."""
BLOWN_STEPS = 2
"""Steps in which a value must be blown."""
GRAD_NORM_CEILING = 1.0
"""A raw gradient norm above this is blown."""
MEDIAN_FACTOR = 2.0
"""A gradient norm or log ratio is blown above this many times its window median."""
ENTROPY_OFF = 0.30
"""Entropy off its trend by more than this share is a sign."""
TREND_STEPS = 10
"""Steps before the newest third whose median is the trend."""
LEADING_FACTOR = 1.5
"""A wait for the buffer grows where the newest third's mean is so many times the mean before it."""
LOOP_LAG_SECONDS = 1.0
"""An event loop that answers so late (95th percentile, in seconds) keeps requests from the engines."""
TREND_FEWEST = 5
"""Steps that a trend needs at least."""
PASS_RATE_FLOOR = 0.10
"""A pass rate that fell below this is a sign."""
PASS_WINDOW = 100
"""Scored attempts over which a pass rate is taken."""
PASS_FEWEST = 20
"""Scored attempts that a pass rate needs at least."""
REWARDS_FEWEST = 30
"""Scored attempts that are compared by thirds at least."""
