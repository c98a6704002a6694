"""Records on the verdict topic of a real broker: each there, in its envelope, none twice."""

import time

import pytest

from dataflow.envelope import HEADERS, unwrapped
from dataflow.kafka import BrokerError, Topic
from dataflow.kafka_settings import Brokers
from dataflow.kafka_topics import topics_of
from dataflow.patient import Patient
from dataflow.verdict_topic import VerdictTopic
from state.report import encode
from tests.kafka.broker import Broker
from tests.kafka.conftest import PARTITIONS
from tests.kafka.hearing import PATIENCE, heard
from tests.kafka.records import gate, verdict
from tests.kafka.test_outages import made

JOB = "/mira/rl-plover-1"


class Ledger:
    """Who owes records."""

    def __init__(self) -> None:
        self.owing: set[str] = set()

    def owes(self, sink: str) -> None:
        self.owing.add(sink)

    def paid(self, sink: str) -> None:
        self.owing.discard(sink)


def test_record_stands_in_its_envelope_with_the_bytes_it_has_in_a_file(brokers: Brokers) -> None:
    topic = VerdictTopic(brokers, print)
    records = [gate(JOB, 1), verdict(JOB, 1), verdict(JOB, 2)]
    for record in records:
        topic.write(record)
    topic.close()
    messages = heard(brokers, Topic.VERDICTS, 3)
    assert [encode(unwrapped(message.value)) for message in messages] == [encode(record) for record in records]
    assert {message.key for message in messages} == {JOB.encode()}
    assert {message.headers for message in messages} == {HEADERS}


def test_another_process_repeats_nothing_of_what_the_topic_has(brokers: Brokers) -> None:
    for last in (3, 5):
        topic = VerdictTopic(brokers, print)
        for second in range(last):
            topic.write(verdict(JOB, second))
        topic.close()
    values = [unwrapped(message.value)["at"] for message in heard(brokers, Topic.VERDICTS, 5)]
    assert values == [verdict(JOB, second)["at"] for second in range(5)]


def test_record_that_is_too_large_is_told_and_left_out(brokers: Brokers) -> None:
    notes: list[str] = []
    topic = VerdictTopic(brokers, notes.append)
    topic.write(verdict(JOB, 1, reason="x" * (5 << 20)))
    topic.write(verdict(JOB, 2))
    topic.close()
    assert [unwrapped(message.value)["at"] for message in heard(brokers, Topic.VERDICTS, 1)] == [verdict(JOB, 2)["at"]]
    (note,) = notes
    assert note.startswith(f"{brokers.prefix}.verdicts: {JOB} at {verdict(JOB, 1)['at']}: a message of 5")
    assert "more than the brokers take; this record is left out" in note


def test_records_of_an_outage_wait_and_hold_nothing_up_but_once(own: Broker, prefix: str) -> None:
    brokers = made(own, prefix)
    notes: list[str] = []
    ledger = Ledger()
    topic = VerdictTopic(brokers, notes.append)
    patient = Patient(f"{prefix}.verdicts", topic, notes.append, ledger)
    patient.write(verdict(JOB, 0))
    own.freeze()
    patient.write(verdict(JOB, 1))
    begun = time.monotonic()
    for second in range(2, 40):
        patient.write(verdict(JOB, second))
    assert time.monotonic() - begun < 1, "a record that comes while the brokers are away waits for nothing"
    assert ledger.owing
    assert "no answer; the records wait in memory" in notes[0]
    own.thaw()
    until = time.monotonic() + PATIENCE
    while not patient.retry() and time.monotonic() < until:
        time.sleep(0.1)
    topic.close()
    assert not ledger.owing
    got = [unwrapped(message.value)["id"] for message in heard(brokers, Topic.VERDICTS, 40)]
    assert list(dict.fromkeys(got)) == [verdict(JOB, second)["id"] for second in range(40)]


def test_topic_that_is_not_there_is_an_error_that_says_how_to_make_it(brokers: Brokers, bootstrap: str) -> None:
    topic = VerdictTopic(Brokers(brokers.servers, "nobody", brokers.options), print)
    with pytest.raises(BrokerError, match=r"topic nobody.verdicts is not there; `wedgewatch topics create` makes it"):
        topic.write(verdict(JOB, 1))
    topic.close()


def test_topic_that_lost_what_was_written_is_told_and_takes_it_again(brokers: Brokers) -> None:
    notes: list[str] = []
    losses: list[int] = []
    name = Topic.VERDICTS.under(brokers.prefix)
    topic = VerdictTopic(brokers, notes.append, lambda: losses.append(1))
    for second in range(3):
        topic.write(verdict(JOB, second))
    remade(brokers, name)
    for second in (3, 0, 1, 2, 3):
        topic.write(verdict(JOB, second))
    topic.close()
    assert notes == [f"{name}: the brokers lost what had been written; what is said again is written again"]
    assert losses == [1]
    got = [unwrapped(message.value)["at"] for message in heard(brokers, Topic.VERDICTS, 4)]
    assert got == [verdict(JOB, second)["at"] for second in (3, 0, 1, 2)]


def remade(brokers: Brokers, name: str) -> None:
    """The topic is made anew under its name, as when brokers lose their disks."""
    with topics_of(brokers, PATIENCE) as topics:
        topics._admin.delete_topics([name])
        until = time.monotonic() + PATIENCE
        while topics.standing(name)[0].partitions and time.monotonic() < until:
            time.sleep(0.05)
        topics.create(PARTITIONS, 1)
