"""What the task supervisor reports as failure: the Ray rendezvous, nodes that never join, a signal from outside."""

from typing import Any

from extractors.pattern import Nature, Role, pattern
from extractors.signal import Fault

_SAYS = r"(?:\[(?:task-runtime|start_(?:rl|vllm)_iris_controller)\] )"


@pattern(
    "supervisor",
    Nature.FAULT,
    role=Role.EITHER,
    hints=(
        "Rendezvous write STALLED ",
        "Rendezvous write FAILED after ",
        "failed to publish the rendezvous to ",
        " waiting for rank-0 rendezvous at ",
    ),
    regex=rf"{_SAYS}?(?:(RuntimeError|TimeoutError): )?(Rendezvous write STALLED|Rendezvous write FAILED"
    r"|Rank-(0) failed to publish the rendezvous|Worker rank (\d+) timed out after \d+s waiting for rank-0 rendezvous)",
    samples={
        "[task-runtime] Rendezvous write STALLED — timed out after 30.0s (attempt 1/5); object-store PutObject to "
        "s3://b/run is not completing.": Fault("rendezvous_failed", detail="Rendezvous write STALLED"),
        "[start_rl_iris_controller] Rendezvous write FAILED after 2.1s (attempt 3/5): OSError('denied')": Fault(
            "rendezvous_failed", detail="Rendezvous write FAILED"
        ),
        "RuntimeError: Rank-0 failed to publish the rendezvous to s3://b/run after 5 attempts": Fault(
            "rendezvous_failed",
            detail="Rank-0 failed to publish the rendezvous",
            exception="RuntimeError",
            entity="task rank 0",
        ),
        "TimeoutError: Worker rank 5 timed out after 1800s waiting for rank-0 rendezvous at s3://b/run": Fault(
            "rendezvous_failed",
            detail="Worker rank 5 timed out after 1800s waiting for rank-0 rendezvous",
            exception="TimeoutError",
            entity="task rank 5",
        ),
    },
    rejects=("[task-runtime] Retrying: the last Rendezvous write FAILED after all",),
)
def rendezvous_failed(found: Any) -> Fault:
    """The head could not publish its address, or a worker never saw it. A single stalled write is tried again, up to
    five times: with a node that joins afterwards it was handled."""
    rank = found[3] or found[4]
    entity = f"task rank {rank}" if rank else ""
    return Fault("rendezvous_failed", detail=found[2], exception=found[1] or "", entity=entity)


@pattern(
    "supervisor",
    Nature.FAULT,
    role=Role.EITHER,
    hints=(" Ray nodes joined within ",),
    regex=rf"{_SAYS}?(?:(\w+Error): )?Only (\d+)/(\d+) Ray nodes joined within (\d+)s",
    samples={
        "[task-runtime] Only 7/8 Ray nodes joined within 1800s.": Fault(
            "nodes_missing", detail="7 of 8 Ray nodes joined within 1800 s"
        ),
        "TimeoutError: Only 7/8 Ray nodes joined within 1800s.": Fault(
            "nodes_missing", detail="7 of 8 Ray nodes joined within 1800 s", exception="TimeoutError"
        ),
    },
    rejects=("[task-runtime] All 8 Ray nodes joined within 90s",),
)
def nodes_missing(found: Any) -> Fault:
    """The cluster did not fill up within the supervisor's deadline; the absent nodes' own pods tell why."""
    detail = f"{found[2]} of {found[3]} Ray nodes joined within {found[4]} s"
    return Fault("nodes_missing", detail=detail, exception=found[1] or "")


@pattern(
    "supervisor",
    Nature.FAULT,
    role=Role.ROOT,
    hints=("Iris runtime version mismatch before Ray join",),
    regex=rf"{_SAYS}?(?:(\w+Error): )?(Iris runtime version mismatch before Ray join[^\n]*)",
    samples={
        "RuntimeError: Iris runtime version mismatch before Ray join: head python=3.12 ray=2.51.1, worker python=3.11 "
        "ray=2.51.1": Fault(
            "version_mismatch",
            detail="Iris runtime version mismatch before Ray join: head python=3.12 ray=2.51.1, worker python=3.11 "
            "ray=2.51.1",
            exception="RuntimeError",
            entity="runtime version",
        ),
    },
    rejects=("We feared an Iris runtime version mismatch before Ray join",),
)
def runtime_mismatch(found: Any) -> Fault:
    """Head and worker run different Python or Ray versions: the images differ, and no retry heals it."""
    return Fault("version_mismatch", detail=found[2][:240], exception=found[1] or "", entity="runtime version")


@pattern(
    "supervisor",
    Nature.FAULT,
    role=Role.EITHER,
    hints=("] Received signal ", " received signal ", "[signal ", "reason=signal "),
    regex=rf"{_SAYS}(?:Received signal (?P<head>\d+); terminating training driver"
    r"|Worker rank (?P<rank>\d+) received signal (?P<worker>\d+); stopping Ray)"
    rf"|{_SAYS}?(?:\[(?:ray-log-sync|debug-sync)\] [^\n]*\[|=== TERMINATION ARTIFACT [^\n]*reason=)"
    r"signal (?P<named>\d+) \((?:head(?: rank 0)?|worker rank (?P<other>\d+))\)",
    samples={
        "[task-runtime] Received signal 15; terminating training driver and stopping Ray...": Fault(
            "external_signal", detail="signal 15 to a supervisor", entity="task rank 0"
        ),
        "[task-runtime] Worker rank 5 received signal 15; stopping Ray.": Fault(
            "external_signal", detail="signal 15 to a supervisor", entity="task rank 5"
        ),
        "[ray-log-sync] uploaded 9 file(s) / 0.02 GiB (unchanged=1, failed=0) -> s3://b/run [signal 15 (head)]": Fault(
            "external_signal", detail="signal 15 to a supervisor", entity="task rank 0"
        ),
        "[debug-sync] uploaded 2 file(s) / 40 bytes -> s3://b/run [signal 15 (worker rank 5)]": Fault(
            "external_signal", detail="signal 15 to a supervisor", entity="task rank 5"
        ),
        "=== TERMINATION ARTIFACT task=_bob_rl-14b_0 ts=1772600000 reason=signal 2 (head rank 0) ===": Fault(
            "external_signal", detail="signal 2 to a supervisor", entity="task rank 0"
        ),
    },
    rejects=("The child received signal 15; stopping Ray.", "[agent] [signal 15 (head)]"),
)
def pod_signalled(found: Any) -> Fault:
    """A pod's supervisor was told to end from outside (eviction, pre-emption, a person). The rank is the task's, not a
    distributed one. With an earlier fault on file it is only the end of that; the head exits 0 after it."""
    number = found["head"] or found["worker"] or found["named"]
    rank = found["rank"] or found["other"] or "0"
    return Fault("external_signal", detail=f"signal {number} to a supervisor", entity=f"task rank {rank}")


PATTERNS = (rendezvous_failed, nodes_missing, runtime_mismatch, pod_signalled)
