"""The commands that answer from the store, beside a running watcher or after it: `status` and `report`."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dataflow.ending import unusable

if TYPE_CHECKING:
    from rich.text import Text

    from state.store import Book

Record = dict[str, Any]
_COLOURS = {"KILL": "bold red", "NO-KILL": "green", "ERROR": "yellow"}
_STATUS_COLOURS = {"FAIL": "bold red", "ERROR": "yellow"}
_HEADS = ("job", "verdict", "A", "B", "C", "D", "stage", "step", "fresh", "age")
_PIPE_WIDTH = 200
"""Columns of a table that goes into a pipe."""
_DAY = 86_400.0


def store_folder() -> Path:
    """Where the store lies when nothing else is said: `$XDG_STATE_HOME/wedgewatch`, as the base directories have it."""
    home = os.environ.get("XDG_STATE_HOME", "")
    return (Path(home) if home else Path.home() / ".local" / "state") / "wedgewatch" / "store"


store_option = click.option(
    "--store",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=store_folder,
    show_default="$XDG_STATE_HOME/wedgewatch/store",
    help="The store that a `--store` run wrote.",
)
format_option = click.option(
    "--format",
    "layout",
    type=click.Choice(["text", "jsonl"]),
    help="A table or report for people, or one JSON object a line. Without it: text on a terminal, else jsonl.",
)


@click.command(short_help="One line for each known job: verdict, gates, stage, step, freshness, age.")
@store_option
@format_option
def status(folder: Path, layout: str | None) -> None:
    """Shows each job's newest verdict, a line a job. Gates are shown as they stand now, which may be newer than the
    verdict. Freshness is how long ago the newest line of the job was printed, age how long ago its verdict was said."""
    with _opened(folder) as book:
        rows = [_row(record, book.gates(record["job"]), book.ends(record["job"])) for record in book.jobs()]
    if (layout or ("text" if sys.stdout.isatty() else "jsonl")) == "text":
        _show(rows, datetime.now(UTC))
        return
    from state.report import encode

    for row in rows:
        click.echo(encode(row).decode())


@click.command(short_help="The newest verdict of a job, whole.")
@click.argument("job")
@store_option
@format_option
def report(job: str, folder: Path, layout: str | None) -> None:
    """Prints the newest verdict of JOB with all that it rests on; as text also how earlier runs of its configuration
    ended (jobs whose names differ in a date or counter at their end), if any are known. No gate looks at those."""
    from dataflow.outcome import plain
    from state.ledger import earlier_line
    from state.report import encode, text_report

    with _opened(folder) as book:
        record = book.newest(job)
        ends = book.ends(job)
        known = [each["job"] for each in book.jobs()] if record is None else []
    if record is None:
        import difflib

        near = difflib.get_close_matches(job, known, n=3, cutoff=0.4) or known[:3]
        unusable(
            f"{job}: nothing is known of this job in {folder}; known are, for instance: {', '.join(near) or 'none'}"
        )
    text = (layout or ("text" if sys.stdout.isatty() else "jsonl")) == "text"
    click.echo(text_report(record) if text else encode(record).decode())
    if text and (line := earlier_line(record, ends)):
        click.echo(f"\n{plain(line)}")


def captured_of(job: str, folder: Path) -> str | None:
    """Where the capture lies from which a job was last judged; None where the store knows no such job. Ends the command
    where that capture is gone."""
    from state.store import StoreError, reading

    try:
        with reading(folder) as book:
            record = book.newest(job)
    except StoreError:
        return None
    if record is None:
        return None
    captured = str(record["captured"])
    if not os.path.exists(captured):
        unusable(f"{job}: was last judged from {captured}, which is not there; name the capture itself")
    return captured


@contextmanager
def _opened(folder: Path) -> "Iterator[Book]":
    from state.store import StoreError, reading

    try:
        with reading(folder) as book:
            yield book
    except StoreError as error:
        unusable(str(error))


def _row(verdict: Record, gates: dict[str, Record], ends: list[Record]) -> Record:
    """What `status` says of a job. earlier are other runs of its configuration, of which ends are known."""
    from state.ledger import earlier

    past = earlier(verdict, ends)
    newer = {letter: gate for letter, gate in gates.items() if gate["at"] >= verdict["at"]}
    said = {**verdict["gates"], **newer}
    lines = [source["to"] for source in (verdict["coverage"] or {}).values() if source["to"]]
    return {
        "job": verdict["job"],
        "verdict": verdict["verdict"],
        "confidence": verdict["confidence"],
        "terminal": verdict["terminal"],
        "gates": {letter: f"{gate['status']} {gate['condition']}" for letter, gate in sorted(said.items())},
        "stage": verdict["stage"],
        "step": verdict["step"],
        "newest_line": max(lines, default=None),
        "at": verdict["at"],
        "captured": verdict["captured"],
        "earlier": {"runs": len({end["job"] for end in past}), "last_ended": past[-1]["at"], "how": past[-1]["how"]}
        if past
        else None,
    }


def _show(rows: list[Record], now: datetime) -> None:
    """The rows as a table. Colours go only to a terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for head in _HEADS:
        table.add_column(head, overflow="fold", no_wrap=head != "job")
    for row in rows:
        step = row["step"]
        over = " (over)" if row["terminal"] else ""
        table.add_row(
            Text(row["job"]),
            Text(f"{row['verdict']}{over}", style=_COLOURS[row["verdict"]]),
            *(_gate(row["gates"].get(letter, "-")) for letter in "ABCD"),
            row["stage"],
            f"{step['done']}/{step['of']}" if step["of"] else str(step["done"]),
            _ago(row["newest_line"], now),
            _ago(row["at"], now),
        )
    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    Console(width=width).print(table)


def _gate(said: str) -> "Text":
    """A gate's condition; what is not PASS in its colour."""
    from rich.text import Text

    passed, _, condition = said.partition(" ")
    return Text(condition or said, style=_STATUS_COLOURS.get(passed, ""))


def _ago(at: str | None, now: datetime) -> str:
    from state.wording import span

    if at is None:
        return "-"
    seconds = max(0.0, (now - datetime.fromisoformat(at)).total_seconds())
    return f"{seconds / _DAY:.0f} d" if seconds > 2 * _DAY else span(seconds)
