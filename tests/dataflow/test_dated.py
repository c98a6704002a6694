"""Dated reports: one for each changed verdict, none twice after a restart, no half of one."""

import os
from pathlib import Path
from typing import Any

import pytest

from dataflow.dated import DatedReports
from tests.dataflow.disks import fill, small_disk
from tests.dataflow.said_records import gate, verdict

Record = dict[str, Any]

DAY = 86_400
STREAM = [
    verdict("/kim/rl", 10),
    verdict("/kim/other", 11),
    verdict("/kim/rl", 20, "WEDGED", "KILL"),
    verdict("/kim/rl", 30),
]


def write(folder: Path, records: list[Record]) -> None:
    reports = DatedReports(folder, resumes=True)
    for record in records:
        reports.write(record)


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(folder.iterdir())}


@pytest.fixture
def whole(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "whole").mkdir()
    write(tmp_path / "whole", STREAM)
    return contents(tmp_path / "whole")


def test_each_report_has_its_heading_a_mark_that_is_not_shown_and_its_text(whole: dict[str, str]) -> None:
    assert list(whole) == ["2026-07-20_kim-other.md", "2026-07-20_kim-rl.md"]
    lines = whole["2026-07-20_kim-rl.md"].splitlines()
    assert lines[0] == "## 2026-07-20T00:00:10.000Z"
    assert lines[1].startswith("<!-- wedgewatch job=")
    assert lines[2:4] == ["", "```"]
    assert sum(line.startswith("VERDICT: ") for line in lines) == 3


def test_heartbeats_that_say_the_same_and_gates_are_no_reports(tmp_path: Path, whole: dict[str, str]) -> None:
    (tmp_path / "r").mkdir()
    beats = [verdict("/kim/rl", 12, reason="it still steps"), gate("/kim/rl", 13)]
    write(tmp_path / "r", [*STREAM[:2], *beats, *STREAM[2:], verdict("/kim/rl", 40)])
    assert contents(tmp_path / "r") == whole


@pytest.mark.parametrize("again", range(len(STREAM) + 1))
@pytest.mark.parametrize("done", range(len(STREAM) + 1))
def test_a_report_that_stands_is_not_appended_again(
    tmp_path: Path, whole: dict[str, str], done: int, again: int
) -> None:
    (tmp_path / "r").mkdir()
    write(tmp_path / "r", STREAM[:done])
    write(tmp_path / "r", STREAM[min(done, again) :])
    assert contents(tmp_path / "r") == whole


def test_what_the_last_day_said_is_known_the_next_day(tmp_path: Path) -> None:
    write(tmp_path, [STREAM[0]])
    later = verdict("/kim/rl", 50) | {"at": "2026-07-21T00:00:50.000Z"}
    write(tmp_path, [later])
    assert list(contents(tmp_path)) == ["2026-07-20_kim-rl.md"]


def test_a_report_that_was_torn_anywhere_is_cut_off_and_said_again(tmp_path: Path) -> None:
    write(tmp_path, [STREAM[0], STREAM[2]])
    path = tmp_path / "2026-07-20_kim-rl.md"
    complete = path.read_bytes()
    begun = complete.index(b"## 2026-07-20T00:00:20")
    for end in range(begun, len(complete) - 1):
        path.write_bytes(complete[:end])
        write(tmp_path, [STREAM[0], STREAM[2]])
        assert path.read_bytes() == complete, complete[begun:end]


def test_words_that_a_person_added_stay(tmp_path: Path) -> None:
    write(tmp_path, [STREAM[0]])
    path = tmp_path / "2026-07-20_kim-rl.md"
    for words in ("We keep it.\n", "## My notes\n", "## 2026-07-20\n", "as said\n```\nx\n"):
        before = path.read_text()
        path.write_text(before + words)
        write(tmp_path, [STREAM[0]])
        assert path.read_text() == before + words


def test_two_jobs_whose_files_have_one_name_are_told_apart(tmp_path: Path) -> None:
    for _ in range(2):
        write(tmp_path, [verdict("/kim/rl", 10), verdict("/kim-rl", 10)])
    (text,) = contents(tmp_path).values()
    assert text.count("RL-JOB-HEALTH") == 2


def test_a_report_before_very_long_ones_is_found(tmp_path: Path) -> None:
    long = [verdict("/kim-rl", second, f"C{second}", reason="words " * 20_000) for second in range(20, 23)]
    for _ in range(2):
        write(tmp_path, [verdict("/kim/rl", 10), *long])
    (text,) = contents(tmp_path).values()
    assert text.count("RL-JOB-HEALTH") == 4


def test_a_replay_writes_its_reports_whatever_stands_there(tmp_path: Path) -> None:
    for _ in range(2):
        DatedReports(tmp_path).write(STREAM[0])
    (text,) = contents(tmp_path).values()
    assert text.count("RL-JOB-HEALTH") == 2


def test_a_full_disk_leaves_no_half_of_a_report(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 64) as disk:
        reports = DatedReports(disk, resumes=True)
        reports.write(STREAM[0])
        path = disk / "2026-07-20_kim-rl.md"
        before = path.read_bytes()
        filling = fill(disk, leave=4096)
        big = verdict("/kim/rl", 20, "WEDGED", "KILL", reason="words " * 3000)
        with pytest.raises(OSError, match="No space left"):
            reports.write(big)
        assert path.read_bytes() == before
        filling.unlink()
        reports.write(big)
        assert path.read_text().count("RL-JOB-HEALTH") == 2


def test_a_folder_that_went_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=os.fspath(tmp_path / "gone")):
        write(tmp_path / "gone", [STREAM[0]])
