"""The task supervisor of an Iris pod: roles, Ray rendezvous, node joins, the driver's launch and its real exit.

Its lines begin `[task-runtime] ` (2026-07 on), `[start_rl_iris_controller] ` or `[start_vllm_iris_controller] ` (older)
and carry no clock. Serves gate A rules 3, 4 and 8 and the Attempt of GATES.md.
"""

from enum import StrEnum
from typing import Any

import msgspec

from extractors import supervisor_faults
from extractors.pattern import Nature, pattern
from extractors.signal import Benign, BringUp, Teardown


class NodeRole(StrEnum):
    """What a task of the job is to its Ray cluster."""

    HEAD = "head"
    WORKER = "worker"


class RoleAssigned(msgspec.Struct, frozen=True):
    """A task started its life (anew after a restart) as rank `rank` of `ranks`."""

    role: NodeRole
    rank: int
    ranks: int


class NodesJoined(msgspec.Struct, frozen=True):
    """Ray nodes that are alive, of those that must join."""

    alive: int
    expected: int


class DriverExited(msgspec.Struct, frozen=True):
    """The training driver ended with this exit code, whatever the task's own exit says. upload_cut is set where the
    same line says that the last upload of the Ray logs did not end in time."""

    code: int
    upload_cut: bool = False


class UploadCut(msgspec.Struct, frozen=True):
    """The last upload of a node's Ray logs did not end in time: what is on file of them is a part."""


_SAYS = r"(?:\[(?:task-runtime|start_(?:rl|vllm)_iris_controller)\] )"
_SPOKEN = ("[task-runtime] ", "[start_rl_iris_controller] ", "[start_vllm_iris_controller] ")


@pattern(
    "supervisor",
    Nature.FACT,
    hints=_SPOKEN,
    regex=rf"{_SAYS}ROLE=(head|worker) rank=(\d+)/(\d+)",
    samples={
        "[09:00:01] task=/bob/rl-14b/0 | [task-runtime] ROLE=head rank=0/8 head_ip=10.0.1.1 ray_port=6379": (
            RoleAssigned(NodeRole.HEAD, 0, 8)
        ),
        "[09:00:02] task=/bob/rl-14b/5:1 | [task-runtime] ROLE=worker rank=5/8 node_ip=10.0.1.6": RoleAssigned(
            NodeRole.WORKER, 5, 8
        ),
        "[start_rl_iris_controller] ROLE=worker rank=1/2 node_ip=10.0.1.2": RoleAssigned(NodeRole.WORKER, 1, 2),
    },
    rejects=("[task-runtime] ROLE=head rank=?",),
)
def role_assigned(found: Any) -> RoleAssigned:
    """The supervisor's banner, once at the start of each life of a task. The same rank again is a new attempt."""
    return RoleAssigned(NodeRole(found[1]), int(found[2]), int(found[3]))


@pattern(
    "supervisor",
    Nature.FACT,
    hints=_SPOKEN,
    regex=rf"{_SAYS}(?:Ray nodes alive: (\d+)/(\d+)|All (\d+) Ray node\(s\) joined\.)",
    samples={
        "[task-runtime] Ray nodes alive: 7/8": NodesJoined(7, 8),
        "[start_rl_iris_controller] Ray nodes alive: 1/2": NodesJoined(1, 2),
        "[task-runtime] All 8 Ray node(s) joined. Resources: {'CPU': 512.0, 'GPU': 64.0}": NodesJoined(8, 8),
    },
    rejects=("[task-runtime] Ray nodes alive: none yet",),
)
def nodes_joined(found: Any) -> NodesJoined:
    """How many Ray nodes the waiting supervisor counts. It repeats every 5 s: only a rise is bring-up progress."""
    return NodesJoined(int(found[1] or found[3]), int(found[2] or found[3]))


_MILESTONES = (
    ("environment snapshot:", "environment snapshot"),
    ("Staging train_data on this node", "training data staging"),
    ("train_data staged to node-local paths", "training data staged"),
    ("Pre-staging model on this node", "model staging"),
    ("model prestage attempt ", "model staging retried"),
    ("warm sync: ", "model staging from the mirror"),
    ("Ray cgroup-aware: --memory=", "Ray memory capped"),
    ("Starting Ray HEAD: ", "Ray head starting"),
    ("Ray HEAD subprocess returned", "Ray head started"),
    ("Starting Ray WORKER: ", "Ray worker starting"),
    ("Waiting for ", "Ray nodes awaited"),
    ("Single-node slice: skipping rendezvous", "single node"),
    ("Rendezvous: ", "rendezvous named"),
    ("Found rendezvous: ", "rendezvous found"),
    ("Worker rank ", "Ray worker joined"),
    ("Launching MarinSkyRL training driver:", "driver launched"),
)


