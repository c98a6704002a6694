"""Brokers that stop, die, freeze, and come back with their data or without."""

import threading
import time
from collections.abc import Callable

from dataflow.kafka import Topic, Trouble
from dataflow.kafka_follower import Follower, Heard
from dataflow.kafka_publisher import Outgoing, Publisher
from dataflow.kafka_settings import PREFIX, Brokers, brokers_of
from dataflow.kafka_topics import topics_of
from tests.kafka.broker import Broker
from tests.kafka.hearing import PATIENCE, heard

JOB = "/mira/rl-dunlin-4"


def made(own: Broker, prefix: str, partitions: int = 1) -> Brokers:
    brokers = brokers_of(own.bootstrap, {PREFIX: prefix})
    with topics_of(brokers, PATIENCE) as topics:
        topics.create(partitions, 1)
    return brokers


def say(publisher: Publisher, brokers: Brokers, *words: str) -> None:
    for word in words:
        publisher.send(Outgoing(Topic.LINES.under(brokers.prefix), JOB, word.encode(), note=word))


def settle(publisher: Publisher) -> list[str]:
    """The notes of all that was sent, once it has arrived."""
    arrived: list[str] = []
    until = time.monotonic() + PATIENCE
    while publisher.pending and time.monotonic() < until:
        arrived += [message.note for message in publisher.settle(1).arrived]
    return arrived


def poll_until(follower: Follower, wanted: Callable[[Heard], object]) -> list[Heard]:
    """The turns up to the one that was wanted."""
    turns: list[Heard] = []
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        turns.append(follower.poll(0.5))
        if wanted(turns[-1]):
            return turns
    raise AssertionError(f"never came: {turns[-3:]}")


def words(turns: list[Heard]) -> list[str]:
    return [message.value.decode() for turn in turns for message in turn.messages]


def test_killed_broker_is_trouble_that_is_told_and_passes_by_itself(own: Broker, prefix: str) -> None:
    brokers = made(own, prefix)
    publisher, follower = Publisher(brokers), Follower(brokers, (Topic.LINES.under(prefix),))
    say(publisher, brokers, "before")
    assert settle(publisher) == ["before"]
    assert words(poll_until(follower, lambda turn: turn.messages)) == ["before"]
    own.kill()
    say(publisher, brokers, "one", "two")
    trouble = publisher.settle(1.5).trouble
    assert trouble is not None
    assert str(trouble) == f"{own.bootstrap}: nothing listens there (connection refused)"
    silent = poll_until(follower, lambda turn: turn.trouble)[-1]
    assert str(silent.trouble) == str(trouble)
    own.start()
    say(publisher, brokers, "three")
    assert settle(publisher) == ["one", "two", "three"]
    assert words(poll_until(follower, lambda turn: b"three" in [each.value for each in turn.messages])) == [
        "one",
        "two",
        "three",
    ]
    publisher.close()
    follower.close()


def test_frozen_broker_is_trouble_although_its_connections_stand(own: Broker, prefix: str) -> None:
    brokers = made(own, prefix)
    follower = Follower(brokers, (Topic.LINES.under(prefix),))
    assert follower.poll(0.5).trouble is None
    own.freeze()
    silent = poll_until(follower, lambda turn: turn.trouble)[-1]
    assert silent.trouble is not None
    assert (silent.trouble.trouble, silent.trouble.strerror) == (Trouble.UNREACHABLE, "no answer")
    own.thaw()
    assert poll_until(follower, lambda turn: turn.trouble is None)
    follower.close()


def test_broker_that_comes_back_empty_is_told_and_its_new_topics_are_read_from_their_beginning(
    own: Broker, prefix: str
) -> None:
    brokers = made(own, prefix)
    publisher, follower = Publisher(brokers), Follower(brokers, (Topic.LINES.under(prefix),))
    say(publisher, brokers, *(f"old {number}" for number in range(5)))
    settle(publisher)
    assert len(words(poll_until(follower, lambda turn: turn.messages))) == 5
    own.kill()
    own.empty()
    own.start()
    say(publisher, brokers, "new 0")
    poll_until(follower, lambda turn: turn.trouble is not None and turn.trouble.trouble is Trouble.NO_TOPIC)
    made(own, prefix)
    say(publisher, brokers, *(f"new {number}" for number in range(1, 9)))
    assert settle(publisher) == [f"new {number}" for number in range(9)]
    publisher.close()
    turns = poll_until(follower, lambda turn: b"new 8" in [each.value for each in turn.messages])
    follower.close()
    assert list(dict.fromkeys(words(turns))) == [f"new {number}" for number in range(9)]
    (note,) = [note for turn in turns for note in turn.notes]
    assert "the topic was made anew; it is read from its beginning" in note


def test_publisher_leaves_no_thread_behind_when_it_gives_a_dead_broker_up(own: Broker, prefix: str) -> None:
    brokers = made(own, prefix)
    before = threading.active_count()
    publisher = Publisher(brokers)
    say(publisher, brokers, "lost")
    settle(publisher)
    own.freeze()
    say(publisher, brokers, "never confirmed")
    publisher.settle(0.5)
    publisher.abandon()
    until = time.monotonic() + PATIENCE
    while threading.active_count() > before and time.monotonic() < until:
        time.sleep(0.05)
    assert threading.active_count() <= before
    own.thaw()
    assert len(heard(brokers, Topic.LINES, 1)) >= 1
