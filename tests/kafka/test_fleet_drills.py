"""A fleet whose processes are killed and whose brokers go away: no record is lost, repeats have the same id, and what
could not be heard meanwhile is evidence. Nobody helps.
"""

import random
import time
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.kafka.broker import Broker
from tests.kafka.processes import Fleet, fleet
from tests.live.harness import SLOW, copied, differing, playing, replayed
from tests.live.test_replay_is_live import RUN
from tests.said import by_job

KILLS = 20
OUTAGE = 30.0
"""Seconds."""


@pytest.fixture
def pair(tmp_path: Path) -> tuple[list[Path], list[Path]]:
    """Two recorded captures, and the folders in which they are to grow."""
    recorded = [RUN, copied(RUN, tmp_path / "second", "/sam/rl-second-20260320")]
    targets = [tmp_path / "one", tmp_path / "two"]
    for each in targets:
        each.mkdir()
    return recorded, targets


def expected_of(targets: list[Path], folder: Path) -> dict[str, list[bytes]]:
    """What replays of the finished captures say before their ends, by job."""
    found: dict[str, list[bytes]] = {}
    for target in targets:
        found |= by_job(replayed(target, folder).lines)
    return found


def missing(said: list[bytes], expected: list[bytes]) -> list[bytes]:
    """What of the expected records does not stand among those that were said, in their order."""
    rest = iter(said)
    return [line for line in expected if line not in rest]


def test_twenty_kills_of_each_process_lose_no_record_and_repeat_none_otherwise(
    tmp_path: Path, bootstrap: str, prefix: str, pair: tuple[list[Path], list[Path]]
) -> None:
    (first, second), (one, two) = pair
    chance = random.Random(6)
    with fleet(tmp_path, bootstrap, tmp_path / "clock") as each:
        each.topics(3)
        consumer = each.consume()
        flows = each.flow(2)
        shipper = each.ship(one, two)
        victims = [shipper, consumer, flows]
        with playing(first, one, each.clock, "--torn", "--rate", "40", also=(second, two)):
            for number in range(3 * KILLS):
                victim = victims[number % 3]
                chosen = flows[number % 2] if victim is flows else victim
                time.sleep(chance.uniform(0.1, 1.2) * SLOW)
                chosen.kill()
                chosen.start()
            each.until_played(first)
        expected = expected_of([one, two], tmp_path)
        each.until_consumed([line for lines in expected.values() for line in lines], within=120)
        said = by_job(each.consumed())
        for job, lines in expected.items():
            ends = lines[-1]
            assert differing(said[job][: said[job].index(ends) + 1], lines) == "", job
        assert shipper.killed == consumer.killed == KILLS
        assert sum(flow.killed for flow in flows) == KILLS


def errors_of(lines: list[bytes]) -> list[dict[str, Any]]:
    """The verdicts among records that can't be given."""
    records = [orjson.loads(line) for line in lines]
    return [each for each in records if each["kind"] == "verdict" and each["verdict"] == "ERROR"]


def nothing_is_lost(each: Fleet, targets: list[Path]) -> dict[str, list[bytes]]:
    """Waits until all records of the replays were consumed, and gives what was said beside them, by job."""
    expected = expected_of(targets, each.folder)
    each.until_consumed([line for lines in expected.values() for line in lines], within=120)
    said = by_job(each.consumed())
    for job, lines in expected.items():
        assert missing(said[job], lines) == [], job
    return {job: [line for line in said[job] if line not in lines] for job, lines in expected.items()}


def test_brokers_that_are_stopped_for_half_a_minute_are_evidence_meanwhile_and_nothing_is_lost(
    tmp_path: Path, own: Broker, prefix: str, pair: tuple[list[Path], list[Path]]
) -> None:
    (first, second), (one, two) = pair
    with fleet(tmp_path, own.bootstrap, tmp_path / "clock") as each:
        each.topics(3)
        each.consume()
        (flow,) = each.flow()
        shipper = each.ship(one, two)
        with playing(first, one, each.clock, "--torn", "--rate", "80", also=(second, two)):
            each.until(lambda: len(each.consumed()) > 8)
            own.stop()
            begun = time.monotonic()
            each.until(lambda: len({error["job"] for error in errors_of(flow.lines())}) == 2, within=25)
            time.sleep(max(0.0, OUTAGE - (time.monotonic() - begun)))
            own.start()
            each.until_played(first)
        beside = nothing_is_lost(each, [one, two])
        for job, lines in beside.items():
            error = errors_of(lines)[0]
            gap = error["gates"]["A"]["missing"][0]
            assert gap["evidence"] == "lines and polls of the job", job
            assert gap["command"] == ["wedgewatch", "watch", "--brokers", own.bootstrap]
            assert "connection refused" in gap["output"]
            assert [line for line in lines if b"the job is heard again" in line], job
        assert flow.said.count("nothing is heard until then") == 1, flow.said
        assert shipper.said.count("what is new waits") == 1, shipper.said
        assert "heard again" in flow.said
        assert "reached again" in shipper.said


@pytest.mark.parametrize("emptied", [False, True])
def test_brokers_that_are_killed_and_come_back_with_their_data_or_without_lose_no_record(
    tmp_path: Path, own: Broker, prefix: str, pair: tuple[list[Path], list[Path]], emptied: bool
) -> None:
    (first, second), (one, two) = pair
    with fleet(tmp_path, own.bootstrap, tmp_path / "clock") as each:
        each.topics(3)
        each.consume()
        each.flow(2)
        each.ship(one, two)
        with playing(first, one, each.clock, "--torn", "--rate", "80", also=(second, two)):
            each.until(lambda: len(each.consumed()) > 8)
            own.kill()
            if emptied:
                own.empty()
            own.start()
            if emptied:
                each.topics(3)
            each.until_played(first)
        nothing_is_lost(each, [one, two])
