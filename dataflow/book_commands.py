"""The commands that answer from the store, beside a running watcher or after it: `status` and `report`."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dataflow.arguments import Duration
from dataflow.ending import tell, unusable
from dataflow.job_rows import Row, row_of
from dataflow.watcher import silent_since, watched_jobs
from extractors.clocks import write_iso

if TYPE_CHECKING:
    from state.store import Book

_FIRST = "a first ERROR comes after 10 minutes"
_NO_VERDICT = f"no verdict was said yet of any job; {_FIRST}"
_PIPE_WIDTH = 200
"""Columns of a table that goes into a pipe."""


def store_folder() -> Path:
    """Where the store lies when nothing else is said: `$XDG_STATE_HOME/wedgewatch`, as the base directories have it."""
    home = os.environ.get("XDG_STATE_HOME", "")
    return (Path(home) if home else Path.home() / ".local" / "state") / "wedgewatch" / "store"


def _option(says: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option(
        "--store",
        "folder",
        type=click.Path(file_okay=False, path_type=Path),
        default=store_folder,
        show_default="$XDG_STATE_HOME/wedgewatch/store",
        help=says,
    )


store_option = _option("The store that a watch, or a replay with `--store`, writes.")
watched_store_option = _option("Keep there what is said of each job, and how far the logs were read.")
shipped_store_option = _option("Keep there, in its folder `ship`, how far the captures were shipped.")
format_option = click.option(
    "--format",
    "layout",
    type=click.Choice(["text", "jsonl"]),
    help="A table or report for people, or one JSON object a line. Without it: text on a terminal, else jsonl.",
)


@click.command(short_help="One line for each known job: verdict, gates, stage, step, freshness, age.")
@store_option
@format_option
@click.option(
    "--watch",
    "every",
    is_flag=False,
    flag_value="2s",
    type=Duration(),
    metavar="[DURATION]",
    help="Look again every 2 s, or so often, until Ctrl-C: a live table on a terminal, else a JSON line a change.",
)
def status(folder: Path, layout: str | None, every: float | None) -> None:
    """Shows each job's newest verdict, a line a job. Gates are shown as they stand now, which may be newer than the
    verdict. Freshness is how long ago the newest line of the job was printed, age how long ago its verdict was said.

    With --watch what changed since the look before is set off with a star, and the last column says what changed last.
    """
    if every is not None:
        from dataflow.status_watch import watch_status

        watch_status(lambda: _looked(folder), layout, every)
    with _opened(folder) as book:
        rows = _rows(book, folder)
    if not rows:
        click.echo(f"wedgewatch: {folder}: {_NO_VERDICT}", err=True)
    if (since_us := silent_since(folder)) is not None:
        tell(f"{folder}: no watch runs here since {write_iso(since_us)[:19]}Z: what came later is not judged")
    if (layout or ("text" if sys.stdout.isatty() else "jsonl")) == "text":
        judged = {row["job"] for row in rows}
        others = watched_jobs(folder, running=True).items()
        _show(rows, [{**entry, "job": job} for job, entry in others if job not in judged])
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

        if job in watched_jobs(folder):
            unusable(f"{job}: is watched, and has no verdict yet; {_FIRST}, and `wedgewatch explain` tells what lacks")
        near = difflib.get_close_matches(job, known, n=3, cutoff=0.4) or known[:3]
        why = f"known are, for instance: {', '.join(near)}" if near else _NO_VERDICT
        unusable(f"{job}: nothing is known of this job in {folder}; {why}")
    text = (layout or ("text" if sys.stdout.isatty() else "jsonl")) == "text"
    click.echo(text_report(record) if text else encode(record).decode())
    if text and (line := earlier_line(record, ends)):
        click.echo(f"\n{plain(line)}")


def captured_of(job: str, folder: Path) -> str | None:
    """Where the capture lies from which a job was last judged, or is watched without a verdict yet; None where neither
    the store nor its watch knows such a job. Ends the command where that capture is gone, or nothing of it has come."""
    from state.store import StoreError, reading

    try:
        with reading(folder) as book:
            record, gates = book.newest(job), book.gates(job)
    except StoreError:
        record, gates = None, {}
    watched = watched_jobs(folder).get(job)
    if record is not None and os.path.exists(captured := str(record["captured"])):
        return captured
    if watched is not None:
        return _watched_place(job, str(watched.get("captured", "")))
    if record is not None:
        unusable(f"{job}: was last judged from {captured}, which is not there; name the capture itself")
    if gates:
        said = ", ".join(f"{letter} {gate['status']} {gate['condition']}" for letter, gate in sorted(gates.items()))
        unusable(f"{job}: no verdict was said of it yet, only {said}; name its capture to have that explained")
    return None


def _watched_place(job: str, captured: str) -> str:
    """Where a job is watched. Ends the command where nothing is there."""
    from dataflow.capture import CaptureError, open_capture

    if not os.path.exists(captured):
        unusable(f"{job}: is watched in {captured}, which is not there; nothing of it has come, or name it by its path")
    with suppress(CaptureError):
        capture = open_capture(captured)
        if not capture.sources and not capture.trials:
            unusable(f"{job}: is watched in {captured}, and nothing of it has come yet")
    return captured


@contextmanager
def _opened(folder: Path) -> "Iterator[Book]":
    from state.store import StoreError, reading

    try:
        with reading(folder) as book:
            yield book
    except StoreError as error:
        unusable(str(error))


def _looked(folder: Path) -> list[Row]:
    """The rows of the store as it stands now. Raises StoreError."""
    from state.store import reading

    with reading(folder) as book:
        return _rows(book, folder)


def _rows(book: "Book", folder: Path) -> list[Row]:
    """A row for each job of a store. While a watch runs, its newest line is the watch's, lag is how far behind it a job
    is judged, in seconds, and sync how the job's sync fares, as in health.json."""
    watched = watched_jobs(folder, running=True)
    rows = []
    for record in book.jobs():
        job = record["job"]
        fares = watched.get(job, {})
        row = row_of(record, book.gates(job), book.ends(job))
        newest = max((each for each in (row["newest_line"], fares.get("newest")) if each), default=None)
        rows.append({**row, "newest_line": newest, "lag": fares.get("lag"), "sync": fares.get("sync")})
    return rows


def _show(rows: list[Row], unjudged: list[Row]) -> None:
    """The rows as a table, and below it what keeps a watch from judging, also of jobs that have no verdict yet."""
    from rich.console import Console

    from dataflow.job_rows import Line
    from dataflow.job_table import HEADS, behind_said, table_of

    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    Console(width=width).print(table_of([Line(row) for row in rows], HEADS, datetime.now(UTC)))
    for said in behind_said([*rows, *unjudged]):
        click.echo(said)
