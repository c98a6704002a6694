"""The command line. It reads and reports; no command acts on a job, and none writes into a capture's logs."""

import gc
import io
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from dataflow.book_commands import report, status
from dataflow.ending import Calm, cannot_write, end, halting, tell, unusable

if TYPE_CHECKING:
    from dataflow.feed import ReplayFeed
    from dataflow.outcome import Outcome
    from dataflow.sinks import Sink

EXIT_CODES = {"NO-KILL": 0, "KILL": 1, "ERROR": 3}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|d)?")
_LONGEST = 366 * 86_400.0
_ENDING = """\b
Exit codes:
  0    the records were written (with --exit-code: NO-KILL)
  1    with --exit-code only: KILL
  2    unusable input, arguments or output
  3    with --exit-code only: ERROR, it can't be judged
  70   an error of wedgewatch's own
  130, 141, 143   interrupted; the reader of the pipe went away; terminated

\b
Examples:
  wedgewatch replay captures/rl-demo
  zcat finelog.log.gz | wedgewatch replay --format text -
  wedgewatch replay --exit-code --out verdicts.jsonl --log reports captures/*
"""
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, None: 1.0}


class Duration(click.ParamType[float]):
    """A duration such as `90s`, `10m` or `2h`; gives seconds."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = _DURATION.fullmatch(str(value).strip())
        if not found or not 0 < float(found[1]) * _UNITS[found[2]] <= _LONGEST:
            self.fail(f"{value!r} is no duration up to a year; write it like 90s, 10m or 2h", param, ctx)
        return float(found[1]) * _UNITS[found[2]]


class Moment(click.ParamType[int]):
    """A time in ISO 8601; gives microseconds UTC."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from extractors.clocks import parse_iso

        at_us = parse_iso(str(value))
        if at_us is None:
            self.fail(f"{value!r} is no time; write it like 2026-07-20T10:14:00Z", param, ctx)
        return at_us


@click.group(cls=Calm, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="wedgewatch", prog_name="wedgewatch")
def main() -> None:
    """Reads an RL job's logs and polls and says, with quoted evidence, whether to kill it, keep it, or that it can't
    be judged. It recommends and never acts."""


@main.command(short_help="Judge recorded captures: KILL, NO-KILL or ERROR for each job.", epilog=_ENDING)
@click.argument("captures", nargs=-1, required=True, metavar="CAPTURE...")
@click.option(
    "--format",
    "layout",
    type=click.Choice(["text", "jsonl"]),
    help="Reports for people, or one JSON record a line. Without it: text on a terminal, jsonl into a pipe or FILE.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the records to FILE instead of standard output.",
)
@click.option(
    "--job",
    "job_toml",
    type=click.Path(dir_okay=False, path_type=Path),
    help="What the launcher knew (job.toml); read instead of the captures' own.",
)
@click.option("--as-of", type=Moment(), help="Judge as things stood then (ISO 8601; UTC where it names no zone).")
@click.option("--heartbeat", type=Duration(), help="Repeat the verdict this often in event time (90s, 10m, 2h).")
@click.option(
    "--log",
    "log_folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Also append the report of each changed verdict to DIRECTORY/<date>_<job>.md.",
)
@click.option(
    "--exit-code",
    is_flag=True,
    help="Tell the verdict by the exit code; of several jobs KILL counts first, then ERROR.",
)
@click.option(
    "--store",
    "store",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Also write into this store, from which `status` and `report` answer.",
)
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Worker threads of the flow.")
def replay(
    captures: tuple[str, ...],
    layout: str | None,
    out: Path | None,
    job_toml: Path | None,
    as_of: int | None,
    heartbeat: float | None,
    log_folder: Path | None,
    exit_code: bool,
    store: Path | None,
    workers: int,
) -> None:
    """Reads recorded captures at full speed in event time. Prints a line whenever the answer of a gate changes (A
    liveness, B resources, C rollouts, D dynamics), and one final verdict for each job, with the lines it rests on.

    CAPTURE is a folder with one job's logs, polls and trials, a bare log file, or - for standard input. What is not
    there is reported as missing: without a state poll the verdict is ERROR. All times are UTC.
    """
    with _starting():
        from dataflow.flow import run
        from dataflow.outcome import Guarded, Outcome
        from dataflow.sinks import Decisions, Every, InOrder
        from extractors.catalogue import CATALOGUE

        _ = CATALOGUE.whole

    outcome, decisions = Outcome(), Decisions()
    with halting(outcome):
        feeds = _feeds(captures, job_toml, as_of)
        if out is not None:
            _refuse_to_overwrite(out, feeds)
        with _outputs(layout, out, log_folder, outcome) as outputs, _stored(store) as stored:
            ordered = InOrder([feed.job for feed in feeds], Guarded(Every(*outputs, *stored, decisions), outcome))
            heartbeat_us = None if heartbeat is None else int(heartbeat * 1_000_000)
            run(feeds, ordered, workers=workers, heartbeat_us=heartbeat_us, outcome=outcome)
            ordered.end()
    for feed in feeds:
        for note in feed.notes:
            tell(note)
        if feed.job in decisions.unfounded:
            then = "" if as_of is None else " at that time"
            tell(f"{feed.captured}: nothing in it tells of a job{then}; is it a capture, or a log of one?")
    codes = [EXIT_CODES[decision] for decision in decisions.newest.values()] if exit_code else []
    end(outcome, str(out or "standard output"), next((code for code in (1, 3) if code in codes), 0))


