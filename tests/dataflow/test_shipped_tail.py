"""What a shipper sends of one file: each line once, whatever comes twice, overlaps or is missing."""

import random

import pytest

from dataflow.blocks import LineCut
from dataflow.capture import Source
from dataflow.identity import Mark
from dataflow.reads import Compression
from dataflow.shipped_tail import ShippedTail
from dataflow.turns import Continued, Gap, Held, How, Rotated, TailFailed, TailResumed, Trouble
from extractors.record import Block, SourceKind
from tests.dataflow.tails import lines, text

NAME = "finelog.log"


def tail_of(kind: SourceKind = SourceKind.AGGREGATED) -> ShippedTail:
    return ShippedTail(Source(NAME, "", kind, Compression.NONE))


def block(data: bytes, begin: int, end: int, generation: int = 0) -> Block:
    """A stretch of a log, as its shipper sends it."""
    return Block(NAME, begin, data.count(b"\n", 0, begin) + 1, data[begin:end], generation)


def rotated(generation: int, offset: int) -> Rotated:
    return Rotated(NAME, How.ROTATED, generation, offset, 1, 0)


@pytest.mark.parametrize("seed", range(20))
def test_blocks_that_come_twice_and_cut_otherwise_are_each_line_once(seed: int) -> None:
    chance, data = random.Random(seed), lines(0, 40)
    ends = [0, *(place + 1 for place in range(len(data)) if data[place] == 0x0A)]
    tail, place, given = tail_of(), 0, []
    while place < len(ends) - 1:
        begin = chance.randint(0, place)
        place = max(place, chance.randint(begin + 1, len(ends) - 1) if chance.random() < 0.5 else begin + 1)
        tail.take(block(data, ends[begin], ends[place]))
        if chance.random() < 0.3:
            given += tail.poll(0)
    given += tail.poll(0)
    assert text(given) == data
    for piece in given:
        assert data[piece.offset : piece.offset + len(piece.data)] == piece.data
        assert data.count(b"\n", 0, piece.offset) + 1 == piece.line
    assert tail.stands == (0, len(data))
    assert not tail.due


def test_bytes_that_never_came_are_told_before_what_follows() -> None:
    data, tail = lines(0, 9), tail_of()
    third, sixth = (data.index(b"still here %d" % number) - 20 for number in (3, 6))
    tail.take(block(data, third, sixth))
    first, rest = tail.poll(0)
    assert first == Gap(NAME, 0, third)
    assert rest.line == 4
    tail.take(block(data, sixth, len(data)))
    assert [type(piece) for piece in tail.poll(0)] == [Block]


def test_blank_lines_of_a_poll_file_are_no_gap() -> None:
    tail = tail_of(SourceKind.POLL)
    tail.take(Block(NAME, 3, 4, b"{}\n"))
    tail.take(Block(NAME, 9, 7, b"{}\n"))
    assert [type(piece) for piece in tail.poll(0)] == [Block, Block]
    assert tail.stands == (0, 12)


def test_a_rotation_is_told_once_and_what_is_of_the_content_before_it_is_dropped() -> None:
    old, new, tail = lines(0, 3), lines(10, 3, "after"), tail_of()
    tail.take(block(old, 0, len(old)))
    for _ in range(2):
        tail.told(rotated(1, len(old)))
        tail.take(block(old, 0, len(old)))
        tail.take(block(new, 0, len(new), 1))
    one, turn, two = tail.poll(0)
    assert (one.data, one.generation, turn.generation, two.data, two.generation) == (old, 0, 1, new, 1)


def test_a_rotation_without_its_word_is_seen_by_the_generation() -> None:
    data, tail = lines(0, 3), tail_of()
    tail.take(block(data, 0, len(data)))
    tail.take(block(data, 0, len(data), 2))
    assert [type(piece) for piece in tail.poll(0)] == [Block, Rotated, Block]
    assert tail.stands == (2, len(data))


def test_the_end_of_a_content_that_never_came_is_told_with_its_rotation() -> None:
    data, tail = lines(0, 3), tail_of()
    tail.take(block(data, 0, len(data)))
    tail.told(rotated(1, len(data) + 40))
    assert [type(piece) for piece in tail.poll(0)] == [Block, Gap, Rotated]


def test_the_rest_of_a_line_that_is_too_long_is_no_gap() -> None:
    tail = tail_of()
    for _ in range(2):
        tail.take(Block(NAME, 0, 1, b"x" * 100))
        tail.told(LineCut(NAME, 1, 0, 5_000))
        tail.take(Block(NAME, 5_001, 2, b"after\n"))
    pieces = tail.poll(0)
    assert [type(piece) for piece in pieces] == [Block, LineCut, Block]
    assert pieces[-1].line == 2


def test_what_goes_on_under_another_name_begins_where_it_stood() -> None:
    tail = tail_of()
    for _ in range(2):
        tail.told(Continued(NAME, "old.log", 0, 0))
        tail.take(Block(NAME, 700, 8, b"after\n"))
    assert [type(piece) for piece in tail.poll(0)] == [Continued, Block]


def test_what_was_taken_under_the_other_name_is_not_taken_again() -> None:
    data, old, new = lines(0, 9), tail_of(), tail_of()
    half = data.index(b"still here 5") - 20
    old.take(block(data, 0, half))
    old.told(rotated(3, half))
    new.goes_on(Continued(NAME, "old.log", 0, 0), old)
    new.take(block(data, 0, len(data)))
    turned, rest = new.poll(0)
    assert (type(turned), rest.offset, rest.line, rest.data) == (Continued, half, 6, data[half:])


def test_a_trouble_is_told_once_until_it_is_over() -> None:
    tail = tail_of()
    failed = TailFailed(NAME, Trouble.UNREADABLE, "Permission denied", 0, 0)
    tail.told(TailResumed(NAME, 0, 0))
    for _ in range(2):
        tail.told(failed)
        tail.told(failed)
        tail.told(TailResumed(NAME, 0, 0))
    assert [type(piece) for piece in tail.poll(0)] == [TailFailed, TailResumed] * 2


def test_another_session_counts_from_nothing_and_is_another_content() -> None:
    data, tail = lines(0, 3), tail_of()
    tail.begin_again()
    assert not tail.due
    tail.take(block(data, 0, len(data), 1))
    tail.begin_again()
    tail.take(block(data, 0, len(data)))
    given = tail.poll(0)
    assert [type(piece) for piece in given] == [Rotated, Block, Rotated, Block]
    assert [piece.generation for piece in given] == [1, 1, 2, 2]
    assert tail.stands == (0, len(data))


def test_the_newest_of_what_an_endless_line_says_is_kept_while_it_is_that_line() -> None:
    tail = tail_of()
    tail.told(Held(NAME, 0, 1, b"1%"))
    tail.told(Held(NAME, 0, 1, b"2%"))
    tail.told(Held(NAME, 50, 2, b"3%"))
    assert [each.data for each in tail.says] == [b"2%"]


def test_it_goes_on_from_its_snapshot_with_what_was_not_polled() -> None:
    data, tail = lines(0, 6), tail_of()
    half = data.index(b"still here 3") - 20
    tail.take(block(data, 0, half))
    again = ShippedTail(tail.source, Mark.restored(tail.snapshot()))
    again.go_on(tail.rest)
    again.take(block(data, 0, len(data)))
    assert text(again.poll(0)) == data
