"""Appending: whole pieces or nothing, also on a full disk; another file in its place is gone on in."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dataflow.appended import Appended, Pages
from tests.dataflow.disks import fill, small_disk

ROOT = Path(__file__).resolve().parents[2]


def test_a_piece_that_does_not_fit_is_taken_back_whole(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 64) as disk:
        file = Appended(disk / "out")
        file.append(b"first\n")
        filling = fill(disk, leave=8192)
        with pytest.raises(OSError, match="No space left") as caught:
            file.append(b"x" * 30_000 + b"\n")
        assert caught.value.filename == str(disk / "out")
        assert (disk / "out").read_bytes() == b"first\n"
        filling.unlink()
        file.append(b"second\n")
        assert (disk / "out").read_bytes() == b"first\nsecond\n"
        file.close()


@pytest.mark.parametrize("redirection", [">", ">>"])
def test_standard_output_into_a_file_is_taken_back_too(tmp_path: Path, redirection: str) -> None:
    code = """
import sys
from pathlib import Path
from dataflow.appended import Appended, Pages
pages = Pages(Appended(Path("standard output"), fd=1))
for text in ("first\\n", "x" * 40_000, "second\\n"):
    try:
        pages.write(text)
        pages.flush()
    except OSError as error:
        print(error.filename, error.strerror, file=sys.stderr)
"""
    with small_disk(tmp_path / "disk", 32) as disk:
        done = subprocess.run(
            ["/bin/sh", "-c", f'exec "$0" -c "$1" {redirection} "$2"', sys.executable, code, str(disk / "out")],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.stderr == "standard output No space left on device\n"
        assert (disk / "out").read_bytes() == b"first\nsecond\n"


def test_a_file_that_was_rotated_or_removed_is_begun_anew(tmp_path: Path) -> None:
    file = Appended(tmp_path / "out")
    file.append(b"1\n")
    (tmp_path / "out").rename(tmp_path / "out.1")
    file.append(b"2\n")
    (tmp_path / "out").unlink()
    file.append(b"3\n")
    assert ((tmp_path / "out.1").read_bytes(), (tmp_path / "out").read_bytes()) == (b"1\n", b"3\n")


def test_a_file_that_was_copied_and_truncated_is_gone_on_in(tmp_path: Path) -> None:
    file = Appended(tmp_path / "out")
    file.append(b"1\n")
    os.truncate(tmp_path / "out", 0)
    file.append(b"2\n")
    assert (tmp_path / "out").read_bytes() == b"2\n"


def test_a_folder_that_went_is_told_and_its_return_is_used(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    file = Appended(tmp_path / "d" / "out")
    (tmp_path / "d" / "out").unlink()
    (tmp_path / "d").rmdir()
    with pytest.raises(FileNotFoundError):
        file.append(b"1\n")
    (tmp_path / "d").mkdir()
    file.append(b"1\n")
    assert (tmp_path / "d" / "out").read_bytes() == b"1\n"


def test_a_pipe_takes_pieces_and_tells_when_nobody_reads(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    file = Appended(tmp_path / "pipe", fd=writing)
    file.append(b"1\n")
    assert os.read(reading, 10) == b"1\n"
    os.close(reading)
    with pytest.raises(BrokenPipeError):
        file.append(b"2\n")
    os.close(writing)


def test_pages_are_appended_whole_at_each_flush(tmp_path: Path) -> None:
    file = Appended(tmp_path / "out")
    pages = Pages(file)
    pages.write("a")
    pages.write("ü\ud800\n")
    assert (tmp_path / "out").read_bytes() == b""
    pages.flush()
    assert (tmp_path / "out").read_text() == "aü\\ud800\n"
    assert not pages.isatty()


@pytest.mark.parametrize("mode", [os.O_WRONLY, os.O_RDWR])
def test_half_a_line_of_a_killed_process_spoils_none_but_itself(tmp_path: Path, mode: int) -> None:
    (tmp_path / "out").write_bytes(b"1\nhal")
    for _ in range(2):
        fd = os.open(tmp_path / "out", mode | os.O_APPEND)
        file = Appended(Path("standard output"), fd=fd)
        file.end_line()
        file.append(b"2\n")
        os.close(fd)
    assert (tmp_path / "out").read_bytes() == b"1\nhal\n2\n2\n"
    Appended(tmp_path / "new").end_line()
    assert (tmp_path / "new").read_bytes() == b""
