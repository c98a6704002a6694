"""Lines without a date lie near the log's own first date, however much later the polls began."""

import json
from pathlib import Path

import pytest

from dataflow.beginning import own_time_us
from dataflow.flow import replay_records
from extractors.clocks import parse_iso

IRIS = "task=/alice/rl/0 | (skyrl_entrypoint pid=7)"
UNDATED = [f"[10:00:{second:02d}] {IRIS} Started: 'step'\n" for second in range(0, 60, 20)]
DATED = f"[10:05:32] {IRIS} 2026-03-17 10:05:32.100 | INFO     | skyrl_train.trainer:train:227 - Started: 'generate'\n"
COLOURED = DATED.replace("2026-03-17 10:05:32.100", "\x1b[32m2026-03-17 10:05:32.100\x1b[0m")


def coverage(folder: Path, lines: list[str], polled: str) -> dict[str, object]:
    """What the verdict says of the reading of a log, of which a state poll was taken at a time."""
    (folder / "polls").mkdir()
    (folder / "finelog.log").write_text("".join(lines))
    poll = {"at": polled, "probe": "state", "command": ["iris"], "exit": 0, "elapsed_ms": 1, "stderr": ""}
    state = json.dumps({"job_id": "/alice/rl", "state": "running"})
    (folder / "polls" / "state.jsonl").write_text(json.dumps({**poll, "stdout": state}) + "\n")
    found: dict[str, object] = json.loads(replay_records([str(folder)])[-1])["coverage"]["finelog.log"]
    return {name: found[name] for name in ("from", "to", "late")}


@pytest.mark.parametrize("dated", [DATED, COLOURED], ids=["plain", "coloured"])
@pytest.mark.parametrize("polled", ["2026-03-17T10:12:00Z", "2026-03-17T23:00:00Z", "2026-11-30T10:05:00Z"])
def test_a_poll_that_comes_late_moves_no_line(tmp_path: Path, polled: str, dated: str) -> None:
    assert coverage(tmp_path, [*UNDATED, dated], polled) == {
        "from": "2026-03-17T10:00:00.000Z",
        "to": "2026-03-17T10:05:32.100Z",
        "late": 0,
    }


def test_where_no_line_has_a_date_the_poll_gives_it(tmp_path: Path) -> None:
    assert coverage(tmp_path, UNDATED, "2026-11-30T10:05:00Z")["from"] == "2026-11-30T10:00:00.000Z"


def test_a_date_that_is_spoken_of_is_not_the_logs(tmp_path: Path) -> None:
    spoken = f"[10:01:00] {IRIS} resumed the run of 2024-01-01 03:00:00\n"
    assert coverage(tmp_path, [*UNDATED, spoken], "2026-11-30T10:05:00Z")["from"] == "2026-11-30T10:00:00.000Z"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"I20260317 10:00:05 127394809947968 iris.cli.main Resolved cluster\n", "2026-03-17 10:00:00"),
        (b"2026-03-17 10:05:32,120 INFO worker.py:12 -- started\n", "2026-03-17 10:05:00"),
        (DATED.encode(), "2026-03-17 10:05:00"),
        (b"[10:05:32] task=/a/0 | 2026-03-17 18:05:32.100 | INFO | a:b:1 - another zone's\n", None),
        (b"2026-13-45 10:05:32 no date\n", None),
        (b"", None),
    ],
)
def test_the_first_line_that_begins_with_a_date_tells_a_logs_own_time(line: bytes, said: str | None) -> None:
    assert own_time_us(b"[10:00:00] task=/a/0 | noise\n" + line) == (parse_iso(said) if said else None)
