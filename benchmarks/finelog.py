"""Writes aggregated logs of a chosen size and share of signal lines, with a state poll beside them.

The lines are made up after the formats that the catalogue reads. The same arguments give the same bytes.
"""

# ruff: noqa: E501 (log lines stand as printed)

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

START = datetime(2026, 7, 1, 6, 0, tzinfo=UTC)
JOB = "/bench/rl-speed"
CHUNK_LINES = 20_000


def write(folder: Path, megabytes: int, signal_share: float, lines_per_second: int = 400, seed: int = 7) -> Path:
    """A capture with a finelog of this size, of whose lines signal_share say something. Gives the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(seed)
    size, written, at = megabytes * 1_000_000, 0, START
    step = timedelta(seconds=1 / lines_per_second)
    with (folder / "finelog.log").open("wb") as log:
        while written < size:
            lines = []
            for _ in range(CHUNK_LINES):
                at += step
                lines.append(_signal(chance, at) if chance.random() < signal_share else _noise(chance, at))
            chunk = "".join(lines).encode()
            log.write(chunk)
            written += len(chunk)
    write_polls(folder, at)
    return folder


def prefix(at: datetime, actor: str = "skyrl_entrypoint pid=31337") -> str:
    """What Iris and Ray write before an actor's line."""
    return f"[{at:%H:%M:%S}] task={JOB}/0 | ({actor}) "


def _noise(chance: random.Random, at: datetime) -> str:
    kind = chance.random()
    if kind < 0.7:
        return (
            prefix(at)
            + f'INFO:     10.0.{chance.randrange(9)}.7:{chance.randrange(30000, 60000)} - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
        )
    stamp = f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03d}"
    if kind < 0.9:
        return prefix(at, "RolloutCoordinator pid=4711, ip=10.0.0.3") + (
            f"{stamp} | INFO     | LiteLLM:completion:3389 - Wrapper: Completed Call {chance.randrange(10**9)}, calling success_handler\n"
        )
    words = " ".join(chance.choices(("error", "the", "tests", "failed", "because", "pytest", "killed", "grep"), k=24))
    return prefix(at, "RolloutCoordinator pid=4711, ip=10.0.0.3") + (
        f'{stamp} | DEBUG    | harbor.agents.terminus_2.terminus_2:_log_episode:1102 - episode={{"content": "{words}"}}\n'
    )


def _signal(chance: random.Random, at: datetime) -> str:
    stamp = f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03d}"
    kind = chance.random()
    if kind < 0.7:
        return prefix(at, f"AsyncVLLMInferenceEngine pid={9100 + chance.randrange(8)}, ip=10.0.0.4") + (
            f"INFO {at:%m-%d %H:%M:%S} [loggers.py:271] Engine 000: Avg prompt throughput: {chance.uniform(500, 4000):.1f} tokens/s, "
            f"Avg generation throughput: {chance.uniform(1500, 4000):.1f} tokens/s, Running: {chance.randrange(20, 60)} reqs, "
            f"Waiting: {chance.randrange(4)} reqs, GPU KV cache usage: {chance.uniform(20, 70):.1f}%, "
            f"Prefix cache hit rate: {chance.uniform(40, 70):.1f}%\n"
        )
    if kind < 0.9:
        held = chance.randrange(64)
        return prefix(at) + (
            f"{stamp} | INFO     | skyrl_train.utils.progress:_emit:118 - Generation Buffer Progress: {held}/64 ({held * 100 // 64}%) "
            f"[{chance.randrange(1200)}s] | buffer qsize=3\n"
        )
    if kind < 0.97:
        return prefix(at) + f"{stamp} | INFO     | skyrl_train.trainer:train:227 - Started: 'generate'\n"
    return prefix(at) + (
        f"{stamp} | INFO     | skyrl_train.trainer:train:227 - Finished: 'generate', time cost: {chance.uniform(300, 700):.2f}s\n"
    )


def write_polls(folder: Path, until: datetime) -> None:
    """A state poll a minute that says that the job runs."""
    (folder / "polls").mkdir(exist_ok=True)
    at, records = START, []
    while at < until:
        state = {"job_id": JOB, "state": "running", "state_int": 3, "pods_alive": 4}
        human = f"[{at:%H:%M:%S}] {JOB} state=running (3) src=summary pods=4 tasks=0/4 exit=0 preempts=0\n"
        records.append(
            {
                "at": f"{at:%Y-%m-%dT%H:%M:%S}.000Z",
                "probe": "state",
                "command": ["iris_ops.py", JOB, "--once", "--json"],
                "exit": 0,
                "elapsed_ms": 800,
                "stdout": human + json.dumps(state, indent=2) + "\n",
                "stderr": "",
            }
        )
        at += timedelta(minutes=1)
    with (folder / "polls" / "state.jsonl").open("w", encoding="utf-8") as polls:
        polls.writelines(json.dumps(record) + "\n" for record in records)
