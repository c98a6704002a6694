"""What of a rotating log was read under which of its names: `x.log`, `x.log.1`, `x.log.2.gz`. No content of it is read
twice, whichever name leads to it now, and whether it was renamed, copied or packed."""

from collections import defaultdict, deque
from collections.abc import Callable, Mapping

import msgspec

from dataflow.capture import Source
from dataflow.identity import Mark
from dataflow.rounds import AnyTail
from dataflow.tailing import Content, contents_of, continued_in, family

PAST = 64
"""Contents of a log that are remembered when their names lead elsewhere."""


class GoesOn(msgspec.Struct, frozen=True):
    """Where the reading of a content goes on, and as what it was read before. current says that the other name still
    stood for it."""

    content: Content
    mark: Mark
    current: bool


class Families:
    """The logs of a job. past is what a later one must know."""

    def __init__(self, past: dict[str, deque[Content]] | None = None) -> None:
        self.past = past or {}
        self._members: dict[str, list[str]] = defaultdict(list)

    def add(self, name: str) -> None:
        """Takes in a name."""
        members = self._members[family(name)]
        if name not in members:
            members.append(name)

    def goes_on(self, source: Source, tails: Mapping[str, AnyTail], read_out: Callable[[str], None]) -> GoesOn | None:
        """Where to go on in what a name leads to, of which nothing was read under this name. None where it is new.
        read_out reads what is left under another name."""
        name = source.relative
        self._left(tails[name])
        if len(self._members[family(name)]) < 2 and family(name) not in self.past:
            return None
        found = self._found(source, tails)
        if found is not None and found.current:
            read_out(found.content.name)
            found = self._found(source, tails)
        return found

    def _left(self, tail: AnyTail) -> None:
        """Remembers what a name led to before."""
        before = contents_of(tail)[1:]
        if before:
            past = self.past.setdefault(family(tail.source.relative), deque(maxlen=PAST))
            past.extend(each for each in before if each not in past)

    def _found(self, source: Source, tails: Mapping[str, AnyTail]) -> GoesOn | None:
        stem = family(source.relative)
        others = [tails[name] for name in self._members[stem] if name in tails and name != source.relative]
        now = [each for tail in others for each in contents_of(tail)[:1]]
        past = [each for tail in others for each in contents_of(tail)[1:]] + list(self.past.get(stem, ()))
        found = continued_in(source, [*now, *past])
        return None if found is None else GoesOn(*found, current=found[0] in now)
