"""The window of training steps."""

import math
import random

import pytest

from extractors.metrics import MetricsUnreadable, StepMetrics
from state.trackers.dynamics import DynamicsTracker, DynamicsView
from tests.builders import case_after, saw
from tests.state.rollout_cases import HEALTHY, running, step


def dynamics(*observations: object) -> DynamicsView:
    view: DynamicsView = case_after(*running(), *observations).dynamics
    return view


def test_a_step_in_two_homes_counts_once_and_evaluation_not_at_all() -> None:
    evaluated = saw(2500, StepMetrics(2, "eval", {"eval/all/avg_score": 0.5}))
    view = dynamics(step(1), step(1, 1001), step(2), evaluated)
    assert [row.step for row in view.window] == [1, 2]


def test_the_window_holds_the_newest_thirty_steps() -> None:
    view = dynamics(*(step(n) for n in range(1, 41)))
    assert (view.steps, len(view.window), view.window[0].step) == (40, 30, 11)


def test_the_table_counts_inner_phases_once_and_says_the_rest() -> None:
    view = dynamics(*(step(n) for n in range(1, 5)))
    outer = [row.phase for row in view.table.outer]
    assert outer == ["wait_for_generation_buffer", "run_training", "sync_weights"]
    assert (view.table.step_seconds, view.table.unattributed_seconds) == (1000.0, 10.0)


def test_a_phase_inside_one_that_is_not_timed_is_part_of_the_next_that_is() -> None:
    timings = {"timing/step": 400.0, "timing/run_training": 200.0, "timing/policy_train": 150.0}
    view = dynamics(saw(1000, StepMetrics(1, "train", timings)))
    assert [row.phase for row in view.table.outer] == ["run_training"]
    assert view.table.unattributed_seconds == 200.0


@pytest.mark.parametrize("seed", range(20))
def test_the_table_adds_up_to_the_step_time(seed: int) -> None:
    rng = random.Random(seed)
    phases = ("generate", "run_training", "policy_train", "sync_weights", "save_checkpoints", "eval", "some_new_phase")
    said = [
        {"timing/step": rng.uniform(50, 400)} | {f"timing/{name}": rng.uniform(0, 120) for name in phases}
        for _ in range(12)
    ]
    table = dynamics(*(saw(1000 + n, StepMetrics(n, "train", values)) for n, values in enumerate(said))).table
    outer = sum(row.seconds for row in table.outer)
    assert table.step_seconds is not None
    assert outer + table.unattributed_seconds - table.overlap_seconds == pytest.approx(table.step_seconds)
    assert table.overlap_seconds > 0


def test_phases_that_run_beside_one_another_are_told_as_overlap() -> None:
    timings = {"timing/step": 300.0, "timing/generate": 280.0, "timing/run_training": 200.0}
    table = dynamics(saw(1000, StepMetrics(1, "train", timings))).table
    assert (table.unattributed_seconds, table.overlap_seconds) == (0.0, 180.0)


def test_prefixed_keys_of_other_sinks_are_found() -> None:
    prefixed = {f"train/{key}": value for key, value in HEALTHY.items()}
    row = dynamics(saw(1000, StepMetrics(1, "train", prefixed))).window[0]
    assert row.measures["grad_norm"] == HEALTHY["policy/raw_grad_norm"]
    assert row.seconds["step"] == 1000.0


def test_non_finite_values_are_named_and_never_measured() -> None:
    row = dynamics(step(1, loss=math.nan, grad_norm=math.inf)).window[0]
    assert row.non_finite == ("loss", "grad_norm")
    assert not {"loss", "grad_norm"} & set(row.measures)


def test_a_torn_record_is_counted_until_another_home_has_it_whole() -> None:
    torn = saw(1000, MetricsUnreadable(1, "the JSON object is cut or torn"))
    assert dynamics(torn, torn).unreadable == 1
    assert dynamics(torn, step(1, 1001)).unreadable == 0
    assert dynamics(step(1, 999), torn).unreadable == 0


def test_memory_survives_a_snapshot_and_stays_small() -> None:
    tracker = DynamicsTracker()
    for number in range(1, 60):
        tracker.step_metrics(step(number, loss=math.nan))
    assert DynamicsTracker.restore(tracker.snapshot()) == tracker
    assert len(tracker.snapshot()) < 64 * 1024
