"""A sink whose disk is full: nothing is lost, nothing torn, it is told once, and the order is kept."""

import errno
import json
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from dataflow.patient import Patient
from dataflow.resumed import ResumedLines
from tests.dataflow.disks import fill, small_disk
from tests.dataflow.said_records import verdict

Record = dict[str, Any]


class Blocked:
    """Takes records while it is open."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.error: OSError | None = OSError(errno.ENOSPC, "No space left on device")

    def write(self, record: Record) -> None:
        if self.error is not None:
            raise self.error
        self.taken.append(record["id"])


class Book:
    """Who owes."""

    def __init__(self) -> None:
        self.owing: list[str] = []

    def owes(self, sink: str) -> None:
        self.owing.append(f"owes {sink}")

    def paid(self, sink: str) -> None:
        self.owing.append(f"paid {sink}")


class Case:
    def __init__(self, **settings: Any) -> None:
        self.sink, self.notes, self.debts = Blocked(), list[str](), Book()
        self.patient = Patient("out.jsonl", self.sink, self.notes.append, self.debts, **settings)

    def write(self, *seconds: int) -> None:
        for second in seconds:
            self.patient.write(verdict("/a", second))


def ids(*seconds: int) -> list[str]:
    return [verdict("/a", second)["id"] for second in seconds]


def test_records_wait_in_their_order_and_are_told_of_once() -> None:
    case = Case()
    case.write(1, 2, 3)
    assert (case.patient.waiting, case.sink.taken, case.debts.owing) == (3, [], ["owes out.jsonl"])
    case.sink.error = None
    case.write(4)
    assert (case.patient.waiting, case.sink.taken) == (0, ids(1, 2, 3, 4))
    assert case.debts.owing == ["owes out.jsonl", "paid out.jsonl"]
    assert case.notes == [
        "out.jsonl: cannot be written: No space left on device; "
        "the records wait in memory and are written when it can be",
        "out.jsonl: can be written again; 4 records that had to wait stand there now",
    ]


def test_a_retry_without_a_record_writes_what_waits() -> None:
    case = Case()
    assert case.patient.retry()
    case.write(1)
    assert not case.patient.retry()
    case.sink.error = None
    assert case.patient.retry()
    assert (case.sink.taken, len(case.notes)) == (ids(1), 2)


def test_another_reason_is_told_too_and_a_second_failure_again() -> None:
    case = Case()
    case.write(1)
    case.sink.error = OSError(errno.EROFS, "Read-only file system")
    case.write(2)
    assert "Read-only" in case.notes[1]
    case.sink.error = None
    case.patient.retry()
    case.sink.error = OSError(errno.ENOSPC, "No space left on device")
    case.write(3)
    assert (len(case.notes), case.debts.owing[-1]) == (4, "owes out.jsonl")


def test_too_many_records_are_dropped_from_the_oldest_and_counted() -> None:
    case = Case(kept_bytes=4_000)
    case.write(*range(100))
    waiting = case.patient.waiting
    assert 2 < waiting < 20
    case.sink.error = None
    case.patient.retry()
    assert case.sink.taken == ids(*range(100 - waiting, 100))
    assert case.notes[-1].endswith(f"; {100 - waiting} older ones were dropped, as there were too many")


def test_workers_may_write_at_once() -> None:
    case = Case()
    workers = [Thread(target=case.write, args=range(start, 400, 4)) for start in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    case.sink.error = None
    case.patient.retry()
    assert sorted(case.sink.taken) == sorted(ids(*range(400)))
    assert case.debts.owing == ["owes out.jsonl", "paid out.jsonl"]


def test_a_pipe_that_nobody_reads_is_no_matter_of_patience() -> None:
    case = Case()
    case.sink.error = BrokenPipeError(errno.EPIPE, "Broken pipe")
    with pytest.raises(BrokenPipeError):
        case.write(1)
    assert case.patient.waiting == 0


def test_a_full_disk_leaves_whole_lines_and_with_room_all_of_them(tmp_path: Path) -> None:
    records = [verdict("/a", second, reason="it steps " * (second % 7 * 40)) for second in range(60)]
    with small_disk(tmp_path / "disk", 512) as disk:
        notes: list[str] = []
        patient = Patient("out", ResumedLines(disk / "out", {"/a"}), notes.append, Book())
        filling = fill(disk, leave=24 << 10)
        for number, record in enumerate(records):
            patient.write(record)
            for line in (disk / "out").read_bytes().splitlines(keepends=True):
                assert json.loads(line)
                assert line.endswith(b"\n")
            if number == 40:
                assert patient.waiting > 10
                filling.unlink()
        assert [json.loads(line)["id"] for line in (disk / "out").read_bytes().splitlines()] == [
            record["id"] for record in records
        ]
        assert len(notes) == 2
