"""Files as they lie: few are held open, and one that changes while it is read is told."""

import os
from pathlib import Path

import pytest

from dataflow.opened import HELD_FILES, Damage, file_chunks, stdin_chunks

OPEN = Path("/proc/self/fd")


def pieces(path: Path, size: int = 4) -> list[bytes | Damage]:
    return list(file_chunks(str(path), size))


@pytest.mark.skipif(not OPEN.is_dir(), reason="a system that does not list its open files")
def test_hundreds_of_files_that_are_read_at_once_are_not_all_open(tmp_path: Path) -> None:
    before = len(os.listdir(OPEN))
    readers = []
    for number in range(300):
        path = tmp_path / str(number)
        path.write_bytes(b"%03d-" % number * 3)
        readers.append(file_chunks(str(path), 4))
    firsts = [next(reader) for reader in readers]
    assert len(os.listdir(OPEN)) - before <= HELD_FILES
    assert firsts == [b"%03d-" % number for number in range(300)]
    assert [b"".join(map(bytes, reader)) for reader in readers] == [b"%03d-" % number * 2 for number in range(300)]
    assert len(os.listdir(OPEN)) == before


@pytest.mark.parametrize("others", [0, HELD_FILES])
def test_a_file_that_is_replaced_while_it_is_read_is_told(tmp_path: Path, others: int) -> None:
    path, new = tmp_path / "log", tmp_path / "new"
    path.write_bytes(b"old-" * 3)
    new.write_bytes(b"new-" * 3)
    held = [file_chunks(str(path), 4) for _ in range(others)]
    assert [next(each) for each in held] == [b"old-"] * others
    reader = file_chunks(str(path), 4)
    assert next(reader) == b"old-"
    new.replace(path)
    *rest, last = reader
    assert b"new-" not in rest
    assert isinstance(last, Damage)
    assert last.why.startswith("replaced while it was read")


@pytest.mark.parametrize("others", [0, HELD_FILES])
def test_a_file_that_is_truncated_while_it_is_read_is_told(tmp_path: Path, others: int) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"old-" * 3)
    held = [file_chunks(str(path), 4) for _ in range(others)]
    assert [next(each) for each in held] == [b"old-"] * others
    reader = file_chunks(str(path), 4)
    assert next(reader) == b"old-"
    os.truncate(path, 2)
    (last,) = reader
    assert isinstance(last, Damage)
    assert last.why == "truncated while it was read: had 12 bytes, has 2, read to byte 4"


def test_a_file_that_is_not_there_is_a_damage(tmp_path: Path) -> None:
    assert pieces(tmp_path / "no") == [Damage("cannot be opened: No such file or directory")]


def test_standard_input_that_is_closed_is_a_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    assert list(stdin_chunks(4)) == [Damage("cannot be read: standard input is closed")]
