"""One growing file: every line once, whole, whatever is done to the file meanwhile."""

import os
from pathlib import Path

import pytest

from dataflow.blocks import LINE_BYTES, LineCut, blocks
from dataflow.identity import Mark
from dataflow.tail import HOLD_US, SETTLE_US
from dataflow.turns import How, Rotated, TailFailed, TailResumed, Trouble
from extractors.record import Block
from tests.dataflow.tails import Followed, append, joined, lines, replace, source_at, text, told

OLD, NEW = lines(0, 100), lines(3600, 100, "begun anew")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "finelog.log"


@pytest.fixture
def followed(log: Path) -> Followed:
    """A tail that has read OLD."""
    log.write_bytes(OLD)
    followed = Followed(log)
    assert text(followed.poll()) == OLD
    return followed


def test_appended_lines_are_given_once_with_their_place(followed: Followed) -> None:
    append(followed.path, b"one more\n")
    assert followed.poll() == [Block("finelog.log", len(OLD), 101, b"one more\n")]
    assert followed.poll(5) == []


def test_a_partial_line_is_held_until_its_newline_comes(followed: Followed) -> None:
    append(followed.path, b"whole\nhal")
    assert text(followed.poll()) == b"whole\n"
    append(followed.path, b"f")
    assert followed.poll() == []
    assert followed.tail.held() == b"half"
    append(followed.path, b" done\n")
    assert followed.poll() == [Block("finelog.log", len(OLD) + 6, 102, b"half done\n")]


def test_a_bar_that_is_redrawn_for_hours_is_held_and_given_as_one_line(followed: Followed) -> None:
    for percent in range(50):
        append(followed.path, b"%d%%|###\r" % percent)
        assert followed.poll() == []
    assert followed.tail.held(16).endswith(b"49%|###\r")
    append(followed.path, b"100%\n")
    (block,) = followed.poll()
    assert isinstance(block, Block)
    assert (block.line, block.data.count(b"\r")) == (101, 50)


def test_the_torn_last_line_is_given_at_the_end_and_again_whole_if_the_file_goes_on(followed: Followed) -> None:
    append(followed.path, b"to")
    followed.poll()
    assert followed.tail.finish(followed.now_us) == [Block("finelog.log", len(OLD), 101, b"to")]
    append(followed.path, b"rn\n")
    assert text(followed.poll()) == b"torn\n"


def test_a_file_that_appears_later_is_read_from_its_beginning_without_a_word(log: Path) -> None:
    followed = Followed(log)
    assert followed.settle() == []
    log.write_bytes(OLD)
    assert followed.poll() == [Block("finelog.log", 0, 1, OLD)]


@pytest.mark.parametrize("restarted", [False, True])
def test_a_file_that_was_there_before_gives_the_blocks_of_a_replay(log: Path, restarted: bool) -> None:
    log.write_bytes(lines(0, 40_000))
    followed = Followed(log)
    given, now_us = followed.tail.poll(0), 0
    while followed.tail.more:
        if restarted:
            followed.restart()
        now_us += 1
        given += followed.tail.poll(now_us)
    assert given == [piece for piece in blocks(source_at(log)) if isinstance(piece, Block)]
    assert len(given) > 4


def test_one_poll_reads_one_block_at_most(log: Path) -> None:
    log.write_bytes(lines(0, 40_000))
    tail = Followed(log).tail
    (block,) = tail.poll(0)
    assert isinstance(block, Block)
    assert len(block.data) < 300_000
    assert tail.more


def test_rotation_reads_the_old_file_to_its_end_and_the_new_one_from_its_beginning(followed: Followed) -> None:
    append(followed.path, b"last words\ntorn")
    followed.path.rename(followed.path.with_suffix(".log.1"))
    followed.path.write_bytes(NEW)
    end = len(OLD) + 15
    assert followed.poll() == [
        Block("finelog.log", len(OLD), 101, b"last words\n"),
        Block("finelog.log", len(OLD) + 11, 102, b"torn"),
        Rotated("finelog.log", How.ROTATED, 1, end, 103, unread=0),
        Block("finelog.log", 0, 1, NEW, 1),
    ]


