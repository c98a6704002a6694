"""`wedgewatch ship` on the command line."""

import re
from pathlib import Path

import click

from dataflow.arguments import BROKERS, CLOCK, JOB, Duration
from dataflow.book_commands import shipped_store_option
from dataflow.ending import unusable
from dataflow.kafka_commands import brokers_asked

MOST_EVERY = 5.0
_HOST = re.compile(r"[\w.-]{1,253}")
_ENDING = """\b
Exit codes:
  0    all was sent (--once), or it was asked to end (SIGINT, SIGTERM) and did
  2    unusable input or arguments, the brokers refuse this user, or (--once) a part of what was to be sent
  70   an error of wedgewatch's own
  130, 143   with --once only: interrupted; terminated

\b
Examples:
  wedgewatch ship --brokers kafka-1:9092 runs/rl-demo
  wedgewatch ship --brokers kafka-1:9092 --once captures/*
"""


@click.command(short_help="Send captures to Kafka, live as they grow or recorded ones once.", epilog=_ENDING)
@click.argument("captures", nargs=-1, required=True, metavar="CAPTURE...")
@BROKERS
@JOB
@shipped_store_option
@click.option("--host", metavar="NAME", help="What this host is called in what is sent. Without it: its own name.")
@click.option(
    "--every",
    type=Duration(),
    default="0.25s",
    show_default=True,
    help="How often to send what is new, up to 5s: rarer makes fewer and larger messages, and verdicts so much later.",
)
@click.option(
    "--bundle",
    is_flag=True,
    help="Send all that is new of a capture as one message and not a message a file: a third of the cost in a fleet.",
)
@click.option("--once", is_flag=True, help="The captures are recorded and whole: send all of each, and end.")
@CLOCK
def ship(
    captures: tuple[str, ...],
    servers: str | None,
    job_toml: Path | None,
    folder: Path,
    host: str | None,
    every: float,
    bundle: bool,
    once: bool,
    clock: Path | None,
) -> None:
    """Sends what is in captures to Kafka, where a `watch --brokers` judges it: lines and polls as they come, other
    files whole, and the time up to which all was sent. It goes on where it stopped; brokers that are away are told, and
    waited for. Nothing is written into a capture.

    CAPTURE is a folder into which one job's logs, polls and trials come, or one growing log. It may be empty still.
    The probes and the sync of its job.toml are not run: `record` runs them, beside it.
    """
    import socket

    if host is not None and not _HOST.fullmatch(host):
        unusable(f"--host {host!r}: name it with letters, digits, '.', '-' and '_'")

    from dataflow.live_clock import FileClock, LiveClock
    from dataflow.ship_once import ship_once
    from dataflow.shipping import Asked
    from dataflow.shipping import ship as ship_live

    if every > MOST_EVERY:
        unusable("--every is at most 5s: after 15 s of silence a shipper is told as missing")
    asked = Asked(
        captures=captures,
        brokers=brokers_asked(servers),
        job_toml=job_toml,
        store=folder,
        host=host or socket.gethostname(),
        every=every,
        bundles=bundle,
        clock=LiveClock() if clock is None else FileClock(clock),
    )
    if once:
        ship_once(asked)
    ship_live(asked)
