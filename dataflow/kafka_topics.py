"""The three topics: made, and looked at."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kafka import KafkaAdminClient, errors

from dataflow.kafka import CONNECT_SECONDS, MOST_BYTES, NO_TOPIC, BrokerError, Topic, Trouble, broker_error, opened
from dataflow.kafka_settings import Brokers

DEFAULT_PARTITIONS = 6
MOST_PARTITIONS = 10_000
DAY_MS = 86_400_000
_EVERYWHERE = {
    "cleanup.policy": "delete",
    # Whatever a shipper compresses with, it is zstd that consumers get: the one codec that all of them have.
    "compression.type": "zstd",
    "max.message.bytes": str(MOST_BYTES + (64 << 10)),
}
_RETENTION_DAYS = {Topic.LINES: 7, Topic.POLLS: 7, Topic.VERDICTS: 30}
_BROKERS_DEFAULT = -1


@dataclass(frozen=True, slots=True)
class Standing:
    """A topic as it is: partitions is 0 where it isn't there, and identity, which a new topic of the same name doesn't
    share, then empty."""

    name: str
    partitions: int
    identity: str


@dataclass(frozen=True, slots=True)
class Made:
    """A topic that stands now. was_there says that it did before."""

    name: str
    partitions: int
    was_there: bool


class Topics:
    """What the brokers know of topics. Raises BrokerError."""

    def __init__(self, brokers: Brokers, admin: KafkaAdminClient) -> None:
        self._brokers = brokers
        self._admin = admin

    def standing(self, *names: str) -> list[Standing]:
        """The topics as they are, in this order."""
        with _told(self._brokers):
            found = {each["name"]: each for each in self._admin.describe_topics(list(names))}
        return [_standing(name, found.get(name)) for name in names]

    def needed(self, *names: str) -> list[Standing]:
        """The same. Raises BrokerError also where one is not there."""
        found = self.standing(*names)
        for each in found:
            if not each.partitions:
                raise BrokerError(self._brokers.name, NO_TOPIC.format(each.name), Trouble.NO_TOPIC)
        return found

    def create(self, partitions: int = DEFAULT_PARTITIONS, replication: int | None = None) -> list[Made]:
        """Makes those of the three topics that are not there, or whose number of partitions is as asked. replication is
        the brokers' own default where it is None."""
        names = {topic: topic.under(self._brokers.prefix) for topic in Topic}
        before = {each.name: each for each in self.standing(*names.values())}
        for each in before.values():
            if each.partitions not in (0, partitions):
                why = f"{each.name} is there with {each.partitions} partitions, not {partitions}; all need the same"
                raise BrokerError(self._brokers.name, why, Trouble.REFUSED)
        missing = {
            name: {
                "num_partitions": partitions,
                "replication_factor": replication or _BROKERS_DEFAULT,
                "configs": {**_EVERYWHERE, "retention.ms": str(_RETENTION_DAYS[topic] * DAY_MS)},
            }
            for topic, name in names.items()
            if not before[name].partitions
        }
        if missing:
            self._create(missing)
        return [Made(name, partitions, bool(before[name].partitions)) for name in names.values()]

    def _create(self, missing: dict[str, dict[str, object]]) -> None:
        with _told(self._brokers):
            answer = self._admin.create_topics(missing, raise_errors=False)
            for each in answer["topics"]:
                if each["error_code"] not in (0, errors.TopicAlreadyExistsError.errno):
                    why = f"{each['name']} can't be made: {each['error_message'] or each['error_code']}"
                    raise BrokerError(self._brokers.name, why, Trouble.REFUSED)
            self._admin.wait_for_topics(list(missing))


@contextmanager
def topics_of(brokers: Brokers, seconds: float = CONNECT_SECONDS) -> Iterator[Topics]:
    """A look at the brokers' topics. Raises BrokerError."""
    within = int(1000 * max(seconds, 1.0))
    admin = opened(lambda told: KafkaAdminClient(request_timeout_ms=within, **told), brokers, seconds)
    try:
        yield Topics(brokers, admin)
    finally:
        admin.close()


@contextmanager
def _told(brokers: Brokers) -> Iterator[None]:
    begun = time.monotonic()
    try:
        yield
    except errors.KafkaError as error:
        raise broker_error(brokers, error, begun) from error


def _standing(name: str, found: dict[str, object] | None) -> Standing:
    if found is None or found["error_code"]:
        return Standing(name, 0, "")
    partitions = found["partitions"]
    assert isinstance(partitions, list)
    return Standing(name, len(partitions), str(found["topic_id"]))
