"""Where a job runs: Iris, Slurm or bare Kubernetes. How its state and cards are asked for, where its logs lie."""

import json
import random
import tomllib
from dataclasses import dataclass
from typing import Any

from tests.captures.writing import disk, polls
from tests.captures.writing.echo import Echo
from tests.captures.writing.launch import job_toml
from tests.captures.writing.polls import Answer, record
from tests.captures.writing.run import Run

PLACES = ("iris", "iris", "iris", "slurm", "kubernetes")
_SLURM_WORDS = {
    "running": "RUNNING",
    "pending": "PENDING",
    "failed": "FAILED",
    "succeeded": "COMPLETED",
    "killed": "CANCELLED",
}


@dataclass(slots=True)
class Place:
    """kind is one of PLACES. failures counts the attempts that failed so far, preemptions those that were taken."""

    kind: str
    failures: int = 0
    preemptions: int = 0

    def state(self, run: Run, at: float, word: str = "running", exit: int = 0) -> None:
        """The scheduler says the job's state."""
        if self.kind == "iris":
            pods = 0 if word in ("pending", "failed", "succeeded", "killed") else 4
            polls.state(run, at, word, exit, self.failures, pods, preemptions=self.preemptions)
        elif self.kind == "slurm":
            restarts = self.failures + self.preemptions
            row = (
                f"JobId=48211 JobName=walk UserId=mira(4711) JobState={_SLURM_WORDS[word]} Reason=None Requeue=1"
                f" Restarts={restarts} ExitCode={exit}:0 NumNodes=4\n"
            )
            record(run, at, "state", self._asks(run), Answer(row))
        else:
            record(run, at, "state", self._asks(run), Answer(self._job(run, word)))

    def state_fails(self, run: Run, at: float, rng: random.Random) -> None:
        """The scheduler does not answer."""
        answer = rng.choice(
            (
                Answer(exit=None, error="timeout after 20 s"),
                Answer(stderr="slurm_load_jobs error: Unable to contact slurm controller\n", exit=1),
                Answer(stderr="Unable to connect to the server: EOF\n", exit=1),
            )
        )
        record(run, at, "state", self._asks(run), answer)

    def pods(self, run: Run, at: float) -> None:
        """The list of pods, where there are any."""
        if self.kind != "slurm":
            polls.pods(run, at)

    def cards(self, run: Run, at: float, policy: int, engine: int) -> None:
        """The cards of all pods, near these percents."""
        polls.gpu(run, at, policy, engine)

    def _asks(self, run: Run) -> list[str]:
        if self.kind == "iris":
            return ["iris_ops.py", run.job, "--once", "--json"]
        if self.kind == "slurm":
            return ["scontrol", "show", "job", "-o", "48211"]
        return ["kubectl", "-n", "rl", "get", "pytorchjob", run.slug, "-o", "json"]

    def _job(self, run: Run, word: str) -> str:
        names = {"running": "Running", "failed": "Failed", "succeeded": "Succeeded", "pending": "Created"}
        condition = {"type": names[word], "status": "True", "reason": "JobRunning", "message": ""}
        active = {"Worker": {"active": 4 if word == "running" else 0, "failed": self.failures}}
        status = {"conditions": [condition], "replicaStatuses": active}
        return json.dumps({"kind": "PyTorchJob", "metadata": {"name": run.slug}, "status": status}, indent=1) + "\n"

    def files(self, run: Run, facts: dict[str, Any]) -> dict[str, bytes]:
        """All files of the run as they lie in such a place."""
        files = disk.synced(run) | {"job.toml": written(facts)}
        if self.kind == "slurm":
            del files["finelog.log"]
            files["slurm-48211.out"] = "".join(f"{line}\n" for _, _, line in _streamed(run)).encode()
        elif self.kind == "kubernetes":
            del files["finelog.log"]
            files |= _pod_logs(run)
        return files


def _streamed(run: Run) -> list[tuple[float, str, str]]:
    """The driver's and the pods' lines: (time, task, text)."""
    lines = Echo().stream(run.lines)
    return [(line.at, line.task, f"{line.speaker} {line.text}" if line.speaker else line.text) for line in lines]


def _pod_logs(run: Run) -> dict[str, bytes]:
    said: dict[str, list[str]] = {}
    for at, task, text in _streamed(run):
        rank, _, attempt = task.rsplit("/", 1)[1].partition(":")
        name = f"pod_logs/iris-{run.slug}-{rank}-{run.pod_hash}-{attempt or 0}.log"
        stamp = run.clock.iso_us(at).replace("Z", "123Z")
        said.setdefault(name, []).extend(f"{stamp} {line}\n" for line in text.split("\r") if line)
    return {name: "".join(lines).encode() for name, lines in said.items()}


def facts_of(run: Run, mode: str, steps: int, retries: int = 3) -> dict[str, Any]:
    """What the launcher knew, as job.toml's tables."""
    facts = tomllib.loads(job_toml(run, steps, retries).decode())
    facts["job"]["mode"] = mode
    return facts


def written(facts: dict[str, Any]) -> bytes:
    """The tables as TOML."""
    lines: list[str] = []
    for table, values in facts.items():
        lines.append(f"[{table}]")
        lines += [f"{key} = {_toml(value)}" for key, value in values.items()]
    return ("\n".join(lines) + "\n").encode()


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + " }"
    return json.dumps(value)
