"""A measurement in words, with the lines that it was read in."""

from dataclasses import dataclass

from extractors.record import Evidence


@dataclass(frozen=True, slots=True)
class Measured:
    """says is a clause without a full stop, with the figures."""

    says: str
    evidence: tuple[Evidence, ...] = ()


def measured(says: str, *places: Evidence | None) -> Measured:
    """The measurement with those places that there are."""
    return Measured(says, tuple(dict.fromkeys(place for place in places if place is not None)))
