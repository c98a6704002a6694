"""Poll records with raw tool output, as a probe appends them to polls/<probe>.jsonl."""

import json
from collections.abc import Callable, Mapping
from typing import NamedTuple

from tests.captures.writing.run import Run

STATES = {"absent": 0, "pending": 1, "running": 3, "succeeded": 4, "failed": 5, "killed": 6, "worker_failed": 7}
SMI = ["nvidia-smi", "--query-gpu=index,utilization.gpu,power.draw,memory.used,memory.total", "--format=csv"]
NO_CONTAINER = 'error: unable to upgrade connection: container not found ("task")\n'


class Answer(NamedTuple):
    """What a command gave."""

    stdout: str = ""
    stderr: str = ""
    exit: int | None = 0
    error: str = ""


def record(run: Run, at: float, probe: str, command: list[str], answer: Answer, target: str = "") -> None:
    """One attempt of a probe."""
    row: dict[str, object] = {"at": run.clock.iso(at), "probe": probe}
    if target:
        row["target"] = target
    row |= {
        "command": command,
        "exit": answer.exit,
        "elapsed_ms": 400 + run.rng.randrange(900),
        "stdout": answer.stdout,
        "stderr": answer.stderr,
    }
    if answer.error:
        row["error"] = answer.error
    run.polls[probe].append((at, row))


def inside(run: Run, pod: str, *command: str) -> list[str]:
    """A command that runs in a pod's main container."""
    return ["kubectl", "-n", "iris", "exec", pod, "-c", "task", "--", *command]


def state(
    run: Run,
    at: float,
    word: str = "running",
    exit: int = 0,
    failures: int = 0,
    pods: int = 4,
    error: str = "",
    preemptions: int = 0,
) -> None:
    """The job's state by `iris_ops.py --once --json`: a human line, then JSON. `absent` is the tool's word for a job
    that the controller does not know."""
    over = word not in ("pending", "running", "absent")
    source = "absent" if word == "absent" else "summary"
    human = (
        f"[{run.clock.hour(at)}] {run.job} state={word} ({STATES[word]}) src={source} pods={pods} tasks=0/4"
        + f" exit={exit} preempts={preemptions}"
        + (f" error='{error}'" if error else "")
    )
    body = {
        "job_id": run.job,
        "state": word,
        "state_int": STATES[word],
        "error": error or None,
        "exit_code": exit,
        "failure_count": failures,
        "preemption_count": preemptions,
        "task_count": 4,
        "completed_count": 0,
        "task_state_counts": {word: 4},
        "finished_at_ms": run.clock.epoch(at - 20) * 1000 if over else None,
        "source": source,
        "pods_alive": pods,
    }
    answer = Answer(
        f"{human}\n{json.dumps(body, indent=2)}\n",
        f"[watch] TERMINAL: {word}\n" if over else "",
        1 if word in ("failed", "killed", "worker_failed") else 0,
    )
    record(run, at, "state", ["iris_ops.py", run.job, "--once", "--json"], answer)


def pods(run: Run, at: float, statuses: Mapping[int, str] | None = None, gone: bool = False) -> None:
    """`kubectl get pods -o wide`; a pod is Running unless `statuses` says otherwise. gone: none is left."""
    rows = [("NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE")]
    for rank in () if gone else range(4):
        status = (statuses or {}).get(rank, "Running")
        ready = "1/1" if status == "Running" else "0/1"
        rows.append((run.pod(rank), ready, status, "0", f"{int(at // 60)}m", run.ip(rank), run.nodes[rank]))
    widths = [max(len(row[column]) for row in rows) + 3 for column in range(7)]
    table = "".join("".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() + "\n" for row in rows)
    command = ["kubectl", "-n", "iris", "get", "pods", "-l", f"iris-job={run.slug}", "-o", "wide"]
    answer = Answer(stderr="No resources found in iris namespace.\n") if gone else Answer(table)
    record(run, at, "pods", command, answer)


def pods_json(run: Run, at: float, oom_killed: int) -> None:
    """`kubectl get pods -o json`, where one pod's container was OOMKilled."""
    items = []
    for rank in range(4):
        running = {"running": {"startedAt": run.clock.iso(10)}}
        ended = {
            "terminated": {
                "exitCode": 137,
                "reason": "OOMKilled",
                "startedAt": run.clock.iso(10),
                "finishedAt": run.clock.iso(at - 30),
            }
        }
        dead = rank == oom_killed
        container = {"name": "task", "ready": not dead, "restartCount": 0, "state": ended if dead else running}
        items.append(
            {
                "kind": "Pod",
                "metadata": {"name": run.pod(rank), "namespace": "iris"},
                "spec": {"nodeName": run.nodes[rank]},
                "status": {"phase": "Failed" if dead else "Running", "containerStatuses": [container]},
            }
        )
    command = ["kubectl", "-n", "iris", "get", "pods", "-l", f"iris-job={run.slug}", "-o", "json"]
    record(run, at, "pods", command, Answer(json.dumps({"kind": "List", "items": items}, indent=1) + "\n"))


def gpu(run: Run, at: float, policy: int, engine: int) -> None:
    """The cards of every pod, near the utilisation (percent) that its role has."""
    for rank in range(4):
        share = policy if rank < 2 else engine
        rows = ["index, utilization.gpu [%], power.draw [W], memory.used [MiB], memory.total [MiB]"]
        for card in range(run.gpus):
            now = min(100, max(0, share + run.rng.randrange(-3, 4))) if share > 3 else run.rng.randrange(share + 1)
            watts = 112 + 4.6 * now + run.rng.random() * 9
            used = 61000 + run.rng.randrange(9000) if rank > 1 or policy > 3 else 24000 + run.rng.randrange(900)
            rows.append(f"{card}, {now} %, {watts:.2f} W, {used} MiB, 81559 MiB")
        command = inside(run, run.pod(rank), *SMI)
        record(run, at + rank, "gpu", command, Answer("\n".join(rows) + "\n"), run.pod(rank))


def gpu_refused(run: Run, at: float) -> None:
    """The same poll, refused."""
    for rank in range(4):
        command = inside(run, run.pod(rank), *SMI)
        record(run, at + rank, "gpu", command, Answer(stderr=NO_CONTAINER, exit=1), run.pod(rank))


def watched(
    run: Run,
    start: float,
    end: float,
    cards: Callable[[float], tuple[int, int] | None],
    every: float = 120.0,
    failures: int = 0,
) -> None:
    """State polls each `every` seconds of [start, end], pods and cards at every second and third of them.

    cards gives the policy and engine utilisation at a time; None leaves the cards out.
    """
    at, turn = start, 0
    while at <= end:
        state(run, at, failures=failures)
        if turn % 3 == 0:
            pods(run, at + 5)
        if turn % 2 == 0 and (share := cards(at)) is not None:
            gpu(run, at + 10, *share)
        at, turn = at + every, turn + 1
