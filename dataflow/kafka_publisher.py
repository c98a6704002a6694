"""What is sent to the brokers, in order, until it is known to have arrived.

The library's `flush()` hides what became of each record, and after some errors (a message that is too large, a broker
that lost its memory) its producer refuses everything for good. So each message is kept with its future; when one fails,
the producer is made anew and all that has not arrived is sent again, one by one, in order. A message may so arrive
twice, never not at all.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kafka import KafkaProducer, errors
from kafka.future import Future

from dataflow.kafka import CONNECT_SECONDS, MOST_BYTES, BrokerError, broker_error, opened, partition_of
from dataflow.kafka_settings import Brokers
from dataflow.kafka_topics import topics_of

DELIVERY_SECONDS = 60.0
"""After which the library gives a message up; it is then sent by a new producer."""
REQUEST_SECONDS = 10.0
METADATA_SECONDS = 2.0
"""Within which it must be known how many partitions a topic has."""
LINGER_SECONDS = 0.02
BATCH_BYTES = 256 << 10
MOST_PENDING = 32 << 20
"""Bytes that may be on their way; who sends waits for some to arrive."""
AROUND_BYTES = 1 << 10
"""Room for what the library adds to a message: lengths, times."""
WARNED_SECONDS = 3.0
"""For so long a warning of the library explains why nothing arrives; it tries again at least once a second."""

LOOK_SECONDS = 60.0
"""From one look at the topics themselves to the next."""

_SETTINGS = {
    "compression_type": "zstd",
    "enable_idempotence": True,
    "batch_size": BATCH_BYTES,
    "max_request_size": MOST_BYTES,
    "max_block_ms": int(1000 * METADATA_SECONDS),
    "request_timeout_ms": int(1000 * REQUEST_SECONDS),
    "delivery_timeout_ms": int(1000 * DELIVERY_SECONDS),
    "allow_auto_create_topics": False,
    "metrics_enabled": False,
}
_TOO_LARGE = (errors.MessageSizeTooLargeError, errors.RecordListTooLargeError)


class Outgoing(NamedTuple):
    """A message. note is the sender's own word for it, by which it hears of its arrival."""

    topic: str
    job: str
    value: bytes
    headers: tuple[tuple[str, bytes], ...] = ()
    note: Any = None


class Refused(NamedTuple):
    """A message that the brokers will never take, and why."""

    message: Outgoing
    why: str


@dataclass(slots=True)
class Settled:
    """What became of messages, in the order in which they were sent. trouble is why the rest still waits, or None. lost
    names topics that lost what had arrived before: made anew under their old name, or cut short."""

    arrived: list[Outgoing] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    lost: set[str] = field(default_factory=set)
    trouble: BrokerError | None = None


@dataclass(slots=True)
class _Kept:
    """A message that is not known to have arrived, and its future once it was given to the library."""

    message: Outgoing
    future: Any = None

    @property
    def size(self) -> int:
        """Bytes before compression."""
        return len(self.message.value) + sum(len(name) + len(value) for name, value in self.message.headers)


