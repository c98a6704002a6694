"""The laws of the catalogue: samples prove their pattern, look-alikes are left alone."""

import pytest

from extractors.catalogue import CATALOGUE, load
from extractors.extract import read_sample
from extractors.pattern import Nature, Pattern
from state.track import TRACKS

PATTERNS = CATALOGUE.whole.patterns
FOLDED = {signal for trackers in TRACKS.values() for tracker in trackers.values() for signal in tracker.FOLDS}
SHORTEST_HINT = 5
"""A shorter literal hits noise, and each hit costs a line its way through the layers."""


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda p: p.name)
def test_every_sample_gives_exactly_its_signal_from_exactly_its_pattern(pattern: Pattern) -> None:
    assert pattern.samples, f"{pattern.name} has no true sample"
    for sample, signal in pattern.samples.items():
        assert read_sample(sample) == [(pattern.name, signal)], sample


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda p: p.name)
def test_no_pattern_reads_its_look_alikes(pattern: Pattern) -> None:
    assert pattern.rejects, f"{pattern.name} names no look-alike"
    for reject in pattern.rejects:
        assert pattern.name not in [name for name, _ in read_sample(reject)], reject


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda p: p.name)
def test_every_pattern_says_what_it_means_and_can_be_found(pattern: Pattern) -> None:
    assert len(pattern.doc) >= 20, f"{pattern.name} has no docstring worth the name"
    assert pattern.hints
    for sample in pattern.samples:
        assert any(hint in sample for hint in pattern.hints), sample
    assert (pattern.role is not None) == (pattern.nature is Nature.FAULT)


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda p: p.name)
def test_every_signal_is_folded_by_a_tracker(pattern: Pattern) -> None:
    unheard = {type(signal).__name__ for signal in pattern.samples.values() if type(signal) not in FOLDED}
    assert not unheard, f"no tracker folds {unheard}"


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda p: p.name)
def test_hints_are_long_enough_to_pass_over_noise(pattern: Pattern) -> None:
    assert not [hint for hint in pattern.hints if len(hint) < SHORTEST_HINT]


def test_no_two_patterns_share_a_name() -> None:
    assert len({pattern.name for pattern in PATTERNS}) == len(PATTERNS)
    with pytest.raises(ValueError, match="share a name"):
        load(("nccl", "nccl"))
