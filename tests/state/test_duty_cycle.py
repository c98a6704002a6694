"""What attempts spend their time on."""

import msgspec
import pytest

from state.trackers.duty_cycle import DutyCycleTracker, DutyCycleView, spread_of
from tests.builders import case_after
from tests.state.rollout_cases import SLOT, ended, many, running, started, timed


def duty(*observations: object) -> DutyCycleView:
    view: DutyCycleView = case_after(*running(), *observations).duty_cycle
    return view


def test_shares_are_parts_of_each_trial_and_idle_is_the_rest() -> None:
    view = duty(*many(10, 1800, 30, reward=1.0, timing=timed(100, 4, 60, 16, 2, 8)))
    assert view.trials == 10
    medians = {name: spread.median for name, spread in view.shares.items()}
    assert medians == pytest.approx({"llm": 0.6, "tool": 0.16, "lifecycle": 0.06, "verifier": 0.08, "idle": 0.1})
    assert view.setup_seconds is not None
    assert view.setup_seconds.median == 4


def test_a_part_that_no_trial_tells_has_no_share_and_leaves_idle_unknown() -> None:
    view = duty(ended(1800, "a__1", reward=1.0, timing=timed(100, 4, None, None, 2, 8)))  # type: ignore[arg-type]
    assert set(view.shares) == {"lifecycle", "verifier"}


def test_no_timings_is_no_record() -> None:
    assert duty(ended(1800, "a__1", reward=1.0)).record() is None


def test_a_trial_that_lies_in_two_homes_counts_once() -> None:
    pair = (started(1700, "a__1"), ended(1800, "a__1", reward=1.0, timing=timed(100, 4, 60, 16, 2, 8)))
    assert duty(*pair, *pair).trials == 1


def test_provisioning_in_the_first_slot_is_no_churn() -> None:
    slow = many(10, 1800, 1, reward=1.0, timing=timed(300, 40, 200, 20, 2, 8))
    quick = many(10, 1800 + 2 * SLOT, 30, reward=1.0, timing=timed(300, 3, 240, 30, 2, 8))
    assert duty(*slow, *quick).churn == ""
    later = many(10, 1800 + 4 * SLOT, 30, reward=1.0, timing=timed(300, 40, 200, 20, 2, 8))
    assert "setup takes" in duty(*slow, *later).churn


def test_the_first_slot_is_that_of_the_first_start_though_its_trial_ends_last() -> None:
    slow = timed(300, 40, 200, 20, 2, 8)
    early = many(10, 1800 + 300, 1, reward=1.0, timing=slow)
    assert duty(*early).churn == ""
    waiting = started(1800 - 2 * SLOT, "first__1")
    assert "setup takes 40 s" in duty(waiting, *early).churn
    late = ended(1800 + SLOT, "first__1", reward=1.0, timing=timed(1800, 40, 1500, 20, 2, 8))
    assert "setup takes 40 s" in duty(*early, late).churn


def test_only_the_newest_200_count_and_races_are_counted() -> None:
    race = msgspec.structs.replace(timed(100, 4, 60, 16, 2, 8), release_race=True)
    view = duty(*many(250, 1800, 10, reward=1.0, timing=race))
    assert (view.trials, view.release_races) == (200, 200)


def test_spread_interpolates_and_knows_one_value() -> None:
    assert spread_of([None]) is None
    one = spread_of([3.0])
    assert one is not None
    assert (one.median, one.p90, one.max) == (3.0, 3.0, 3.0)
    many_values = spread_of([float(n) for n in range(11)])
    assert many_values is not None
    assert (many_values.median, many_values.p10, many_values.p90) == (5.0, 1.0, 9.0)


def test_memory_survives_a_snapshot_and_stays_small() -> None:
    tracker = DutyCycleTracker()
    for seen in many(250, 1800, 10, reward=1.0, timing=timed(100, 4, 60, 16, 2, 8)):
        tracker.trial_ended(seen)
    assert DutyCycleTracker.restore(tracker.snapshot()) == tracker
    assert len(tracker.snapshot()) < 64 * 1024
