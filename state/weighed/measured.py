"""A measurement in words, with the lines that it was read in."""

from dataclasses import dataclass

from extractors.record import Evidence


@dataclass(frozen=True, slots=True)
class Measured:
    """says is a clause without a full stop, with the figures; figure is false where there was nothing to measure, so
    that a threshold has nothing to stand against."""

    says: str
    evidence: tuple[Evidence, ...] = ()
    figure: bool = True


def measured(says: str, *places: Evidence | None) -> Measured:
    """The measurement with those places that there are."""
    return Measured(says, _there(places))


def absent(says: str, *places: Evidence | None) -> Measured:
    """That there was nothing to measure."""
    return Measured(says, _there(places), figure=False)


def _there(places: tuple[Evidence | None, ...]) -> tuple[Evidence, ...]:
    return tuple(dict.fromkeys(place for place in places if place is not None))
