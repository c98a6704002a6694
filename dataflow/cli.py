"""The command line. It reads and reports; no command acts on a job, and none writes into a capture's logs."""

import re
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

if TYPE_CHECKING:
    from dataflow.feed import ReplayFeed
    from dataflow.sinks import Sink

EXIT_CODES = {"NO-KILL": 0, "KILL": 1, "ERROR": 3}
UNUSABLE = 2
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|d)?")
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, None: 1.0}


class Duration(click.ParamType[float]):
    """A duration such as `90s`, `10m` or `2h`; gives seconds."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = _DURATION.fullmatch(str(value).strip())
        if not found or float(found[1]) <= 0:
            self.fail(f"{value!r} is no duration; write it like 90s, 10m or 2h", param, ctx)
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


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="wedgewatch", prog_name="wedgewatch")
def main() -> None:
    """Reads an RL job's logs and polls and says, with quoted evidence, whether to kill it, keep it, or that it can't
    be judged. It recommends and never acts."""


@main.command()
@click.argument("captures", nargs=-1, required=True, metavar="CAPTURE...")
@click.option("--format", "layout", type=click.Choice(["text", "jsonl"]), help="text on a terminal, jsonl into a pipe")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="write there instead of standard output")
@click.option("--job", "job_toml", type=click.Path(dir_okay=False, path_type=Path), help="the job's facts (job.toml)")
@click.option("--as-of", type=Moment(), help="judge as things stood at this time")
@click.option("--heartbeat", type=Duration(), help="also repeat the verdict this often, in event time (off)")
@click.option("--log", "log_folder", type=click.Path(file_okay=False, path_type=Path), help="append reports to DIR")
@click.option("--exit-code", is_flag=True, help="exit with 0 NO-KILL, 1 KILL, 3 ERROR")
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="worker threads of the flow")
def replay(
    captures: tuple[str, ...],
    layout: str | None,
    out: Path | None,
    job_toml: Path | None,
    as_of: int | None,
    heartbeat: float | None,
    log_folder: Path | None,
    exit_code: bool,
    workers: int,
) -> None:
    """Reads recorded captures at full speed in event time; prints gate verdicts as their evidence completes, then one
    final verdict for each job.

    CAPTURE is a capture folder, a bare log file, or - for standard input.
    """
    from dataflow.flow import run
    from dataflow.sinks import Decisions, Every, InOrder

    feeds = _feeds(captures, job_toml, as_of)
    decisions = Decisions()
    with ExitStack() as stack:
        outputs = _outputs(stack, layout, out, log_folder)
        sink = InOrder([feed.job for feed in feeds], Every(*outputs, decisions))
        run(feeds, sink, workers=workers, heartbeat_us=None if heartbeat is None else int(heartbeat * 1_000_000))
    for feed in feeds:
        for note in feed.notes:
            click.echo(f"wedgewatch: {note}", err=True)
    if exit_code:
        codes = [EXIT_CODES[decision] for decision in decisions.newest.values()]
        sys.exit(next((code for code in (1, 3) if code in codes), 0))


def _feeds(captures: tuple[str, ...], job_toml: Path | None, as_of: int | None) -> "list[ReplayFeed]":
    from dataflow.capture import CaptureError
    from dataflow.feed import open_feed
    from dataflow.settings import SettingsError

    feeds: dict[str, ReplayFeed] = {}
    for path in captures:
        try:
            feed = open_feed(path, job_toml=job_toml, as_of_us=as_of)
        except (CaptureError, SettingsError) as error:
            _unusable(str(error))
        if feed.job in feeds:
            _unusable(f"{path}: job {feed.job} is already read from {feeds[feed.job].captured}; name each job once")
        feeds[feed.job] = feed
    return list(feeds.values())


def _outputs(stack: ExitStack, layout: str | None, out: Path | None, log_folder: Path | None) -> "list[Sink]":
    from dataflow.sinks import DatedReports, JsonLines, TextReports

    try:
        stream = stack.enter_context(out.open("w", encoding="utf-8")) if out else sys.stdout
        if log_folder:
            log_folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        _unusable(f"{error.filename}: cannot be written: {error.strerror}")
    layout = layout or ("text" if out is None and sys.stdout.isatty() else "jsonl")
    sinks: list[Sink] = [TextReports(stream) if layout == "text" else JsonLines(stream)]
    if log_folder:
        sinks.append(DatedReports(log_folder))
    return sinks


def _unusable(message: str) -> NoReturn:
    click.echo(f"wedgewatch: {message}", err=True)
    sys.exit(UNUSABLE)


if __name__ == "__main__":
    main()
