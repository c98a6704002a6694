"""The trainer's own reports of failure. Most repeat a cause that stands elsewhere: the traceback is the better witness.

Serves GATES.md, Causal roles, and gate A rules 4 and 5.
"""

from typing import Any

from extractors.pattern import Nature, Role, pattern
from extractors.signal import Fault

DETAIL_CHARACTERS = 240


@pattern(
    "trainer",
    Nature.FAULT,
    role=Role.CASCADE,
    hints=("Train loop failed at global_step ", "Training failed: ", "init_weight_sync_state failed at Ray boundary: "),
    regex=r"(?:Train loop failed at global_step \d+:?|Training failed:"
    r"|(?:RuntimeError: )?(init_weight_sync_state) failed at Ray boundary:)\s*([^\n]*)",
    samples={
        "2026-03-04 12:00:00.000 | ERROR    | skyrl_train.fully_async_trainer:train:312 - Train loop failed at "
        "global_step 9: shape mismatch in policy batch": Fault(
            "train_loop_failed", detail="shape mismatch in policy batch"
        ),
        "Train loop failed at global_step 9:": Fault("train_loop_failed"),
        "Training failed: ray::skyrl_entrypoint() (pid=5150, ip=10.0.1.1)": Fault(
            "train_loop_failed", detail="ray::skyrl_entrypoint() (pid=5150, ip=10.0.1.1)"
        ),
        "init_weight_sync_state failed at Ray boundary: RayTaskError('no route')": Fault(
            "train_loop_failed", detail="RayTaskError('no route')", site="init_weight_sync_state"
        ),
        "RuntimeError: init_weight_sync_state failed at Ray boundary: RayTaskError('no route')": Fault(
            "train_loop_failed", detail="RayTaskError('no route')", site="init_weight_sync_state"
        ),
    },
    rejects=("The note says: Training failed: loss is nan", "Train loop failed at global_step two"),
)
def train_loop_failed(found: Any) -> Fault:
    """The driver reports that its loop failed. The reason is the traceback that follows or an earlier error: this
    line is a consequence and must not be taken for the first cause while one of them is on file."""
    return Fault("train_loop_failed", detail=found[2][:DETAIL_CHARACTERS], site=found[1] or "")


@pattern(
    "trainer",
    Nature.FAULT,
    role=Role.EITHER,
    hints=(
        "Generator worker errored out with exception: ",
        "Trajectory worker failed:",
        "A rollout producer failed",
        "Generator startup failed: ",
        "Trajectory runner startup failed: ",
    ),
    regex=r"(?:\w+Error: )?(?:Generator worker errored out with exception:|Trajectory worker failed:"
    r"|A rollout producer failed|Generator startup failed:|Trajectory runner startup failed:)\s*([^\n]*)",
    samples={
        "Generator worker errored out with exception: connection pool is closed": Fault(
            "generator_failed", detail="connection pool is closed"
        ),
        "Trajectory worker failed:": Fault("generator_failed"),
        "RuntimeError: A rollout producer failed": Fault("generator_failed"),
        "Generator startup failed: no endpoint": Fault("generator_failed", detail="no endpoint"),
        "Trajectory runner startup failed: no endpoint": Fault("generator_failed", detail="no endpoint"),
    },
    rejects=("The Trajectory worker failed: node 3 took over",),
)
def generator_failed(found: Any) -> Fault:
    """The rollout side ended the job (`sys.exit(1)` follows in older builds). Root only if nothing earlier explains
    it: a dead engine or actor makes it fail too. Single trajectories that fail are Harbor's lines, not this."""
    return Fault("generator_failed", detail=found[1][:DETAIL_CHARACTERS])


