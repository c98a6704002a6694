"""Runs `wedgewatch replay` or a peer as its own process on one core and measures it."""

import os
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parent.parent
CORE = "1"


class Cost(msgspec.Struct, frozen=True):
    """What a run cost: wall and processor seconds, and peak resident memory in MB."""

    wall: float
    processor: float
    megabytes: float


def replay(capture: Path) -> list[str]:
    """The command that replays a capture."""
    return [sys.executable, "-m", "dataflow.cli", "replay", "--format", "jsonl", str(capture)]


def measured(command: Sequence[str], may_exit: Sequence[int] = (0,)) -> Cost:
    """Runs a command on one core, its output thrown away. Raises SystemExit where it fails."""
    pinned = list(command)
    if shutil.which("taskset") and (os.cpu_count() or 1) > 1:
        pinned = ["taskset", "-c", CORE, *pinned]
    begin = time.perf_counter()
    silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    child = os.posix_spawn(shutil.which(pinned[0]) or pinned[0], pinned, environment, file_actions=silent)
    _, status, usage = os.wait4(child, 0)
    wall = time.perf_counter() - begin
    if os.waitstatus_to_exitcode(status) not in may_exit:
        raise SystemExit(f"{' '.join(command)[:200]} failed")
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
