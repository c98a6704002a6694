"""Lines that say something of the traceback below them: that its program goes on, or that nobody awaits its task."""

import re
from dataclasses import dataclass, field

from extractors.layers import Line
from extractors.record import Origin

IGNORED_HEADERS = (
    "Exception ignored in",
    "--- Logging error ---",
    "Error occurred while register actor to metric agent",
    "Checkpoint save failed at global step ",
)
"""Lines that say of the traceback below them that its program goes on: Python of destructors and exit handlers, its
logging of log handlers, Ray 2 of its metrics agent, the trainer of its storage."""
CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
"""What Python writes between the tracebacks of one chain, blank lines around it."""
CHAIN_LINES = 4
"""From a traceback's last line to the header of the next one of its chain."""
ANNOUNCED_WITHIN = 64
"""Physical lines between such a line and its traceback, where other actors' lines interleave."""
STREAMS_KEPT = 4_096

DETACHED_MARK = " exception was never retrieved"
_DETACHED = re.compile(r"[^\"'`{\\]{0,120}?\w*(?:Task|Future) exception was never retrieved\s*$")
"""asyncio's headline; what stands before it is a prefix that was not peeled, and quotes nothing."""


@dataclass(slots=True)
class Announced:
    """What each stream last said of the traceback that comes: by whose prefix, from which to which line, and asyncio's
    headline ("": it is ignored)."""

    said: dict[Origin, tuple[str, int, int, str]] = field(default_factory=dict)

    def hear(self, line: Line, number: int) -> None:
        """Remembers a line if it says something of the next traceback of its stream. number is its line's."""
        if line.text.startswith(IGNORED_HEADERS):
            self.ignore(line, number)
        elif DETACHED_MARK in line.text and _DETACHED.match(line.text):
            self._keep(line, number, number + ANNOUNCED_WITHIN, line.text.strip())

    def ignore(self, line: Line, number: int) -> None:
        """The next traceback of this stream ended nothing."""
        self._keep(line, number, number + ANNOUNCED_WITHIN, "")

    def chain(self, line: Line, number: int, text: str) -> None:
        """A traceback has ended: what its headline said holds of the next one of its chain as well."""
        if DETACHED_MARK in text:
            self._keep(line, number + CHAIN_LINES, number + CHAIN_LINES, text.partition("\n")[0])

    def of(self, line: Line, number: int) -> str | None:
        """What was said of the traceback that begins here, None where nothing was. loguru writes its prefix only before
        the first line."""
        logger, first, last, said = self.said.get(line.origin, ("", 0, -1, ""))
        if line.logger not in ("", logger):
            return None
        self.said.pop(line.origin, None)
        return said if first <= number <= last else None

    def _keep(self, line: Line, first: int, last: int, said: str) -> None:
        if len(self.said) >= STREAMS_KEPT:
            self.said.clear()
        self.said[line.origin] = (line.logger, first, last, said)
