"""`@pattern`: one line's meaning in one place, with the samples that prove it, and the laws of the catalogue."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import regex

REGEX_TIMEOUT_SECONDS = 0.25
SHORT_TEXT = 512
"""Characters up to which a text is matched by Python's own `re`, which knows no timeout but takes half of `regex`'s
time, and a quarter to compile. No pattern of the catalogue takes 10 ms over the most hostile text of that length."""


class Nature(StrEnum):
    """What a line is worth (GATES, Words)."""

    PROGRESS = "progress"
    HEARTBEAT = "heartbeat"
    FAULT = "fault"
    BENIGN = "benign"
    FACT = "fact"


class Role(StrEnum):
    """The causal role of a fault (GATES, Causal roles)."""

    ROOT = "root"
    CASCADE = "cascade"
    CONFIRMS = "confirms"
    EITHER = "either"
    BENIGN = "benign"


class Form:
    """A regex that is compiled when it is first asked: most patterns never are in one run, and all of them would take
    a tenth of a second at its start. pattern is its text; timed says that short texts, too, are matched with a timeout:
    nobody knows how long a user's own pattern takes over a hostile one."""

    __slots__ = ("_long", "_short", "pattern", "timed")

    def __init__(self, pattern: str, timed: bool = False) -> None:
        self.pattern = pattern
        self.timed = timed
        self._short: Any = None
        self._long: Any = None

    def match(self, text: str) -> Any:
        """The match at the start of the text, or None. Raises TimeoutError on a hostile one, if long or timed."""
        if len(text) > SHORT_TEXT or self.timed:
            if self._long is None:
                self._long = regex.compile(self.pattern)
            return self._long.match(text, timeout=REGEX_TIMEOUT_SECONDS)
        if self._short is None:
            self._short = _compiled(self.pattern)
        return self._short.match(text)


def _compiled(pattern: str) -> Any:
    """The regex by Python's own engine; by `regex`'s where a group has the name of one in another branch."""
    try:
        return re.compile(pattern)
    except re.error:
        return regex.compile(pattern)


@dataclass(frozen=True, slots=True)
class Pattern:
    """One entry of the catalogue. `build` gets the regex match, or the payload where there is no regex; it may
    return None when the line turns out not to be one of its kind."""

    name: str
    speaker: str
    nature: Nature
    hints: tuple[str, ...]
    build: Callable[[Any], Any]
    samples: Mapping[str, Any]
    rejects: tuple[str, ...]
    role: Role | None = None
    regex: Form | None = None
    doc: str = ""

    def read(self, text: str) -> Any:
        """The signal that the payload says, or None. Raises TimeoutError on a hostile line."""
        if self.regex is None:
            return self.build(text)
        found = self.regex.match(text)
        return None if found is None else self.build(found)


def pattern(
    speaker: str,
    nature: Nature,
    *,
    hints: tuple[str, ...],
    samples: Mapping[str, Any],
    rejects: tuple[str, ...],
    regex: str | None = None,
    role: Role | None = None,
) -> Callable[[Callable[[Any], Any]], Pattern]:
    """Declares a pattern. hints are literals of which at least one stands in every line that it reads.

    The regex is matched from the start of the unwrapped payload. samples maps a raw line (with or without
    prefixes; with newlines where it spans lines) to its signal; rejects are look-alikes it must not read.
    """
    form = None if regex is None else Form(regex)

    def declare(build: Callable[[Any], Any]) -> Pattern:
        return Pattern(
            name=build.__name__,
            speaker=speaker,
            nature=nature,
            hints=hints,
            build=build,
            samples=samples,
            rejects=rejects,
            role=role,
            regex=form,
            doc=(build.__doc__ or "").strip(),
        )

    return declare
