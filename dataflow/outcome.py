"""How a run ends: with its feeds, halted by a signal, at an output that can't be written, or at an error of our own.

An exception that reaches bytewax ends every job with a Rust backtrace, so none is let through: it becomes a value here,
and the other jobs go on.
"""

import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from extractors.quoting import masked, without_controls

_ROOT = Path(__file__).resolve().parent.parent
_TOLD = 300


class Halted(Exception):
    """The run is to end now. Raised between two pieces of a file; never leaves the flow."""


class SettingsError(Exception):
    """A setting that can't be used. The message names the file, the key and the line."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Writes(Protocol):
    """What takes records."""

    def write(self, record: dict[str, Any]) -> None:
        """Takes one record."""


@dataclass(slots=True)
class Outcome:
    """What ended the run, if it was not its feeds.

    signal is the number of the one that asked for the end, 0 for none; unwritable what an output said; errors maps a
    job, or a place in it, to an error that should never have happened, in one line.
    """

    signal: int = 0
    unwritable: OSError | None = None
    errors: dict[str, str] = field(default_factory=dict)

    @property
    def halted(self) -> bool:
        """Whether there is no use in reading on."""
        return bool(self.signal) or self.unwritable is not None

    def go_on(self) -> None:
        """Raises Halted where the run is to end."""
        if self.halted:
            raise Halted

    def failed(self, place: str, error: Exception) -> str:
        """Keeps an error of our own; gives it as one line."""
        return self.errors.setdefault(place, told(error))


class Guarded:
    """A sink whose failure is a value: an output that can't be written halts the run, other errors end one job."""

    def __init__(self, sink: Writes, outcome: Outcome) -> None:
        self._sink = sink
        self._outcome = outcome

    def write(self, record: dict[str, Any]) -> None:
        """Takes one record, unless an output has failed before."""
        if self._outcome.unwritable is not None:
            return
        try:
            self._sink.write(record)
        except OSError as error:
            self._outcome.unwritable = error
        except Exception as error:
            self._outcome.failed(record["job"], error)


def told(error: Exception) -> str:
    """An error as one printable line with the place in our code where it arose."""
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).is_relative_to(_ROOT)]
    place = f" ({Path(ours[-1].filename).relative_to(_ROOT)}:{ours[-1].lineno})" if ours else ""
    return f"{type(error).__name__}: {plain(str(error))[:_TOLD]}{place}"


def plain(text: str) -> str:
    """A text that may stand on a terminal: in one line, without control sequences, secrets masked."""
    return masked(without_controls(text.replace("\n", "\\n")))
