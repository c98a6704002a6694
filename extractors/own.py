"""A user's own pattern, held in: its parts are what they should be, what it says is checked at each line, whatever its
function raises is an ordinary error of that line, and its regex has a time limit on short texts, too.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from extractors.laws import unsound
from extractors.pattern import Form, Nature, Pattern, Role


class Guarded:
    """A pattern's function. trouble says why it could not read what it was last given; folded are the signals that a
    tracker folds, causes the codes that a fault may name."""

    def __init__(self, build: Callable[[Any], Any], folded: Collection[type], causes: Collection[str]) -> None:
        self.trouble = ""
        self._build = build
        self._folded = folded
        self._causes = causes

    def __call__(self, found: Any) -> Any:
        """What the function says. Raises ValueError for whatever it raises, and where that is no sound signal."""
        self.trouble = ""
        try:
            signal = self._build(found)
            if signal is not None:
                self._check(signal)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self.trouble = f"{type(error).__name__}: {error}"
            raise ValueError(self.trouble) from error
        return signal

    def _check(self, signal: Any) -> None:
        if why := unsound(signal, self._folded, self._causes):
            raise TypeError(f"it gives {signal!r:.80}: {why}")
        msgspec.msgpack.decode(msgspec.msgpack.encode(signal), type=type(signal))


def guarded(pattern: Pattern, folded: Collection[type], causes: Collection[str]) -> Pattern:
    """The same pattern, held in."""
    form = None if pattern.regex is None else Form(pattern.regex.pattern, timed=True)
    return replace(pattern, build=Guarded(pattern.build, folded, causes), regex=form)


def trouble_of(pattern: Pattern) -> str:
    """What the function of a guarded pattern last failed with; empty where it did not."""
    return pattern.build.trouble if isinstance(pattern.build, Guarded) else ""


def misshapen(pattern: Pattern) -> Iterator[str]:
    """The parts of a pattern that are not what they should be, in words."""
    if not _is_text(pattern.speaker) or not pattern.speaker.isprintable():
        yield f"its speaker must be a text of one line, not {pattern.speaker!r:.80}"
    if not isinstance(pattern.nature, Nature):
        yield f"its nature must be one of {', '.join(map(str.upper, Nature))} of Nature, not {pattern.nature!r:.80}"
    if not isinstance(pattern.role, Role | None):
        yield f"its role must be one of {', '.join(map(str.upper, Role))} of Role, not {pattern.role!r:.80}"
    for part, said in (("hints", pattern.hints), ("rejects", pattern.rejects)):
        if isinstance(said, str):
            yield f"its {part} are one text, not a tuple of them: a tuple of one has a comma, ({said!r:.40},)"
        elif not isinstance(said, tuple | list) or not all(map(_is_text, said)):
            yield f"its {part} must be a tuple of texts, not {said!r:.80}"
        elif part == "hints" and not all(hint.isprintable() and hint.strip() for hint in said):
            yield f"its hints must be words that can stand in one line, not {said!r:.80}"
    if not isinstance(pattern.samples, Mapping) or not all(map(_is_text, pattern.samples)):
        yield f"its samples must be {{a true line: its signal}}, not {pattern.samples!r:.80}"
    if pattern.regex is not None and not _is_text(pattern.regex.pattern):
        yield f"its regex must be a text, not {pattern.regex.pattern!r:.80}"


def _is_text(said: Any) -> bool:
    """Whether it is a text that can be written as UTF-8."""
    try:
        return isinstance(said, str) and bool(said.encode() or True)
    except UnicodeEncodeError:
        return False
