"""Reading blocks: newlines, and the times of lines that have none."""

import random
import re
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path

import pytest

from extractors.clocks import parse_iso
from extractors.extract import Reader
from extractors.record import NOWHERE, Block, Observation

ANCHOR = parse_iso("2026-07-01T06:00:00Z") or 0
STARTED = "2026-07-01 06:00:{:02d}.000 | INFO     | a.trainer:train:1 - Started: 'step'\n"
BARE = "Started: 'generate'\n"


def block_of(*lines: str) -> Block:
    return Block("a.log", 0, 1, "".join(lines).encode())


def test_newlines_of_a_block_are_the_same_before_and_after_it_was_read() -> None:
    reader, block = (
        Reader("a.log", NOWHERE, ANCHOR),
        block_of("noise\n" * 7, BARE, "noise\n" * 5, BARE, "noise\n" * 3, "torn"),
    )
    assert reader.newlines_of(block) == 17
    reader.read(block)
    assert reader.newlines_of(block) == 17


def test_a_line_without_a_time_has_that_of_the_nearest_line_before_it() -> None:
    dated = "2026-07-01 06:00:{:02d}.000 | INFO     | a.trainer:train:1 - nothing to say\n"
    reader = Reader("a.log", NOWHERE, ANCHOR)
    seen = reader.read(block_of(STARTED.format(1), BARE, dated.format(3), "noise\n", BARE, BARE, dated.format(5), BARE))
    assert [(each.evidence.at_us - ANCHOR) // 1_000_000 for each in seen if each.evidence.at_us] == [1, 1, 3, 3, 5]


@pytest.mark.parametrize("between", [":task_name:evaluate\n", "\rPolicy Train epoch [1/1]:  10%| 1/10\rnoise\n"])
def test_a_line_without_a_time_looks_past_one_that_has_none_to_give(between: str) -> None:
    reader = Reader("a.log", NOWHERE, ANCHOR)
    dated = "2026-07-01 06:00:03.000 | INFO     | a.trainer:train:1 - nothing to say\n"
    seen = reader.read(block_of(STARTED.format(1), dated, between, BARE))
    assert seen[-1].evidence.at_us == ANCHOR + 3_000_000


@pytest.mark.parametrize("level", ["DEBUG", "INFO", "CRITICAL"])
def test_a_line_without_a_time_has_that_of_a_line_of_any_level(level: str) -> None:
    reader = Reader("a.log", NOWHERE, ANCHOR)
    seen = reader.read(block_of(STARTED.format(1), f"{level} 07-01 06:00:04 [core.py:7] nothing to say\n", BARE))
    assert seen[-1].evidence.at_us == ANCHOR + 4_000_000


@pytest.mark.parametrize("days", [-2, 2])
def test_the_line_that_tells_the_date_of_its_transport_is_of_that_date_too(days: int) -> None:
    line = "[06:00:01] task=/alice/rl/0 | 2026-07-03 06:00:01.000 | INFO     | a.trainer:train:1 - Started: 'step'\n"
    told = parse_iso("2026-07-03T06:00:01Z") or 0
    reader = Reader("a.log", NOWHERE, told + days * 86_400_000_000)
    assert [each.at_us for each in reader.read(block_of(line))] == [told]


LOGS = sorted(
    path
    for path in (Path(__file__).parents[1] / "captures").rglob("*")
    if path.is_file() and path.suffix in (".log", ".err", ".out")
)


def read_in(data: bytes, lines_of: Iterator[int]) -> list[Observation]:
    """What a reader observes of the blocks that hold so many lines each."""
    reader, found, number, offset = Reader("a.log", NOWHERE, ANCHOR), [], 1, 0
    lines = re.findall(rb"[^\n]*\n|[^\n]+$", data)
    while lines:
        count = next(lines_of)
        block, lines = b"".join(lines[:count]), lines[count:]
        found += reader.read(Block("a.log", offset, number, block))
        number, offset = number + block.count(b"\n"), offset + len(block)
    return found + reader.end()


@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}-{path.stem[-20:]}")
def test_what_is_observed_does_not_depend_on_how_a_file_is_cut_into_blocks(path: Path) -> None:
    data, chance = path.read_bytes(), random.Random(7)
    whole = read_in(data, repeat(1_000_000))
    assert read_in(data, repeat(1)) == whole
    assert read_in(data, iter(lambda: chance.randrange(1, 40), 0)) == whole
