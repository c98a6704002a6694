"""Sinks that are opened again: what stands is not repeated, what was torn is said again, the file is not read whole."""

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

import dataflow.resumed
from dataflow.resumed import ResumedLines, Said, Told
from dataflow.sinks import JsonLines
from state.report import encode
from tests.dataflow.said_records import gate, stamp, verdict

Record = dict[str, Any]

STREAM = [
    gate("/a", 10, "A"),
    gate("/a", 10, "B"),
    verdict("/a", 10),
    gate("/b", 12, "A"),
    verdict("/b", 12),
    verdict("/a", 20, "WEDGED", "KILL"),
    verdict("/b", 22),
]
JOBS = {"/a", "/b"}


def write(path: Path, records: list[Record], jobs: set[str] = JOBS) -> list[str]:
    sink = ResumedLines(path, jobs)
    for record in records:
        sink.write(record)
    sink.close()
    return sink.notes


def ids(path: Path) -> list[str]:
    return [json.loads(line)["id"] for line in path.read_bytes().splitlines()]


WHOLE = [record["id"] for record in STREAM]


@pytest.mark.parametrize("again", range(len(STREAM) + 1))
@pytest.mark.parametrize("done", range(len(STREAM) + 1))
def test_whatever_was_said_and_whatever_comes_again_each_record_stands_once(
    tmp_path: Path, done: int, again: int
) -> None:
    write(tmp_path / "out", STREAM[:done])
    assert write(tmp_path / "out", STREAM[min(again, done) :]) == []
    assert ids(tmp_path / "out") == WHOLE


@pytest.mark.parametrize("cut", [1, 2, 20, 150, 400])
def test_a_record_that_was_torn_is_cut_off_and_said_again(tmp_path: Path, cut: int) -> None:
    out = tmp_path / "out"
    write(out, STREAM)
    os.truncate(out, out.stat().st_size - cut)
    notes = write(out, STREAM)
    assert ids(out) == WHOLE
    assert [note.endswith("that half was removed") for note in notes] == ([] if cut == 1 else [True])


def test_zeros_that_a_power_cut_left_are_cut_off(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(out, STREAM[:3])
    with out.open("ab") as file:
        file.write(b"\0" * 500)
    write(out, STREAM)
    assert ids(out) == WHOLE


def test_a_last_line_of_somebody_else_is_left_and_ended(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"notes of mine\nwithout an end")
    assert write(tmp_path / "out", STREAM[:1]) == []
    assert (tmp_path / "out").read_bytes() == b"notes of mine\nwithout an end\n" + encode(STREAM[0]) + b"\n"


def test_lines_that_are_no_records_are_passed_over(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(out, STREAM[:4])
    with out.open("ab") as file:
        file.write(b'\n[1]\n{"job": 7}\n{"schema":\nwords\n{"job":"/a","at":"9"}\n')
    write(out, STREAM)
    assert [json.loads(line)["id"] for line in out.read_bytes().splitlines() if b"wedgewatch/1" in line] == WHOLE


def test_records_of_other_writers_are_known_whatever_the_order_of_their_keys(tmp_path: Path) -> None:
    lines = [json.dumps(dict(reversed(record.items()))) for record in STREAM]
    (tmp_path / "out").write_text("\n".join(lines) + "\n")
    write(tmp_path / "out", STREAM)
    assert ids(tmp_path / "out") == WHOLE


@pytest.mark.parametrize("name", ['/a "quoted" \\ one', "/ä/日本", "/a\u2028b", "/" + "long" * 2000])
def test_any_name_of_a_job_is_found_again(tmp_path: Path, name: str) -> None:
    for _ in range(2):
        write(tmp_path / "out", [verdict(name, 5), verdict(name, 6)], {name})
    assert len(ids(tmp_path / "out")) == 2


def test_a_job_of_long_ago_is_found_behind_all_that_came_since(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(out, [verdict("/old", 1), *(verdict("/a", second) for second in range(2, 3000))], {"/old", "/a"})
    write(out, [verdict("/old", 1), verdict("/old", 4000)], {"/old", "/a"})
    assert len(ids(out)) == 3000


def test_a_large_file_is_not_read_beyond_what_tells_of_all_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    with out.open("wb") as file:
        for second in range(20_000):
            file.write(encode(gate("/ab"[: 1 + second % 2] + "x", second)) + b"\n")
    jobs = {"/x", "/ax"}
    seen = []
    real = os.pread

    def counted(fd: int, length: int, offset: int) -> bytes:
        seen.append(length)
        return real(fd, length, offset)

    monkeypatch.setattr(dataflow.resumed.os, "pread", counted)
    ResumedLines(out, jobs).close()
    assert sum(seen) < 2 * dataflow.resumed.BLOCK_BYTES + 100_000
    assert out.stat().st_size > 2 * dataflow.resumed.BLOCK_BYTES


@pytest.mark.parametrize("block", [7, 64, 1000])
def test_lines_are_found_whatever_the_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(dataflow.resumed, "BLOCK_BYTES", block)
    for _ in range(2):
        write(tmp_path / "out", STREAM)
    assert ids(tmp_path / "out") == WHOLE


def test_what_is_older_than_the_newest_was_said() -> None:
    said = Said()
    assert said.add("/a", stamp(5), "x")
    assert not said.add("/a", stamp(4), "w")
    assert said.has({"job": "/a", "at": stamp(4), "id": "new"})
    assert said.has({"job": "/a", "at": stamp(5), "id": "x"})
    assert not said.has({"job": "/a", "at": stamp(5), "id": "y"})
    assert not said.has({"job": "/b", "at": stamp(1), "id": "x"})


def told(memory: Path, records: list[Record]) -> list[str]:
    stream = io.StringIO()
    sink = Told(JsonLines(stream), memory)
    for record in records:
        sink.write(record)
    return [json.loads(line)["id"] for line in stream.getvalue().splitlines()]


@pytest.mark.parametrize("done", range(len(STREAM) + 1))
def test_what_was_told_to_a_pipe_is_not_told_again(tmp_path: Path, done: int) -> None:
    assert told(tmp_path / "memory", STREAM[:done]) == WHOLE[:done]
    assert told(tmp_path / "memory", STREAM) == WHOLE[done:]


def test_a_kill_between_record_and_memory_lets_one_record_be_told_twice(tmp_path: Path) -> None:
    memory = tmp_path / "memory"
    told(memory, STREAM)
    os.truncate(memory, memory.stat().st_size - 9)
    assert told(memory, STREAM) == WHOLE[-1:]
    assert told(memory, STREAM) == []


def test_a_memory_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataflow.resumed, "COMPACTED", 10)
    records = [verdict("/a", second) for second in range(200)]
    told(tmp_path / "memory", records)
    assert (tmp_path / "memory").read_bytes().count(b"\n") <= 11
    assert told(tmp_path / "memory", records) == []


def test_a_memory_that_cannot_be_written_holds_no_record_back(tmp_path: Path) -> None:
    assert told(tmp_path / "no folder" / "memory", STREAM) == WHOLE
