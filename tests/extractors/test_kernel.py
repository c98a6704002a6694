"""The kernel's clock in words, as dmesg -T and the fabric manager write it."""

import pytest

from extractors.clocks import parse_iso
from extractors.extract import Reader
from extractors.kernel import time_in_words
from extractors.record import NOWHERE, Block
from tests.builders import T0


@pytest.mark.parametrize(
    ("head", "second"),
    [
        ("[Fri Mar 14 09:24:18 2031] ", "2031-03-14 09:24:18"),
        ("[Tue Mar  4 09:24:18 2031] ", "2031-03-04 09:24:18"),
        ("[Mar 14 2031 09:24:18] ", "2031-03-14 09:24:18"),
        ("[Fri Mar 14 09:24:18] ", ""),
        ("[Fri Foo 14 09:24:18 2031] ", ""),
        ("[12345.678901] ", ""),
    ],
)
def test_a_clock_in_words_is_read_where_it_has_a_year(head: str, second: str) -> None:
    assert time_in_words(head + "NVRM: x") == second


def test_a_kernel_line_stands_at_its_own_time() -> None:
    line = b"[Sun Jul 20 08:10:00 2025] Out of memory: Killed process 4243 (python) total-vm:1kB\n"
    reader = Reader("dmesg.log", NOWHERE, T0)
    (found,) = reader.read(Block("dmesg.log", 0, 1, line)) + reader.end()
    assert found.evidence.at_us == parse_iso("2025-07-20T08:10:00Z")
