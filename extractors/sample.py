"""A piece of log as the catalogue reads it: for tests, and for the laws."""

from extractors.catalogue import Catalogue
from extractors.extract import Reader
from extractors.record import NOWHERE, Block

NEAR_US = 1_782_000_000_000_000
"""Times without a date fall near 2026-06-21."""


def read_sample(text: str, catalogue: Catalogue | None = None) -> list[tuple[str, object]]:
    """(pattern, signal) of each observation in a piece of log."""
    reader = Reader("sample", NOWHERE, NEAR_US, catalogue)
    data = text.encode() if text.endswith("\n") else text.encode() + b"\n"
    found = reader.read(Block("sample", 0, 1, data)) + reader.end()
    return [(observation.pattern, observation.signal) for observation in found]
