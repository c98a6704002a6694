"""`wedgewatch watch` on the command line."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dataflow.arguments import BROKERS, CLOCK, JOB, LOG, WORKERS, Duration, ShareOf
from dataflow.book_commands import watched_store_option
from dataflow.ending import unusable
from dataflow.kafka_commands import brokers_asked
from dataflow.opening import starting

if TYPE_CHECKING:
    from dataflow.share import Share

_ENDING = """\b
Exit codes:
  0    it was asked to end (SIGINT, SIGTERM) and did
  2    unusable input, arguments or output
  70   an error of wedgewatch's own
  141  the reader of the pipe went away

\b
Examples:
  wedgewatch watch runs/rl-demo
  wedgewatch watch --out verdicts.jsonl --log reports runs/*
  wedgewatch watch --brokers kafka-1:9092 --share 2/3
"""
_SECOND_US = 1_000_000


@click.command(short_help="Judge live jobs as their logs grow, until it is stopped.", epilog=_ENDING)
@click.argument("captures", nargs=-1, metavar="[CAPTURE...]")
@click.option(
    "--format",
    "layout",
    type=click.Choice(["text", "jsonl"]),
    help="A live table on a terminal (lines elsewhere), or one JSON record a line. Without it: text on a terminal, "
    "jsonl into a pipe or FILE.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Append the records to FILE; what it has is not written again.",
)
@JOB
@watched_store_option
@LOG
@click.option(
    "--heartbeat", type=Duration(), default="10m", show_default=True, help="Repeat the verdict this often (event time)."
)
@click.option(
    "--lateness",
    type=Duration(),
    default="5s",
    show_default=True,
    help="How long a line may be on its way; what comes later is judged late, and counted.",
)
@WORKERS
@BROKERS
@click.option(
    "--share",
    type=ShareOf(),
    default="1/1",
    show_default=True,
    metavar="K/N",
    help="With --brokers: this is the K-th of N processes, which share the partitions between them.",
)
@CLOCK
def watch(
    captures: tuple[str, ...],
    layout: str | None,
    out: Path | None,
    job_toml: Path | None,
    folder: Path,
    log_folder: Path | None,
    heartbeat: float,
    lateness: float,
    workers: int,
    servers: str | None,
    share: "Share",
    clock: Path | None,
) -> None:
    """Watches live jobs: reads their files as they grow, appear and rotate, runs the probes of job.toml, and says what
    changes, and each verdict again at every heartbeat. It resumes where it stopped. It recommends and never acts.

    CAPTURE is a folder into which one job's logs, polls and trials come, or one growing log. It may be empty still.
    With --brokers instead, the jobs are those that `ship` sends from other hosts through Kafka, and the records go to
    its topic of verdicts, too.
    `status` and `report` answer from the store meanwhile, `explain` from the capture where it lies on this machine.
    """
    _refuse(captures, servers, job_toml, workers, share)
    with starting():
        from dataflow.live_clock import FileClock, LiveClock
        from dataflow.watching import Asked
        from dataflow.watching import watch as watch_all
        from extractors.catalogue import CATALOGUE

        _ = CATALOGUE.whole
    watch_all(
        Asked(
            captures=captures,
            job_toml=job_toml,
            store=folder,
            layout=layout,
            out=out,
            log_folder=log_folder,
            heartbeat_us=int(heartbeat * _SECOND_US),
            lateness_us=int(lateness * _SECOND_US),
            workers=workers,
            clock=LiveClock() if clock is None else FileClock(clock),
            brokers=None if captures else brokers_asked(servers),
            share=share,
        )
    )


def _refuse(
    captures: tuple[str, ...], servers: str | None, job_toml: Path | None, workers: int, share: "Share"
) -> None:
    """Ends the command over options that don't go together."""
    if not captures and servers is None and not os.environ.get("KAFKA_BOOTSTRAP"):
        unusable("name a CAPTURE to watch, or --brokers to judge what is shipped")
    if captures and servers:
        unusable("name captures or --brokers, not both: a watch reads files, or what is shipped")
    if captures and share.of > 1:
        unusable("--share is for --brokers: captures are shared out by naming them to other processes")
    if not captures and job_toml is not None:
        unusable("--job is for captures: what is shipped brings its own job.toml (see `ship --job`)")
    if not captures and workers > 1:
        unusable("--workers is for captures: what is shipped is shared out by processes, see --share")
