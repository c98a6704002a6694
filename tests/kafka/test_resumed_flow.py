"""A flow process that is stopped or killed at odd moments goes on from what the engine kept, and says what an
undisturbed one says."""

import random
import time
from pathlib import Path

from tests.dataflow.disks import remount, small_disk
from tests.kafka.broker import free_ports
from tests.kafka.processes import Fleet, fleet
from tests.live.harness import SLOW, copied, differing, playing, replayed
from tests.live.test_replay_is_live import OWN, RUN
from tests.said import by_job, replay_of

SHORT = "tests.kafka.short_epochs"
TURNS = 10
RECORDED = [OWN / "one_slot_401_burst", OWN / "crash_loop_same_failure", OWN / "completed_run"]


def disturbed(each: Fleet, chance: random.Random, turns: int) -> None:
    """Ends the flow again and again, in order or not, after it has kept something of its state."""
    (flow,) = each.flows
    for number in range(turns):
        time.sleep(chance.uniform(1.5, 3.0) * SLOW)
        if number % 3:
            flow.kill()
        else:
            each.until(lambda: flow.minds)
            assert flow.stop() == 0, flow.said
        flow.start()


def test_a_flow_that_goes_on_from_its_snapshots_says_of_live_jobs_what_a_replay_says(
    tmp_path: Path, bootstrap: str, prefix: str
) -> None:
    first, second = RUN, copied(RUN, tmp_path / "second", "/sam/rl-second-20260320")
    one, two = tmp_path / "one", tmp_path / "two"
    for target in (one, two):
        target.mkdir()
    with fleet(tmp_path, bootstrap, tmp_path / "clock", SHORT) as each:
        each.topics(3)
        each.consume()
        each.flow()
        each.ship(one, two)
        with playing(first, one, tmp_path / "clock", "--torn", "--rate", "80", also=(second, two)):
            disturbed(each, random.Random(11), TURNS)
            each.until_played(first)
        expected = by_job(replayed(one, tmp_path).lines) | by_job(replayed(two, tmp_path).lines)
        each.until_consumed([line for lines in expected.values() for line in lines])
        said = by_job(each.consumed())
        for job, lines in expected.items():
            ends = lines[-1]
            assert differing(said[job][: said[job].index(ends) + 1], lines) == "", job


def test_a_flow_that_goes_on_amid_replays_of_recorded_captures_says_of_them_what_a_replay_says(
    tmp_path: Path, bootstrap: str, prefix: str
) -> None:
    with fleet(tmp_path, bootstrap, module=SHORT) as each:
        each.topics(3)
        each.consume()
        each.flow()
        chance = random.Random(12)
        for capture in RECORDED:
            each.ship_once(capture)
            disturbed(each, chance, 4)
        disturbed(each, chance, 2)
        expected = by_job([line for capture in RECORDED for line in replay_of(capture)])
        each.until_consumed([line for lines in expected.values() for line in lines])
        assert by_job(each.consumed()) == expected
        assert each.flows[0].said.count("never came") == 0


def test_a_flow_that_is_asked_to_end_before_it_reached_any_broker_ends(tmp_path: Path, prefix: str) -> None:
    (nobody,) = free_ports(1)
    with fleet(tmp_path, f"127.0.0.1:{nobody}") as each:
        (flow,) = each.flow()
        each.until(lambda: flow.minds)
        assert flow.stop() == 0
        assert len(flow.said.splitlines()) == 1


def test_a_disk_that_is_too_small_for_a_recorded_capture_is_waited_for(
    tmp_path: Path, bootstrap: str, prefix: str
) -> None:
    spool = tmp_path / "store-1" / "watch" / "spool"
    spool.parent.mkdir(parents=True)
    with small_disk(spool, 64), fleet(tmp_path, bootstrap, module=SHORT) as each:
        each.topics(1)
        (flow,) = each.flow()
        each.ship_once(RECORDED[-1])
        each.until(lambda: "No space left on device; it is tried again" in flow.said)
        flow.kill()
        flow.start()
        each.until(lambda: flow.said.count("No space left on device; it is tried again") == 2)
        remount(spool, "size=64m")
        expected = replay_of(RECORDED[-1])
        each.until(lambda: flow.lines() == expected)
        assert flow.stop() == 0
