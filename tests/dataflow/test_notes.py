"""What the user hears of a log's bytes: the first place of each kind, and never more than a few lines a file."""

import pytest

from dataflow.notes import MOST, LogNotes, Notes, broken_utf8
from extractors.record import Block

BAR = "█".encode()


def looked(*blocks: bytes) -> list[str]:
    told: list[str] = []
    notes = LogNotes("a.log", told)
    offset, line = 0, 1
    for data in blocks:
        notes.look(Block("a.log", offset, line, data))
        offset, line = offset + len(data), line + data.count(b"\n")
    return told


@pytest.mark.parametrize(
    ("data", "at"),
    [
        (b"plain\n" * 5_000, -1),
        (b"a" * 4_095 + BAR + b"b" * 9_000, -1),
        (b"a" * 4_094 + BAR * 3_000, -1),
        (b"a" * 4_095 + BAR[:2] + b"b" * 10, 4_095),
        (b"a" * 8_191 + b"\xff", 8_191),
        (b"a" * 8_192 + b"\xe2", 8_192),
        (BAR * 2_000 + b"x" * 9_000 + b"\xc3\x28", 15_000),
    ],
)
def test_broken_utf8_is_found_wherever_the_slices_are_cut(data: bytes, at: int) -> None:
    assert broken_utf8(data) == at


def test_the_first_nul_and_the_first_broken_byte_are_told_with_line_and_offset() -> None:
    told = looked(b"fine\nnul \0 here\n", b"\xff\xff\0\n" + b"x" * 10 + b"\n")
    assert [note.split(": ")[1] for note in told] == ["line 2 at byte 9", "line 3 at byte 16"]


def test_a_character_that_a_cut_line_ends_in_is_not_broken() -> None:
    assert looked(b"x" * 100 + BAR[:2]) == []


def test_a_file_in_utf16_is_told_what_it_is() -> None:
    assert "UTF-16" in looked("[09:00:00] hello\n".encode("utf-16"))[0]


def test_messages_of_one_file_are_bounded_and_the_rest_counted() -> None:
    told: list[str] = []
    notes = Notes("a.log", told)
    for number in range(1_000):
        notes.say(str(number))
    notes.rest()
    assert (len(told), told[-1]) == (MOST + 1, f"a.log: {1_000 - MOST} more like these")
