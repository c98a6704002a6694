"""Hostile lines: no pattern takes long over one, none raises, and no number or nesting gets past the readers."""

import random
import re
import time
from collections.abc import Iterator

import pytest

from extractors.catalogue import CATALOGUE
from extractors.extract import Reader
from extractors.pattern import REGEX_TIMEOUT_SECONDS, SHORT_TEXT, Pattern
from extractors.record import NOWHERE, Block
from state.track import TRACKS, Track

LENGTH = 16_384
FILLINGS = ("a", "1", " ", "1 ", ", ", "[[(", "a.b:", "\x1b[", "(A pid=1) ")
PATTERNS = CATALOGUE.whole.patterns
NUMBERS = ("9" * 40, "9" * 5_000, "-1", "nan", "inf", "1e400", "²", "٣", str(1 << 63), "0" * 30 + "1", "1_0", "")
ANCHOR = 1_782_000_000_000_000


def hostile(pattern: Pattern, length: int = LENGTH) -> Iterator[str]:
    """Lines made from a pattern's own sample: its parts repeated, its middle stretched, its end cut off."""
    sample = next(iter(pattern.samples)).replace("\n", " ")
    yield (sample * (length // len(sample) + 1))[:length]
    for part in (0.2, 0.4, 0.6, 0.8, 1.0):
        at = int(len(sample) * part)
        for filling in (sample[max(0, at - 3) : at] or "a", *FILLINGS):
            yield sample[:at] + filling * (length // len(filling))


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.name)
def test_no_line_of_16_kib_holds_a_pattern_up(pattern: Pattern) -> None:
    slowest = 0.0
    for text in hostile(pattern):
        reader = Reader("log", NOWHERE, ANCHOR)
        data = f"{pattern.hints[0]} {text}\n{text}\n".encode()
        began = time.process_time()
        reader.read(Block("log", 0, 1, data))
        reader.end()
        slowest = max(slowest, time.process_time() - began)
    assert slowest < REGEX_TIMEOUT_SECONDS


@pytest.mark.parametrize("pattern", [each for each in PATTERNS if each.regex], ids=lambda pattern: pattern.name)
def test_no_line_that_is_matched_without_a_timeout_needs_one(pattern: Pattern) -> None:
    slowest = 0.0
    for text in hostile(pattern, SHORT_TEXT):
        began = time.process_time()
        pattern.regex.match(text[:SHORT_TEXT])
        slowest = max(slowest, time.process_time() - began)
    assert slowest < REGEX_TIMEOUT_SECONDS / 5


def mutated(sample: str, chance: random.Random) -> str:
    spots = list(re.finditer(r"\d+(\.\d+)?", sample))
    for spot in sorted(chance.sample(spots, min(len(spots), chance.randint(1, 3))), key=lambda s: -s.start()):
        sample = sample[: spot.start()] + chance.choice(NUMBERS) + sample[spot.end() :]
    return sample[: chance.randrange(len(sample) // 2, len(sample) + 1)] if chance.random() < 0.3 else sample


@pytest.mark.parametrize("seed", range(12))
def test_no_number_that_a_line_may_hold_breaks_a_reader_or_a_tracker(seed: int) -> None:
    chance = random.Random(seed)
    samples = [sample for pattern in PATTERNS for sample in pattern.samples]
    lines = [mutated(chance.choice(samples), chance) for _ in range(300)]
    data = ("\n".join(lines) + "\n").encode()
    reader = Reader("log", NOWHERE, ANCHOR)
    found = reader.read(Block("log", 0, 1, data)) + reader.end()
    assert len(found) > 50
    for track in map(Track, TRACKS):
        for observation in found:
            for fold, tracker in track._folds.get(type(observation.signal), ()):
                fold(tracker, observation)
        for tracker in track.trackers.values():
            tracker.tick(found[-1].at_us)
            tracker.view()


@pytest.mark.parametrize("prefix", ["(A pid=1) ", "[rank1]: ", "[09:00:00] task=/kim/rl/0 | ", "\x1b[31m", "0: "])
def test_a_hundred_thousand_nested_prefixes_take_no_time(prefix: str) -> None:
    reader = Reader("log", NOWHERE, ANCHOR)
    began = time.process_time()
    reader.read(Block("log", 0, 1, (prefix * 100_000 + "Started: 'generate'\n").encode()))
    assert time.process_time() - began < 1.0


def test_a_line_of_redrawn_frames_is_quoted_once_and_quickly() -> None:
    frames = "\r".join(f"Generation Buffer Progress: {n % 64}/64 (2%) [9s]" for n in range(20_000))
    reader = Reader("log", NOWHERE, ANCHOR)
    began = time.process_time()
    (found,) = reader.read(Block("log", 0, 1, frames.encode() + b"\n"))
    assert time.process_time() - began < 1.0
    assert found.signal.held == 19_999 % 64
