"""What is sent to a real broker arrives in order, or is told of."""

import os

from dataflow.kafka import MOST_BYTES, Topic, Trouble, partition_of
from dataflow.kafka_follower import Follower
from dataflow.kafka_publisher import Outgoing, Publisher
from dataflow.kafka_settings import PREFIX, Brokers, brokers_of
from dataflow.kafka_topics import topics_of
from tests.kafka.conftest import PARTITIONS
from tests.kafka.hearing import heard

JOB = "/mira/rl-wren-2"


def outgoing(brokers: Brokers, value: bytes, note: int, job: str = JOB) -> Outgoing:
    return Outgoing(Topic.LINES.under(brokers.prefix), job, value, (("source", b"finelog.log"),), note)


def test_messages_arrive_whole_in_order_and_in_the_partition_of_their_job(brokers: Brokers) -> None:
    publisher = Publisher(brokers)
    jobs = [f"/mira/rl-wren-{number}" for number in range(7)]
    for note in range(700):
        publisher.send(outgoing(brokers, b"line %d\n" % note, note, jobs[note % 7]))
    settled = publisher.settle(10)
    publisher.close()
    assert [message.note for message in settled.arrived] == list(range(700))
    assert (settled.refused, settled.trouble, publisher.pending, publisher.pending_bytes) == ([], None, 0, 0)
    got = heard(brokers, Topic.LINES, 700)
    assert len(got) == 700
    for number, job in enumerate(jobs):
        own = [message for message in got if message.key == job.encode()]
        assert {message.partition for message in own} == {partition_of(job, PARTITIONS)}
        assert [message.value for message in own] == [b"line %d\n" % note for note in range(number, 700, 7)]
        assert own[0].headers == (("source", b"finelog.log"),)


def test_message_that_is_too_large_for_all_is_refused_and_the_others_arrive(brokers: Brokers) -> None:
    publisher = Publisher(brokers)
    for note, size in enumerate((10, MOST_BYTES + 1, 20)):
        publisher.send(outgoing(brokers, b"x" * size, note))
    settled = publisher.settle(10)
    publisher.close()
    assert [message.note for message in settled.arrived] == [0, 2]
    assert [refused.message.note for refused in settled.refused] == [1]
    assert "is more than the brokers take" in settled.refused[0].why


def test_message_that_this_broker_refuses_takes_no_other_with_it(bootstrap: str, prefix: str) -> None:
    brokers = brokers_of(bootstrap, {PREFIX: prefix})
    narrow = {"num_partitions": 1, "replication_factor": 1, "configs": {"max.message.bytes": "20000"}}
    with topics_of(brokers) as topics:
        topics._create({Topic.LINES.under(prefix): narrow})
    publisher = Publisher(brokers)
    sizes = (100, 60_000, 200, 300, 60_000, 400)
    for note, size in enumerate(sizes):
        publisher.send(outgoing(brokers, os.urandom(size), note))
    settled = publisher.settle(20)
    publisher.send(outgoing(brokers, b"after", 6))
    after = publisher.settle(10)
    publisher.close()
    assert [message.note for message in settled.arrived + after.arrived] == [0, 2, 3, 5, 6]
    assert [refused.message.note for refused in settled.refused] == [1, 4]
    values = [len(message.value) for message in heard(brokers, Topic.LINES, 5)]
    assert list(dict.fromkeys(values)) == [100, 200, 300, 400, 5], "in order; a repeat is allowed"


def test_topic_that_is_not_there_is_named_and_its_messages_wait_for_it(bootstrap: str, prefix: str) -> None:
    brokers = brokers_of(bootstrap, {PREFIX: prefix})
    publisher = Publisher(brokers)
    publisher.send(outgoing(brokers, b"early", 1))
    trouble = publisher.settle(1).trouble
    assert trouble is not None
    assert trouble.trouble is Trouble.NO_TOPIC
    assert f"topic {prefix}.lines is not there" in str(trouble)
    with topics_of(brokers) as topics:
        topics.create(1, 1)
    settled = publisher.settle(10)
    publisher.close()
    assert [message.note for message in settled.arrived] == [1]


def test_sender_is_told_to_wait_when_too_much_is_under_way(bootstrap: str, prefix: str) -> None:
    brokers = brokers_of(bootstrap, {PREFIX: prefix})
    publisher = Publisher(brokers)
    for note in range(9):
        publisher.send(outgoing(brokers, b"x" * (MOST_BYTES - 2048), note))
    assert publisher.is_full
    publisher.abandon()
    assert (publisher.pending, publisher.is_full) == (0, False)


def test_follower_goes_on_where_it_stood(brokers: Brokers) -> None:
    publisher = Publisher(brokers)
    for note in range(10):
        publisher.send(outgoing(brokers, b"%d" % note, note))
    publisher.settle(10)
    first = Follower(brokers, (Topic.LINES.under(brokers.prefix),))
    assert len(first.poll(10).messages) == 10
    kept = first.positions
    first.close()
    publisher.send(outgoing(brokers, b"10", 10))
    publisher.settle(10)
    publisher.close()
    second = Follower(brokers, (Topic.LINES.under(brokers.prefix),), kept)
    assert [message.value for message in second.poll(10).messages] == [b"10"]
    second.close()


def test_follower_from_the_end_hears_only_what_comes_then(brokers: Brokers) -> None:
    publisher = Publisher(brokers)
    publisher.send(outgoing(brokers, b"old", 0))
    publisher.settle(10)
    follower = Follower(brokers, (Topic.LINES.under(brokers.prefix),), from_end=True)
    assert follower.poll(0.2).messages == []
    publisher.send(outgoing(brokers, b"new", 1))
    publisher.settle(10)
    publisher.close()
    assert [message.value for message in follower.poll(10).messages] == [b"new"]
    follower.close()


def test_two_followers_share_the_partitions_between_them(brokers: Brokers) -> None:
    publisher = Publisher(brokers)
    for note in range(60):
        publisher.send(outgoing(brokers, b"%d" % note, note, f"job-{note}"))
    publisher.settle(10)
    publisher.close()
    shares = []
    for index in range(2):
        follower = Follower(
            brokers, (Topic.LINES.under(brokers.prefix),), owns=lambda number, _all, i=index: number % 2 == i
        )
        shares.append({message.value for _ in range(4) for message in follower.poll(0.5).messages})
        follower.close()
    assert shares[0] | shares[1] == {b"%d" % note for note in range(60)}
    assert not shares[0] & shares[1]
