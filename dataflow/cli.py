"""The command line. It reads and reports; no command acts on a job, and none writes into a capture's logs."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from dataflow.arguments import AS_OF, JOB, LAYOUT, LOG, OUT, WORKERS, Duration, GateLetter
from dataflow.book_commands import captured_of, report, status, store_option
from dataflow.ending import Calm, end, halting, tell, unusable
from dataflow.kafka_commands import consume, topics
from dataflow.opening import (
    feeds_of,
    outputs_of,
    refuse_to_overwrite,
    refuse_to_write_into,
    starting,
    stored,
    tell_of_no_job,
)
from dataflow.ship_command import ship
from dataflow.watch_command import watch

if TYPE_CHECKING:
    from dataflow.outcome import Outcome

READS_LINES = frozenset({"replay", "watch", "explain"})
"""The commands that read what a log says."""
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
@click.option(
    "--patterns",
    multiple=True,
    type=click.Path(),
    envvar="WEDGEWATCH_PATTERNS",
    metavar="FILE.py|MODULE",
    help="Also read lines by the patterns of a Python file or module ($WEDGEWATCH_PATTERNS; docs/own-patterns.md).",
)
@click.pass_context
def main(context: click.Context, patterns: tuple[str, ...]) -> None:
    """Reads an RL job's logs and polls and says, with quoted evidence, whether to kill it, keep it, or that it can't
    be judged. It recommends and never acts."""
    if patterns and context.invoked_subcommand in READS_LINES:
        with starting():
            from dataflow.outcome import SettingsError
            from dataflow.own_patterns import use_own_patterns
        try:
            use_own_patterns(patterns)
        except SettingsError as error:
            unusable(error.message)


@main.command(short_help="Judge recorded captures: KILL, NO-KILL or ERROR for each job.", epilog=_ENDING)
@click.argument("captures", nargs=-1, required=True, metavar="CAPTURE...")
@LAYOUT
@OUT
@JOB
@AS_OF
@click.option("--heartbeat", type=Duration(), help="Repeat the verdict this often in event time (90s, 10m, 2h).")
@LOG
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
@click.option(
    "--journal",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="The journals of a watch (<store>/watch/journal): what it read late stands where it stood then.",
)
@WORKERS
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
    journal: Path | None,
    workers: int,
) -> None:
    """Reads recorded captures at full speed in event time. Prints a line whenever the answer of a gate changes (A
    liveness, B resources, C rollouts, D dynamics), and one final verdict for each job, with the lines it rests on.

    CAPTURE is a folder with one job's logs, polls and trials, a bare log file, or - for standard input. What is not
    there is reported as missing: without a state poll the verdict is ERROR. All times are UTC.
    """
    with starting():
        from dataflow.flow import run
        from dataflow.outcome import Guarded, Outcome
        from dataflow.progress_line import progress_shown
        from dataflow.sinks import Decisions, Every, InOrder
        from extractors.catalogue import CATALOGUE

        _ = CATALOGUE.whole

    outcome, decisions = Outcome(), Decisions()
    with halting(outcome):
        feeds = feeds_of(captures, job_toml, as_of, journal)
        if out is not None:
            refuse_to_overwrite(out, feeds)
        refuse_to_write_into((out, log_folder, store), feeds)
        with (
            outputs_of(layout, out, log_folder, outcome) as outputs,
            stored(store) as kept,
            progress_shown(feeds, outcome) as beside,
        ):
            sink = Guarded(Every(*map(beside, outputs), *kept, decisions), outcome)
            ordered = InOrder([feed.job for feed in feeds], sink)
            heartbeat_us = None if heartbeat is None else int(heartbeat * 1_000_000)
            run(feeds, ordered, workers=workers, heartbeat_us=heartbeat_us, outcome=outcome)
            ordered.end()
    for feed in feeds:
        for note in feed.notes:
            tell(note)
        if feed.job in decisions.unfounded:
            tell_of_no_job(feed.captured, as_of)
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


@main.command(short_help="Say why a gate answers as it does, or what a cause means.", epilog=_EXPLAIN_ENDING)
@click.argument("what", metavar="CAPTURE|JOB|CAUSE")
@click.argument("gate", required=False, type=GateLetter())
@LAYOUT
@OUT
@JOB
@AS_OF
@store_option
def explain(
    what: str,
    gate: str | None,
    layout: str | None,
    out: Path | None,
    job_toml: Path | None,
    as_of: int | None,
    folder: Path,
) -> None:
    """Explains the gates of a recorded capture at its end, or at --as-of: every requirement, clause and excuse in the
    order in which they are weighed, what each saw, in which lines, and why it did or did not fire.

    CAPTURE is as for replay; GATE is A liveness, B resources, C rollouts or D dynamics, all four without it. CAUSE is
    the code of a cause (`cuda_oom`): its meaning, what to do about it, and true lines that show it. JOB is a job that
    the store knows, or its watch: its capture is read where it was last judged, or is watched.
    """
    from dataflow.explaining import cause_explained, is_capture, unknown
    from dataflow.outcome import Outcome
    from state.causes import CAUSES

    if is_capture(what):
        _explain_capture(what, gate, layout, out, job_toml, as_of)
    if what not in CAUSES and (captured := captured_of(what, folder)):
        _explain_capture(captured, gate, layout, out, job_toml, as_of)
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
    with starting():
        from dataflow.explaining import case_at_end, explained
        from dataflow.outcome import Outcome
        from dataflow.progress_line import progress_shown

    outcome = Outcome()
    with halting(outcome):
        feeds = feeds_of((path,), job_toml, as_of)
        if out is not None:
            refuse_to_overwrite(out, feeds)
        with progress_shown(feeds, outcome):
            case = case_at_end(feeds[0], outcome)
        records = [] if case is None else list(explained(case, gate))
        if records:
            _explain(records, layout, out, outcome)
    for note in feeds[0].notes:
        tell(note)
    if not outcome.halted and not any(record["evidence"] for record in records):
        tell_of_no_job(feeds[0].captured, as_of)
    end(outcome, str(out or "standard output"), 0)


def _explain(records: Iterable[dict[str, Any]], layout: str | None, out: Path | None, outcome: "Outcome") -> None:
    """Writes explanations, of which there are only a few."""
    from dataflow.explaining import Explanations
    from dataflow.outcome import Guarded

    with outputs_of(layout, out, None, outcome, Explanations) as outputs:
        for record in records:
            Guarded(outputs[0], outcome).write(record)


main.add_command(watch)
main.add_command(status)
main.add_command(report)
main.add_command(ship)
main.add_command(topics)
main.add_command(consume)


if __name__ == "__main__":
    main()
