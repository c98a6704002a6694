"""`wedgewatch consume` follows the verdict topic of a real broker and prints; it never acts."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner

from dataflow.cli import main
from dataflow.envelope import HEADERS, enveloped
from dataflow.kafka import Topic
from dataflow.kafka_publisher import Outgoing, Publisher
from dataflow.kafka_settings import Brokers
from dataflow.verdict_topic import VerdictTopic
from state.report import encode, identified
from tests.kafka.broker import Broker, free_ports
from tests.kafka.hearing import PATIENCE
from tests.kafka.records import Record, gate, verdict
from tests.kafka.test_outages import made

ROOT = Path(__file__).resolve().parents[2]
JOB = "/mira/rl-teal-7"


class Consumer:
    """A `consume` that runs, and what it says."""

    def __init__(self, folder: Path, bootstrap: str, *options: str) -> None:
        self.out, self.err = folder / "out", folder / "err"
        command = [sys.executable, "-m", "dataflow.cli", "consume", "--brokers", bootstrap, *options]
        with self.out.open("ab") as out, self.err.open("ab") as err:
            self.process = subprocess.Popen(command, stdout=out, stderr=err, cwd=ROOT, env={**os.environ})

    @property
    def lines(self) -> list[bytes]:
        return self.out.read_bytes().splitlines()

    @property
    def said(self) -> str:
        return self.err.read_text()

    def until(self, wanted: Callable[[], object]) -> None:
        end = time.monotonic() + PATIENCE
        while not wanted():
            assert time.monotonic() < end, f"never came: {self.said} {self.lines}"
            time.sleep(0.05)

    def code(self) -> int:
        return self.process.wait(PATIENCE)


@contextmanager
def consuming(folder: Path, bootstrap: str, *options: str) -> Iterator[Consumer]:
    consumer = Consumer(folder, bootstrap, *options)
    try:
        yield consumer
    finally:
        consumer.process.kill()
        consumer.process.wait()


def put(brokers: Brokers, *values: bytes | Record) -> None:
    publisher = Publisher(brokers)
    for value in values:
        body = value if isinstance(value, bytes) else enveloped(value)
        publisher.send(Outgoing(Topic.VERDICTS.under(brokers.prefix), JOB, body, HEADERS))
    publisher.settle(PATIENCE)
    publisher.close()


def test_records_are_printed_once_with_their_bytes_and_a_signal_ends_it_well(brokers: Brokers, tmp_path: Path) -> None:
    first, second = gate(JOB, 1), verdict(JOB, 1)
    put(brokers, first, second, first, second, second)
    with consuming(tmp_path, brokers.name, "--from-beginning") as consumer:
        consumer.until(lambda: len(consumer.lines) == 2)
        put(brokers, second, verdict(JOB, 2))
        consumer.until(lambda: len(consumer.lines) == 3)
        consumer.process.send_signal(signal.SIGTERM)
        assert consumer.code() == 0
    assert consumer.said == "wedgewatch: SIGTERM: stopping\n"
    assert consumer.lines == [encode(first), encode(second), encode(verdict(JOB, 2))]


def test_records_of_a_replay_come_out_as_they_were_printed(brokers: Brokers, tmp_path: Path) -> None:
    capture = ROOT / "tests" / "captures" / "gpu_poll_failed"
    printed = CliRunner().invoke(main, ["replay", str(capture)]).stdout_bytes.splitlines()
    topic = VerdictTopic(brokers, print)
    for line in printed:
        topic.write(orjson.loads(line))
    topic.close()
    with consuming(tmp_path, brokers.name, "--from-beginning") as consumer:
        consumer.until(lambda: len(consumer.lines) == len(printed))
    assert consumer.lines == printed


def test_poison_is_told_and_quoted_and_what_comes_after_it_is_printed(brokers: Brokers, tmp_path: Path) -> None:
    newer = identified({**verdict(JOB, 1), "schema": "wedgewatch/2"})
    put(
        brokers, b"\x1b[31mnot json", b'{"job": "bare"}', newer, enveloped(verdict(JOB, 2)).replace(b'"id"', b'"ID"', 1)
    )
    put(brokers, verdict(JOB, 3))
    with consuming(tmp_path, brokers.name, "--from-beginning") as consumer:
        consumer.until(lambda: len(consumer.lines) == 1)
    assert consumer.lines == [encode(verdict(JOB, 3))]
    said = consumer.said.splitlines()
    assert len(said) == 4
    assert all(f"{brokers.prefix}.verdicts[" in line and "passed over: " in line for line in said)
    assert "no JSON" in said[0]
    assert said[0].endswith("passed over: not json")
    assert "no CloudEvents envelope (it has no specversion)" in said[1]
    assert said[1].endswith('passed over: {"job": "bare"}')
    assert "written by a newer version (wedgewatch/2, of which wedgewatch/1 is known); update this one" in said[2]
    assert "its envelope's id or subject is not its record's" in said[3]


def test_kill_ends_it_with_one_where_that_is_asked_for(brokers: Brokers, tmp_path: Path) -> None:
    put(brokers, verdict(JOB, 1), verdict(JOB, 2, "KILL"), verdict(JOB, 3, "KILL"))
    options = ("--from-beginning", "--exit-on-kill", "--format", "text")
    with consuming(tmp_path, brokers.name, *options) as consumer:
        assert consumer.code() == 1
    assert [line.split() for line in consumer.lines][1][2:] == [b"KILL", b"(high)"]
    assert consumer.said == f"wedgewatch: {JOB}: its verdict turned KILL\n"


def test_killed_consumer_goes_on_where_its_state_says(brokers: Brokers, tmp_path: Path) -> None:
    state = tmp_path / "places"
    put(brokers, *(verdict(JOB, second) for second in range(5)))
    with consuming(tmp_path, brokers.name, "--from-beginning", "--state", str(state)) as consumer:
        consumer.until(lambda: len(consumer.lines) == 5 and state.exists())
        consumer.until(lambda: b"5]" in state.read_bytes())
        consumer.process.kill()
        consumer.process.wait()
    put(brokers, *(verdict(JOB, second) for second in range(5, 8)))
    with consuming(tmp_path, brokers.name, "--state", str(state)) as consumer:
        consumer.until(lambda: len(consumer.lines) >= 8)
    assert [orjson.loads(line)["id"] for line in consumer.lines] == [verdict(JOB, second)["id"] for second in range(8)]


def test_outage_is_told_once_and_the_consumer_goes_on_after_it(own: Broker, prefix: str, tmp_path: Path) -> None:
    brokers = made(own, prefix)
    put(brokers, verdict(JOB, 1))
    with consuming(tmp_path, brokers.name, "--from-beginning") as consumer:
        consumer.until(lambda: len(consumer.lines) == 1)
        own.freeze()
        consumer.until(lambda: "no answer" in consumer.said)
        own.thaw()
        consumer.until(lambda: "heard again" in consumer.said)
        put(brokers, verdict(JOB, 2))
        consumer.until(lambda: len(consumer.lines) == 2)
    told = consumer.said.splitlines()
    assert told == [
        f"wedgewatch: {own.bootstrap}: no answer; it is tried again, and nothing is heard until then",
        f"wedgewatch: {own.bootstrap}: heard again",
    ]


def test_brokers_and_topics_that_come_later_are_waited_for(own: Broker, prefix: str, tmp_path: Path) -> None:
    with consuming(tmp_path, own.bootstrap, "--from-beginning") as consumer:
        consumer.until(lambda: f"topic {prefix}.verdicts is not there" in consumer.said)
        put(made(own, prefix), verdict(JOB, 1))
        consumer.until(lambda: len(consumer.lines) == 1)


@pytest.mark.parametrize("variable", ["KAFKA_SASL_PASSWORD", "KAFKA_SASL_PASWORD"])
def test_wrong_credentials_end_it_at_the_start(
    own_broker: Broker, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv("KAFKA_SECURITY_PROTOCOL", "SASL_SSL")
    monkeypatch.setenv("KAFKA_SASL_MECHANISM", "PLAIN")
    monkeypatch.setenv("KAFKA_SASL_USERNAME", "mara")
    monkeypatch.setenv("KAFKA_SSL_CAFILE", str(own_broker.certificate))
    monkeypatch.setenv(variable, "guess")
    with consuming(tmp_path, own_broker.secure_bootstrap) as consumer:
        assert consumer.code() == 2
    known = "the credentials are refused" if variable == "KAFKA_SASL_PASSWORD" else "is KAFKA_SASL_PASSWORD meant?"
    assert known in consumer.said.splitlines()[-1]


def test_brokers_that_are_not_there_at_the_start_are_told_and_waited_for(prefix: str, tmp_path: Path) -> None:
    nowhere = f"127.0.0.1:{free_ports(1)[0]}"
    with consuming(tmp_path, nowhere) as consumer:
        consumer.until(lambda: f"{nowhere}: nothing listens there (connection refused)" in consumer.said)
        consumer.process.send_signal(signal.SIGINT)
        assert consumer.code() == 0
