"""What `wedgewatch ship` puts on the topics of a real broker: all, in order, whatever dies meanwhile."""

import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from dataflow.cli import main
from dataflow.kafka import Topic
from dataflow.kafka_settings import PREFIX, Brokers, brokers_of
from dataflow.kafka_topics import topics_of
from dataflow.wire import Arrived, PollLine
from dataflow.wire_words import Begun, Ended, Stopped, Tick, Told
from extractors.record import Block
from tests.dataflow.live_feeds import bars
from tests.dataflow.shipments import JOB, Sent, laid_out, mirrored
from tests.dataflow.tails import append
from tests.dataflow.test_ship_recorded import POLL, capture, write
from tests.kafka.broker import Broker
from tests.kafka.shipper import Heard, Shipper
from tests.kafka.test_access import access
from tests.kafka.test_outages import made

__all__ = ["capture"]
FACTS = f'[job]\nid = "{JOB}"\n'.encode()


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write(tmp_path / "run", {"job.toml": FACTS, "finelog.log": bars(0, 5)})


@pytest.fixture
def shippers() -> Iterator[list[Shipper]]:
    """Those that a test starts; none outlives it."""
    started: list[Shipper] = []
    yield started
    for each in started:
        each.kill()


def files(heard: list[Arrived]) -> dict[tuple[str, int], bytes]:
    return laid_out([each.what for each in heard])


def by_place(heard: list[Arrived]) -> list[Sent]:
    """What a recorded capture's files are made of: the two topics have no common order."""
    return sorted((each.what for each in heard), key=lambda each: getattr(each, "offset", 0))


def log(heard: list[Arrived]) -> bytes:
    return files(heard).get(("finelog.log", 0), b"")


def test_recorded_capture_arrives_whole_and_in_order(brokers: Brokers, capture: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["ship", "--brokers", brokers.name, "--host", "node-4", "--once", str(capture)])
    assert done.exit_code == 0, done.stderr
    assert "logs/finelog.log.3: a link that leaves the capture: not followed" in done.stderr
    heard = Heard(brokers).until(lambda arrived: any(isinstance(each.what, Ended) for each in arrived))
    heard.poll(1).close()
    lines = [each.what for each in heard.arrived if not isinstance(each.what, PollLine)]
    assert isinstance(lines[0], Begun)
    assert lines[0].recorded
    ended = lines[-1]
    assert isinstance(ended, Ended)
    mirror = mirrored(by_place(heard.arrived), ended.files, tmp_path / "mirror")
    assert {name: (mirror / name).read_bytes() for name in ended.files} == {
        name: (capture / name).read_bytes() for name in ended.files
    }
    assert {(each.job, each.host) for each in heard.arrived} == {(JOB, "node-4")}
    assert done.stdout == f"{JOB}: {len(ended.files)} files, {sum(ended.files.values())} bytes\n"


def test_growing_capture_arrives_as_it_grows_and_the_end_is_said(
    brokers: Brokers, run: Path, tmp_path: Path, shippers: list[Shipper]
) -> None:
    shipper = Shipper(tmp_path, brokers.name, run)
    shippers.append(shipper)
    heard = Heard(brokers).until(lambda arrived: log(arrived) == bars(0, 5))
    append(run / "finelog.log", bars(5, 9_000))
    write(run, {"polls/state.jsonl": POLL % 3 + b"\n"})
    heard.until(lambda arrived: log(arrived) == bars(0, 9_005))
    heard.until(lambda arrived: files(arrived).get(("polls/state.jsonl", 0)) == POLL % 3 + b"\n")
    code, seconds = shipper.stop()
    assert code == 0, shipper.said
    assert seconds < 2
    heard.until(lambda arrived: isinstance(arrived[-1].what, Stopped)).close()
    assert any(isinstance(each.what, Tick) for each in heard.arrived)
    assert shipper.said == "wedgewatch: SIGTERM: stopping; the next start goes on from here\n"


