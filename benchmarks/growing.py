"""Captures for benchmarks of watching: lines of a job at a time, made up after the formats that the catalogue reads."""

# ruff: noqa: E501 (log lines stand as printed)

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.finelog import START
from benchmarks.shapes import FAULT_LINES

DAY = timedelta(hours=24)
STEP_OF_A_DAY = timedelta(minutes=30)
TRIAL_EVERY = timedelta(minutes=2)


def now() -> datetime:
    """The real clock, which lines that are written live are stamped with."""
    return datetime.now(UTC)


def stamp(at: datetime) -> str:
    """A node's clock."""
    return f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03d}"


def prefix(job: str, at: datetime, actor: str = "skyrl_entrypoint pid=31337") -> str:
    """What Iris and Ray write before an actor's line."""
    return f"[{at:%H:%M:%S}] task={job}/0 | ({actor}) "


def quiet_line(job: str, at: datetime, number: int) -> str:
    """What a trainer says between two things worth saying: now a buffer's bar, else chatter."""
    if number % 20 == 0:
        held = number // 20 % 64
        return prefix(job, at) + (
            f"{stamp(at)} | INFO     | skyrl_train.utils.progress:_emit:118 - Generation Buffer Progress: {held}/64 ({held * 100 // 64}%) [{number}s] | buffer qsize=3\n"
        )
    if number % 20 == 10:
        return prefix(job, at, "AsyncVLLMInferenceEngine pid=9103, ip=10.0.0.4") + (
            f"INFO {at:%m-%d %H:%M:%S} [loggers.py:271] Engine 000: Avg prompt throughput: 1810.2 tokens/s, Avg generation throughput: 2240.7 tokens/s, "
            f"Running: {20 + number % 17} reqs, Waiting: 0 reqs, GPU KV cache usage: 41.0%, Prefix cache hit rate: 55.1%\n"
        )
    return (
        prefix(job, at, "RolloutCoordinator pid=4711, ip=10.0.0.3")
        + f"{stamp(at)} | DEBUG    | LiteLLM:completion:3389 - Wrapper: Completed Call {number}\n"
    )


def fault_line(job: str, at: datetime, number: int) -> str:
    """One error of a cascade, of one of 64 processes."""
    actor = f"FSDPPolicyWorkerBase pid={7000 + number % 64}"
    return prefix(job, at, actor) + FAULT_LINES[number % len(FAULT_LINES)] + "\n"


def state_poll(job: str, at: datetime, state: str = "running") -> str:
    """A record of the state probe."""
    told = json.dumps({"job_id": job, "state": state, "state_int": 3 if state == "running" else 5, "pods_alive": 4})
    record = {
        "at": f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z",
        "probe": "state",
        "command": ["iris_ops.py", job, "--once", "--json"],
        "exit": 0,
        "elapsed_ms": 1,
        "stdout": told + "\n",
        "stderr": "",
    }
    return json.dumps(record) + "\n"


def begun(folder: Path, job: str, workers: int = 0) -> Path:
    """A job's capture with its first lines: an aggregated log, a state poll, and logs of so many workers."""
    (folder / "polls").mkdir(parents=True)
    at = now() - timedelta(seconds=60)
    (folder / "job.toml").write_text(f'[job]\nid = "{job}"\n')
    lines = [quiet_line(job, at + timedelta(seconds=number), number) for number in range(50)]
    (folder / "finelog.log").write_text("".join(lines))
    (folder / "polls" / "state.jsonl").write_text(state_poll(job, now()))
    for worker in range(workers):
        home = folder / "ray_session_logs" / f"rank{worker % 4}-node{worker % 4}" / "session_2026-05-04_08-00-00_0_1"
        home.mkdir(parents=True, exist_ok=True)
        said = "".join(f"{stamp(at + timedelta(seconds=number))} still up {number}\n" for number in range(20))
        (home / f"worker-{worker:056x}-01000000-{1000 + worker}.out").write_text(said)
    return folder


def day(folder: Path, job: str, seconds_a_line: float = 2.0) -> Path:
    """A recorded capture of 24 hours: steps of 30 minutes, engine loads, a state poll a minute, a trial every two."""
    (folder / "polls").mkdir(parents=True)
    (folder / "job.toml").write_text(f'[job]\nid = "{job}"\nmodel = "Tern-8B"\n[training]\nmax_steps = 80\n')
    chance = random.Random(24)
    count, pace = int(DAY.total_seconds() / seconds_a_line), timedelta(seconds=seconds_a_line)
    with (folder / "finelog.log").open("w", encoding="utf-8") as log:
        for number in range(count):
            at = START + number * pace
            log.write(_of_a_step(job, at, number, int(STEP_OF_A_DAY / pace)))
    with (folder / "polls" / "state.jsonl").open("w", encoding="utf-8") as polls:
        polls.writelines(state_poll(job, START + timedelta(minutes=minute)) for minute in range(24 * 60))
    for number in range(int(DAY / TRIAL_EVERY)):
        _trial(folder / "trace_jobs" / f"mend-{number % 97}__{number:07d}", START + number * TRIAL_EVERY, chance)
    return folder


def _of_a_step(job: str, at: datetime, number: int, lines: int) -> str:
    """The line of a step at this place."""
    step, place = divmod(number, lines)
    head = f"{prefix(job, at)}{stamp(at)} | INFO     | skyrl_train.trainer:train:227 - "
    said = {
        0: "Started: 'step'",
        1: "Started: 'wait_for_generation_buffer'",
        lines - 3: "Finished: 'wait_for_generation_buffer', time cost: 1700.00s",
        lines - 2: f"Finished: 'step', time cost: {1700 + step % 9}.00s",
    }.get(place)
    return quiet_line(job, at, number) if said is None else f"{head}{said}\n"


def _trial(folder: Path, at: datetime, chance: random.Random) -> None:
    folder.mkdir(parents=True)
    end = at + timedelta(seconds=chance.randrange(60, 900))
    config = {"trial_name": folder.name, "trials_dir": "trace_jobs", "agent": {"name": "terminus-2"}}
    result = {
        "trial_name": folder.name,
        "task_name": folder.name.partition("__")[0],
        "config": config,
        "agent_result": {"n_output_tokens": chance.randrange(500, 9000), "metadata": {"n_episodes": 6}},
        "verifier_result": {"rewards": {"reward": float(chance.random() < 0.4)}},
        "exception_info": None,
        "started_at": f"{at:%Y-%m-%dT%H:%M:%S}.000000Z",
        "finished_at": f"{end:%Y-%m-%dT%H:%M:%S}.000000Z",
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "result.json").write_text(json.dumps(result))
