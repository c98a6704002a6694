"""Builders for gate B: a job with two policy pods and two engine pods, and what its probes and engines say."""

from collections.abc import Iterable
from typing import Any

from extractors.polls import (
    GpuReading,
    GpusPolled,
    JobState,
    PollFailed,
    Process,
    ProcessesPolled,
    StacksPolled,
    Thread,
)
from extractors.record import Observation, SourceKind
from extractors.trainer import BufferProgress, PhaseFinished, PhaseStarted
from extractors.vllm import EngineLoad
from state.trackers.facts import JobDeclared, JobFacts
from tests.builders import case_after, polled, reading, saw

POLICY = ("iris-bob-rl-mix-0-c4f1e-0", "iris-bob-rl-mix-1-c4f1e-0")
ENGINE = ("iris-bob-rl-mix-2-c4f1e-0", "iris-bob-rl-mix-3-c4f1e-0")
PIDS = (7001, 7002, 7003, 7004)
MINUTE = 60.0


def declared(**facts: Any) -> Observation:
    """job.toml with the two meshes, four engines of 32 slots, and what else is said."""
    said: dict[str, Any] = {
        "policy_mesh": POLICY,
        "engine_mesh": ENGINE,
        "engine_count": 4,
        "max_num_seqs": 32,
        "max_staleness_steps": 3,
    }
    return saw(0, JobDeclared(JobFacts(**{**said, **facts})), source="job.toml", quote="[job]")


def gpus(at: float, target: str, used: float | None, watts: float = 300.0, count: int = 8) -> Observation:
    """A GPU poll of one target, all its cards alike."""
    cards = tuple(GpuReading(index, used, watts, 60_000.0, 81_559.0) for index in range(count))
    return saw(at, GpusPolled(target, cards), source="polls/gpu.jsonl", quote=f"{target}: {used} %, {watts} W")


def all_gpus(at: float, policy: float = 12.0, engine: float = 88.0) -> list[Observation]:
    """A GPU poll of every pod."""
    return [gpus(at, pod, policy) for pod in POLICY] + [gpus(at, pod, engine) for pod in ENGINE]


def refused(at: float, probe: str, target: str, *command: str, output: str, why: str = "exit 1") -> Observation:
    """A poll that gave no answer."""
    failure = PollFailed(probe, target, command or ("kubectl", "exec", target), 1, output, why)
    return saw(at, failure, source=f"polls/{probe}.jsonl", quote=output)


def load(
    at: float,
    pid: int,
    running: int,
    waiting: int = 0,
    kv: float = 30.0,
    prompt: float = 400.0,
    rate: float = 1500.0,
    **said: Any,
) -> Observation:
    """A statistics line in the engine's own file."""
    said = {
        "source": f"ray_session_logs/worker-{pid}.out",
        "host": "node-c",
        "actor": "AsyncVLLMInferenceEngine",
    } | said
    return saw(at, EngineLoad("000", running, waiting, kv, prompt, rate), pid=pid, **said)


def fleet(since: float, until: float, running: int, every: float = 30.0, **said: Any) -> list[Observation]:
    """Lines of all four engines over a span; figures differ a little, as real ones do."""
    lines = []
    at, turn = since, 0
    while at <= until:
        rate = said.get("rate", 1500.0) + turn % 7
        lines += [load(at + place, pid, running, **{**said, "rate": rate}) for place, pid in enumerate(PIDS)]
        at, turn = at + every, turn + 1
    return lines


def started(at: float, phase: str) -> Observation:
    """A phase begins."""
    return saw(at, PhaseStarted(phase), quote=f"Started: '{phase}'")


def finished(at: float, phase: str, seconds: float) -> Observation:
    """A phase ends."""
    return saw(at, PhaseFinished(phase, seconds), quote=f"Finished: '{phase}', time cost: {seconds:.2f}s")


def bar(at: float, held: int, needed: int = 48, elapsed: float | None = None) -> Observation:
    """A line of the buffer's bar."""
    return saw(at, BufferProgress(held, needed, elapsed), quote=f"Generation Buffer Progress: {held}/{needed}")


def bars(since: float, until: float, held: int, every: float = 15.0) -> list[Observation]:
    """The bar over a span in which it does not rise."""
    count = int((until - since) // every) + 1
    return [bar(since + turn * every, held, elapsed=since + turn * every) for turn in range(count)]


def rising(since: float, seconds_each: float, first: int, last: int) -> list[Observation]:
    """The bar rising by one each so many seconds."""
    return [
        bar(since + turn * seconds_each, held, elapsed=since + turn * seconds_each)
        for turn, held in enumerate(range(first, last + 1))
    ]


def ps(
    at: float, target: str, pid: int, percent: float, elapsed: float, title: str, lifetime: bool = True
) -> Observation:
    """A procs poll with one process."""
    process = Process(pid, percent, 1_000_000.0, elapsed, title, lifetime)
    return saw(at, ProcessesPolled(target, (process,)), source="polls/procs.jsonl", quote=f"{pid} {percent} {title}")


def stack(at: float, target: str, pid: int, title: str, *frames: str) -> Observation:
    """A stack dump whose active thread has these frames."""
    threads = (
        Thread("MainThread", "idle", ("main_loop (ray/_private/worker.py:963)",)),
        Thread("AsyncIO Thread: default", "active", frames),
    )
    return saw(
        at, StacksPolled(target, pid, title, threads), source="polls/stacks.jsonl", quote=f"Process {pid}: {title}"
    )


def job(*parts: Observation | Iterable[Observation], now: float | None = None, facts: Observation | None = None) -> Any:
    """A running job's case: job.toml, its homes, and the parts in time."""
    seen = [
        facts or declared(),
        reading(),
        reading(SourceKind.ACTOR, "ray_session_logs/worker-7001.out"),
        polled(0, JobState.RUNNING),
    ]
    for part in parts:
        seen += [part] if isinstance(part, Observation) else list(part)
    return case_after(*sorted(seen, key=lambda observation: observation.at_us), now=now)