def test_shipper_that_is_killed_again_and_again_loses_nothing(
    brokers: Brokers, run: Path, tmp_path: Path, shippers: list[Shipper]
) -> None:
    chance, written = random.Random(5), 5
    shipper = Shipper(tmp_path, brokers.name, run)
    shippers.append(shipper)
    heard = Heard(brokers)
    for _ in range(8):
        until = time.monotonic() + chance.uniform(0.6, 1.6)
        while time.monotonic() < until:
            count = chance.randrange(3_000)
            append(run / "finelog.log", bars(written, count))
            written += count
            time.sleep(0.05)
        shipper.kill()
        shipper.start()
    heard.until(lambda arrived: len(log(arrived)) >= len(bars(0, written)))
    shipper.stop()
    heard.close()
    assert log(heard.arrived) == bars(0, written)
    assert len({each.session for each in heard.arrived}) == 1, "it goes on; it does not begin anew"


def test_broker_that_is_killed_is_told_and_waited_for_and_nothing_is_lost(
    own: Broker, prefix: str, run: Path, tmp_path: Path, shippers: list[Shipper]
) -> None:
    brokers = made(own, prefix)
    shipper = Shipper(tmp_path, own.bootstrap, run)
    shippers.append(shipper)
    heard = Heard(brokers).until(lambda arrived: log(arrived) == bars(0, 5))
    own.kill()
    append(run / "finelog.log", bars(5, 300))
    shipper.until(lambda: "connection refused" in shipper.said)
    append(run / "finelog.log", bars(305, 300))
    own.start()
    heard.until(lambda arrived: log(arrived) == bars(0, 605)).close()
    shipper.until(lambda: "reached again" in shipper.said)
    assert shipper.said.count("connection refused") == 1
    assert shipper.stop()[0] == 0
    assert {each.what.anew for each in heard.arrived if isinstance(each.what, Begun)} == {0}


@pytest.mark.parametrize("alive", [True, False])
def test_broker_that_comes_back_empty_gets_all_anew(
    own: Broker, prefix: str, run: Path, tmp_path: Path, shippers: list[Shipper], alive: bool
) -> None:
    made(own, prefix)
    shipper = Shipper(tmp_path, own.bootstrap, run)
    shippers.append(shipper)
    before = Heard(brokers_of(own.bootstrap, {PREFIX: prefix})).until(lambda arrived: log(arrived) == bars(0, 5))
    before.close()
    if not alive:
        assert shipper.stop()[0] == 0
    own.kill()
    own.empty()
    append(run / "finelog.log", bars(5, 300))
    own.start()
    brokers = made(own, prefix)
    if not alive:
        shipper.start()
    heard = Heard(brokers).until(lambda arrived: log(arrived) == bars(0, 305))
    heard.close()
    begun = heard.arrived[0]
    assert isinstance(begun.what, Begun), "nothing came before it"
    assert begun.what.anew == 1
    assert begun.session == before.arrived[0].session
    assert "all is sent anew" in shipper.said


