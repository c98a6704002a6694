"""What the cluster says: `kubectl get job/pytorchjob/rayjob -o json`, and the pods as JSON or as a wide table.

Serves gate A rules 1–4 and gate B rule 2 (OOMKilled). An empty pod list is an answer only where kubectl said so; a
wrong kubeconfig gives one as well, which is why gate A wants it twice.
"""

import re
from collections.abc import Mapping
from typing import Any

import orjson

from extractors.polls import JobState, Pod, PodsPolled, PollRecord, Said, StatePolled, failed, line_with, unusable

MAIN_CONTAINER = "task"
"""The name of the container that runs the job, in pods with more than one."""

_ROW = re.compile(
    r"^(?P<name>\S+)\s+(?P<ready>\d+/\d+)\s+(?P<status>\S+)\s+(?P<restarts>\d{1,9})(?:\s+\([^)]*\))?\s+(?P<age>\S+)"
    r"(?:\s+(?P<ip>\S+)\s+(?P<node>\S+))?"
)
_NO_SUCH_JOB = re.compile(r"(?m)^.*Error from server \(NotFound\): (?:jobs\.batch|pytorchjobs|rayjobs)\S* \".*$")
_ENDS = {"OOMKilled", "Error", "Completed", "Evicted", "ContainerCannotRun", "StartError", "DeadlineExceeded"}
"""STATUS words that name how a pod's container ended."""

_RAY_JOB = {
    "PENDING": JobState.PENDING,
    "RUNNING": JobState.RUNNING,
    "SUCCEEDED": JobState.SUCCEEDED,
    "FAILED": JobState.FAILED,
    "STOPPED": JobState.KILLED,
}
_RAY_DEPLOYMENT = {"Failed": JobState.FAILED, "Complete": JobState.SUCCEEDED, "Running": JobState.RUNNING}
_CONDITIONS = (
    ("Failed", JobState.FAILED),
    ("FailureTarget", JobState.FAILED),
    ("Succeeded", JobState.SUCCEEDED),
    ("Complete", JobState.SUCCEEDED),
    ("SuccessCriteriaMet", JobState.SUCCEEDED),
    ("Suspended", JobState.PENDING),
    ("Restarting", JobState.PENDING),
    ("Running", JobState.RUNNING),
)
"""What a true condition means, the most final first."""


def read_kubernetes_state(record: PollRecord) -> tuple[Said, ...] | None:
    """The state of a Job, a PyTorchJob or a RayJob; None where the output is no such object."""
    missing = _NO_SUCH_JOB.search(record.stderr + "\n" + record.stdout)
    if missing:
        return (Said(StatePolled(JobState.ABSENT), missing[0]),)
    found = _object(record.stdout)
    if found is None:
        return None
    if found.get("kind") == "List":
        items = found.get("items")
        if not isinstance(items, list) or len(items) > 1:
            return (failed(record, "several jobs are listed, and nothing says which one is meant"),)
        if not items:
            return (Said(StatePolled(JobState.ABSENT), line_with(record.stdout, '"items"')),)
        found = items[0] if isinstance(items[0], dict) else {}
    if found.get("kind") not in ("Job", "PyTorchJob", "RayJob"):
        return None
    status = _map(found.get("status"))
    polled = _ray_job(status) if found["kind"] == "RayJob" else _job(status)
    return (Said(polled, *_telling_line(record.stdout, polled)),)


def _job(status: Mapping[str, Any]) -> StatePolled:
    """A Job or PyTorchJob: its conditions, else its counts of pods. Without either it has not started."""
    conditions = {c.get("type"): c for c in _maps(status.get("conditions")) if c.get("status") == "True"}
    replicas = [_map(replica) for replica in _map(status.get("replicaStatuses")).values()]
    active = _sum(replicas, "active") if replicas else _int(status.get("active"))
    failures = _sum(replicas, "failed") if replicas else _int(status.get("failed"))
    kind, state = next(((kind, state) for kind, state in _CONDITIONS if kind in conditions), ("", None))
    condition = _map(conditions.get(kind))
    reason, message = str(condition.get("reason") or ""), str(condition.get("message") or "")
    if state is None:
        # `ready` counts the pods that run; `active` counts waiting ones too.
        state = JobState.RUNNING if active and status.get("ready", active) else JobState.PENDING
    if state is JobState.FAILED and reason == "DeadlineExceeded":
        state = JobState.TIMED_OUT
    error = ": ".join(filter(None, (reason, message))) if state.over and state is not JobState.SUCCEEDED else ""
    return StatePolled(state, failures=failures, pods_alive=active, error=error)


def _ray_job(status: Mapping[str, Any]) -> StatePolled:
    """A RayJob: the job's own status first, then its deployment's (which alone knows of a deadline)."""
    deployment = str(status.get("jobDeploymentStatus") or "")
    state = _RAY_JOB.get(str(status.get("jobStatus") or "")) or JobState.PENDING
    if not state.over:
        state = _RAY_DEPLOYMENT.get(deployment, state) if deployment in ("Failed", "Complete") else state
    reason, message = str(status.get("reason") or ""), str(status.get("message") or "")
    if state is JobState.FAILED and reason == "DeadlineExceeded":
        state = JobState.TIMED_OUT
    error = ": ".join(filter(None, (reason, message))) if state.over and state is not JobState.SUCCEEDED else ""
    return StatePolled(state, failures=_int(status.get("failed")), error=error)


