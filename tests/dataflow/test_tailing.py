"""Packed files, and files that go on under another name."""

import gzip
import os
import shutil
from pathlib import Path

import pytest
import zstandard

from dataflow.blocks import blocks
from dataflow.capture import Source
from dataflow.identity import Mark
from dataflow.tail import SETTLE_US
from dataflow.tailing import contents_of, continued_in, family, tail_of
from dataflow.turns import Rotated, TailFailed, TailResumed, Trouble
from extractors.record import Block
from tests.dataflow.tails import Followed, append, joined, lines, source_at, text, told

OLD, NEW = lines(0, 20_000), lines(50_000, 2_000, "begun anew")
PACK = {".gz": gzip.compress, ".zst": zstandard.compress}


def goes_on(source: Source, followed: Followed) -> Mark | None:
    found = continued_in(source, contents_of(followed.tail))
    return None if found is None else found[1]


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize("restarted", [False, True])
def test_a_packed_file_is_read_once_when_nothing_is_written_to_it(tmp_path: Path, suffix: str, restarted: bool) -> None:
    path = tmp_path / f"a.log{suffix}"
    path.write_bytes(PACK[suffix](OLD))
    followed = Followed(path)
    assert followed.poll() == []
    followed.now_us += SETTLE_US
    given = followed.tail.poll(followed.now_us)
    assert len(given) == 1
    if restarted:
        followed.restart()
        assert followed.poll() == []
        followed.now_us += SETTLE_US
    followed.given = [*given, *followed.poll()]
    assert followed.given == [piece for piece in blocks(source_at(path)) if isinstance(piece, Block)]
    assert followed.settle() == []


@pytest.mark.parametrize("suffix", PACK)
def test_a_packed_copy_that_was_torn_is_read_on_when_it_is_whole(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.log{suffix}"
    whole = PACK[suffix](OLD)
    path.write_bytes(whole[: len(whole) * 2 // 3])
    followed = Followed(path)
    *_, failed = followed.settle()
    assert isinstance(failed, TailFailed)
    path.write_bytes(whole)
    resumed, *_ = followed.settle()
    assert isinstance(resumed, TailResumed)
    assert joined(followed.given) == {0: OLD}


def test_another_packed_file_under_the_same_name_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "a.log.gz"
    path.write_bytes(gzip.compress(OLD))
    followed = Followed(path)
    followed.settle()
    path.write_bytes(gzip.compress(NEW))
    followed.settle()
    assert joined(followed.given) == {0: OLD, 1: NEW}
    assert [type(piece) for piece in told(followed.given)] == [Rotated]


def test_a_packed_file_that_goes_is_told_once(tmp_path: Path) -> None:
    path = tmp_path / "a.log.gz"
    path.write_bytes(gzip.compress(OLD))
    followed = Followed(path)
    followed.settle()
    path.unlink()
    (failed,) = [*followed.settle(), *followed.settle()]
    assert isinstance(failed, TailFailed)
    assert failed.trouble is Trouble.VANISHED


def test_the_torn_last_line_of_a_packed_file_is_given_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a.log.gz"
    path.write_bytes(gzip.compress(OLD + b"torn"))
    followed = Followed(path)
    followed.settle()
    assert text(followed.given) == OLD
    assert text(followed.finish()) == b"torn"


def test_a_renamed_file_goes_on_where_it_stood(tmp_path: Path) -> None:
    followed = Followed(tmp_path / "a.log")
    followed.path.write_bytes(OLD)
    followed.poll()
    followed.poll(3, after_us=SETTLE_US)
    append(followed.path, b"last words\n")
    turned = followed.path.rename(tmp_path / "a.log.1")
    followed.path.write_bytes(NEW)
    followed.poll()
    assert family("a.log.1") == family("a.log.2.gz") == "a.log"
    mark = goes_on(source_at(turned), followed)
    assert mark is not None
    assert tail_of(source_at(turned), mark).poll(0) == [Block("a.log.1", len(OLD), 20_001, b"last words\n")]


@pytest.mark.parametrize("polled", [False, True])
def test_the_copy_that_copytruncate_left_is_not_read_again(tmp_path: Path, polled: bool) -> None:
    followed = Followed(tmp_path / "a.log")
    followed.path.write_bytes(OLD)
    followed.poll()
    shutil.copy(followed.path, tmp_path / "a.log.1")
    os.truncate(followed.path, 0)
    append(followed.path, NEW)
    if polled:
        followed.poll()
    mark = goes_on(source_at(tmp_path / "a.log.1"), followed)
    assert mark is not None
    assert tail_of(source_at(tmp_path / "a.log.1"), mark).poll(0) == []


def test_a_turned_file_that_is_packed_is_not_read_again(tmp_path: Path) -> None:
    followed = Followed(tmp_path / "a.log.1")
    followed.path.write_bytes(OLD)
    followed.poll()
    packed = tmp_path / "a.log.1.gz"
    packed.write_bytes(gzip.compress(OLD + b"last words\n"))
    mark = goes_on(source_at(packed), followed)
    assert mark is not None
    tail = tail_of(source_at(packed), mark)
    given = tail.poll(0) + tail.poll(SETTLE_US)
    while tail.more:
        given += tail.poll(SETTLE_US)
    assert given == [Block("a.log.1.gz", len(OLD), 20_001, b"last words\n")]


@pytest.mark.parametrize("content", [NEW, OLD[:500], b"", None])
def test_what_holds_something_else_goes_on_nowhere(tmp_path: Path, content: bytes | None) -> None:
    followed = Followed(tmp_path / "a.log")
    followed.path.write_bytes(OLD)
    followed.poll()
    if content is not None:
        (tmp_path / "a.log.1").write_bytes(content)
    assert goes_on(source_at(tmp_path / "a.log.1"), followed) is None