@main.command(short_help="Run the probes of job.toml and record what they say.")
@click.argument("capture", type=click.Path(path_type=Path))
@click.option(
    "--job",
    "job_toml",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Take the probes from this job.toml instead of the capture's own.",
)
@click.option("--for", "seconds", type=Duration(), help="End by itself after this long (90s, 10m, 2h).")
def record(capture: Path, job_toml: Path | None, seconds: float | None) -> None:
    """Runs the probes and the sync of job.toml on their timers, in the capture's folder, and appends what they print to
    CAPTURE/polls/, so that a later replay sees what a live watch saw. Probes only look: commands that would change
    something are refused.

    Runs until SIGINT or SIGTERM, and ends then with exit code 0. On a terminal it shows each poll.
    """
    from dataflow.recording import record_polls

    record_polls(capture, job_toml, seconds)


@contextmanager
def _starting() -> Iterator[None]:
    """Loads without looking for garbage, of which there is none: it would take a sixth of the start."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _feeds(captures: tuple[str, ...], job_toml: Path | None, as_of: int | None) -> "list[ReplayFeed]":
    from dataflow.capture import CaptureError
    from dataflow.feed import open_feed
    from dataflow.opened import STDIN
    from dataflow.outcome import SettingsError

    feeds: dict[str, ReplayFeed] = {}
    if captures.count(STDIN) > 1:
        unusable("-: standard input can be read only once; name it once")
    for path in captures:
        try:
            feed = open_feed(path, job_toml=job_toml, as_of_us=as_of)
        except (CaptureError, SettingsError) as error:
            unusable(str(error))
        if feed.job in feeds:
            unusable(f"{path}: job {feed.job} is already read from {feeds[feed.job].captured}; name each job once")
        feeds[feed.job] = feed
    return list(feeds.values())


def _refuse_to_overwrite(out: Path, feeds: "list[ReplayFeed]") -> None:
    """No command writes into a capture's files, by whatever name they are given."""
    if not out.exists():
        return
    place = out.resolve()
    for feed in feeds:
        for each in (*feed.capture.sources, *feed.capture.trials):
            held = Path(each.path)
            twin = held.is_file() and held.samefile(out)
            if twin or place.is_relative_to(held.resolve()):
                unusable(f"{out}: is {each.relative} of {feed.captured}, which is to be read, and is not overwritten")


@contextmanager
def _outputs(
    layout: str | None, out: Path | None, log_folder: Path | None, outcome: "Outcome"
) -> "Iterator[list[Sink]]":
    """Where the records go. An output that can't be opened ends the command before anything is read."""
    from dataflow.sinks import DatedReports, JsonLines, TextReports

    try:
        stream = out.open("w", encoding="utf-8", errors="backslashreplace") if out else _stdout()
        if log_folder:
            log_folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        unusable(cannot_write(error, str(out)))
    layout = layout or ("text" if out is None and stream.isatty() else "jsonl")
    sinks: list[Sink] = [TextReports(stream) if layout == "text" else JsonLines(stream)]
    try:
        yield [*sinks, DatedReports(log_folder)] if log_folder else sinks
    finally:
        try:
            if out:
                stream.close()
        except OSError as error:
            outcome.unwritable = outcome.unwritable or error


@contextmanager
def _stored(folder: Path | None) -> "Iterator[list[Sink]]":
    """The store as a place for records, where one is asked for."""
    if folder is None:
        yield []
        return
    from state.store import Store, StoreError

    try:
        store = Store(folder)
        try:
            yield [store]
        finally:
            store.close()
    except StoreError as error:
        unusable(str(error))


def _stdout() -> TextIO:
    """Standard output, able to take any character whatever the terminal's encoding."""
    if sys.stdout is None:
        unusable("standard output: cannot be written: it is closed")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    return sys.stdout


main.add_command(status)
main.add_command(report)


if __name__ == "__main__":
    main()
