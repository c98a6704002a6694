"""What it costs to watch: a quiet and a growing file, a second of thousands of them, and a look at a large capture.

`python -m benchmarks.tailing [FOLDER]` writes 5,000 logs and 100,000 trials into the folder (a temporary one, unless
given) and prints a table. Times are processor time.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from dataflow.capture import Source
from dataflow.rescan import Rescan
from dataflow.rounds import Rounds
from dataflow.tail import HOLD_US, Tail
from dataflow.tailing import tail_of

NODES, WORKERS = 100, 50
TRIALS, OPEN = 100_000, 300
SECOND_US = 1_000_000


def written(root: Path) -> None:
    """A capture of many workers' logs and very many trials."""
    for node in range(NODES):
        folder = root / "ray_session_logs" / f"rank{node}-node{node}" / "session_2026-05-04_08-00-00_0_1" / "logs"
        folder.mkdir(parents=True)
        for worker in range(WORKERS):
            line = f"2026-05-04 08:00:{worker:02d} worker {worker} of node {node} is up\n"
            (folder / f"worker-{worker:08x}-01000000-{1000 + worker}.out").write_text(line * 3)
    for number in range(TRIALS):
        trial = root / "trace_jobs" / f"task-{number % 97}__{number:07d}"
        trial.mkdir(parents=True)
        (trial / "config.json").write_text("{}")
        if number < TRIALS - OPEN:
            (trial / "result.json").write_text("{}")


def best_of(times: int, what: Callable[[], object]) -> float:
    """The least processor seconds of several runs."""
    costs = []
    for _ in range(times):
        begin = time.process_time()
        what()
        costs.append(time.process_time() - begin)
    return min(costs)


def of_files(sources: list[Source]) -> None:
    """A poll of a file that is quiet, or has grown by a line, against the system call that it can't do without."""
    tails = [Tail(source) for source in sources]
    now_us = 0

    def poll() -> None:
        for tail in tails:
            tail.poll(now_us)

    first = best_of(1, poll)
    for _ in range(3):
        now_us += HOLD_US
        poll()
    quiet = best_of(9, poll)
    alone = best_of(9, lambda: [os.stat(source.path) for source in sources])
    for source in sources:
        with open(source.path, "ab") as log:
            log.write(b"2026-05-04 08:01:00 still up\n")
    grown = best_of(1, poll)
    for name, cost in (("first poll", first), ("os.stat alone", alone), ("quiet", quiet), ("grown by a line", grown)):
        print(f"{name:32} {cost / len(sources) * 1e6:8.2f} µs a file")


def of_rounds(sources: list[Source]) -> None:
    """A second of rounds over files that are all quiet."""
    rounds, now_us = Rounds(), 0
    for source in sources:
        rounds.add(tail_of(source))

    def second() -> None:
        nonlocal now_us
        for _ in range(4):
            now_us += SECOND_US // 4
            for tail in rounds.due(now_us):
                tail.poll(now_us)

    for _ in range(15):
        second()
    print(f"{f'rounds over {len(sources)} quiet files':32} {best_of(5, second) * 1e3:8.2f} ms a second")


def of_looks(root: Path) -> list[Source]:
    """Looks at a capture of which nothing, a log, or a trial is new."""
    rescan, now_us = Rescan(str(root)), time.time_ns() // 1_000 + 60 * SECOND_US

    def look(count: int = 1) -> None:
        nonlocal now_us
        for _ in range(count):
            now_us += 2 * SECOND_US
            rescan.look(now_us)

    def told(name: str, cost: float) -> None:
        print(f"{name:32} {cost * 1e3:8.2f} ms a look")

    told("the first", best_of(1, look))
    look(80)
    told("nothing new", best_of(9, look))
    source = next(iter(rescan.sources.values()))
    Path(source.path).with_suffix(".err").write_text("new\n")
    told("a log more", best_of(1, look))
    look(5)
    (root / "trace_jobs" / "task-0__fresh00").mkdir()
    told("a trial more", best_of(1, look))
    return list(rescan.sources.values())


def main() -> None:
    """Measures."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder)
        if not (root / "trace_jobs").exists():
            written(root)
        sources = of_looks(root)
        of_files(sources)
        of_rounds(sources)


if __name__ == "__main__":
    main()
