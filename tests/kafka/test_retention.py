"""Messages that the brokers removed by age before anybody judged them: gaps that are told, and never a verdict that
looks as if all had been there.
"""

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition

from dataflow.kafka import Topic
from dataflow.kafka_settings import PREFIX, Brokers, brokers_of
from tests.kafka.processes import Fleet, fleet
from tests.live.test_replay_is_live import OWN
from tests.said import by_job, replay_of

RUN, OTHER = OWN / "completed_run", OWN / "one_slot_401_burst"


@pytest.fixture
def each(tmp_path: Path, bootstrap: str, prefix: str) -> Iterator[Fleet]:
    with fleet(tmp_path, bootstrap) as found:
        found.topics(1)
        yield found


def ends(brokers: Brokers, topic: Topic) -> int:
    """How many messages stand in the one partition."""
    consumer = KafkaConsumer(bootstrap_servers=brokers.servers)
    place = TopicPartition(topic.under(brokers.prefix), 0)
    try:
        return int(consumer.end_offsets([place])[place])
    finally:
        consumer.close()


def remove(brokers: Brokers, topic: Topic, before: int) -> None:
    """Removes the oldest messages, as age does."""
    admin = KafkaAdminClient(bootstrap_servers=brokers.servers)
    try:
        admin.delete_records({TopicPartition(topic.under(brokers.prefix), 0): before})
    finally:
        admin.close()


@pytest.mark.parametrize("topic", [Topic.LINES, Topic.POLLS])
@pytest.mark.parametrize("part", [0.4, 1.0])
def test_a_recorded_capture_that_is_not_all_there_any_more_is_never_judged_as_whole(
    each: Fleet, bootstrap: str, prefix: str, topic: Topic, part: float
) -> None:
    brokers = brokers_of(bootstrap, {PREFIX: prefix})
    each.ship_once(RUN)
    last = 0 if topic is Topic.POLLS else 1
    count = int(part * (ends(brokers, topic) - last))
    remove(brokers, topic, count)
    (flow,) = each.flow()
    each.until(lambda: any(orjson.loads(line)["final"] for line in flow.lines() if b'"verdict"' in line), within=90)
    assert f"the brokers removed {count} messages from 0 on before they were read" in flow.said
    final = orjson.loads(flow.lines()[-1])
    whole = orjson.loads(by_job(replay_of(RUN)).popitem()[1][-1])
    assert whole["verdict"] == "NO-KILL"
    missing = [gap["why"] for gate in final["gates"].values() for gap in gate["missing"]]
    assert any("never came" in why for why in missing), missing
    assert final["verdict"] == "ERROR" or (topic is Topic.POLLS and part < 1)
    assert flow.stop() == 0


def test_verdicts_that_the_brokers_lost_while_a_flow_runs_are_said_again(
    each: Fleet, bootstrap: str, prefix: str
) -> None:
    brokers = brokers_of(bootstrap, {PREFIX: prefix})
    (flow,) = each.flow()
    each.ship_once(RUN)
    each.until(lambda: any(b'"final":true' in line for line in flow.lines()))
    admin = KafkaAdminClient(bootstrap_servers=brokers.servers)
    admin.delete_topics([Topic.VERDICTS.under(prefix)])
    admin.close()
    each.topics(1)
    each.consume()
    each.ship_once(OTHER)
    expected = replay_of(RUN, OTHER)
    each.until_consumed(expected)
    assert by_job(each.consumed()) == by_job(expected)
    assert "the brokers lost the verdicts that stood there; all is read again" in flow.said
