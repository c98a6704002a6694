"""What Ray's driver echoes of its actors: the tag, and the de-duplication that swallows look-alike lines.

Ray 2.51: a line that a *second* source prints within 5 s of the first, alike but for words with digits, is held
back; the newest of them is printed when the window ends, with the number of held lines.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

WINDOW = 5.0
ADVICE = (
    " (Ray deduplicates logs by default. Set RAY_DEDUP_LOGS=0 to disable log deduplication, or see"
    " https://docs.ray.io/en/master/ray-observability/user-guides/configure-logging.html#log-deduplication"
    " for more options.)"
)


class Echoed(NamedTuple):
    """A line on its way to the aggregated log. speaker is empty for what Ray does not echo."""

    at: float
    order: int
    task: str
    speaker: str
    text: str


@dataclass
class _Held:
    first: Echoed
    newest: Echoed | None = None
    count: int = 0


@dataclass
class Echo:
    """Streams lines in time and holds back what Ray would. colour wraps the suffix in green."""

    colour: bool = False
    held: dict[str, _Held] = field(default_factory=dict)
    advised: bool = False

    def stream(self, lines: Iterable[Echoed]) -> Iterator[Echoed]:
        """The lines as they reach the aggregated log, in order of time."""
        for line in sorted(lines):
            yield from self._released(line.at)
            if not line.speaker or self._passes(line):
                yield line
        yield from self._released(float("inf"))

    def _passes(self, line: Echoed) -> bool:
        key = " ".join(word for word in line.text.split() if not any(c.isdigit() for c in word))
        held = self.held.get(key)
        if held is None:
            self.held[key] = _Held(line)
            return True
        if held.first.speaker == line.speaker:
            return True
        held.newest, held.count = line, held.count + 1
        return False

    def _released(self, now: float) -> Iterator[Echoed]:
        due = [key for key, held in self.held.items() if held.first.at + WINDOW <= now]
        for key in due:
            held = self.held.pop(key)
            if held.newest is not None:
                yield held.newest._replace(at=held.first.at + WINDOW, text=held.newest.text + self._suffix(held.count))

    def _suffix(self, count: int) -> str:
        if count == 1:
            return ""
        advice, self.advised = ("" if self.advised else ADVICE), True
        words = f" [repeated {count}x across cluster]"
        return (f"\x1b[32m{words}\x1b[0m" if self.colour else words) + advice
