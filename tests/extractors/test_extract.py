"""Reading blocks: newlines, and the times of lines that have none."""

from extractors.clocks import parse_iso
from extractors.extract import Reader
from extractors.record import NOWHERE, Block

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
