"""Growing files are polled at each round, quiet ones once a second."""

from collections import Counter
from pathlib import Path

import pytest

from dataflow.rounds import BRISK_US, Rounds
from dataflow.tailing import tail_of
from tests.dataflow.tails import append, lines, source_at, text

ROUND_US = 250_000


class Watched:
    """A hundred files that have been quiet for a while."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rounds = Rounds()
        self.now_us = 0
        for number in range(100):
            (folder / f"{number}.log").write_bytes(lines(number, 3))
            self.rounds.add(tail_of(source_at(folder / f"{number}.log")))
        self.polled = Counter[str]()

    def go(self, rounds: int) -> bytes:
        """Polls what is due, in so many rounds."""
        self.polled.clear()
        given = b""
        for _ in range(rounds):
            self.now_us += ROUND_US
            for tail in self.rounds.due(self.now_us):
                given += text(tail.poll(self.now_us))
                self.polled[tail.source.relative] += 1
        return given


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    watched = Watched(tmp_path)
    assert watched.go(1).count(b"\n") == 300
    assert watched.polled.total() == 100
    watched.go(2 * BRISK_US // ROUND_US)
    return watched


def test_each_quiet_file_is_polled_once_a_second_a_share_in_each_round(watched: Watched) -> None:
    watched.go(1)
    assert watched.polled.total() == 25
    watched.go(40)
    assert set(watched.polled.values()) == {10}


def test_a_growing_file_is_polled_in_each_round(watched: Watched) -> None:
    append(watched.folder / "7.log", b"one more\n")
    assert watched.go(4) == b"one more\n"
    watched.go(8)
    assert watched.polled["7.log"] == 8
    assert watched.polled["8.log"] == 2


def test_a_new_file_is_polled_in_the_next_round_and_a_removed_one_never(watched: Watched) -> None:
    (watched.folder / "new.log").write_bytes(lines(0, 1))
    watched.rounds.add(tail_of(source_at(watched.folder / "new.log")))
    watched.rounds.remove("3.log")
    assert watched.go(1) == lines(0, 1)
    watched.go(40)
    assert watched.polled["3.log"] == 0
    assert len(watched.rounds.tails) == 100


def test_a_file_may_be_removed_while_it_is_its_turn(watched: Watched) -> None:
    watched.now_us += ROUND_US
    for tail in watched.rounds.due(watched.now_us):
        watched.rounds.remove(tail.source.relative)
    assert len(watched.rounds.tails) == 75
    watched.go(8)
    assert len(watched.polled) == 75


def test_a_clock_that_is_set_back_or_stands_still_polls_what_grows(watched: Watched) -> None:
    append(watched.folder / "7.log", b"one more\n")
    watched.go(4)
    watched.now_us -= 5 * ROUND_US
    append(watched.folder / "7.log", b"and more\n")
    assert watched.go(1) == b"and more\n"
