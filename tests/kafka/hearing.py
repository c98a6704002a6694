"""What stands in a topic, heard from its beginning."""

import time

from dataflow.kafka import Topic
from dataflow.kafka_follower import Follower, Message
from dataflow.kafka_settings import Brokers

PATIENCE = 30.0
"""Seconds; a broken test waits so long."""


def heard(brokers: Brokers, topic: Topic, count: int) -> list[Message]:
    """The first so many messages of a topic, or all that come within PATIENCE."""
    follower = Follower(brokers, (topic.under(brokers.prefix),))
    messages: list[Message] = []
    until = time.monotonic() + PATIENCE
    while len(messages) < count and time.monotonic() < until:
        messages += follower.poll(1).messages
    follower.close()
    return messages
