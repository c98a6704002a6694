"""Harbor's rollout side as it logs in the coordinators and the entry task: trajectories and batches, never job faults.

The trial artifacts themselves are read in `harbor_trials`; these lines are only heartbeats of the same matter.
"""

from typing import Any

import msgspec

from extractors.pattern import Nature, Role, pattern
from extractors.signal import Benign, BringUp, Fault


class TrajectoryFailed(msgspec.Struct, frozen=True):
    """A trajectory ended badly. exception is Harbor's type name, "" where the line does not say it; excluded tells
    whether it is left out of the baseline (masked), None where not said."""

    exception: str
    excluded: bool | None


class TrajectoryPassed(msgspec.Struct, frozen=True):
    """A trajectory ended with an exception that passes through: the verifier's reward counts."""


class BatchCompleted(msgspec.Struct, frozen=True):
    """A generation batch ended: trajectories that succeeded, of how many, failed instances, masked ones."""

    successful: int
    total: int
    failed: int
    masked: int


class RolloutsStarted(msgspec.Struct, frozen=True):
    """A generation batch of so many trials began."""

    trials: int


_TRAJECTORY = "Trajectory TrajectoryID("


@pattern(
    "harbor",
    Nature.HEARTBEAT,
    hints=(_TRAJECTORY,),
    samples={
        "(RolloutCoordinator pid=8001) 2026-03-04 09:20:00.000 | INFO     | tbench.generator:_process:700 - Trajectory "
        "TrajectoryID(instance_id='/data/t-1', repetition_id=3) classified as PASSTHROUGH, using verifier reward": (
            TrajectoryPassed()
        ),
        "Trajectory TrajectoryID(instance_id='/data/t-1', repetition_id=3): AgentTimeoutError classified as "
        "PASSTHROUGH, using verifier reward": TrajectoryPassed(),
    },
    rejects=(
        "Trajectory TrajectoryID(instance_id='/data/t-1', repetition_id=0) classified as ZERO",
        "The Trajectory TrajectoryID(1) is classified as PASSTHROUGH, using verifier reward",
    ),
)
def trajectory_passed(text: str) -> TrajectoryPassed | None:
    """A trajectory's exception is of a kind that the harness passes through: benign, and it counts as scored."""
    passed = text.startswith(_TRAJECTORY) and "classified as PASSTHROUGH, using verifier reward" in text
    return TrajectoryPassed() if passed else None


@pattern(
    "harbor",
    Nature.HEARTBEAT,
    hints=(_TRAJECTORY,),
    samples={
        "(RolloutCoordinator pid=8001) 2026-03-04 09:20:00.000 | WARNING  | tbench.generator:_process:812 - Trajectory "
        "TrajectoryID(instance_id='/data/t-2', repetition_id=0) failed with Harbor exception: Agent execution timed "
        "out after 900.0 seconds (type=AgentTimeoutError, exclude_from_baseline=False)": TrajectoryFailed(
            "AgentTimeoutError", False
        ),
        "Trajectory TrajectoryID(instance_id='/data/t-2', repetition_id=1) failed with exception: no sandbox "
        "(type=DaytonaError, exclude_from_baseline=True)": TrajectoryFailed("DaytonaError", True),
        "Trajectory TrajectoryID(instance_id='/data/t-2', repetition_id=2) failed during result processing (NOT fatal "
        "— skipping this trial): list index out of range": TrajectoryFailed("", None),
        "Trajectory TrajectoryID(instance_id='/data/t-2', repetition_id=3): AgentTimeoutError classified as "
        "PASSTHROUGH but no verifier result available, masking instead": TrajectoryFailed("AgentTimeoutError", True),
        "Trajectory TrajectoryID(instance_id='/data/t-2', repetition_id=4) failed: No verifier result and no exception "
        "info. Results: None": TrajectoryFailed("", None),
    },
    rejects=("Trajectory TrajectoryID(instance_id='/data/t-2', repetition_id=5) queued",),
)
def trajectory_failed(text: str) -> TrajectoryFailed | None:
    """One trajectory ended badly (`terminal_bench_generator`). An agent's outcome, not a job fault; what happened to
    the trial is in its artifacts."""
    if not text.startswith(_TRAJECTORY):
        return None
    head, masked, _ = text.partition(" classified as PASSTHROUGH but no verifier result")
    if masked:
        return TrajectoryFailed(head.rpartition("): ")[2] if "): " in head else "", True)
    if ") failed" not in text:
        return None
    _, typed, tail = text.rpartition("(type=")
    if not typed:
        return TrajectoryFailed("", None)
    exception, _, excluded = tail.rstrip(")").partition(", exclude_from_baseline=")
    return TrajectoryFailed(exception, {"True": True, "False": False}.get(excluded))


@pattern(
    "harbor",
    Nature.HEARTBEAT,
    hints=("Batch generation complete: ",),
    regex=r"Batch generation complete: (\d+)/(\d+) successful, (\d+) failed instances(?:, (\d+) masked)?",
    samples={
        "Batch generation complete: 6/8 successful, 1 failed instances, 1 masked (excluded from baseline)": (
            BatchCompleted(6, 8, 1, 1)
        ),
        "Batch generation complete: 8/8 successful, 0 failed instances": BatchCompleted(8, 8, 0, 0),
    },
    rejects=("Batch generation complete: all fine",),
)
def batch_completed(found: Any) -> BatchCompleted:
    """A coordinator's batch (one prompt's repetitions, as a rule) came back. It is not a training step."""
    return BatchCompleted(int(found[1]), int(found[2]), int(found[3]), int(found[4] or 0))