def test_rotation_of_a_quiet_file_tells_what_of_it_was_not_read(followed: Followed) -> None:
    append(followed.path, b"torn")
    followed.poll()
    followed.poll(after_us=HOLD_US)
    followed.path.rename(followed.path.with_suffix(".log.1"))
    followed.path.write_bytes(NEW)
    turned, block = followed.poll()
    assert turned == Rotated("finelog.log", How.ROTATED, 1, len(OLD), 101, unread=4)
    assert block == Block("finelog.log", 0, 1, NEW, 1)


def test_a_file_that_is_gone_for_a_moment_while_it_rotates_is_no_trouble(followed: Followed) -> None:
    append(followed.path, b"last words\n")
    followed.path.rename(followed.path.with_suffix(".log.1"))
    assert text(followed.poll()) == b"last words\n"
    followed.path.write_bytes(NEW)
    turned, _ = followed.poll()
    assert isinstance(turned, Rotated)
    assert turned.unread == 0


def test_a_truncated_file_is_read_anew(followed: Followed) -> None:
    followed.path.write_bytes(NEW[:300])
    turned, block = followed.poll()
    assert turned == Rotated("finelog.log", How.TRUNCATED, 1, len(OLD), 101, unread=0)
    assert block == Block("finelog.log", 0, 1, NEW[: NEW.rindex(b"\n", 0, 300) + 1], 1)


def test_a_file_that_was_truncated_and_refilled_beyond_its_size_is_told_by_its_content(followed: Followed) -> None:
    followed.path.write_bytes(NEW * 2)
    turned, block = followed.poll()
    assert turned == Rotated("finelog.log", How.REFILLED, 1, len(OLD), 101, unread=0)
    assert block == Block("finelog.log", 0, 1, NEW * 2, 1)


def test_copytruncate_to_nothing_is_told_when_the_first_new_line_has_come(followed: Followed) -> None:
    os.truncate(followed.path, 0)
    assert followed.poll(4) == []
    append(followed.path, NEW)
    turned, block = followed.poll()
    assert isinstance(turned, Rotated)
    assert (turned.how, block) == (How.TRUNCATED, Block("finelog.log", 0, 1, NEW, 1))


def test_a_file_that_stays_empty_is_told_and_is_no_other_file_yet(followed: Followed) -> None:
    os.truncate(followed.path, 0)
    assert followed.settle() == [TailFailed("finelog.log", Trouble.SHORTER, "is empty now", 0, len(OLD))]
    assert followed.settle() == []
    append(followed.path, OLD + b"one more\n")
    resumed, block = followed.poll()
    assert resumed == TailResumed("finelog.log", 0, len(OLD))
    assert block == Block("finelog.log", len(OLD), 101, b"one more\n")


def test_a_truncated_file_with_one_short_line_is_read_once_it_has_settled(followed: Followed) -> None:
    followed.path.write_bytes(b"anew\n")
    assert followed.poll(4) == []
    turned, block = followed.poll(after_us=SETTLE_US)
    assert isinstance(turned, Rotated)
    assert block == Block("finelog.log", 0, 1, b"anew\n", 1)


def test_the_end_of_the_job_does_not_wait_for_what_may_come(followed: Followed) -> None:
    followed.path.write_bytes(b"anew\n")
    followed.poll()
    turned, block = followed.tail.finish(followed.now_us)
    assert isinstance(turned, Rotated)
    assert block == Block("finelog.log", 0, 1, b"anew\n", 1)


def test_a_longer_copy_is_not_read_again(followed: Followed) -> None:
    replace(followed.path, OLD + b"one more\n")
    assert followed.poll() == [Block("finelog.log", len(OLD), 101, b"one more\n")]
    assert followed.tail.mark.generation == 0


def test_an_equal_copy_says_nothing(followed: Followed) -> None:
    replace(followed.path, OLD)
    assert followed.settle() == []


