"""Starvation in a trainer that draws no buffer bar: by the groups that coordinators ended, or the rollout batch."""

from typing import Any

import pytest

from extractors.harbor import BatchCompleted
from extractors.host import HostMemory
from extractors.record import Observation
from extractors.trainer import RolloutBatch
from state.gate import Ruling
from state.gates.resources import RESOURCES
from state.tracker import AttemptStarted
from tests.builders import saw
from tests.state.resources_cases import all_gpus, bar, declared, fleet, job, started
from tests.state.test_gate_b_starvation import measured, metrics

GROUP = BatchCompleted(8, 8, 0, 0)
READ_ON = saw(1690, HostMemory("node", 400.0, 2000.0, "node-a"))
"""A line that shows the aggregated log to be read up to now."""
WAITING = [started(100, "step"), started(100, "wait_for_generation_buffer")]
HUNGRY = [*fleet(110, 980, 24), *fleet(1000, 1700, 1, kv=0.8, rate=90.0), *all_gpus(1500, policy=1, engine=4)]


def groups(since: float, until: float, every: float, source: str = "finelog.log") -> list[Observation]:
    """Groups that end one after the other."""
    count = int((until - since) // every) + 1
    return [saw(since + turn * every, GROUP, source=source) for turn in range(count)]


def batch(at: float, step: int, completed: bool, needed: int = 64) -> Observation:
    return saw(at, RolloutBatch(step, completed, needed, None))


def judged(*parts: Any, now: float = 1700, **said: Any) -> Ruling:
    return RESOURCES.judge(job(WAITING, HUNGRY, measured(), *parts, now=now, **said))


def test_groups_that_no_longer_end_show_that_engines_starve() -> None:
    ruling = judged(groups(110, 990, 15), READ_ON)
    assert ruling.condition == "STARVED"
    assert "ended 0 groups in the last 10 min" in ruling.reason


def test_silence_of_a_log_that_is_not_read_any_more_says_nothing() -> None:
    assert judged(groups(110, 990, 15)).condition == "UNMEASURED"


def test_groups_that_end_at_their_pace_are_fed() -> None:
    assert judged(groups(110, 1690, 15)).condition == "FED"


@pytest.mark.parametrize(("every", "condition"), [(80, "STARVED"), (45, "FED")])
def test_groups_below_a_quarter_of_their_best_pace_are_slow(every: float, condition: str) -> None:
    assert judged(groups(110, 990, 15), groups(1000, 1690, every)).condition == condition


def test_a_group_that_two_homes_tell_of_counts_once() -> None:
    own = "ray_session_logs/worker-8001.err"
    ruling = judged(groups(110, 990, 15), groups(110, 990, 15, own), groups(1010, 1690, 45, own))
    assert ruling.condition == "FED"


def test_too_few_groups_say_nothing_by_their_absence() -> None:
    ruling = judged(groups(110, 990, 120), READ_ON)
    assert (ruling.condition, ruling.missing[0].what) == ("UNMEASURED", "progress of the generation buffer")


def test_groups_of_the_life_before_say_nothing() -> None:
    before = [*groups(0, 90, 1), saw(95, AttemptStarted(1))]
    assert not job(before, WAITING, now=200).heartbeat.groups


def test_a_batch_that_outlasts_four_intervals_of_earlier_ones_is_slow() -> None:
    earlier = [batch(0, 1, False), batch(50, 1, True), batch(60, 2, False), batch(95, 2, True)]
    ruling = judged(earlier, batch(101, 3, False))
    assert ruling.condition == "STARVED"
    assert "the rollout batch of step 3 lacks groups" in ruling.reason


def test_a_batch_within_four_intervals_of_earlier_ones_says_nothing() -> None:
    earlier = [batch(0, 1, False), batch(95, 1, True, needed=10)]
    assert judged(earlier, batch(101, 2, False)).condition == "UNMEASURED"


def test_a_batch_that_two_homes_tell_of_counts_once() -> None:
    twice = [batch(at, 1, done) for at, done in ((0, False), (0.5, False), (90, True), (90.5, True))]
    shown = job(twice, batch(101, 2, False), now=200).heartbeat.batch
    assert shown.earlier_rate == pytest.approx(64 / 90)


def test_a_bar_goes_before_what_stands_in_for_it() -> None:
    rising = [bar(110 + 20 * held, held, needed=200, elapsed=20.0 * held) for held in range(79)]
    assert judged(groups(110, 990, 15), READ_ON, rising).condition == "FED"


def test_stragglers_of_a_batch_that_is_issued_at_once_are_fed() -> None:
    assert judged(groups(110, 990, 15), READ_ON, facts=declared(max_staleness_steps=0)).condition == "FED"


def test_a_trainer_that_is_not_shown_to_run_ahead_is_unmeasured() -> None:
    unsaid = declared(max_staleness_steps=None)
    quiet = [seen for seen in measured() if seen.at_us != metrics(90, 2, 300, 900).at_us]
    ruling = RESOURCES.judge(job(WAITING, HUNGRY, quiet, groups(110, 990, 15), READ_ON, now=1700, facts=unsaid))
    assert ruling.condition == "UNMEASURED"