class Publisher:
    """Sends messages to the partition of their job. It is used by one thread at a time, and connects by itself. instead
    gives what is sent in the place of a message that is too large, so that it is not refused."""

    def __init__(
        self,
        brokers: Brokers,
        linger: float = LINGER_SECONDS,
        instead: Callable[[Outgoing], Sequence[Outgoing]] = lambda _: (),
    ) -> None:
        self.pending_bytes = 0
        self._instead = instead
        self._brokers = brokers
        self._linger_ms = int(1000 * linger)
        self._producer: KafkaProducer | None = None
        self._kept: deque[_Kept] = deque()
        self._unsent = 0
        self._partitions: dict[str, int] = {}
        self._suspects = 0
        self._newest: dict[tuple[str, int], int] = {}
        self._identities: dict[str, str] = {}
        self._looked_at = float("-inf")

    @property
    def pending(self) -> int:
        """Messages that are not known to have arrived."""
        return len(self._kept)

    @property
    def is_full(self) -> bool:
        """Whether the sender is to wait for some to arrive."""
        return self.pending_bytes >= MOST_PENDING

    def send(self, message: Outgoing) -> None:
        """Takes a message, whose fate `settle` tells. Waits for nothing and raises nothing."""
        kept = _Kept(message)
        if kept.size + AROUND_BYTES > MOST_BYTES and (smaller := self._instead(message)):
            for each in smaller:
                self.send(each)
            return
        self._kept.append(kept)
        self.pending_bytes += kept.size
        self._unsent += 1
        if self._unsent == 1 and not self._suspects and message.topic in self._partitions:
            with suppress(errors.KafkaError, ValueError):
                self._give(kept)

    def settle(self, seconds: float) -> Settled:
        """Waits at most so long for all that was sent to arrive, and tells of what did since the last time."""
        settled = Settled()
        until = time.monotonic() + seconds
        if self._kept and time.monotonic() - self._looked_at > LOOK_SECONDS:
            settled.trouble = self._look(settled)
        while self._kept and settled.trouble is None:
            settled.trouble = self._step(settled, until)
        return settled

    def connect(self, seconds: float = CONNECT_SECONDS) -> None:
        """Makes the connection, unless it is there. Raises BrokerError."""
        if self._producer is None:
            told = {**_SETTINGS, "linger_ms": self._linger_ms}
            self._producer = opened(lambda more: KafkaProducer(**told, **more), self._brokers, seconds)

    def recall(self) -> None:
        """Ends the connection, and keeps what has not arrived, which it may yet do: it is sent again by the next."""
        self.close(0)
        for kept in self._kept:
            kept.future = None
        self._unsent = len(self._kept)

    def abandon(self) -> None:
        """Forgets what has not arrived, which it may yet do, and the connection."""
        self._kept.clear()
        self.pending_bytes = self._unsent = self._suspects = 0
        self.close(0)

    def close(self, seconds: float = 1.0) -> None:
        """Ends the connection; what has not arrived within so many seconds may be lost."""
        producer, self._producer = self._producer, None
        self._partitions.clear()
        if producer is not None:
            _end(producer, seconds)

    def _step(self, settled: Settled, until: float) -> BrokerError | None:
        """Looks at the oldest message; gives why nothing more can be done now, or None."""
        oldest = self._kept[0]
        if oldest.size + AROUND_BYTES > MOST_BYTES:
            self._refuse(settled)
            return None
        left = max(0.0, until - time.monotonic())
        try:
            self.connect(min(CONNECT_SECONDS, left))
            self._give_waiting()
        except BrokerError as error:
            return error
        if not _is_done(oldest.future, left):
            return broker_error(self._brokers, None, time.monotonic() - WARNED_SECONDS)
        if oldest.future.succeeded():
            self._note_place(oldest.future.value, settled)
            settled.arrived.append(self._taken())
            return None
        return self._failed(oldest.future.exception, settled)

    def _note_place(self, place: Any, settled: Settled) -> None:
        """Brokers that lost all take what comes as if nothing had been; but places begin anew then."""
        partition = (place.topic, place.partition)
        if 0 <= place.offset <= self._newest.get(partition, -1):
            settled.lost.add(place.topic)
        self._newest[partition] = place.offset

    def _look(self, settled: Settled) -> BrokerError | None:
        """Sees whether the topics are still the same ones, for one that has grown past its old places meanwhile."""
        names = sorted({kept.message.topic for kept in self._kept} | set(self._identities))
        try:
            with topics_of(self._brokers) as topics:
                standing = topics.standing(*names)
        except BrokerError as error:
            return error
        for topic in standing:
            known = self._identities.get(topic.name)
            if topic.identity and known and topic.identity != known:
                settled.lost.add(topic.name)
            if topic.identity:
                self._identities[topic.name] = topic.identity
        self._looked_at = time.monotonic()
        return None

    def _failed(self, error: Exception, settled: Settled) -> BrokerError | None:
        """The oldest message failed, and with it the producer, which tells the same error of all that is under way. It
        is the culprit only where it was sent alone."""
        too_large = isinstance(error, _TOO_LARGE)
        if too_large and self._suspects:
            self._refuse(settled)
        self.recall()
        self._suspects = len(self._kept)
        return None if too_large else broker_error(self._brokers, error, time.monotonic())

    def _refuse(self, settled: Settled) -> None:
        """Takes the oldest message out; what is sent in its place comes before all others. None of them is under way
        then: the brokers take nothing that follows on what they refused."""
        size = self._kept[0].size
        refused = self._taken()
        smaller = [_Kept(each) for each in self._instead(refused)]
        if not smaller:
            settled.refused.append(Refused(refused, f"a message of {size} bytes is more than the brokers take"))
        self._kept.extendleft(reversed(smaller))
        self.pending_bytes += sum(each.size for each in smaller)

    def _taken(self) -> Outgoing:
        kept = self._kept.popleft()
        self.pending_bytes -= kept.size
        self._unsent -= kept.future is None
        self._suspects = max(0, self._suspects - 1)
        return kept.message

    def _give_waiting(self) -> None:
        """Gives the library what it hasn't: the oldest alone while any is suspected, else all. Raises BrokerError."""
        begun = time.monotonic()
        first = len(self._kept) - self._unsent
        for at in range(first, 1 if self._suspects else len(self._kept)):
            try:
                self._give(self._kept[at])
            except (errors.KafkaError, ValueError) as error:
                raise broker_error(self._brokers, error, begun) from error

    def _give(self, kept: _Kept) -> None:
        """Gives one message to the library. Raises KafkaError, and ValueError where the topic has fewer partitions than
        it had."""
        message = kept.message
        assert self._producer is not None
        if message.topic not in self._partitions:
            self._partitions[message.topic] = len(self._producer.partitions_for(message.topic))
        if kept.size + AROUND_BYTES > MOST_BYTES:
            kept.future = Future().failure(errors.MessageSizeTooLargeError())
        else:
            kept.future = self._producer.send(
                message.topic,
                message.value,
                key=message.job.encode("utf-8", "surrogatepass"),
                headers=list(message.headers),
                partition=partition_of(message.job, self._partitions[message.topic]),
            )
        self._unsent -= 1


def _is_done(future: Any, seconds: float) -> bool:
    """Whether it came to something within so many seconds."""
    with suppress(Exception):
        future.get(timeout=seconds)
    return bool(future.is_done)


def _end(producer: KafkaProducer, seconds: float) -> None:
    """Ends the library's producer with its thread."""
    try:
        producer.close(timeout=seconds)
    except errors.KafkaError:
        # Its close gives up at the first message that is still under way, and leaves its thread sending.
        producer._sender.force_close()
        producer._closed = True
