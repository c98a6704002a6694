"""Effective times: never backwards, and one broken date moves nothing else."""

import pytest

from extractors.clocks import HOUR_US, SECOND_US, parse_iso
from extractors.extract import Reader
from extractors.ordering import UNTIMED, Ordering
from extractors.record import NOWHERE, Block, Evidence, Observation

START = parse_iso("2026-07-01T22:00:00Z") or 0
YEAR_US = 365 * 24 * HOUR_US
LINE = "2026-07-01 22:0{n}:00.000 | INFO | a:b:1 - Started: 'generate'"


def settled(*offsets: int | None, ordering: Ordering | None = None) -> list[int]:
    """The effective times of lines at these seconds, all as seconds after the start."""
    times = [UNTIMED if offset is None else START + offset * SECOND_US for offset in offsets]
    found = [Observation(None, Evidence("x", "log", 1, 0, None, ""), at_us, "x") for at_us in times]
    ordering = ordering or Ordering(START)
    return [(each.at_us - START) // SECOND_US for each in ordering.settled(found)]


def test_a_line_that_runs_backwards_is_held_and_one_without_a_time_inherits() -> None:
    assert settled(None, 5, 3, None, 9) == [0, 5, 5, 5, 9]


@pytest.mark.parametrize("away", [7_200, 86_400, 365 * 86_400])
def test_a_clock_that_jumps_ahead_alone_moves_nothing_else(away: int) -> None:
    assert settled(1, 2, 2 + away, 3, 4) == [1, 2, 2, 3, 4]
    assert settled(away, 3, 4, 5) == [3, 3, 4, 5]


def test_a_clock_that_jumps_back_alone_moves_nothing_else() -> None:
    assert settled(1, 2, -365 * 86_400, 3) == [1, 2, 2, 3]
    assert settled(-365 * 86_400, 2, 3, 4) == [2, 2, 3, 4]


def test_a_long_silence_is_believed() -> None:
    assert settled(1, 2, 90_000, 90_001, 90_002) == [1, 2, 90_000, 90_001, 90_002]
    assert settled(1, 2, 90_000) == [1, 2, 90_000]


def test_the_newest_time_is_remembered_from_block_to_block() -> None:
    ordering = Ordering(START)
    settled(5, ordering=ordering)
    assert settled(3, 6, ordering=ordering) == [5, 6]
    assert ordering.late == 1
    assert ordering.time_of(None) == START + 6 * SECOND_US
    assert ordering.time_of(START) == START + 6 * SECOND_US


@pytest.mark.parametrize("prefix", ["", "[22:0{n}:00] task=/kim/rl/0 | "])
@pytest.mark.parametrize("year", ["2000", "2025", "2027", "2099", "2126"])
def test_a_broken_year_in_one_line_of_a_log_moves_no_other(year: str, prefix: str) -> None:
    lines = [(prefix + LINE).format(n=n) for n in range(9)]
    lines[4] = lines[4].replace("2026", year)
    data = "".join(line + "\n" for line in lines).encode()
    found = Reader("log", NOWHERE, START).read(Block("log", 0, 1, data))
    minutes = [(each.at_us - START) // (60 * SECOND_US) for each in found]
    assert len(found) == 9
    assert minutes[:4] + minutes[5:] == [0, 1, 2, 3, 5, 6, 7, 8]
    assert minutes[4] in (3, 4)
