"""What is heard from the brokers: partitions by assignment and place, without a consumer group.

Where one stands is the caller's to keep (`positions`). Silence has two meanings, that nothing is said and that nobody
is there, and the library's `poll` answers both with nothing; so silence is looked into, and what is found is a value.
A topic that was made anew under its old name (brokers that lost their disks) is read from its beginning.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kafka import KafkaConsumer, TopicPartition, errors

from dataflow.kafka import (
    CONNECT_SECONDS,
    MOST_BYTES,
    BrokerError,
    Trouble,
    broker_error,
    opened,
    partition_of,
    said_of,
)
from dataflow.kafka_settings import Brokers
from dataflow.kafka_topics import Standing, topics_of

QUIET_SECONDS = 2.0
"""Of silence, after which one looks whether anybody is there."""
PROBE_SECONDS = 2.0
"""Within which they must answer that."""
LOOK_SECONDS = 60.0
"""From one look at the topics themselves to the next."""
AGAIN_SECONDS = 1.0
"""From a connection that failed to the next try."""
FETCHED_BYTES = 32 << 20
WORTH_BYTES, GATHER_MS = 64 << 10, 100
"""Brokers answer with so many bytes, or with what there is after so long: an answer for each message would cost more
than the message."""
MOST_MESSAGES = 500
BEGINNING = 0
_SETTINGS = {
    "group_id": None,
    "enable_auto_commit": False,
    "auto_offset_reset": "none",
    "fetch_max_bytes": FETCHED_BYTES,
    "fetch_min_bytes": WORTH_BYTES,
    "fetch_max_wait_ms": GATHER_MS,
    "max_partition_fetch_bytes": MOST_BYTES + (64 << 10),
    "request_timeout_ms": 10_000,
    "allow_auto_create_topics": False,
    "metrics_enabled": False,
}


class Message(NamedTuple):
    """What stands at a place of a topic."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes
    headers: tuple[tuple[str, bytes], ...]

    @property
    def place(self) -> str:
        """The place as a message to people names it."""
        return f"{self.topic}[{self.partition}] at {self.offset}"


class Position(NamedTuple):
    """The next offset of a partition, of the topic that had this identity."""

    topic: str
    partition: int
    identity: str
    offset: int


@dataclass(slots=True)
class Heard:
    """What a turn brought. notes are for people: what was lost or begins anew. trouble is why nothing comes, as long as
    it lasts; behind is how many messages stand unread, None where that was not looked at."""

    messages: list[Message] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    trouble: BrokerError | None = None
    behind: int | None = None


def every(partition: int, partitions: int) -> bool:
    """Owns every partition."""
    return True


