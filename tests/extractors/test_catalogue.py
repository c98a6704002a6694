"""The laws of the catalogue: samples prove their pattern, look-alikes are left alone."""

import pytest

from extractors.catalogue import CATALOGUE, load
from extractors.laws import broken
from extractors.pattern import Pattern
from state.causes import CAUSES
from state.track import FOLDED

PATTERNS = CATALOGUE.whole.patterns


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda p: p.name)
def test_every_pattern_keeps_the_laws(pattern: Pattern) -> None:
    assert list(broken(pattern, CATALOGUE.whole, FOLDED, CAUSES)) == []


def test_no_two_patterns_share_a_name() -> None:
    assert len({pattern.name for pattern in PATTERNS}) == len(PATTERNS)
    with pytest.raises(ValueError, match="share a name"):
        load(("nccl", "nccl"))