@pattern(
    "supervisor",
    Nature.FACT,
    hints=_SPOKEN,
    samples={
        "[task-runtime] environment snapshot:": BringUp("environment snapshot"),
        "[task-runtime] Staging train_data on this node (rank 5/8): ['org/tasks']": BringUp("training data staging"),
        "[task-runtime] train_data staged to node-local paths: ['/mnt/tasks']": BringUp("training data staged"),
        "[task-runtime] Pre-staging model on this node (rank 5/8): org/model-14b": BringUp("model staging"),
        "[task-runtime] model prestage attempt 2/6 failed (rc=1): HTTP 504": BringUp("model staging retried"),
        "[task-runtime] warm sync: 30 files": BringUp("model staging from the mirror"),
        "[task-runtime] Ray cgroup-aware: --memory=1100000000000 (~1024GiB cgroup limit), "
        "--object-store-memory=96000000000 (~89GiB plasma cap)": BringUp("Ray memory capped"),
        "[start_rl_iris_controller] Starting Ray HEAD: ray start --head --port=6379": BringUp("Ray head starting"),
        "[task-runtime] Ray HEAD subprocess returned (exit 0) in 9.8s": BringUp("Ray head started"),
        "[task-runtime] Starting Ray WORKER: ray start --address=10.0.1.1:6379": BringUp("Ray worker starting"),
        "[task-runtime] Waiting for 8 Ray node(s) at 10.0.1.1:6379 (timeout 1800s)...": BringUp("Ray nodes awaited"),
        "[task-runtime] Single-node slice: skipping rendezvous and multi-node wait.": BringUp("single node"),
        "[start_rl_iris_controller] Rendezvous: s3://b/run/ray_head.json": BringUp("rendezvous named"),
        "[start_vllm_iris_controller] Starting Ray HEAD: ray start --head --port=6379": BringUp("Ray head starting"),
        "[task-runtime] Found rendezvous: {'head_ip': '10.0.1.1', 'port': 6379}": BringUp("rendezvous found"),
        "[task-runtime] Worker rank 5 joined Ray cluster at 10.0.1.1:6379; parking until the head finishes.": BringUp(
            "Ray worker joined"
        ),
        "[task-runtime] Launching MarinSkyRL training driver:": BringUp("driver launched"),
    },
    rejects=("[manual] Starting Ray HEAD: see below", "Worker rank 5 joined Ray cluster at 10.0.1.1:6379"),
)
def supervisor_coming_up(text: str) -> BringUp | None:
    """A step of the supervisor on its way to the driver's launch, per node. `model prestage attempt … failed` retries
    and is no fault."""
    said = _said(text)
    if said is text or (said.startswith("Worker rank ") and " joined Ray cluster at " not in said):
        return None
    return next((BringUp(what) for start, what in _MILESTONES if said.startswith(start)), None)


_NOISE = (
    ("Writing rendezvous ", "rendezvous-wait"),
    ("Wrote rendezvous ", "rendezvous-wait"),
    ("Polling for rendezvous ", "rendezvous-wait"),
    ("Ignoring stale rendezvous ", "rendezvous-wait"),
    ("rendezvous poll error (will retry)", "rendezvous-wait"),
    ("[ray-log-sync] ", "log-upload"),
    ("[debug-sync] ", "log-upload"),
    ("[term-capture] ", "log-upload"),
)
_REASONS = ("[signal ", "[driver exit_code=", " teardown]")


@pattern(
    "supervisor",
    Nature.BENIGN,
    hints=(*_SPOKEN, *(start for start, kind in _NOISE if kind == "log-upload")),
    samples={
        "[task-runtime] Writing rendezvous s3://b/run/ray_head.json (attempt 1/5, per-attempt timeout 30s)...": Benign(
            "rendezvous-wait"
        ),
        "[task-runtime] Wrote rendezvous s3://b/run: head_ip=10.0.1.1 port=6379 (attempt 1, 0.3s)": Benign(
            "rendezvous-wait"
        ),
        "[task-runtime] Polling for rendezvous s3://b/run (timeout 1800s)...": Benign("rendezvous-wait"),
        "[task-runtime] Ignoring stale rendezvous (written_at=1 < threshold=2); waiting for rank-0 rewrite.": Benign(
            "rendezvous-wait"
        ),
        "[task-runtime] rendezvous poll error (will retry): timed out": Benign("rendezvous-wait"),
        "[ray-log-sync] started (every 300s, first ~60s) -> s3://b/run/ray_session_logs/rank0-h": Benign("log-upload"),
        "[task-runtime] [ray-log-sync] uploaded 12 file(s) / 0.10 GiB (unchanged=40, failed=0) -> s3://b/run "
        "[periodic]": Benign("log-upload"),
        "[debug-sync] uploaded 2 file(s) / 3456 bytes -> s3://b/run [periodic]": Benign("log-upload"),
        "[task-runtime] [term-capture] wrote termination artifact -> s3://b/t.txt": Benign("log-upload"),
    },
    rejects=(
        "[ray-log-sync] uploaded 3 file(s) / 0.01 GiB -> s3://b [worker rank 5 teardown]",
        "[agent] Polling for rendezvous in the square",
    ),
)
def supervisor_chatter(text: str) -> Benign | None:
    """The rendezvous is rewritten and polled every 5 s while nodes are awaited, and logs are uploaded every 300 s:
    repetition is normal, and neither is progress."""
    said = _said(text)
    if said.startswith("[") and text.rstrip().endswith("]") and any(reason in text for reason in _REASONS):
        return None
    if said.startswith("[ray-log-sync] final upload exceeded "):
        return None
    uploads = said.startswith("[")
    spoken = uploads or said is not text
    return next((Benign(kind) for start, kind in _NOISE if spoken and said.startswith(start)), None)


