"""What gate D tells of its window: measures, leading signals, and a phase table whose words add up."""

import random
import re
from typing import Any

import pytest

from extractors.metrics import StepMetrics
from state.gates.dynamics_words import adding_up, leading_said, measures_said, table_said
from state.trackers.dynamics import DynamicsView
from tests.builders import case_after, saw
from tests.state.rollout_cases import running

LAG = "inference_bridge/event_loop_lag_seconds/p95"


def window(*steps: dict[str, float]) -> DynamicsView:
    """The view after steps with these metrics."""
    seen = [saw(1000.0 * n, StepMetrics(n, "train", values)) for n, values in enumerate(steps, 1)]
    view: DynamicsView = case_after(*running(), *seen).dynamics
    return view


def timed(step: float, wait: float, **more: float) -> dict[str, float]:
    """The timings of a step that waits for the buffer."""
    return {"timing/step": step, "timing/wait_for_generation_buffer": wait} | {
        f"timing/{name}": seconds for name, seconds in more.items()
    }


def seconds_said(said: str) -> tuple[int, list[int]]:
    """The step's seconds as told, and those of its rows."""
    whole, *rows = re.findall(r"(-?\d+) s", said)
    return int(whole), [int(row) for row in rows]


@pytest.mark.parametrize("seed", range(30))
def test_the_rows_as_told_add_up_to_the_step_as_told(seed: int) -> None:
    rng = random.Random(seed)
    names = ["generate", "run_training", "sync_weights", "eval", "save_checkpoints", "dump", "probe", "load"]
    steps = [
        timed(rng.uniform(60, 400), rng.uniform(0, 90), **{name: rng.uniform(0, 70) for name in names[: seed % 9]})
        for _ in range(10)
    ]
    whole, rows = seconds_said(table_said(window(*steps)))
    assert sum(rows) == whole


def test_more_phases_than_are_told_stand_in_one_row() -> None:
    names = [f"phase_{n}" for n in range(8)]
    said = table_said(window(timed(200, 40, **dict.fromkeys(names, 10.0))))
    assert "3 other phases 30 s (15%), unattributed 80 s (40%)" in said
    assert "overlap" not in said


def test_time_that_phases_share_is_taken_off_as_overlap() -> None:
    said = table_said(window(timed(300, 0, generate=280, run_training=200)))
    assert said.endswith("overlap -180 s (-60%), unattributed 0 s (0%)")


def test_whole_numbers_keep_the_sum() -> None:
    assert adding_up([2.3, 41.3, 25.0], 69) == [3, 41, 25]
    assert adding_up([0.0, 41.5, 20.5, 7.6], 70) == [0, 42, 20, 8]
    assert adding_up([0.1, 41.6, 20.7, 5.6], 68) == [0, 41, 21, 6]


def test_measures_are_told_before_and_in_the_newest_third() -> None:
    rows: list[dict[str, float]] = [
        {"reward/avg_raw_reward": 0.1 * n, "reward/avg_pass_at_4": 0.5, "policy/tis/imp_ratio_mean": 1.01}
        for n in range(9)
    ]
    said = measures_said(window(*rows))
    assert "reward 0.25 to 0.7, pass rate 0.5 to 0.5, TIS importance ratio 1.01 to 1.01" in said


@pytest.mark.parametrize(
    ("early", "late", "told"),
    [
        (timed(100, 20), timed(160, 80), "the wait for the buffer grows (20 s to 80 s a step)"),
        (timed(100, 20), timed(110, 29), ""),
        (timed(1000, 4), timed(1000, 40), ""),
        ({LAG: 0.02}, {LAG: 2.4}, "the event loop of the inference bridge lags (2.4 s at p95, 0.02 s before)"),
        ({}, {LAG: 1.0}, "the event loop of the inference bridge lags (1 s at p95)"),
        ({LAG: 0.02}, {LAG: 0.9}, ""),
    ],
)
def test_leading_signals_are_told_where_they_lead(early: dict[str, Any], late: dict[str, Any], told: str) -> None:
    said = leading_said(window(*[early] * 8, *[late] * 4))
    assert said == (f"; leading signals: {told}" if told else "")
