"""Times and spans as reasons say them."""

from datetime import UTC, datetime

from state.policy import SECOND_US, SLOT


def clock(at_us: int | None) -> str:
    """A moment as reasons say it, `10:28:48Z`; `an unknown time` where there is none."""
    if at_us is None:
        return "an unknown time"
    return datetime.fromtimestamp(at_us / SECOND_US, UTC).strftime("%H:%M:%SZ")


def span(seconds: float) -> str:
    """A duration in seconds as reasons say it: `42 s`, `31 min`, `2 h 05 min`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = int(seconds // 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02d} min"


def plural(count: int, noun: str) -> str:
    """`1 error`, `3 errors`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def ranks(numbers: tuple[int, ...] | list[int]) -> str:
    """Ranks by number: `rank 7`, `ranks 3, 11`."""
    return f"rank{'s' if len(numbers) > 1 else ''} {', '.join(str(number) for number in numbers)}"


def slot_said(from_us: int, slots: int = 1) -> str:
    """One or more touching 10-minute slots by their bounds, `09:20–09:30Z`."""
    bounds = (from_us, from_us + slots * int(SLOT * SECOND_US))
    return "–".join(datetime.fromtimestamp(at_us / SECOND_US, UTC).strftime("%H:%M") for at_us in bounds) + "Z"


def sentence(text: str) -> str:
    """The text with a capital first letter."""
    return text[:1].upper() + text[1:]
