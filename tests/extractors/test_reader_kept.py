"""A reader that was kept and taken up again reads on as if nothing had happened."""

import pickle
import random

from extractors.extract import Reader
from extractors.record import NOWHERE, Block, Observation
from tests.extractors.test_shortcut import mixed


def _read(data: bytes, cuts: list[int], kept: bool) -> list[Observation]:
    reader, out, line = Reader("finelog.log", NOWHERE, 1_782_000_000_000_000), [], 1
    for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        block = Block("finelog.log", begin, line, data[begin:end])
        out += reader.read(block)
        line += data.count(b"\n", begin, end)
        if kept:
            reader = pickle.loads(pickle.dumps(reader))
    return out + reader.end()


def test_what_is_observed_is_the_same_whether_a_reader_was_kept_between_two_blocks() -> None:
    for seed in range(60):
        rng = random.Random(seed)
        data = mixed(seed)
        places = [at + 1 for at in range(len(data) - 1) if data[at : at + 1] == b"\n"]
        cuts = sorted(rng.sample(places, min(len(places), 12)))
        assert _read(data, cuts, kept=True) == _read(data, cuts, kept=False), seed
