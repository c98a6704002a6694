"""How the record of a run reaches the watcher: late, twice, by a wrong clock, with pieces missing, packed."""

import random
from collections.abc import Callable

from tests.captures.writing import disk
from tests.captures.writing.run import Run
from tests.walks.stamps import moved_by

Files = dict[str, bytes]
HOLES: tuple[tuple[str, float, Callable[[str], bool]], ...] = (
    ("no ray logs", 0.12, lambda path: path.startswith("ray_session_logs/")),
    ("no aggregated log", 0.05, lambda path: path.startswith(("finelog.log", "slurm-", "pod_logs/"))),
    ("no card polls", 0.10, lambda path: path == "polls/gpu.jsonl"),
    ("no state polls", 0.04, lambda path: path == "polls/state.jsonl"),
    ("no pod lists", 0.10, lambda path: path == "polls/pods.jsonl"),
    ("no trials", 0.12, lambda path: path.startswith("trace_jobs/")),
    ("no job.toml", 0.06, lambda path: path == "job.toml"),
    ("logs of one node missing", 0.08, lambda path: path.startswith("ray_session_logs/rank1-")),
    ("no daemons' logs", 0.08, lambda path: path.endswith(("raylet.out", "gcs_server.out"))),
)


def delays(run: Run, rng: random.Random, most: float = 240.0) -> None:
    """The log's shipper stands still for a while and then hands over all at once; and a few stragglers."""
    if not run.lines:
        return
    newest = max(line.at for line in run.lines)
    for _ in range(rng.randrange(3)):
        begin, length = rng.uniform(0, newest), rng.uniform(20, most)
        run.lines = [
            line._replace(at=begin + length + (line.at - begin) / 1e4) if begin <= line.at < begin + length else line
            for line in run.lines
        ]
    run.lines = [
        line._replace(at=line.at + rng.uniform(5, most)) if ", ip=" in line.speaker and rng.random() < 0.03 else line
        for line in run.lines
    ]


def skews(run: Run, rng: random.Random, most: float = 300.0) -> None:
    """One node's clock is wrong by up to five minutes."""
    node, seconds = rng.randrange(4), rng.uniform(-most, most)
    mark = f", ip={run.ip(node)})"

    def wrong(at: float, text: str) -> str:
        return moved_by(text, seconds, run.clock.moment(at))

    for path, said in run.actor_files.items():
        if path.startswith(f"ray_session_logs/rank{node}-"):
            run.actor_files[path] = [(at, order, wrong(at, text)) for at, order, text in said]
    run.lines = [
        line._replace(text=wrong(line.at, line.text))
        if line.speaker and (mark in line.speaker or (node == 0 and ", ip=" not in line.speaker))
        else line
        for line in run.lines
    ]


def said_twice(files: Files, rng: random.Random) -> Files:
    """The stream broke off and began again some lines back."""
    for path in (path for path in files if path.startswith(("finelog.log", "slurm-"))):
        lines = files[path].splitlines(keepends=True)
        begin = rng.randrange(len(lines))
        end = min(len(lines), begin + rng.randrange(5, 80))
        files = files | {path: b"".join((*lines[:end], *lines[begin:]))}
    return files


def torn(files: Files, rng: random.Random) -> Files:
    """The head of the aggregated log is missing, up to the middle of a line."""
    return {
        path: body[rng.randrange(len(body) // 3) :] if path.startswith(("finelog.log", "slurm-")) and body else body
        for path, body in files.items()
    }


def with_holes(files: Files, rng: random.Random, dated: bool) -> Files:
    """Without what was not pulled or not asked for. A trainer whose own lines have no time keeps its transport's."""
    gone = [lost for name, often, lost in HOLES if rng.random() < often and (dated or name != "no aggregated log")]
    return {path: body for path, body in files.items() if not any(lost(path) for lost in gone)}


def laid_out(files: Files, rng: random.Random, dated: bool = True) -> Files:
    """Each of the above now and then; packed now and then."""
    if rng.random() < 0.25:
        files = said_twice(files, rng)
    if rng.random() < 0.15:
        files = torn(files, rng)
    files = with_holes(files, rng, dated)
    if rng.random() < 0.2:
        files = (disk.gzipped if rng.random() < 0.5 else disk.zstd)(files)
    return dict(files)