@pattern(
    "harbor",
    Nature.HEARTBEAT,
    hints=("Starting batch generation for ",),
    regex=r"Starting batch generation for (\d+) trials",
    samples={
        "Starting batch generation for 8 trials (mode=training)": RolloutsStarted(8),
        "Starting batch generation for 96 trials (mode=eval (session-2))": RolloutsStarted(96),
    },
    rejects=("Starting batch generation for every trial",),
)
def rollouts_started(found: Any) -> RolloutsStarted:
    """A coordinator hands a batch to its orchestrator. Whether a sandbox comes up is told by the trials."""
    return RolloutsStarted(int(found[1]))


@pattern(
    "harbor",
    Nature.BENIGN,
    hints=("Exception breakdown: {",),
    regex=r"Exception breakdown: (\{[^}\n]*\})",
    samples={"Exception breakdown: {'AgentTimeoutError': 3, 'DaytonaError': 1}": Benign("exception-breakdown", 4)},
    rejects=("Exception breakdown: {see below",),
)
def exception_breakdown(found: Any) -> Benign:
    """A batch's exceptions by type (a Python dict). A count of agents' outcomes: nobody opened a trial for it."""
    counts = (pair.rpartition(":")[2].strip() for pair in found[1].strip("{}").split(","))
    return Benign("exception-breakdown", sum(int(count) for count in counts if count.isdigit()))


@pattern(
    "harbor",
    Nature.BENIGN,
    hints=("Failed to upload agent logs back to environment", "endpoint-scoped token cannot access this endpoint"),
    regex=r"[^\n]{0,300}?(?:Failed to upload agent logs back to environment"
    r"|endpoint-scoped token cannot access this endpoint)",
    samples={
        "Failed to upload agent logs back to environment": Benign("trial-teardown"),
        "daytona.errors.DaytonaError: Forbidden: endpoint-scoped token cannot access this endpoint": Benign(
            "trial-teardown"
        ),
    },
    rejects=("x" * 400 + " Failed to upload agent logs back to environment",),
)
def trial_teardown(found: Any) -> Benign:
    """A trial is being taken down and its sandbox no longer answers. It is no authentication fault of the job."""
    return Benign("trial-teardown")


@pattern(
    "harbor",
    Nature.FACT,
    hints=("[RolloutDispatcher] ", "[RolloutCoordinator "),
    regex=r"\[RolloutDispatcher\] (?:coordinator (\d+)/(\d+)|(\d+) coordinators) started"
    r"|\[RolloutCoordinator \d+\] startup complete",
    samples={
        "[RolloutDispatcher] coordinator 1/4 started": BringUp("rollout coordinator", done=1, of=4),
        "[RolloutDispatcher] 4 coordinators started": BringUp("rollout coordinator", done=4, of=4),
        "[RolloutCoordinator 2] startup complete": BringUp("rollout coordinator"),
    },
    rejects=("[RolloutCoordinator 2] shutdown complete", "[RolloutDispatcher] PlacementGroup ready: 4 bundles x 8 CPU"),
)
def coordinator_started(found: Any) -> BringUp:
    """A rollout coordinator is up. The aggregated log shows few of them: Ray swallows the others' copies."""
    of = found[2] or found[3]
    return BringUp("rollout coordinator", *((int(found[1] or of), int(of)) if of else (None, None)))


@pattern(
    "harbor",
    Nature.FAULT,
    role=Role.EITHER,
    hints=(
        "Orchestrator-level failure during batch ",
        "Max orchestrator restart attempts (",
        "Emergency orchestrator restart failed",
        "INFRASTRUCTURE FAILURE [",
    ),
    regex=r"(Orchestrator-level failure)[^:\n]*: (\w+): ([^\n]*)"
    r"|(Max orchestrator restart attempts|Emergency orchestrator restart failed|INFRASTRUCTURE FAILURE \[(\w+)\])",
    samples={
        "Orchestrator-level failure during batch submission/gather: RuntimeError: queue is closed": Fault(
            "generator_failed", detail="Orchestrator-level failure: queue is closed", exception="RuntimeError"
        ),
        "Max orchestrator restart attempts (3) exceeded. Giving up.": Fault(
            "generator_failed", detail="Max orchestrator restart attempts"
        ),
        "Emergency orchestrator restart failed. Returning all-failed output.": Fault(
            "generator_failed", detail="Emergency orchestrator restart failed"
        ),
        "INFRASTRUCTURE FAILURE [AddTestsDirError]: aborting the batch": Fault(
            "generator_failed", detail="INFRASTRUCTURE FAILURE [AddTestsDirError]", exception="AddTestsDirError"
        ),
    },
    rejects=("Restarting QueueOrchestrator (attempt 1/3) after Orchestrator-level failure during batch submission",),
)
def orchestrator_failed(found: Any) -> Fault:
    """Harbor's orchestrator itself failed, and the batch comes back all-failed or aborts the job. It restarts a few
    times by itself: with later progress the failure was handled."""
    if found[1]:
        return Fault("generator_failed", detail=f"{found[1]}: {found[3]}"[:240], exception=found[2])
    return Fault("generator_failed", detail=found[4], exception=found[5] or "")


PATTERNS = (
    trajectory_passed,
    trajectory_failed,
    batch_completed,
    rollouts_started,
    exception_breakdown,
    trial_teardown,
    coordinator_started,
    orchestrator_failed,
)
