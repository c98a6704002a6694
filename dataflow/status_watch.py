"""`wedgewatch status --watch`: the store, looked at again and again until somebody has seen enough."""

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from types import FrameType
from typing import NoReturn

import click

from dataflow.ending import unusable
from dataflow.job_rows import Looks, Row
from dataflow.terminal import can_redraw
from state.report import encode
from state.store import StoreError
from state.wording import clock

LEAST = 0.2
"""Seconds between two looks; each opens the store."""
_TICK = 0.05
_BEHIND = 3
"""Jobs that are told to be behind, each in a line of its own; a table needs the room."""
Look = Callable[[], list[Row]]


def watch_status(look: Look, layout: str | None, every: float) -> NoReturn:
    """Looks every so many seconds: a table that lives on a terminal, else a JSON line for each job whose row says
    something else. Ends with exit code 0 at SIGINT or SIGTERM, with 2 where there is no store at first."""
    if every < LEAST:
        unusable(f"--watch {every:g}s: looks are at least {LEAST} s apart")
    if layout == "text" and not can_redraw(sys.stdout):
        unusable("--watch --format text: standard output is no terminal that can redraw; --format jsonl prints changes")
    try:
        first = look()
    except StoreError as error:
        unusable(str(error))
    with _asked_to_end() as asked:
        looks = _looks(first, look, lambda: asked(every))
        if (layout or ("text" if can_redraw(sys.stdout) else "jsonl")) == "text":
            _live(looks, every)
        else:
            _changes(looks)
    sys.exit(0)


def _looks(first: list[Row], look: Look, asked: Callable[[], bool]) -> Iterator[list[Row] | OSError]:
    """One look after another until it is asked to end. A store that can't be read for once may be the next time."""
    found: list[Row] | OSError = first
    while True:
        yield found
        if asked():
            return
        try:
            found = look()
        except OSError as error:
            found = error


def _live(looks: Iterator[list[Row] | OSError], every: float) -> None:
    """The table, drawn anew at each look. The last one stays on the terminal."""
    from rich.live import Live

    from dataflow.job_table import STATUS_WATCHED, SteadyConsole, behind_said, screenful

    console, compared, rows = SteadyConsole(), Looks(), list[Row]()
    with Live(console=console, auto_refresh=False) as live:
        for found in looks:
            now = datetime.now(UTC)
            foot = f"{clock(int(now.timestamp() * 1_000_000))}, every {every:g} s; Ctrl-C ends"
            if isinstance(found, OSError):
                foot = f"{found}\n{foot}"
            else:
                rows = found
            behind = behind_said(rows)
            more = [f"and {len(behind) - _BEHIND} more behind"] if len(behind) > _BEHIND else []
            foot = "\n".join([*behind[:_BEHIND], *more, foot])
            lines = compared.look(rows, now)
            live.update(screenful(lines, STATUS_WATCHED, now, console, foot), refresh=True)


def _changes(looks: Iterator[list[Row] | OSError]) -> None:
    """Each job's row as a JSON line, and again when its verdict, a gate, its stage or its step has changed."""
    compared, known, why = Looks(), set[str](), ""
    for found in looks:
        if isinstance(found, OSError):
            if str(found) != why:
                click.echo(f"wedgewatch: {found}", err=True)
            why = str(found)
            continue
        why = ""
        for line in compared.look(found, datetime.now(UTC)):
            if line.marks or line.row["job"] not in known:
                click.echo(encode(line.row).decode())
            known.add(line.row["job"])


@contextmanager
def _asked_to_end() -> Iterator[Callable[[float], bool]]:
    """Gives what waits so many seconds and says whether SIGINT or SIGTERM came. A second one ends at once."""
    came: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        for each in before:
            signal.signal(each, signal.SIG_DFL)

    def asked(seconds: float) -> bool:
        until = time.monotonic() + seconds
        while not came and (left := until - time.monotonic()) > 0:
            time.sleep(min(_TICK, left))
        return bool(came)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    with suppress(ValueError):
        for number in before:
            signal.signal(number, note)
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
