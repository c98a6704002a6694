"""`wedgewatch topics create` against a real broker."""

from click.testing import CliRunner, Result

from dataflow.cli import main
from dataflow.kafka import Topic
from dataflow.kafka_settings import PREFIX, Brokers, brokers_of
from dataflow.kafka_topics import topics_of
from tests.kafka.broker import free_ports


def create(bootstrap: str, *options: str) -> Result:
    return CliRunner().invoke(main, ["topics", "create", "--brokers", bootstrap, *options])


def test_topics_are_created_once_and_then_found(bootstrap: str, prefix: str) -> None:
    assert create(bootstrap, "--partitions", "2").output.splitlines() == [
        f"{prefix}.{word}: 2 partitions, created" for word in ("lines", "polls", "verdicts")
    ]
    again = create(bootstrap, "--partitions", "2")
    assert again.exit_code == 0
    assert all(line.endswith("2 partitions, as before") for line in again.output.splitlines())


def test_another_number_of_partitions_would_part_a_job_from_itself_and_is_refused(
    bootstrap: str, brokers: Brokers
) -> None:
    said = create(bootstrap, "--partitions", "4")
    assert said.exit_code == 2
    assert f"{brokers.prefix}.lines is there with 3 partitions, not 4" in said.stderr


def test_more_copies_than_brokers_are_refused_in_the_brokers_own_words(bootstrap: str, prefix: str) -> None:
    said = create(bootstrap, "--replication", "30")
    assert said.exit_code == 2
    assert f"{prefix}.lines can't be made: Unable to replicate the partition 30 time(s)" in said.stderr


def test_brokers_that_are_not_there_end_the_command_in_one_line(prefix: str) -> None:
    nowhere = f"127.0.0.1:{free_ports(1)[0]}"
    said = create(nowhere)
    assert (said.exit_code, said.stderr) == (2, f"wedgewatch: {nowhere}: nothing listens there (connection refused)\n")


def test_topic_that_is_not_there_stands_with_no_partitions(bootstrap: str) -> None:
    with topics_of(brokers_of(bootstrap, {PREFIX: "nobody"})) as topics:
        (standing,) = topics.standing(Topic.LINES.under("nobody"))
    assert (standing.partitions, standing.identity) == (0, "")
