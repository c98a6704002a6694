"""Output records on the verdict topic: each written until the brokers have it, and none that they have already.

What the topic has is read back from its end, so a restart, another process or a move to another host repeats nothing,
and brokers that lost all get all that is said again. A record that was written but not confirmed may stand there twice,
with the same id.
"""

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from kafka import KafkaConsumer, TopicPartition, errors

from dataflow.envelope import HEADERS, enveloped, event_id
from dataflow.kafka import BrokerError, Topic, broker_error, opened
from dataflow.kafka_follower import every
from dataflow.kafka_publisher import Outgoing, Publisher
from dataflow.kafka_settings import Brokers
from dataflow.kafka_topics import topics_of
from dataflow.known_ids import KnownIds

Record = dict[str, Any]

CONFIRM_SECONDS = 5.0
"""Within which the brokers must have a record; after that it waits with its caller, and so do all after it."""
AGAIN_SECONDS = 1.0
"""From one try to reach brokers that are away to the next."""
LONGEST_PAUSE = 60.0
"""Brokers that answer but take nothing (too few copies in sync) are tried less and less often, down to this."""
READ_BACK = 5_000
"""Newest records of each partition that are read back. An older one that is said again is repeated."""
READ_SECONDS = 30.0


class VerdictTopic:
    """A sink for `Patient`: it raises BrokerError, an OSError, where a record isn't confirmed, and can be asked again.

    While the brokers are away a thread tries to reach them, so that the flow is held up once, for CONFIRM_SECONDS, and
    not at each record. tell gets a note of each record that the brokers refuse, which is dropped. on_loss is called,
    from whichever thread finds it out, when the topic has lost what was written (the brokers came back empty, or with
    less): who can is to say all of it again, in any order. owns are the partitions of the jobs whose records may come.
    """

    def __init__(
        self,
        brokers: Brokers,
        tell: Callable[[str], None],
        on_loss: Callable[[], None] = lambda: None,
        owns: Callable[[int, int], bool] = every,
    ) -> None:
        self._brokers = brokers
        self._tell = tell
        self._on_loss = on_loss
        self._owns = owns
        self._topic = Topic.VERDICTS.under(brokers.prefix)
        self._publisher = Publisher(brokers, linger=0.0)
        self._written = KnownIds()
        self._identity = ""
        self._trouble = BrokerError(brokers.name, "not reached yet")
        self._reached = threading.Event()
        self._ended = threading.Event()
        self._pause = 0.0
        self._first = True
        self._begin_reaching()

    @property
    def name(self) -> str:
        """The topic, and where it is."""
        return f"{self._topic} at {self._brokers.name}"

    def write(self, record: Record) -> None:
        """Takes one record. Raises BrokerError."""
        if self._first:
            self._reached.wait(CONFIRM_SECONDS)
            self._first = False
        if not self._reached.is_set():
            raise self._trouble
        if record["id"] in self._written:
            return
        self._publisher.send(Outgoing(self._topic, record["job"], enveloped(record), HEADERS))
        settled = self._publisher.settle(CONFIRM_SECONDS)
        for refused in settled.refused:
            self._tell(f"{self._topic}: {record['job']} at {record['at']}: {refused.why}; this record is left out")
        if settled.lost:
            self._written = KnownIds()
            self._tell_of_loss()
        if settled.trouble is not None:
            self._lost(settled.trouble)
            raise settled.trouble
        self._written.add(record["id"])
        self._pause = 0.0

    def close(self) -> None:
        """Lets the brokers go."""
        self._ended.set()
        self._publisher.close()

    def _lost(self, trouble: BrokerError) -> None:
        self._trouble = trouble
        self._publisher.abandon()
        self._reached.clear()
        self._begin_reaching()
        self._pause = min(LONGEST_PAUSE, max(AGAIN_SECONDS, 2 * self._pause))

    def _begin_reaching(self) -> None:
        threading.Thread(target=self._reach, name="verdict topic", daemon=True).start()

    def _reach(self) -> None:
        """Tries until the brokers are there and it is known what they have."""
        self._ended.wait(self._pause)
        while not self._ended.is_set():
            try:
                self._connect()
            except BrokerError as error:
                self._trouble = error
                self._ended.wait(AGAIN_SECONDS)
                continue
            self._reached.set()
            return

    def _connect(self) -> None:
        with topics_of(self._brokers) as topics:
            (standing,) = topics.needed(self._topic)
        own = [number for number in range(standing.partitions) if self._owns(number, standing.partitions)]
        written = read_back(self._brokers, self._topic, own)
        self._publisher.connect()
        emptied = self._identity not in ("", standing.identity)
        self._written, self._identity = written, standing.identity
        if emptied:
            self._tell_of_loss()

    def _tell_of_loss(self) -> None:
        self._tell(f"{self._topic}: the brokers lost what had been written; what is said again is written again")
        self._on_loss()


def read_back(brokers: Brokers, topic: str, partitions: Iterable[int], newest: int = READ_BACK) -> KnownIds:
    """The ids of the newest records of these partitions of a topic. Raises BrokerError."""
    known = KnownIds()
    places = [TopicPartition(topic, partition) for partition in partitions]
    if not places:
        return known
    settings = {"enable_auto_commit": False, "auto_offset_reset": "earliest", "metrics_enabled": False}
    begun = time.monotonic()
    consumer = opened(lambda told: KafkaConsumer(**settings, **told), brokers)
    try:
        consumer.assign(places)
        ends = consumer.end_offsets(places, timeout_ms=int(1000 * CONFIRM_SECONDS))
        begins = consumer.beginning_offsets(places, timeout_ms=int(1000 * CONFIRM_SECONDS))
        for place in places:
            consumer.seek(place, max(begins[place], ends[place] - newest))
        _read_to(consumer, {place: end for place, end in ends.items() if end > begins[place]}, known)
    except errors.KafkaError as error:
        raise broker_error(brokers, error, begun) from error
    finally:
        consumer.close(autocommit=False, timeout_ms=500)
    return known


def _read_to(consumer: KafkaConsumer, ends: dict[TopicPartition, int], known: KnownIds) -> None:
    """Notes all up to these places. What can't be read in time is left, and may be repeated."""
    until = time.monotonic() + READ_SECONDS
    while ends and time.monotonic() < until:
        for place, messages in consumer.poll(timeout_ms=500).items():
            for message in messages:
                if id := event_id(message.value or b""):
                    known.add(id)
            if messages[-1].offset + 1 >= ends.get(place, 0):
                ends.pop(place, None)
