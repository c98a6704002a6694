"""The command line. It reads and reports; no command acts on a job, and none writes into a capture's logs."""

import gc
import io
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import click

from dataflow.arguments import AS_OF, JOB, LAYOUT, OUT, Duration, GateLetter
from dataflow.ending import Calm, cannot_write, end, halting, tell, unusable

if TYPE_CHECKING:
    from dataflow.feed import ReplayFeed
    from dataflow.outcome import Outcome
    from dataflow.sinks import Sink

EXIT_CODES = {"NO-KILL": 0, "KILL": 1, "ERROR": 3}
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
_EXPLAIN_ENDING = """\b
Examples:
  wedgewatch explain captures/rl-demo B
  wedgewatch explain --as-of 2026-07-20T10:14:00Z captures/rl-demo
  wedgewatch explain weight_sync_bootstrap_timeout
"""


@click.group(cls=Calm, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="wedgewatch", prog_name="wedgewatch")
def main() -> None:
    """Reads an RL job's logs and polls and says, with quoted evidence, whether to kill it, keep it, or that it can't
    be judged. It recommends and never acts."""


@main.command(short_help="Judge recorded captures: KILL, NO-KILL or ERROR for each job.", epilog=_ENDING)
@click.argument("captures", nargs=-1, required=True, metavar="CAPTURE...")
@LAYOUT
@OUT
@JOB
@AS_OF
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
        with _outputs(layout, out, log_folder, outcome) as outputs:
            ordered = InOrder([feed.job for feed in feeds], Guarded(Every(*outputs, decisions), outcome))
            heartbeat_us = None if heartbeat is None else int(heartbeat * 1_000_000)
            run(feeds, ordered, workers=workers, heartbeat_us=heartbeat_us, outcome=outcome)
            ordered.end()
    for feed in feeds:
        for note in feed.notes:
            tell(note)
        if feed.job in decisions.unfounded:
            _tell_of_no_job(feed.captured, as_of)
    codes = [EXIT_CODES[decision] for decision in decisions.newest.values()] if exit_code else []
    end(outcome, str(out or "standard output"), next((code for code in (1, 3) if code in codes), 0))


@main.command(short_help="Say why a gate answers as it does, or what a cause means.", epilog=_EXPLAIN_ENDING)
@click.argument("what", metavar="CAPTURE|CAUSE")
@click.argument("gate", required=False, type=GateLetter())
@LAYOUT
@OUT
@JOB
@AS_OF
def explain(
    what: str, gate: str | None, layout: str | None, out: Path | None, job_toml: Path | None, as_of: int | None
) -> None:
    """Explains the gates of a recorded capture at its end, or at --as-of: every requirement, clause and excuse in the
    order in which they are weighed, what each saw, in which lines, and why it did or did not fire.

    CAPTURE is as for replay; GATE is A liveness, B resources, C rollouts or D dynamics, all four without it. CAUSE is
    the code of a cause (`cuda_oom`): its meaning, what to do about it, and true lines that show it.
    """
    from dataflow.explaining import cause_explained, is_capture, unknown
    from dataflow.outcome import Outcome
    from state.causes import CAUSES

    if is_capture(what):
        _explain_capture(what, gate, layout, out, job_toml, as_of)
    if what not in CAUSES:
        unusable(unknown(what))
    if gate or job_toml or as_of is not None:
        unusable(f"{what}: a cause is the same for every gate, job and time; name it alone")
    outcome = Outcome()
    _explain([cause_explained(what)], layout, out, outcome)
    end(outcome, str(out or "standard output"), 0)


def _explain_capture(
    path: str, gate: str | None, layout: str | None, out: Path | None, job_toml: Path | None, as_of: int | None
) -> NoReturn:
    with _starting():
        from dataflow.explaining import case_at_end, explained
        from dataflow.outcome import Outcome

    outcome = Outcome()
    with halting(outcome):
        feeds = _feeds((path,), job_toml, as_of)
        if out is not None:
            _refuse_to_overwrite(out, feeds)
        case = case_at_end(feeds[0], outcome)
        records = [] if case is None else list(explained(case, gate))
        if records:
            _explain(records, layout, out, outcome)
    for note in feeds[0].notes:
        tell(note)
    if not outcome.halted and not any(record["evidence"] for record in records):
        _tell_of_no_job(feeds[0].captured, as_of)
    end(outcome, str(out or "standard output"), 0)


def _explain(records: Iterable[dict[str, Any]], layout: str | None, out: Path | None, outcome: "Outcome") -> None:
    """Writes explanations, of which there are only a few."""
    from dataflow.explaining import Explanations
    from dataflow.outcome import Guarded

    with _outputs(layout, out, None, outcome, Explanations) as outputs:
        for record in records:
            Guarded(outputs[0], outcome).write(record)


def _tell_of_no_job(captured: str, as_of: int | None) -> None:
    then = "" if as_of is None else " at that time"
    tell(f"{captured}: nothing in it tells of a job{then}; is it a capture, or a log of one?")


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
    layout: str | None,
    out: Path | None,
    log_folder: Path | None,
    outcome: "Outcome",
    text: "Callable[[TextIO], Sink] | None" = None,
) -> "Iterator[list[Sink]]":
    """Where the records go, `text` for people. An output that can't be opened ends the command before anything is
    read."""
    from dataflow.sinks import DatedReports, JsonLines, TextReports

    try:
        stream = out.open("w", encoding="utf-8", errors="backslashreplace") if out else _stdout()
        if log_folder:
            log_folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        unusable(cannot_write(error, str(out)))
    layout = layout or ("text" if out is None and stream.isatty() else "jsonl")
    sinks: list[Sink] = [(text or TextReports)(stream) if layout == "text" else JsonLines(stream)]
    try:
        yield [*sinks, DatedReports(log_folder)] if log_folder else sinks
    finally:
        try:
            if out:
                stream.close()
        except OSError as error:
            outcome.unwritable = outcome.unwritable or error


def _stdout() -> TextIO:
    """Standard output, able to take any character whatever the terminal's encoding."""
    if sys.stdout is None:
        unusable("standard output: cannot be written: it is closed")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    return sys.stdout


if __name__ == "__main__":
    main()
