"""The scan finds every hint, whatever it has learned of the text."""

import random
import re
from collections import Counter
from itertools import pairwise

import pytest

from extractors import literals
from extractors.catalogue import CATALOGUE
from extractors.literals import Scanner

HINTS = ("Started: '", "Killed", "Avg generation throughput: ", "Avg generation tokens: ", "tokens: ", "s/it]")


def found_by_search(hints: tuple[str, ...], block: bytes) -> list[tuple[int, int]]:
    hits = []
    for number, hint in enumerate(hints):
        at = block.find(hint.encode())
        while at >= 0:
            hits.append((at + len(hint.encode()), number))
            at = block.find(hint.encode(), at + 1)
    return sorted(hits)


def text_of(hints: tuple[str, ...], seed: int) -> bytes:
    """Hints, their beginnings and ends, and words, in any order; a hint may stand at the very end."""
    chance, pieces = random.Random(seed), []
    for _ in range(400):
        hint = chance.choice(hints)
        at = chance.randrange(len(hint) + 1)
        pieces.append(chance.choice((hint, hint[:at], hint[at:], "error ", "the tests failed\n", "Avg ")))
    return "".join([*pieces, chance.choice(hints)]).encode()


@pytest.mark.parametrize("hints", [HINTS, CATALOGUE.whole.hints], ids=["few", "the catalogue's"])
def test_every_hint_is_found_before_and_after_it_has_learned(
    hints: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(literals, "LEARN_AFTER_BYTES", 40_000)
    scanner = Scanner(hints)
    for seed in range(30):
        block = text_of(hints, seed)
        assert scanner.hits(block) == found_by_search(hints, block)


def cut(hints: list[bytes], sample: bytes) -> list[bytes]:
    return literals.cut(hints, sample, Counter(pairwise(sample)))


SAID = b"and the error of the tests, of the error and the worker tests"


def test_hints_are_cut_behind_what_the_text_does_not_hold() -> None:
    assert cut([b"the worker Zjxqvkwz and the error of the tests"], SAID) == [b"the worker Zjxqvkwz "]


def test_a_beginning_that_the_text_holds_oftener_is_no_cut() -> None:
    sample = b"the worker Zjxqvkwz: 1\n" * 20 + SAID * 20
    assert cut([b"the worker Zjxqvkwz and the error of the tests"], sample) == [b"the worker Zjxqvkwz a"]


def test_a_short_hint_stays_as_it_is() -> None:
    assert cut([b"Killed", b"Started: 'x' y"], b"") == [b"Killed", b"Started: 'x' y"]


def test_a_scanner_learns_from_an_even_sample_each_time_that_eight_times_as_much_was_scanned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(literals, "LEARN_AFTER_BYTES", 1_000_000)
    samples: list[bytes] = []
    monkeypatch.setattr(literals, "cut", lambda hints, sample, _pairs: samples.append(sample) or hints)
    scanner = Scanner(HINTS)
    for number in range(1_800):
        scanner.hits(b"%04d the tests failed" % number * 250)
    seen = [{int(number) for number in re.findall(rb"(\d{4}) the", sample)} for sample in samples]
    assert [(min(numbers), max(numbers)) for numbers in seen] == [(2, 190), (214, 1714)]
    assert [max(b - a for a, b in pairwise(sorted(numbers))) for numbers in seen] == [3, 24]


def test_a_scanner_that_knows_the_text_already_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(literals, "LEARN_AFTER_BYTES", 100_000)
    scanner = Scanner(HINTS)
    compiled: list[list[bytes]] = []
    monkeypatch.setattr(scanner, "_compile", lambda cut: compiled.append(cut) or setattr(scanner, "_literals", cut))
    for _ in range(1_000):
        scanner.hits(b"Avg prompt of the tests: Avg of tokens\n" * 100)
    assert len(compiled) == 1
    for _ in range(12_000):
        scanner.hits(b"Starting with Ki, started; generations put through\n" * 100)
    assert len(compiled) == 2