def test_what_is_too_large_for_the_topic_comes_in_smaller_pieces(
    bootstrap: str, prefix: str, tmp_path: Path, shippers: list[Shipper]
) -> None:
    brokers = brokers_of(bootstrap, {PREFIX: prefix})
    narrow = {"num_partitions": 1, "replication_factor": 1, "configs": {"max.message.bytes": "20000"}}
    with topics_of(brokers) as topics:
        topics._create({topic.under(prefix): narrow for topic in Topic})
    noise = random.Random(3)
    lines = b"".join(noise.randbytes(300).replace(b"\n", b"") + b"\n" for _ in range(300))
    long = noise.randbytes(90_000).replace(b"\n", b"") + b"\n"
    poll = b'{"x":"' + noise.randbytes(60_000).hex().encode() + b'"}\n'
    content = {"job.toml": FACTS, "finelog.log": lines + long + lines, "polls/gpu.jsonl": POLL % 1 + b"\n" + poll}
    run = write(tmp_path / "run", content)
    done = CliRunner().invoke(main, ["ship", "--brokers", bootstrap, "--once", str(run)])
    assert done.exit_code == 0, done.stderr
    heard = Heard(brokers).until(lambda arrived: any(isinstance(each.what, Ended) for each in arrived)).poll(1)
    found = laid_out(by_place(heard.arrived))
    assert {name: data for (name, _), data in found.items()} == content
    before = len(heard.arrived)
    append(run / "polls" / "gpu.jsonl", POLL % 2 + b"\n")
    shipper = Shipper(tmp_path, bootstrap, run)
    shippers.append(shipper)
    heard.until(lambda arrived: any(isinstance(each.what, Tick) and not each.what.behind for each in arrived))
    heard.poll(1).close()
    live = heard.arrived[before:]
    assert shipper.stop()[0] == 0
    blocks = [each.what for each in live if isinstance(each.what, Block)]
    sent = b"".join(each.data for each in blocks)
    assert sent.startswith(lines)
    assert sent.endswith(lines)
    (cut,) = {each.what.piece for each in live if isinstance(each.what, Told)}
    assert (cut.line, cut.offset, cut.size) == (301, len(lines), len(long) - 1)
    polls = [each.what for each in live if isinstance(each.what, PollLine)]
    assert [(each.line, len(each.data)) for each in polls] == [
        (1, len(POLL % 1)),
        (2, len(poll) - 1),
        (3, len(POLL % 2)),
    ]
    assert polls[1].data.startswith(poll[:512])
    assert polls[1].data[512:].isspace()


def test_topic_that_is_not_there_is_named_and_waited_for(
    bootstrap: str, prefix: str, run: Path, tmp_path: Path, shippers: list[Shipper]
) -> None:
    shipper = Shipper(tmp_path, bootstrap, run)
    shippers.append(shipper)
    shipper.until(lambda: f"topic {prefix}.lines is not there; `wedgewatch topics create` makes it" in shipper.said)
    brokers = brokers_of(bootstrap, {PREFIX: prefix})
    with topics_of(brokers) as topics:
        topics.create(2, 1)
    Heard(brokers).until(lambda arrived: log(arrived) == bars(0, 5)).close()
    assert shipper.stop()[0] == 0


def test_user_that_is_not_let_in_is_told_so_at_once(
    own_broker: Broker, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in access(own_broker, KAFKA_SASL_PASSWORD="guess").items():
        monkeypatch.setenv(name, value)
    for once in (["--once"], []):
        words = ["ship", "--brokers", own_broker.secure_bootstrap, "--store", str(tmp_path / "store"), *once, str(run)]
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 2
        assert "the credentials are refused" in done.stderr
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_shipper_ends_within_two_seconds_though_nobody_answers(
    own: Broker, prefix: str, run: Path, tmp_path: Path, shippers: list[Shipper], number: int
) -> None:
    brokers = made(own, prefix)
    shipper = Shipper(tmp_path, own.bootstrap, run)
    shippers.append(shipper)
    heard = Heard(brokers).until(lambda arrived: log(arrived) == bars(0, 5))
    own.freeze()
    append(run / "finelog.log", bars(5, 30))
    shipper.until(lambda: "no answer" in shipper.said)
    code, seconds = shipper.stop(number)
    own.thaw()
    assert (code, seconds < 2) == (0, True), (seconds, shipper.said)
    shipper.start()
    heard.until(lambda arrived: log(arrived) == bars(0, 35)).close()


def test_second_shipper_of_the_same_state_is_told_who_has_it(
    brokers: Brokers, run: Path, tmp_path: Path, shippers: list[Shipper]
) -> None:
    shipper = Shipper(tmp_path, brokers.name, run)
    shippers.append(shipper)
    Heard(brokers).until(lambda arrived: arrived).close()
    done = CliRunner().invoke(main, ["ship", "--brokers", brokers.name, "--store", str(tmp_path / "store"), str(run)])
    assert done.exit_code == 2
    assert f"another wedgewatch (process {shipper.process.pid}) ships with this state" in done.stderr
