"""The commands that speak with Kafka's brokers: `topics create` and `consume`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dataflow.arguments import BROKERS, LAYOUT
from dataflow.ending import end, halting, tell, unusable

if TYPE_CHECKING:
    from dataflow.kafka_settings import Brokers

KILL = 1
_CONSUME_ENDING = """\b
Exit codes:
  0    it was asked to end (SIGINT, SIGTERM) and did
  1    with --exit-on-kill only: a job's verdict turned KILL
  2    unusable arguments or output, or the brokers refuse this user
  70   an error of wedgewatch's own
  141  the reader of the pipe went away

\b
Examples:
  wedgewatch consume --brokers kafka-1:9092
  wedgewatch consume --from-beginning --format jsonl | jq -r .verdict
"""


def brokers_asked(servers: str | None) -> "Brokers":
    """The brokers that the user means. Ends the command over a wrong setting."""
    from dataflow.kafka_settings import brokers_of
    from dataflow.outcome import SettingsError

    try:
        return brokers_of(servers)
    except SettingsError as error:
        unusable(error.message)


@click.group(short_help="The topics that Kafka carries records in: create them.")
def topics() -> None:
    """The topics that Kafka carries lines, polls and verdicts in."""


@topics.command(short_help="Create the three topics where they are not there.")
@BROKERS
@click.option(
    "--partitions",
    type=click.IntRange(1, 10_000),
    default=6,
    show_default=True,
    help="Of each topic. A job is read by one process, so at most so many processes share the work.",
)
@click.option(
    "--replication",
    type=click.IntRange(1, 32_767),
    help="Copies of each partition. Without it the brokers' own default.",
)
def create(servers: str | None, partitions: int, replication: int | None) -> None:
    """Creates the topics for lines, polls and verdicts where they are not there, and says of each how it stands. Those
    that are there are left as they are; another number of partitions than asked for is an error, since a job would be
    in different partitions."""
    from dataflow.kafka import BrokerError
    from dataflow.kafka_topics import topics_of

    brokers = brokers_asked(servers)
    try:
        with topics_of(brokers) as known:
            made = known.create(partitions, replication)
    except BrokerError as error:
        unusable(str(error))
    for each in made:
        click.echo(f"{each.name}: {each.partitions} partitions, {'as before' if each.was_there else 'created'}")


@click.command(short_help="Follow the verdict topic and print: an example supervisor.", epilog=_CONSUME_ENDING)
@BROKERS
@LAYOUT
@click.option(
    "--from-beginning", is_flag=True, help="Begin with the oldest record that the topic has, not with the next."
)
@click.option("--exit-on-kill", is_flag=True, help="End with exit code 1 when the verdict of a job turns KILL.")
@click.option(
    "--state",
    "state",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Go on where FILE says, and keep in it how far it came. A kill may let the last records be printed twice.",
)
def consume(
    servers: str | None, layout: str | None, from_beginning: bool, exit_on_kill: bool, state: Path | None
) -> None:
    """Follows the verdict topic and prints each record once, however often it is there: an example of a supervisor. It
    never acts. What is no record, or of a newer version, is told with its first words, and passed over; brokers that
    are away are told, and waited for.
    """
    from dataflow.consuming import Places
    from dataflow.consuming import consume as follow
    from dataflow.kafka import BrokerError
    from dataflow.opening import outputs_of
    from dataflow.outcome import Outcome, SettingsError

    brokers = brokers_asked(servers)
    outcome = Outcome()
    killed = ""
    with halting(outcome, lives=True, resumes=state is not None), outputs_of(layout, None, None, outcome) as sinks:
        try:
            places = None if state is None else Places(state)
            killed = follow(brokers, sinks[0], outcome, tell, from_beginning, exit_on_kill, places)
        except BrokerError as error:
            unusable(str(error))
        except SettingsError as error:
            unusable(error.message)
        except OSError as error:
            outcome.unwritable = error
    if killed:
        tell(f"{killed}: its verdict turned KILL")
        sys.exit(KILL)
    outcome.signal = 0
    end(outcome, "standard output", 0)
