"""Logs that are turned while they are watched: no line is read twice under another name, and none is missed."""

import gzip
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.dataflow.live_feeds import SECOND_US, START_US, Watched, bar, bars, said
from tests.dataflow.tails import append

EACH = 30
"""Lines, one a second, that a log gets between two turns."""


class Turning:
    """A log that gets lines and is turned, and its watch."""

    def __init__(self, folder: Path, journal: Path | None = None) -> None:
        folder.mkdir()
        self.log = folder / "finelog.log"
        self.written = 0
        self.watched = Watched(folder, journal)

    def write(self) -> None:
        append(self.log, bars(self.written, EACH))
        self.written += EACH
        self.watched.now_us = max(self.watched.now_us, START_US + self.written * SECOND_US)

    def shift(self, suffix: str = "") -> Path:
        """Moves the turned logs on by one; gives the place of the newest."""
        for number in range(8, 0, -1):
            older = self.log.with_name(f"{self.log.name}.{number}{suffix}")
            if older.exists():
                older.rename(self.log.with_name(f"{self.log.name}.{number + 1}{suffix}"))
        return self.log.with_name(f"{self.log.name}.1{suffix}")

    def is_read_once(self) -> None:
        self.watched.poll(times=20)
        quotes = [each.evidence.quote for each in said(self.watched.beats, "BufferProgress")]
        assert [quote.encode() + b"\n" for quote in sorted(quotes)] == [
            bar(second, second % 65) for second in range(self.written)
        ]


@pytest.fixture
def turning(tmp_path: Path) -> Turning:
    return Turning(tmp_path / "run", tmp_path / "journal.jsonl")


def rename(turning: Turning) -> None:
    turning.log.rename(turning.shift())


def copytruncate(turning: Turning) -> None:
    shutil.copy(turning.log, turning.shift())
    os.truncate(turning.log, 0)


def pack(turning: Turning) -> None:
    turning.shift(".gz").write_bytes(gzip.compress(turning.log.read_bytes()))
    turning.log.unlink()


TURNS = [rename, copytruncate, pack]


@pytest.mark.parametrize("polls", [0, 1, 8])
@pytest.mark.parametrize("turn", TURNS)
def test_logs_that_move_on_by_one_at_each_turn_are_read_once(
    turning: Turning, turn: Callable[[Turning], None], polls: int
) -> None:
    turning.write()
    turning.watched.poll(times=2)
    for number in range(5):
        turn(turning)
        turning.watched.poll(times=polls * (number % 2))
        turning.write()
        turning.watched.poll(times=max(2, polls))
    turning.is_read_once()


@pytest.mark.parametrize("turn", TURNS)
def test_logs_that_are_turned_between_two_runs_of_the_watch_are_read_once(
    turning: Turning, turn: Callable[[Turning], None]
) -> None:
    turning.write()
    turning.watched.poll(times=2)
    for number in range(4):
        turn(turning)
        if number % 2:
            turning.write()
        turning.watched.restart()
        turning.watched.poll(times=9)
        if not number % 2:
            turning.write()
            turning.watched.poll(times=2)
    turning.is_read_once()


def test_last_words_in_a_turned_log_are_read_behind_what_was_read_of_it(turning: Turning) -> None:
    turning.write()
    turning.watched.poll(times=2)
    rename(turning)
    turning.watched.poll(times=2)
    append(turning.log.with_name("finelog.log.1"), bars(EACH, EACH))
    turning.written += EACH
    turning.watched.poll(times=2)
    turning.write()
    turning.watched.poll(times=2)
    rename(turning)
    turning.write()
    turning.is_read_once()


def test_a_copy_that_is_still_being_written_is_not_read_again(turning: Turning) -> None:
    turning.write()
    turning.watched.poll(times=2)
    whole = turning.log.read_bytes()
    turned = turning.shift()
    for size in (0, 1_500, len(whole)):
        turned.write_bytes(whole[:size])
        turning.watched.poll(times=2)
    os.truncate(turning.log, 0)
    turning.write()
    turning.is_read_once()


def test_a_link_that_leads_to_another_file_now_is_followed(turning: Turning) -> None:
    data = turning.log.parent / "data"
    data.mkdir()
    for number in range(3):
        turning.log.unlink(missing_ok=True)
        turning.log.symlink_to(data / f"{number}.log")
        turning.write()
        turning.watched.poll(times=3)
    turning.is_read_once()


def test_late_lines_of_a_turned_log_keep_their_time_when_all_is_read_again(turning: Turning) -> None:
    """The journal tells of a content under the name that it had."""
    turning.write()
    turning.watched.poll(times=20)
    append(turning.log, bar(5, 5))
    for _ in range(3):
        turning.watched.poll(times=3)
        rename(turning)
        turning.write()
        append(turning.log, bar(turning.written - EACH + 1, 1))
        turning.watched.poll(times=12)
    assert turning.watched.feed.lag.late > 0
    before = sorted((each.evidence.quote, each.at_us) for each in said(turning.watched.beats, "BufferProgress"))
    turning.watched.begin_anew()
    turning.watched.poll(times=12)
    after = sorted((each.evidence.quote, each.at_us) for each in said(turning.watched.beats, "BufferProgress"))
    assert after == before
