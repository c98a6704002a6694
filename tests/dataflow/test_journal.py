"""The journal of a live job: what it says of late lines is applied to what is read again, wherever that stands now."""

import os
from pathlib import Path

import pytest

from dataflow.beats import Run
from dataflow.journal import Journal, journal_of
from tests.builders import saw, us
from tests.dataflow.disks import fill, small_disk


def lines(*offsets: int, source: str = "finelog.log") -> Run:
    """Observations at these byte offsets, each second another."""
    return [saw(second, None, source=source, line=offset) for second, offset in enumerate(offsets)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "job.jsonl"


def seconds(run: Run) -> list[float]:
    return [(each.at_us - us(0)) / 1_000_000 for each in run]


def test_what_was_kept_has_its_time_again_and_the_rest_its_own(path: Path) -> None:
    run = lines(1, 2, 3, 4)
    Journal(path).keep("finelog.log", 0, run[1:3], us(60))
    assert seconds(Journal(path).moved("finelog.log", 0, run)) == [0, 60, 60, 3]
    assert seconds(Journal(path).moved("finelog.log", 1, run)) == [0, 1, 2, 3]
    assert seconds(Journal(path).moved("pod_logs/a.log", 0, run)) == [0, 1, 2, 3]


def test_several_ranges_of_a_file_are_found_however_it_is_cut(path: Path) -> None:
    run = lines(*range(1, 11))
    journal = Journal(path)
    journal.keep("finelog.log", 0, run[1:3], us(60))
    journal.keep("finelog.log", 0, run[5:6], us(70))
    again = Journal(path)
    found = [each for one in run for each in again.moved("finelog.log", 0, [one])]
    assert seconds(found) == [0, 60, 60, 3, 4, 70, 6, 7, 8, 9]


def test_a_replay_finds_a_turned_log_under_its_new_name(path: Path) -> None:
    journal = Journal(path)
    run = lines(1, 2)
    journal.keep("finelog.log", 0, run[:1], us(60))
    journal.renamed("finelog.log", 0, "finelog.log.1")
    journal.turned("finelog.log", 1)
    turned = Journal(path).of_replay(lines(1, 2, source="finelog.log.1"))
    assert seconds(turned) == [60, 1]
    assert seconds(Journal(path).of_replay(run)) == [0, 1]


def test_a_log_that_was_turned_twice_is_known_by_its_first_name(path: Path) -> None:
    journal = Journal(path)
    journal.keep("finelog.log", 0, lines(1), us(60))
    journal.renamed("finelog.log", 0, "finelog.log.1", 0)
    journal.keep("finelog.log.1", 0, lines(7), us(61))
    journal.turned("finelog.log", 1)
    journal.keep("finelog.log", 1, lines(1), us(62))
    journal.renamed("finelog.log", 1, "finelog.log.1", 1)
    journal.renamed("finelog.log.1", 0, "finelog.log.2", 0)
    again = Journal(path)
    assert seconds(again.of_replay(lines(1, 7, source="finelog.log.2"))) == [60, 61]
    assert seconds(again.of_replay(lines(1, 7, source="finelog.log.1"))) == [62, 1]


def test_a_last_line_that_was_torn_costs_neither_the_ones_before_nor_the_ones_behind_it(path: Path) -> None:
    run = lines(1, 2, 3)
    Journal(path).keep("finelog.log", 0, run[:1], us(60))
    with path.open("ab") as file:
        file.write(b'{"source":"finelog.log","generat')
    torn = Journal(path)
    torn.keep("finelog.log", 0, run[1:2], us(61))
    assert seconds(Journal(path).moved("finelog.log", 0, run)) == [60, 61, 2]


@pytest.mark.parametrize(
    "line",
    [b"[]", b"null", b"7", b'{"source":1}', b'{"source":"finelog.log","generation":{},"at":3}', b"\xff\0", b'"x"'],
)
def test_lines_that_are_none_of_its_own_are_passed_over(path: Path, line: bytes) -> None:
    path.write_bytes(line + b"\n")
    run = lines(1, 2)
    Journal(path).keep("finelog.log", 0, run[:1], us(60))
    assert seconds(Journal(path).moved("finelog.log", 0, run)) == [60, 1]


def test_what_a_full_disk_refuses_is_written_when_there_is_room(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 256) as disk:
        path, run = disk / "job.jsonl", lines(1, 2, 3)
        journal = Journal(path)
        journal.keep("finelog.log", 0, run[:1], us(60))
        filling = fill(disk)
        for number in range(200):
            journal.keep("finelog.log", 0, lines(100 + number), us(61))
        assert journal.trouble == "No space left on device"
        assert path.read_bytes().endswith(b"\n")
        filling.unlink()
        journal.retry()
        assert journal.trouble == ""
        assert path.read_bytes().count(b"\n") == 201
        assert seconds(Journal(path).moved("finelog.log", 0, [*run, *lines(299)])) == [60, 1, 2, 61]


def test_a_folder_in_its_place_is_a_trouble_and_no_error(path: Path) -> None:
    path.mkdir()
    journal = Journal(path)
    assert journal.trouble == "Is a directory"
    journal.keep("finelog.log", 0, lines(1), us(60))
    path.rmdir()
    journal.retry()
    assert journal.trouble == ""
    assert path.read_bytes().count(b"\n") == 1


def test_journals_of_two_jobs_are_never_one_file(tmp_path: Path) -> None:
    jobs = ["/kim/rl-1", "kim-rl-1", "/kim/rl/1", "kim rl 1", "k" * 300, "k" * 301, "/kim/ß", "..", "", "\udcff"]
    assert len({journal_of(tmp_path, job) for job in jobs}) == len(jobs)
    for job in jobs:
        assert journal_of(tmp_path, job).parent == tmp_path
        assert len(os.fsencode(journal_of(tmp_path, job).name)) < 200