@pattern(
    "trainer",
    Nature.FAULT,
    role=Role.EITHER,
    hints=(
        "Generation stalled: no groups admitted for ",
        "Trajectory worker exiting: collection stalled",
        "Generation exhausted its dataset before assembling",
    ),
    regex=r"(?:(?:[\w.]+\.)?(\w+Error): )?(Generation stalled: no groups admitted for [^;\n]*"
    r"|Trajectory worker exiting: collection stalled|Generation exhausted its dataset before assembling)",
    samples={
        "skyrl_train.fully_async_trainer.GenerationStalledError: Generation stalled: no groups admitted for 1800.0s; "
        "active_producers=12, rejected_completions={}": Fault(
            "generation_stalled",
            detail="Generation stalled: no groups admitted for 1800.0s",
            exception="GenerationStalledError",
        ),
        "GroupAdmissionStalledError: Generation stalled: no groups admitted for 640s; active_producers=0": Fault(
            "generation_stalled",
            detail="Generation stalled: no groups admitted for 640s",
            exception="GroupAdmissionStalledError",
        ),
        "Trajectory worker exiting: collection stalled (no groups in 1800s)": Fault(
            "generation_stalled", detail="Trajectory worker exiting: collection stalled"
        ),
        "RuntimeError: Generation exhausted its dataset before assembling 32 groups": Fault(
            "generation_stalled",
            detail="Generation exhausted its dataset before assembling",
            exception="RuntimeError",
        ),
    },
    rejects=("Maybe Generation stalled: no groups admitted for a while",),
)
def generation_stalled(found: Any) -> Fault:
    """The trainer's own deadline for new groups ran out (1800 s at first, then max(600 s, 5 × median step)), and it
    ends itself. What kept the groups away may stand earlier."""
    return Fault("generation_stalled", detail=found[2], exception=found[1] or "")


@pattern(
    "trainer",
    Nature.FAULT,
    role=Role.EITHER,
    hints=("terminating model actors and failing the training job",),
    regex=r"(?:RuntimeError: )?((?:policy|ref|reference|critic)[\w/ ]*) timed out after (\d+)(?:\.\d+)? seconds; "
    r"terminating model actors",
    samples={
        "policy/ref/critic model initialization timed out after 1800 seconds; terminating model actors and failing "
        "the training job": Fault(
            "model_init_timeout", detail="timed out after 1800 s", entity="policy/ref/critic model initialization"
        ),
        "policy model finalization timed out after 900.0 seconds; terminating model actors and failing the training "
        "job": Fault("model_init_timeout", detail="timed out after 900 s", entity="policy model finalization"),
        "RuntimeError: reference model offload timed out after 900 seconds; terminating model actors and failing the "
        "training job": Fault("model_init_timeout", detail="timed out after 900 s", entity="reference model offload"),
    },
    rejects=("It is terminating model actors and failing the training job",),
)
def model_init_timeout(found: Any) -> Fault:
    """A set-up phase of the model actors passed the trainer's own bring-up deadline, and the job ends."""
    return Fault("model_init_timeout", detail=f"timed out after {found[2]} s", entity=found[1])


@pattern(
    "trainer",
    Nature.FAULT,
    role=Role.EITHER,
    hints=("DispatchPutTimeoutError",),
    regex=r"(?:[\w.]+\.)?(DispatchPutTimeoutError)(?:: ([^\n]*?)(?: \(SKYRL_|$)|\s*$)",
    samples={
        "skyrl_train.distributed.dispatch.DispatchPutTimeoutError: ray.put() for dp chunk 1 did not return within 600s "
        "(SKYRL_DISPATCH_PUT_TIMEOUT_S).": Fault(
            "bounded_put_timeout",
            detail="ray.put() for dp chunk 1 did not return within 600s",
            exception="DispatchPutTimeoutError",
        ),
        "DispatchPutTimeoutError": Fault("bounded_put_timeout", exception="DispatchPutTimeoutError"),
    },
    rejects=("raise DispatchPutTimeoutError: see the dispatcher",),
)
def bounded_put_timeout(found: Any) -> Fault:
    """The driver's bounded `ray.put` of a dispatch chunk did not return (MarinSkyRL, 2026-07 on): ranks of the later
    chunks never get their call. The full object store behind it may stand earlier."""
    return Fault("bounded_put_timeout", detail=(found[2] or "")[:DETAIL_CHARACTERS], exception=found[1])


@pattern(
    "trainer",
    Nature.FAULT,
    role=Role.EITHER,
    hints=("Received SIGTERM on head node",),
    regex=r"Received SIGTERM on head node",
    samples={
        "2026-03-04 13:00:00.000 | WARNING  | __main__:_sigterm_handler:61 - Received SIGTERM on head node, shutting "
        "down Ray...": Fault("external_signal", detail="SIGTERM to the training driver"),
    },
    rejects=("It has Received SIGTERM on head node 3",),
)
def driver_signalled(found: Any) -> Fault:
    """The training driver was told to end from outside (eviction, pre-emption, a person, or its own supervisor's
    teardown). With an earlier error on file it is only the end of that."""
    return Fault("external_signal", detail="SIGTERM to the training driver")


PATTERNS = (
    train_loop_failed,
    generator_failed,
    generation_stalled,
    model_init_timeout,
    bounded_put_timeout,
    driver_signalled,
)
