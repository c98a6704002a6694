"""The times inside a line, in every form that the speakers write them: moved to a moment, or by some seconds."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

_FORMS: tuple[tuple[str, str], ...] = (
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "%Y-%m-%d %H:%M:%S"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", "%Y-%m-%dT%H:%M:%S"),
    (r"(?<=[IWEF])\d{8} \d\d:\d\d:\d\d", "%Y%m%d %H:%M:%S"),
    (r"(?<=[A-Z] )\d\d-\d\d \d\d:\d\d:\d\d", "%m-%d %H:%M:%S"),
    (r"(?<=\[[A-Z])\d{3,4} \d\d:\d\d:\d\d", "%c10"),
    (r"(?<=\[)[A-Z][a-z]{2} \d\d \d{4} \d\d:\d\d:\d\d", "%b %d %Y %H:%M:%S"),
    (r"(?<=\[fd-monitor\] \[)\d\d:\d\d:\d\d", "%H:%M:%S"),
)
_ANY = re.compile("|".join(f"({form})" for form, _ in _FORMS))


def moved_to(text: str, moment: datetime) -> str:
    """The text as if it had been said at this moment."""
    return _moved(text, moment, lambda _: moment)


def moved_by(text: str, seconds: float, near: datetime) -> str:
    """The text as a clock writes it that runs ahead by so many seconds. near tells the year and day where none is."""
    return _moved(text, near, lambda said: said + timedelta(seconds=seconds))


def _moved(text: str, near: datetime, move: Callable[[datetime], datetime]) -> str:
    def written(found: re.Match[str]) -> str:
        form = _FORMS[found.lastindex - 1][1] if found.lastindex else ""
        try:
            return _write(move(_read(found[0], form, near)), form)
        except ValueError:
            return found[0]

    return _ANY.sub(written, text)


def _read(text: str, form: str, near: datetime) -> datetime:
    if form == "%c10":
        day, clock = text.split()
        return _read(f"{near.year}-{day[:-2].zfill(2)}-{day[-2:]} {clock}", _FORMS[0][1], near)
    if form == "%H:%M:%S":
        return _read(f"{near:%Y-%m-%d} {text}", _FORMS[0][1], near)
    if form == "%m-%d %H:%M:%S":
        return _read(f"{near.year}-{text}", _FORMS[0][1], near)
    return datetime.strptime(text, form).replace(tzinfo=UTC)


def _write(moment: datetime, form: str) -> str:
    return f"{moment.month}{moment:%d %H:%M:%S}" if form == "%c10" else moment.strftime(form)
