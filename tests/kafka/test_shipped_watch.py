"""What a flow process says of brokers that don't let it in, topics that are not there, and messages that are none of
ours: one clear line each, the poison quoted, and the jobs go on.
"""

from pathlib import Path

import pytest

from dataflow.kafka import Topic
from dataflow.kafka_publisher import Outgoing, Publisher
from dataflow.kafka_settings import PASSWORD, PREFIX, PROTOCOL, USERNAME, Brokers, brokers_of
from tests.kafka.broker import USER, Broker
from tests.kafka.processes import fleet
from tests.live.test_replay_is_live import OWN
from tests.said import by_job, replay_of

RUN = OWN / "one_slot_401_burst"
STRANGE = "/ida/rl-strange-1"
LINE = b"[10:00:00] task=/ida/rl-strange-1/0 | 2026-05-04 10:00:%02d.000 | INFO     | x:y:1 - Started: 'step'\n"


def test_wrong_credentials_end_the_watch_with_one_line(
    tmp_path: Path, own_broker: Broker, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PROTOCOL, "SASL_SSL")
    monkeypatch.setenv("KAFKA_SASL_MECHANISM", "PLAIN")
    monkeypatch.setenv("KAFKA_SSL_CAFILE", str(own_broker.certificate))
    monkeypatch.setenv(USERNAME, USER)
    monkeypatch.setenv(PASSWORD, "not it")
    with fleet(tmp_path, own_broker.secure_bootstrap) as each:
        (flow,) = each.flow()
        assert flow.process is not None
        assert flow.process.wait(30) == 2
        assert "the credentials are refused" in flow.said
        assert len(flow.said.splitlines()) == 1


def test_topics_that_are_not_there_are_told_and_waited_for(tmp_path: Path, bootstrap: str, prefix: str) -> None:
    with fleet(tmp_path, bootstrap) as each:
        (flow,) = each.flow()
        each.until(lambda: f"topic {prefix}.lines is not there; `wedgewatch topics create` makes it" in flow.said)
        each.topics(2)
        each.ship_once(RUN)
        each.until(lambda: len(flow.lines()) > 1)
        assert flow.stop() == 0


def test_a_share_beyond_the_partitions_is_told_once(tmp_path: Path, bootstrap: str, prefix: str) -> None:
    with fleet(tmp_path, bootstrap) as each:
        each.topics(1)
        _, idle = each.flow(2)
        each.until(lambda: "has no partition" in idle.said)
        assert idle.said.count("has no partition") == 1


def test_poison_is_quoted_and_passed_over_and_the_jobs_beside_it_go_on(
    tmp_path: Path, bootstrap: str, prefix: str
) -> None:
    expected = by_job(replay_of(RUN))
    brokers = brokers_of(bootstrap, {PREFIX: prefix})
    with fleet(tmp_path, bootstrap) as each:
        each.topics(2)
        each.consume()
        (flow,) = each.flow()
        poison(brokers)
        each.ship_once(RUN)
        each.until_consumed([line for lines in expected.values() for line in lines])
        said = flow.said
        assert "written by a newer version (wedgewatch/9, of which wedgewatch/1 is known); update this one" in said
        assert "it names no job (it has no key)" in said
        assert "its zstd data is damaged" in said
        assert "no word that is known here" in said
        assert "its path '../../etc/passwd' is none inside a capture" in said
        assert f"{prefix}.lines[" in said
        assert "passed over: what the newer one says" in said
        assert by_job(each.consumed()) == expected
        assert flow.stop() == 0


def test_poison_amid_a_job_that_others_send_is_told_with_that_job(tmp_path: Path, bootstrap: str, prefix: str) -> None:
    """Any sender's blocks of lines will do; without ticks this machine's clock says how late it is."""
    brokers = brokers_of(bootstrap, {PREFIX: prefix})
    lines = b"".join(LINE % second for second in range(50))
    place = (("source", b"finelog.log"), ("offset", b"0"), ("line", b"1"))
    with fleet(tmp_path, bootstrap) as each:
        each.topics(2)
        (flow,) = each.flow()
        send(brokers, [(lines, place, STRANGE)])
        each.until(lambda: STRANGE.encode() in b"".join(flow.lines()))
        send(brokers, [(b"what it was", (place[0], ("offset", b"zero"), place[2]), STRANGE)])
        each.until(lambda: "what it was" in flow.said)
        assert "its header offset is no number: b'zero'; it is passed over: what it was" in flow.said
        assert flow.stop() == 0


def poison(brokers: Brokers) -> None:
    """Messages that nobody can use."""
    place = (("source", b"finelog.log"), ("offset", b"0"), ("line", b"1"))
    send(
        brokers,
        [
            (b"what the newer one says", (*place, ("schema", b"wedgewatch/9")), STRANGE),
            (b"(\xb5/\xfd not zstd", (*place, ("encoding", b"zstd")), STRANGE),
            (b'{"type":"Sing"}', (("kind", b"word"),), STRANGE),
            (b"root:x", (("source", b"../../etc/passwd"), *place[1:]), STRANGE),
            (b"nobody's", place, ""),
        ],
    )


def send(brokers: Brokers, messages: list[tuple[bytes, tuple[tuple[str, bytes], ...], str]]) -> None:
    """Puts them into the topic of lines."""
    publisher = Publisher(brokers)
    for value, headers, job in messages:
        publisher.send(Outgoing(Topic.LINES.under(brokers.prefix), job, value, headers))
    assert not publisher.settle(20).trouble
    publisher.close()
