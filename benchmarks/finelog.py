"""Writes aggregated logs of a chosen size and share of signal lines, with a state poll beside them.

The same arguments give the same bytes.
"""

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.lines import JOB, NOISE, SIGNALS, coloured

START = datetime(2026, 7, 1, 6, 0, tzinfo=UTC)
CHUNK_LINES = 20_000


def write(
    folder: Path, megabytes: int, signal_share: float, lines_per_second: int = 400, colours: bool = False
) -> Path:
    """A capture with a finelog of this size, of whose lines signal_share say something. Gives the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(7)
    size, written, at = megabytes * 1_000_000, 0, START
    step = timedelta(seconds=1 / lines_per_second)
    with (folder / "finelog.log").open("wb") as log:
        while written < size:
            lines = []
            for _ in range(CHUNK_LINES):
                at += step
                line = (SIGNALS if chance.random() < signal_share else NOISE).line(chance, at)
                lines.append(coloured(line) if colours else line)
            chunk = "".join(lines).encode()
            log.write(chunk)
            written += len(chunk)
    write_polls(folder, at)
    return folder


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
