"""Logs that other people published, where a folder of them is at hand: each as a capture with made-up state polls.

Each item is a folder with the data under its own name and a `meta.json`, whose `expected` says in words what a correct
reader reports; its first words tell a death from a healthy run.
"""

import os
import re
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from dataflow.feed import open_feed
from dataflow.flow import replay_records
from state.track import Track

_DEAD = re.compile(
    r"DEAD\b|TERMINAL\b|Death signature|WEDGED then aborted|WEDGED/DEAD|WEDGED: \d|Hard GPU fault|CUDA OOM|"
    r"HOST-RAM OOM|[^.]{0,160}= terminal"
)
_HEALTHY = re.compile(
    r"Finished|Healthy|NO-KILL|ALIVE|Alive|BENIGN|Mostly BENIGN|RECOVERED|EARLY|Clean shutdown|Ramping|Preemption|"
    r"8 GPUs, all busy"
)
_LOG_ENDINGS = (".log", ".txt", ".err", ".out")
_UNFINISHED = re.compile(r"EARLY|Preemption")
_NO_LOGS = frozenset({"reference_missing_ranks.txt", "fault_injection.log", "state_poll.txt"})
"""Files that hold an answer or a poll's output."""
_ROW = {"running": "RUNNING|0:0", "failed": "FAILED|1:0", "succeeded": "COMPLETED|0:0"}


def corpus() -> Path | None:
    """The folder of public logs: `corpus` of $WEDGEWATCH_SHARED, else `shared/corpus` beside the repository; None where
    there is none."""
    named = os.environ.get("WEDGEWATCH_SHARED")
    place = Path(named) / "corpus" if named else Path(__file__).parents[3] / "shared" / "corpus"
    return place if place.is_dir() else None


def fate(item: Path) -> str:
    """`dead`, `healthy`, or "" where the item's account says neither (a poll, a trial, an excerpt)."""
    expected = orjson.loads((item / "meta.json").read_bytes())["expected"]
    if _DEAD.match(expected):
        return "dead"
    return "healthy" if _HEALTHY.match(expected) else ""


def may_succeed(item: Path) -> bool:
    """Whether a healthy run's account allows that it then succeeded."""
    return not _UNFINISHED.match(orjson.loads((item / "meta.json").read_bytes())["expected"])


def log_of(item: Path) -> Path | None:
    """The item's log; None where its data is of another kind."""
    found = [path for path in item.iterdir() if path.suffix in _LOG_ENDINGS and path.name not in _NO_LOGS]
    return max(found, key=lambda path: path.stat().st_size, default=None)


def records(path: Path) -> list[dict[str, Any]]:
    """What a replay says of a file or folder."""
    return [orjson.loads(line) for line in replay_records([str(path)], engine="plain")]


def final(path: Path) -> dict[str, Any]:
    """The last verdict on a file or folder."""
    return next(each for each in reversed(records(path)) if each["kind"] == "verdict" and each["final"])


@cache
def bare(log: Path) -> dict[str, Any]:
    """The last verdict on a log alone."""
    return final(log)


def capture(log: Path, folder: Path, state: str, after_seconds: int) -> Path:
    """Writes the log as a capture whose one state poll comes so long after the log's last line. An idle worker's file
    stands for the per-actor Ray logs that such jobs don't have."""
    ended = datetime.fromisoformat(bare(log)["at"]).timestamp()
    at = datetime.fromtimestamp(ended + after_seconds, UTC).isoformat().replace("+00:00", "Z")
    poll = {
        "at": at,
        "probe": "state",
        "command": ["sacct", "-P", "-j", "77", "-o", "JobID,State,ExitCode"],
        "exit": 0,
        "elapsed_ms": 40,
        "stdout": f"JobID|State|ExitCode\n77|{_ROW[state]}\n",
        "stderr": "",
    }
    made = folder / f"{state}-{after_seconds}"
    worker = made / "ray_session_logs" / "rank0-node-a" / "worker-aabb-01000000-77.out"
    worker.parent.mkdir(parents=True)
    worker.write_text(":actor_name:Idle\n")
    (made / "polls").mkdir()
    (made / "polls" / "state.jsonl").write_bytes(orjson.dumps(poll) + b"\n")
    (made / "finelog.log").write_bytes(log.read_bytes())
    return made


def views(path: Path, step: str) -> dict[str, Any]:
    """What the trackers of one step of the flow show at the end of a file or folder."""
    track, shown = Track(step), dict[str, Any]()
    for beat in open_feed(str(path)).beats():
        shown = track.fold(beat, shown)
    return shown


def completed_ranks(item: Path) -> list[tuple[int, int]]:
    """(size, ranks that completed) of each communicator that the item's account counted."""
    files = orjson.loads((item / "meta.json").read_bytes())["facts_counted_by_regex"].values()
    counted = [each for file in files if isinstance(file, dict) for each in file.get("nccl_init_complete", ())]
    return [(each["nranks"], each["distinct_ranks_complete"]) for each in counted]


def missing_ranks(item: Path) -> set[tuple[str, tuple[int, ...]]]:
    """(operation, ranks) that an analyser of flight recorders gave as missing, by the item's reference file."""
    rows = (item / "reference_missing_ranks.txt").read_text().splitlines()[1:]
    cells = [[cell.strip() for cell in row.split("|")] for row in rows if row.strip()]
    return {(row[2], tuple(int(rank) for rank in row[5].split(","))) for row in cells}