@pattern(
    "supervisor",
    Nature.FACT,
    hints=("driver exit_code=",),
    regex=rf"{_SAYS}?(?:\[(?:ray-log-sync|debug-sync)\] (?P<cut>final upload exceeded )?[^\n]*\["
    r"|=== TERMINATION ARTIFACT [^\n]*reason=)driver exit_code=(?P<code>-?\d+) \(head",
    samples={
        "[task-runtime] [ray-log-sync] uploaded 44 file(s) / 0.20 GiB (unchanged=9, failed=0) -> s3://b/run/"
        "ray_session_logs/rank0-h [driver exit_code=1 (head)]": DriverExited(1),
        "[ray-log-sync] final upload exceeded 60.0s; continuing teardown with a partial upload "
        "[driver exit_code=0 (head)]": DriverExited(0, upload_cut=True),
        "[debug-sync] uploaded 1 file(s) / 90 bytes -> s3://b/run [driver exit_code=-9 (head)]": DriverExited(-9),
        "=== TERMINATION ARTIFACT task=_bob_rl-14b_0 ts=1772600000 reason=driver exit_code=1 (head rank 0) ===": (
            DriverExited(1)
        ),
    },
    rejects=("My tool printed [driver exit_code=1 (head)]",),
)
def driver_exited(found: Any) -> DriverExited:
    """The driver's real exit, as the head's last log upload names it. After a SIGTERM the head itself exits 0."""
    return DriverExited(int(found["code"]), upload_cut=found["cut"] is not None)


@pattern(
    "supervisor",
    Nature.FACT,
    hints=("] final upload exceeded ",),
    regex=rf"{_SAYS}?\[ray-log-sync\] final upload exceeded [\d.]+ ?s; [^\n\[]*partial upload(?! \[)",
    samples={
        "[task-runtime] [ray-log-sync] final upload exceeded 60.0s; continuing teardown with a partial upload": (
            UploadCut()
        ),
        "[ray-log-sync] final upload exceeded 120.0s; continuing teardown with a partial upload": UploadCut(),
    },
    rejects=(
        "[debug-sync] final upload exceeded 60.0s; continuing teardown with a partial upload",
        "the final upload exceeded 60.0s; continuing teardown with a partial upload",
    ),
)
def upload_cut(found: Any) -> UploadCut:
    """The supervisor gave up on the last upload of its node's Ray logs and tears down: their ends are not on file."""
    return UploadCut()


@pattern(
    "supervisor",
    Nature.BENIGN,
    hints=(" saw head done-marker", " teardown]"),
    regex=rf"{_SAYS}?(?:Worker rank (\d+) saw head done-marker|\[(?:ray-log-sync|debug-sync)\] [^\n]*"
    r"\[worker rank (\d+) teardown\])",
    samples={
        "[task-runtime] Worker rank 5 saw head done-marker; shutting down.": Teardown("worker rank 5"),
        "[ray-log-sync] uploaded 3 file(s) / 0.01 GiB (unchanged=0, failed=0) -> s3://b/run [worker rank 5 teardown]": (
            Teardown("worker rank 5")
        ),
    },
    rejects=("The script calls its last part [worker rank 5 teardown]",),
)
def worker_node_closing(found: Any) -> Teardown:
    """A worker node ends because the head is done, in success and failure alike: look before it for the reason."""
    return Teardown(f"worker rank {found[1] or found[2]}")


def _said(text: str) -> str:
    """The text without the supervisor's own tag; the very text where it has none."""
    for tag in _SPOKEN:
        if text.startswith(tag):
            return text[len(tag) :]
    return text


PATTERNS = (
    role_assigned,
    nodes_joined,
    supervisor_coming_up,
    supervisor_chatter,
    driver_exited,
    upload_cut,
    worker_node_closing,
    *supervisor_faults.PATTERNS,
)
