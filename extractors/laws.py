"""What every pattern is held to, by its own samples and look-alikes: the shipped ones in a test, a user's own at the
start of each command.
"""

import re
from collections.abc import Collection, Iterable, Iterator

import regex

from extractors.catalogue import Catalogue
from extractors.pattern import Nature, Pattern
from extractors.sample import read_sample
from extractors.signal import Fault

SHORTEST_HINT = 5
"""A shorter literal hits noise, and each hit costs a line its way through the layers."""
SHORTEST_DOC = 20
_QUOTED = 80
"""Characters of a sample that a message shows."""


def broken(pattern: Pattern, catalogue: Catalogue, folded: Collection[type], causes: Collection[str]) -> Iterator[str]:
    """The laws that a pattern of a catalogue breaks, in words. folded are the signals that a tracker folds, causes the
    codes that a fault may name."""
    yield from _unsaid(pattern)
    for sample, signal in pattern.samples.items():
        if not any(hint in sample for hint in pattern.hints):
            yield f"none of its hints stands in its sample {_short(sample)}"
        elif (found := read_sample(sample, catalogue)) != [(pattern.name, signal)]:
            yield f"its sample {_short(sample)} is read as {_read(found)}, and not as {signal!r} by this pattern alone"
        if why := unsound(signal, folded, causes):
            yield f"its sample {_short(sample)}: {why}"
    for reject in pattern.rejects:
        if pattern.name in [name for name, _ in read_sample(reject, catalogue)]:
            yield f"it reads its look-alike {_short(reject)}"


def unsound(signal: object, folded: Collection[type], causes: Collection[str]) -> str:
    """Why no gate could make anything of a signal; empty where one can."""
    if type(signal) not in folded:
        return f"{type(signal).__name__} is no signal that a tracker folds"
    if isinstance(signal, Fault) and signal.cause not in causes:
        return f"there is no cause {signal.cause!r}"
    return ""


def taken_from(others: Iterable[Pattern], own: Collection[Pattern], catalogue: Catalogue) -> Iterator[str]:
    """The samples of other patterns that are read otherwise since these are in the catalogue too."""
    hints = [hint for pattern in own for hint in pattern.hints]
    for pattern in others:
        for sample, signal in pattern.samples.items():
            if not any(hint in sample for hint in hints):
                continue
            found = read_sample(sample, catalogue)
            if found != [(pattern.name, signal)]:
                yield f"{pattern.name}'s sample {_short(sample)} is read as {_read(found)}"


def _unsaid(pattern: Pattern) -> Iterator[str]:
    """What a pattern should say of itself."""
    if len(pattern.doc) < SHORTEST_DOC:
        yield "it has no docstring that says what the line means and who prints it"
    if not pattern.samples:
        yield "it has no true sample"
    if not pattern.rejects:
        yield "it names no look-alike that it must not read (rejects)"
    if not pattern.hints:
        yield "it has no hint"
    for hint in pattern.hints:
        if len(hint) < SHORTEST_HINT:
            yield f"its hint {hint!r} is shorter than {SHORTEST_HINT} characters: it would hit noise"
    try:
        if pattern.regex is not None:
            pattern.regex.match("")
    except (re.error, regex.error) as error:
        yield f"its regex can't be read: {error}"
    if (pattern.role is not None) != (pattern.nature is Nature.FAULT):
        yield "a pattern of Nature.FAULT has a role, and no other has"
    if any(isinstance(signal, Fault) != (pattern.nature is Nature.FAULT) for signal in pattern.samples.values()):
        yield "a pattern of Nature.FAULT says a Fault, and no other does"


def _read(found: list[tuple[str, object]]) -> str:
    return " and ".join(f"{signal!r} ({name})" for name, signal in found) or "nothing"


def _short(sample: str) -> str:
    return repr(sample if len(sample) <= _QUOTED else f"{sample[:_QUOTED]}…")
