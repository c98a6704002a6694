"""A broker for the tests: one for all of them, or the user's own (KAFKA_BOOTSTRAP); topics of its own for each test."""

import os
from collections.abc import Iterator
from uuid import uuid4

import pytest

from dataflow.kafka_settings import BOOTSTRAP, PREFIX, Brokers, brokers_of
from dataflow.kafka_topics import topics_of
from tests.kafka.artifacts import NoKafka, classpath, refused
from tests.kafka.broker import Broker

PARTITIONS = 3


@pytest.fixture(scope="session")
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker that may be stopped and killed; whoever does starts it again."""
    if os.environ.get(BOOTSTRAP):
        pytest.skip(f"{BOOTSTRAP} names a broker, which is not ours to stop")
    try:
        broker = Broker(tmp_path_factory.mktemp("kafka"), classpath()).start()
    except NoKafka as why:
        refused(why)
    yield broker
    broker.kill()


@pytest.fixture
def own(own_broker: Broker) -> Iterator[Broker]:
    """The same for one test; it runs again after it."""
    yield own_broker
    if own_broker.process is not None:
        own_broker.thaw()
    else:
        own_broker.start()


@pytest.fixture
def bootstrap(request: pytest.FixtureRequest) -> str:
    """Where a broker listens that only needs to be there."""
    named = os.environ.get(BOOTSTRAP)
    return named or str(request.getfixturevalue("own_broker").bootstrap)


@pytest.fixture
def prefix(monkeypatch: pytest.MonkeyPatch) -> str:
    """What this test's topics begin with, for commands too."""
    name = f"test-{uuid4().hex[:12]}"
    monkeypatch.setenv(PREFIX, name)
    return name


@pytest.fixture
def brokers(bootstrap: str, prefix: str) -> Brokers:
    """The brokers, with this test's topics made."""
    found = brokers_of(bootstrap, {PREFIX: prefix})
    with topics_of(found) as topics:
        topics.create(PARTITIONS, 1)
    return found