def test_a_copy_that_is_seen_while_it_is_written_is_not_read_again(followed: Followed) -> None:
    copy = OLD + lines(100, 50)
    os.truncate(followed.path, 0)
    with followed.path.open("r+b") as file:
        for at in range(0, len(copy), 700):
            file.write(copy[at : at + 700])
            file.flush()
            followed.poll(2, after_us=SETTLE_US // 3)
    followed.poll()
    assert joined(followed.given) == {0: copy}
    assert told(followed.given) == []


def test_a_shorter_copy_is_told_and_read_on_when_it_has_grown_again(followed: Followed) -> None:
    replace(followed.path, OLD[:2000])
    assert followed.poll(4) == []
    (failed,) = followed.settle()
    assert isinstance(failed, TailFailed)
    assert (failed.trouble, failed.offset) == (Trouble.SHORTER, len(OLD))
    replace(followed.path, OLD + b"one more\n")
    assert followed.poll() == [
        TailResumed("finelog.log", 0, len(OLD)),
        Block("finelog.log", len(OLD), 101, b"one more\n"),
    ]


def test_a_shorter_copy_with_other_bytes_is_another_file(followed: Followed) -> None:
    replace(followed.path, NEW[:2000])
    turned, _ = followed.poll()
    assert isinstance(turned, Rotated)
    assert turned.how is How.ROTATED


def test_a_longer_copy_with_other_bytes_before_the_offset_is_another_file(followed: Followed) -> None:
    other = OLD[:1500] + NEW * 2
    replace(followed.path, other)
    followed.poll()
    assert joined(followed.given) == {0: OLD, 1: other}


def test_a_line_is_given_though_its_file_was_rewritten_within_one_size(followed: Followed) -> None:
    """The inode is the same, and the size: only the times of the file say that something happened."""
    followed.path.write_bytes(NEW[: len(OLD)].rjust(len(OLD), b"-"))
    stat = followed.path.stat()
    os.utime(followed.path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    turned, _ = followed.poll()
    assert isinstance(turned, Rotated)
    assert turned.how is How.REFILLED


def test_a_vanished_file_is_told_once_and_read_on_when_it_is_back(followed: Followed) -> None:
    followed.path.unlink()
    gone = TailFailed("finelog.log", Trouble.VANISHED, "No such file or directory", 0, len(OLD))
    assert followed.settle() == [gone]
    assert followed.settle() == []
    followed.path.write_bytes(OLD + b"one more\n")
    resumed, block = followed.poll()
    assert resumed == TailResumed("finelog.log", 0, len(OLD))
    assert block == Block("finelog.log", len(OLD), 101, b"one more\n")


def test_a_file_that_was_deleted_is_read_to_its_end(followed: Followed) -> None:
    with followed.path.open("ab") as writer:
        followed.path.unlink()
        writer.write(b"last words\n")
        writer.flush()
        assert text(followed.poll()) == b"last words\n"


def test_a_file_that_becomes_a_folder_is_told_and_read_on_when_it_is_a_file_again(followed: Followed) -> None:
    followed.path.unlink()
    followed.path.mkdir()
    (failed,) = followed.settle()
    assert isinstance(failed, TailFailed)
    assert failed.trouble is Trouble.NOT_A_FILE
    followed.path.rmdir()
    followed.path.write_bytes(OLD + b"one more\n")
    assert text(followed.poll()) == b"one more\n"


@pytest.mark.parametrize("error", ["EACCES", "EIO", "EMFILE"])
def test_a_file_that_cannot_be_opened_is_told_once_and_tried_again(
    followed: Followed, monkeypatch: pytest.MonkeyPatch, error: str
) -> None:
    import errno

    followed.poll(3, after_us=HOLD_US)
    append(followed.path, b"one more\n")
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", _raises(getattr(errno, error)))
        (failed,) = followed.poll(4)
    assert failed == TailFailed("finelog.log", Trouble.UNREADABLE, os.strerror(getattr(errno, error)), 0, len(OLD))
    assert followed.poll() == [
        TailResumed("finelog.log", 0, len(OLD)),
        Block("finelog.log", len(OLD), 101, b"one more\n"),
    ]


def test_a_stale_handle_is_opened_anew_without_a_word(followed: Followed, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno

    append(followed.path, b"one more\n")
    with monkeypatch.context() as patched:
        patched.setattr(os, "pread", _raises(errno.ESTALE))
        assert followed.poll() == []
    assert followed.poll() == [Block("finelog.log", len(OLD), 101, b"one more\n")]


def _raises(number: int):
    def failing(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return failing


def test_a_path_that_can_be_none_is_a_trouble(tmp_path: Path) -> None:
    (failed,) = Followed(tmp_path / "a\0b.log").poll(2)
    assert isinstance(failed, TailFailed)
    assert failed.trouble is Trouble.UNREADABLE


def test_the_first_mebibyte_of_an_overlong_line_is_given_before_it_ends(followed: Followed) -> None:
    for _ in range(5):
        append(followed.path, b"x" * 300_000)
        followed.poll()
    assert len(text(followed.given)) == len(OLD) + LINE_BYTES
    append(followed.path, b"\nnext\n")
    cut, block = followed.poll()
    assert cut == LineCut("finelog.log", 101, len(OLD), 1_500_000)
    assert block == Block("finelog.log", len(OLD) + 1_500_001, 102, b"next\n")


@pytest.mark.parametrize("restarted", [False, True])
def test_overlong_lines_are_cut_as_in_a_replay(log: Path, restarted: bool) -> None:
    content = OLD + b"x" * LINE_BYTES + b"\n" + b"y" * (LINE_BYTES + 1) + b"\nshort\n" + b"z" * (2 * LINE_BYTES)
    followed = Followed(log)
    for at in range(0, len(content), 200_000):
        append(log, content[at : at + 200_000])
        followed.poll()
        if restarted:
            followed.restart()
    followed.finish()
    replayed = [piece for piece in blocks(source_at(log)) if isinstance(piece, Block | LineCut)]
    assert joined(followed.given) == joined(replayed)
    assert told(followed.given) == told(replayed)


def test_a_hole_at_the_end_is_held_until_it_is_filled(followed: Followed) -> None:
    hole = len(OLD) + 3 * LINE_BYTES
    os.truncate(followed.path, hole)
    assert followed.poll(3) == []
    assert not followed.tail.more
    with followed.path.open("r+b") as file:
        file.seek(len(OLD))
        file.write(b"filled in\n")
    assert text(followed.poll()) == b"filled in\n"


def test_a_hole_that_is_left_is_a_long_line_of_nuls(followed: Followed) -> None:
    """A writer that keeps its place goes on behind the hole that a truncation left."""
    with followed.path.open("r+b") as writer:
        writer.seek(len(OLD) + 3 * LINE_BYTES)
        writer.write(b" and on\nnext\n")
    followed.poll(2)
    assert told(followed.given) == [LineCut("finelog.log", 101, len(OLD), 3 * LINE_BYTES + 7)]
    assert text(followed.given).endswith(b"next\n")


def test_a_hole_at_the_end_of_the_job_is_its_torn_last_line(followed: Followed) -> None:
    os.truncate(followed.path, len(OLD) + 2 * LINE_BYTES)
    followed.poll()
    followed.finish()
    replayed = [piece for piece in blocks(source_at(followed.path)) if isinstance(piece, Block | LineCut)]
    assert joined(followed.given) == joined(replayed)


def test_a_restored_tail_goes_on_where_it_stood(followed: Followed) -> None:
    followed.restart()
    append(followed.path, b"one more\n")
    assert followed.poll() == [Block("finelog.log", len(OLD), 101, b"one more\n")]


def test_a_tail_that_is_restored_onto_another_file_reads_it_anew(followed: Followed) -> None:
    followed.restart()
    followed.path.write_bytes(OLD[:1500] + NEW * 2)
    turned, block = followed.poll()
    assert isinstance(turned, Rotated)
    assert block == Block("finelog.log", 0, 1, OLD[:1500] + NEW * 2, 1)


def test_a_tail_that_is_restored_onto_a_file_whose_middle_changed_reads_it_anew(log: Path) -> None:
    content = lines(0, 1000)
    log.write_bytes(content)
    followed = Followed(log)
    followed.poll()
    followed.restart()
    other = content[:8000] + NEW[:100] + content[8100:]
    replace(log, other)
    followed.poll()
    assert joined(followed.given) == {0: content, 1: other}


def test_a_restored_tail_of_a_file_that_is_gone_tells_it(followed: Followed) -> None:
    followed.restart()
    followed.path.unlink()
    (failed,) = followed.settle()
    assert isinstance(failed, TailFailed)
    assert failed.trouble is Trouble.VANISHED


def test_a_mark_takes_few_bytes(followed: Followed) -> None:
    assert len(followed.tail.snapshot()) < 300
    assert Mark.restored(followed.tail.snapshot()) == followed.tail.mark


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="a system that does not list its open files")
def test_quiet_files_are_not_open_and_growing_ones_few(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    tails = []
    for number in range(300):
        path = tmp_path / f"{number}.log"
        path.write_bytes(lines(number, 3))
        tails.append(Followed(path))
    assert all(len(text(followed.poll())) > 0 for followed in tails)
    assert len(os.listdir("/proc/self/fd")) - before <= 64
    for followed in tails:
        followed.poll(2, after_us=HOLD_US)
    assert len(os.listdir("/proc/self/fd")) == before