class Follower:
    """Follows topics, or the partitions of them that `owns` says are its own. Used by one thread; it connects by itself
    and goes on by itself. kept is where it stood; a partition that is not in it is read from its beginning, or, with
    from_end, from where it ends at the first look."""

    def __init__(
        self,
        brokers: Brokers,
        topics: tuple[str, ...],
        kept: tuple[Position, ...] = (),
        from_end: bool = False,
        owns: Callable[[int, int], bool] = every,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._brokers = brokers
        self._topics = topics
        self._at = {(each.topic, each.partition): each for each in kept}
        self._from_end = from_end
        self._owns = owns
        self._monotonic = monotonic
        self._consumer: KafkaConsumer | None = None
        self._standing: dict[str, Standing] = {}
        self._trouble: BrokerError | None = None
        self._heard_at = self._looked_at = self._tried_at = float("-inf")

    @property
    def positions(self) -> tuple[Position, ...]:
        """Where it stands: all that `poll` has given is behind it."""
        return tuple(self._at.values())

    def partitions(self, topic: str) -> int:
        """How many partitions a topic has of which something was heard."""
        return self._standing[topic].partitions

    def is_caught_up(self, job: str) -> bool:
        """Whether all was given that the brokers had of a job when they were heard last."""
        return all(self._is_at_end(name, partition_of(job, each.partitions)) for name, each in self._standing.items())

    def poll(self, seconds: float) -> Heard:
        """What comes within so many seconds, as soon as there is some. Raises nothing."""
        heard = Heard()
        try:
            if self._ready(heard, seconds):
                self._fetch(heard, seconds)
        except BrokerError as error:
            self._trouble = error
        heard.trouble = self._trouble
        return heard

    def close(self) -> None:
        """Ends the connection; where it stands is still known."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close(autocommit=False, timeout_ms=500)

    def _ready(self, heard: Heard, seconds: float) -> bool:
        """Connects, and looks at the topics where it is time to. Waits, and gives False, where that failed just now."""
        now = self._monotonic()
        if self._consumer is not None and now - self._looked_at < LOOK_SECONDS:
            return True
        if now - self._tried_at < AGAIN_SECONDS:
            time.sleep(min(seconds, AGAIN_SECONDS))
            return False
        self._tried_at = now
        patience = PROBE_SECONDS if self._standing else CONNECT_SECONDS
        if self._consumer is None:
            self._consumer = opened(lambda told: KafkaConsumer(**_SETTINGS, **told), self._brokers, patience)
        self._look(heard, patience)
        return True

    def _look(self, heard: Heard, patience: float) -> None:
        """Takes the partitions as they are now. Raises BrokerError."""
        try:
            with topics_of(self._brokers, patience) as topics:
                standing = topics.needed(*self._topics)
        except BrokerError as error:
            if error.trouble is Trouble.NO_TOPIC:
                self._consumer_forgets()
            raise
        first = not self._standing
        for each in standing:
            known = self._standing.get(each.name)
            self._standing[each.name] = each
            self._take(each, heard, self._from_end and first and known is None)
        self._assign()
        self._looked_at = self._heard_at = self._monotonic()
        self._trouble = None

    def _take(self, topic: Standing, heard: Heard, from_end: bool) -> None:
        """Makes a position of each of its partitions that is owned."""
        for partition in filter(lambda number: self._owns(number, topic.partitions), range(topic.partitions)):
            known = self._at.get((topic.name, partition))
            if known is not None and known.identity == topic.identity:
                continue
            if known is not None and known.identity:
                heard.notes.append(
                    f"{topic.name}[{partition}]: the topic was made anew; it is read from its beginning "
                    f"(what stood at {known.offset} and after, and was not read, is gone with the old one)"
                )
            begin = self._end(TopicPartition(topic.name, partition)) if from_end and known is None else BEGINNING
            self._at[topic.name, partition] = Position(topic.name, partition, topic.identity, begin)

    def _assign(self) -> None:
        assert self._consumer is not None
        wanted = {TopicPartition(each.topic, each.partition): each.offset for each in self._at.values()}
        if self._consumer.assignment() != set(wanted):
            self._consumer.assign(list(wanted))
        for place, offset in wanted.items():
            self._consumer.seek(place, offset)

    def _fetch(self, heard: Heard, seconds: float) -> None:
        """Takes what has come; looks into silence. Raises BrokerError."""
        assert self._consumer is not None
        begun = self._monotonic()
        try:
            found: Mapping[TopicPartition, list[Any]] = self._consumer.poll(
                timeout_ms=int(1000 * seconds), max_records=MOST_MESSAGES
            )
        except (errors.OffsetOutOfRangeError, errors.LogTruncationError):
            self._moved(heard)
            return
        except (errors.KafkaError, errors.IllegalStateError, NotImplementedError) as error:
            self._consumer_forgets()
            raise broker_error(self._brokers, error, begun) from error
        for place, records in found.items():
            heard.messages += [_message(record) for record in records]
            self._stands(place, records[-1].offset + 1)
        if heard.messages:
            self._heard_at, self._trouble = self._monotonic(), None
        elif self._monotonic() - self._heard_at >= QUIET_SECONDS:
            self._look_into_silence(heard)

    def _is_at_end(self, topic: str, partition: int) -> bool:
        known = self._at.get((topic, partition))
        if known is None or self._consumer is None:
            return False
        with suppress(errors.IllegalStateError):
            end = self._consumer.highwater(TopicPartition(topic, partition))
            return end is not None and known.offset >= end
        return False

    def _stands(self, place: TopicPartition, offset: int) -> None:
        known = self._at[place.topic, place.partition]
        self._at[place.topic, place.partition] = known._replace(offset=offset)

    def _look_into_silence(self, heard: Heard) -> None:
        """Nothing comes: is anybody there? After trouble the topics may be others. Raises BrokerError."""
        assert self._consumer is not None
        begun = time.monotonic()
        places = [TopicPartition(each.topic, each.partition) for each in self._at.values()]
        try:
            ends = self._consumer.end_offsets(places, timeout_ms=int(1000 * PROBE_SECONDS))
        except errors.KafkaError as error:
            self._looked_at = float("-inf")
            raise broker_error(self._brokers, error, begun - QUIET_SECONDS) from error
        heard.behind = sum(max(0, ends[TopicPartition(e.topic, e.partition)] - e.offset) for e in self._at.values())
        self._heard_at, self._trouble = self._monotonic(), None

    def _moved(self, heard: Heard) -> None:
        """A place is no more. It was removed by age: the next one is taken. The log was cut short before it: it is read
        from its beginning. Raises BrokerError."""
        assert self._consumer is not None
        self._look(heard, PROBE_SECONDS)
        places = [TopicPartition(each.topic, each.partition) for each in self._at.values()]
        begun = time.monotonic()
        try:
            begins = self._consumer.beginning_offsets(places, timeout_ms=int(1000 * PROBE_SECONDS))
            ends = self._consumer.end_offsets(places, timeout_ms=int(1000 * PROBE_SECONDS))
        except errors.KafkaError as error:
            raise broker_error(self._brokers, error, begun) from error
        for place in places:
            at = self._at[place.topic, place.partition].offset
            if begins[place] <= at <= ends[place]:
                continue
            self._stands(place, begins[place])
            name = f"{place.topic}[{place.partition}]"
            if at < begins[place]:
                lost = begins[place] - at
                heard.notes.append(f"{name}: the brokers removed {lost} messages from {at} on before they were read")
            else:
                cut = f"it ended at {ends[place]}, before {at}"
                heard.notes.append(f"{name}: the brokers lost its newest messages ({cut}); it is read again")
        self._assign()

    def _end(self, place: TopicPartition) -> int:
        assert self._consumer is not None
        begun = time.monotonic()
        try:
            return int(self._consumer.end_offsets([place], timeout_ms=int(1000 * CONNECT_SECONDS))[place])
        except errors.KafkaError as error:
            raise broker_error(self._brokers, error, begun) from error

    def _consumer_forgets(self) -> None:
        """Makes the connection anew the next time."""
        try:
            self.close()
        except errors.KafkaError as error:
            self._trouble = BrokerError(self._brokers.name, said_of(error))


def _message(record: Any) -> Message:
    headers = tuple([(name, value or b"") for name, value in record.headers])
    return Message(record.topic, record.partition, record.offset, record.key, record.value or b"", headers)