def _telling_line(text: str, polled: StatePolled) -> tuple[str, str]:
    """The line that says the state, with the piece in it, of pretty-printed or one-line JSON."""
    for piece in (
        '"jobStatus"',
        '"jobDeploymentStatus"',
        '"type": "Failed"',
        '"type": "Complete"',
        '"type": "Running"',
    ):
        line = line_with(text, piece)
        if line:
            return line, piece
    for piece in ('"active"', '"status"'):
        line = line_with(text, piece)
        if line:
            return line, piece
    return line_with(text, '"kind"'), '"kind"'


def read_pods(record: PollRecord) -> tuple[Said, ...]:
    """The pods. A record that failed is never an empty list, however its output looks."""
    if record.error or record.exit not in (0, None):
        return (unusable(record, "a pod list"),)
    found = _object(record.stdout)
    if found is not None:
        return (_pods_of_json(record, found),)
    nothing = line_with(record.stderr + "\n" + record.stdout, "No resources found")
    if nothing:
        return (Said(PodsPolled(()), nothing),)
    rows = [row for line in record.stdout.splitlines() for row in (_row(line),) if row is not None]
    if rows:
        line, _ = next((row for row in rows if row[1].status != "Running"), rows[0])
        return (Said(PodsPolled(tuple(pod for _, pod in rows)), line),)
    if record.stdout.strip().startswith(("NAME ", "NAMESPACE ")) and len(record.stdout.split("\n")) <= 2:
        return (Said(PodsPolled(()), record.stdout.strip()),)
    return (unusable(record, "a pod list"),)


def _row(line: str) -> tuple[str, Pod] | None:
    """One row of the table, also behind a namespace column."""
    found = _ROW.match(line) or _ROW.match(line.partition(" ")[2].lstrip())
    if found is None:
        return None
    node = found["node"] or ""
    pod = Pod(
        name=found["name"],
        status=found["status"],
        node="" if node == "<none>" else node,
        restarts=int(found["restarts"]),
        reason=found["status"] if found["status"] in _ENDS else "",
    )
    return line, pod


def _pods_of_json(record: PollRecord, found: Mapping[str, Any]) -> Said:
    """`get pods -o json`: a List, or one Pod."""
    items = [found] if found.get("kind") == "Pod" else found.get("items")
    if not isinstance(items, list):
        return failed(record, "the JSON holds no list of pods (the key items)")
    pods = [pod for pod in map(_pod, _maps(items)) if pod is not None]
    if len(pods) < len(items):
        return failed(record, f"{len(items) - len(pods)} of {len(items)} items have no metadata.name")
    sick = next((pod for pod in pods if pod.reason not in ("", "Completed")), None)
    for piece in (f'"{sick.reason}"' if sick else "", f'"{pods[0].name}"' if pods else '"items"'):
        line = line_with(record.stdout, piece) if piece else ""
        if line:
            return Said(PodsPolled(tuple(pods)), line, piece)
    return Said(PodsPolled(tuple(pods)))


def _pod(item: Mapping[str, Any]) -> Pod | None:
    """One pod as kubectl would print it, with how its main container last ended."""
    name = _map(item.get("metadata")).get("name")
    if not isinstance(name, str):
        return None
    status = _map(item.get("status"))
    containers = _maps(status.get("containerStatuses"))
    main = next((c for c in containers if c.get("name") == MAIN_CONTAINER), containers[0] if containers else {})
    ended = _map(_map(main.get("state")).get("terminated")) or _map(_map(main.get("lastState")).get("terminated"))
    return Pod(
        name=name,
        status=_status_word(item, status, containers),
        node=str(_map(item.get("spec")).get("nodeName") or ""),
        restarts=_sum(containers, "restartCount"),
        reason=_end_reason(status, ended),
        exit_code=_int(ended.get("exitCode")),
    )


def _end_reason(status: Mapping[str, Any], ended: Mapping[str, Any]) -> str:
    """Why the pod's container ended; a disruption (pre-emption, eviction) says more than `Error`, an OOM more still."""
    reason = str(ended.get("reason") or "")
    if reason == "OOMKilled":
        return reason
    conditions = _maps(status.get("conditions"))
    disrupted = [c for c in conditions if c.get("type") == "DisruptionTarget" and c.get("status") == "True"]
    return str((disrupted[0].get("reason") if disrupted else "") or reason or status.get("reason") or "")


def _status_word(item: Mapping[str, Any], status: Mapping[str, Any], containers: list[Mapping[str, Any]]) -> str:
    """kubectl's STATUS column."""
    if _map(item.get("metadata")).get("deletionTimestamp"):
        return "Terminating"
    if status.get("reason"):
        return str(status["reason"])
    for number, container in enumerate(_maps(status.get("initContainerStatuses"))):
        state = _map(container.get("state"))
        if _map(state.get("terminated")).get("exitCode") == 0 or (not state and container.get("ready")):
            continue
        reason = _map(state.get("waiting")).get("reason") or _map(state.get("terminated")).get("reason")
        if reason and reason != "PodInitializing":
            return f"Init:{reason}"
        return f"Init:{number}/{len(_maps(status.get('initContainerStatuses')))}"
    for container in containers:
        state = _map(container.get("state"))
        reason = _map(state.get("waiting")).get("reason") or _map(state.get("terminated")).get("reason")
        if reason:
            return str(reason)
    gated = any(c.get("reason") == "SchedulingGated" for c in _maps(status.get("conditions")))
    return "SchedulingGated" if gated else str(status.get("phase") or "Unknown")


def _object(text: str) -> Mapping[str, Any] | None:
    """The JSON object that the output is, None where it is none (or torn)."""
    start = text.find("{")
    if start < 0 or text[:start].strip():
        return None
    try:
        found = orjson.loads(text[start:])
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _maps(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _int(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _sum(items: list[Mapping[str, Any]], key: str) -> int:
    return sum(_int(item.get(key)) or 0 for item in items)
