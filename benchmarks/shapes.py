"""Logs of an unusual shape: how long `wedgewatch replay` takes for each, from process start to the final verdict.

    python -m benchmarks.shapes SHAPE [--runs 5] [--keep FOLDER]

small   100 KB of log: start-up
files   5,000 Ray worker files, 1 GB together, against one file that holds the same bytes
faults  200,000 lines, each of them a recognised error
nccl    200,000 lines of communicators of 10,000 ranks that come up
sparse  three days with a line every 10 s: views and judging
linear  1 GB, and 10 GB of the same: cost must grow with the bytes and no faster (needs 11 GB of disk)
all     one after the other
"""

# ruff: noqa: E501 (log lines stand as printed)

import argparse
import statistics
import tempfile
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from pathlib import Path

from benchmarks.finelog import START, write, write_polls
from benchmarks.lines import prefix
from benchmarks.run import Cost, measured, replay

WORKERS = 5_000
LINES_A_WORKER = 1_500
SAID_EVERY = 100
FAULTS = 200_000
INITS = 200_000
RANKS = 10_000
SPARSE_LINES = 26_000


def _stamp(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03d}"


def _write(path: Path, lines: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as log:
        log.writelines(lines)


def small(folder: Path) -> list[Path]:
    """100 KB with the beginnings of two steps."""
    said = (
        "Started: 'step'",
        "Started: 'generate'",
        "Finished: 'generate', time cost: 41.50s",
        "Finished: 'step', time cost: 60.00s",
    )
    lines = []
    for number in range(500):
        at = START + timedelta(seconds=10 * number)
        words = said[number % 4] if number < 400 else "still the same"
        lines.append(f"{prefix(at)}{_stamp(at)} | INFO     | skyrl_train.trainer:train:227 - {words}{' ' * 50}\n")
    _write(folder / "finelog.log", lines)
    write_polls(folder, at)
    return [folder]


def files(folder: Path) -> list[Path]:
    """The same lines of 5,000 workers, one file each, and all in one file. One line in a hundred says something."""
    many, one = folder / "many", folder / "one"
    together = one / "ray_session_logs" / "rank0-node-0" / "logs" / f"worker-{0:056x}-01000000-1000.err"
    together.parent.mkdir(parents=True)
    with together.open("w", encoding="utf-8") as log:
        for worker in range(WORKERS):
            node = f"rank{worker % 16}-node-{worker % 16}/session_2026-07-01_06-00-00_000001_1/logs"
            name = f"worker-{worker:056x}-01000000-{1000 + worker}.err"
            lines = [_worker_line(number, START + timedelta(seconds=4 * number)) for number in range(LINES_A_WORKER)]
            _write(many / "ray_session_logs" / node / name, lines)
            span = LINES_A_WORKER / WORKERS * 4
            log.writelines(
                _worker_line(number, START + timedelta(seconds=worker * span + number * span / LINES_A_WORKER))
                for number in range(LINES_A_WORKER)
            )
    until = START + timedelta(seconds=4 * LINES_A_WORKER)
    for capture in (many, one):
        _write(capture / "finelog.log", [f"{prefix(START)}starting\n"])
        write_polls(capture, until)
    return [many, one]


def _worker_line(number: int, at: datetime) -> str:
    if number % SAID_EVERY:
        return f"{_stamp(at)} | DEBUG    | harbor.agents.terminus_2:_log:88 - {_WORDS} {number}\n"
    return f"{_stamp(at)} | INFO     | skyrl_train.trainer:train:227 - Started: 'generate'\n"


_WORDS = "an agent's words of what the tests said, and of what it will do about that"


FAULT_LINES = (
    "RuntimeError: CUDA error: an illegal memory access was encountered",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.10 GiB",
    "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace above for the root cause.",
    "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.",
    "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3356, unhandled system error",
    "[rank3]:[E701 06:00:00.123456789 ProcessGroupNCCL.cpp:629] [Rank 3] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=812, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1800000) ran for 1800010 milliseconds before timing out.",
    "RuntimeError: Worker failed with error 'out of range', please check the stack trace above for the root cause",
)


def faults(folder: Path) -> list[Path]:
    """Nothing but errors, 50 a second, of 64 processes."""
    lines = []
    for number in range(FAULTS):
        at = START + timedelta(milliseconds=20 * number)
        lines.append(
            prefix(at, f"FSDPPolicyWorkerBase pid={7000 + number % 64}") + FAULT_LINES[number % len(FAULT_LINES)] + "\n"
        )
    _write(folder / "finelog.log", lines)
    write_polls(folder, at)
    return [folder]


def nccl(folder: Path) -> list[Path]:
    """Communicators of 10,000 ranks that begin and complete, one after the other."""
    lines = []
    for number in range(INITS):
        group, at_group = divmod(number, 2 * RANKS)
        rank, end = at_group % RANKS, "START" if at_group < RANKS else "COMPLETE"
        lines.append(
            f"node-{rank // 8}:{900 + rank}:{950 + rank} [{rank % 8}] NCCL INFO ncclCommInitRankConfig comm 0x55d0{group:06x}{rank:02x} rank {rank} "
            f"nranks {RANKS} cudaDev {rank % 8} nvmlDev {rank % 8} busId 5d000 commId 0x77aa{group:012x} - Init {end}\n"
        )
    _write(folder / "ray_session_logs" / "rank0-node-0" / "logs" / f"worker-{0:056x}-01000000-900.out", lines)
    _write(folder / "finelog.log", [f"{prefix(START)}starting\n"])
    write_polls(folder, START + timedelta(hours=1))
    return [folder]


def sparse(folder: Path) -> list[Path]:
    """Three days of steps with one line every 10 s."""
    lines = []
    for number in range(SPARSE_LINES):
        at = START + timedelta(seconds=10 * number)
        lines.append(prefix(at) + f"{_stamp(at)} | INFO     | skyrl_train.trainer:train:227 - {_of_a_step(number)}\n")
    _write(folder / "finelog.log", lines)
    write_polls(folder, at)
    return [folder]


def _of_a_step(number: int) -> str:
    """The line of a step of 30 minutes that stands at this place."""
    at, held = number % 180, number % 180 * 64 // 170
    if at == 0:
        return "Started: 'step'"
    if at == 1:
        return "Started: 'wait_for_generation_buffer'"
    if at < 170:
        return f"Generation Buffer Progress: {held}/64 ({held * 100 // 64}%) [{at * 10}s] | buffer qsize=3"
    if at == 170:
        return "Finished: 'wait_for_generation_buffer', time cost: 1690.00s"
    return "Finished: 'step', time cost: 1790.00s" if at == 179 else "nothing to say"


def linear(folder: Path) -> list[Path]:
    """1 GB and 10 GB with one signal line in a hundred."""
    return [write(folder / f"{gigabytes}GB", gigabytes * 1_000, 0.01) for gigabytes in (1, 10)]


SHAPES: dict[str, Callable[[Path], list[Path]]] = {
    "small": small,
    "files": files,
    "faults": faults,
    "nccl": nccl,
    "sparse": sparse,
    "linear": linear,
}


def _told(name: str, costs: list[Cost]) -> str:
    wall, processor = (
        statistics.median(cost.wall for cost in costs),
        statistics.median(cost.processor for cost in costs),
    )
    return (
        f"{name:<14} {wall:6.2f} s wall  {processor:6.2f} s processor  {max(cost.megabytes for cost in costs):4.0f} MB"
    )


def main() -> None:
    """Writes the captures of a shape, runs them in turn, prints medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", choices=[*SHAPES, "all"])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--keep", type=Path, help="write the captures there and keep them")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for shape in SHAPES if asked.shape == "all" else [asked.shape]:
            captures = SHAPES[shape]((asked.keep or Path(folder)) / shape)
            costs: dict[str, list[Cost]] = {capture.name: [] for capture in captures}
            for _ in range(asked.runs):
                for capture in captures:
                    costs[capture.name].append(measured(replay(capture)))
            for name, of in costs.items():
                print(_told(shape if name == shape else f"{shape}/{name}", of), flush=True)


if __name__ == "__main__":
    main()
