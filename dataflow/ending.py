"""The last words of a command: what is told on standard error, and the exit code.

0, 1 and 3 are verdicts (with `--exit-code`) and 2 is unusable input, arguments or output, so nothing else may end in
them: Python's own exit code for an error, 1, would say KILL.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn

import click

from dataflow.outcome import Outcome, plain, told

UNUSABLE = 2
INTERNAL = 70
"""An error of our own (EX_SOFTWARE)."""
BROKEN_PIPE = 128 + signal.SIGPIPE
SIGNALLED = 128
"""Added to the number of the signal that ended the run."""
LONGEST = 2_000
"""Characters of a message; names of files may take thousands."""
GRACE = 2.0
"""Seconds after a signal in which the flow may come to rest; what blocks longer (a silent pipe) is left."""


class Calm(click.Group):
    """Commands that end in one line and an exit code, whatever happens inside them."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt:
            sys.exit(SIGNALLED + signal.SIGINT)
        except BrokenPipeError:
            silence(sys.stdout)
            sys.exit(BROKEN_PIPE)
        except Exception as error:
            tell(f"internal error: {told(error)}")
            sys.exit(INTERNAL)


def tell(message: str) -> None:
    """One line on standard error, fit for a terminal; lost where nobody reads it."""
    _tellers[-1](f"wedgewatch: {plain(message)[:LONGEST]}")


def write_told(line: str) -> None:
    """Writes a line that is told to standard error."""
    with suppress(OSError, ValueError):
        click.echo(line, err=True)


_tellers: list[Callable[[str], None]] = [write_told]
"""Who writes what is told: the newest that was given."""


@contextmanager
def told_through(teller: Callable[[str], None]) -> Iterator[None]:
    """What is told goes through this meanwhile: something is drawn on the terminal, and a line must not tear it. It may
    be called by a signal's handler."""
    _tellers.append(teller)
    try:
        yield
    finally:
        _tellers.remove(teller)


def unusable(message: str) -> NoReturn:
    """Ends the command over an input, an argument or an output that can't be used: each line of the message is told."""
    for line in message.split("\n"):
        tell(line)
    sys.exit(UNUSABLE)


@contextmanager
def halting(outcome: Outcome, lives: bool = False, resumes: bool = True) -> Iterator[None]:
    """The first SIGINT or SIGTERM halts the run, which then ends within 2 s; a second one ends it at once. lives says
    that the run has no end of its own: a signal is how it ends, and no failure; resumes that the next one goes on."""

    last_resorts: list[threading.Timer] = []

    def note(number: int, _frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        outcome.signal = number
        rest = (
            "the next start goes on from here" if lives else "the records so far stand, and there is no final verdict"
        )
        rest = f"; {rest}" if resumes or not lives else ""
        tell(f"{signal.Signals(number).name}: stopping{rest}")
        last_resort = threading.Timer(GRACE - 0.1, os._exit, (0 if lives else SIGNALLED + number,))
        last_resort.daemon = True
        last_resort.start()
        last_resorts.append(last_resort)

    before = {}
    with suppress(ValueError):
        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.signal(number, note)
    try:
        yield
    finally:
        for last_resort in last_resorts:
            last_resort.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)


def end(outcome: Outcome, output: str, code: int) -> NoReturn:
    """Ends the command: with the given code where the run came to its own end. output is the name of where it wrote."""
    places: dict[str, list[str]] = {}
    for place, error in outcome.errors.items():
        places.setdefault(error, []).append(place)
    for error, where in places.items():
        more = f" (and {len(where) - 1} more places)" if len(where) > 1 else ""
        tell(f"{where[0]}{more}: internal error: {error}")
    if outcome.signal:
        sys.exit(SIGNALLED + outcome.signal)
    if isinstance(outcome.unwritable, BrokenPipeError):
        silence(sys.stdout)
        sys.exit(BROKEN_PIPE)
    if outcome.unwritable is not None:
        silence(sys.stdout)
        unusable(cannot_write(outcome.unwritable, output))
    sys.exit(INTERNAL if outcome.errors else code)


def cannot_write(error: OSError, output: str) -> str:
    """Why an output can't be written, by its name."""
    return f"{error.filename or output}: cannot be written: {error.strerror or error}"


def silence(stream: Any) -> None:
    """Lets a broken stream's last flush go nowhere: Python would write a traceback of it at exit."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
