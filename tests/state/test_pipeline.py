"""The pipeline tracker: stacks to compare, coordinator CPU of now, steps' waits."""

from typing import Any

import pytest

from extractors.metrics import StepMetrics
from extractors.polls import Thread
from state.trackers.pipeline import PipelineTracker, PipelineView, informative_frames
from state.trackers.processes import ProcessRole
from tests.builders import saw, us
from tests.state.resources_cases import finished, ps, refused, stack

COORDINATOR = "ray::RolloutCoordinator.run_batch"


def _after(*observations: Any) -> PipelineView:
    tracker = PipelineTracker()
    for seen in observations:
        tracker.FOLDS[type(seen.signal)](tracker, seen)
    return PipelineTracker.restore(tracker.snapshot()).view()


def test_main_threads_loop_is_not_the_informative_thread() -> None:
    threads = (
        Thread("MainThread", "idle", ("main_loop (worker.py:963)",)),
        Thread("a", "active", ("select (selectors.py:1)",)),
        Thread("b", "active+gil", ("forward (moe.py:88)", "step (w.py:2)")),
    )
    assert informative_frames(threads)[0] == "forward (moe.py:88)"
    assert informative_frames(threads[:1]) == ("main_loop (worker.py:963)",)
    assert informative_frames(()) == ()


def test_dumps_half_a_minute_apart_still_give_a_pair_a_minute_apart() -> None:
    dumps = [stack(at, "p0", 11, "ray::FSDPPolicyWorkerBase", f"f ({at})") for at in (0, 30, 60, 90)]
    pairs = _after(*dumps).pairs(ProcessRole.POLICY, us(0))
    assert [(pair[0].at_us, pair[1].at_us) for pair in pairs] == [(us(30), us(90))]


def test_dumps_from_before_the_progress_make_no_pair() -> None:
    dumps = [stack(at, "p0", 11, "ray::FSDPPolicyWorkerBase", "f") for at in (0, 90)]
    assert _after(*dumps).pairs(ProcessRole.POLICY, us(10)) == ()


def test_a_dump_without_a_title_takes_the_role_that_ps_gave_its_pid() -> None:
    view = _after(ps(0, "p0", 11, 5.0, 60.0, COORDINATOR), stack(5, "p0", 11, "python", "run_batch"))
    assert view.stacks[0].role is ProcessRole.COORDINATOR


def test_one_ps_row_is_a_lifetime_average_and_no_measurement() -> None:
    view = _after(ps(0, "p2", 11, 99.0, 5000.0, COORDINATOR))
    assert (view.coordinators, view.lifetime_only) == ((), 1)


def test_two_ps_rows_give_the_cpu_between_them() -> None:
    view = _after(ps(0, "p2", 11, 10.0, 5000.0, COORDINATOR), ps(400, "p2", 11, 16.7, 5400.0, COORDINATOR))
    assert view.coordinators[0].percent == pytest.approx(100.4, abs=1.0)


def test_ps_rows_whose_rounding_hides_the_difference_wait_for_a_later_one() -> None:
    rows = [ps(at, "p2", 11, 10.0, 90_000.0 + at, COORDINATOR) for at in (0, 60, 120)]
    assert _after(*rows).coordinators == ()
    assert len(_after(*rows, ps(1200, "p2", 11, 10.0, 91_200.0, COORDINATOR)).coordinators) == 1


def test_top_shows_the_cpu_of_now() -> None:
    view = _after(ps(0, "p2", 11, 97.0, None, COORDINATOR, lifetime=False))  # type: ignore[arg-type]
    assert (view.coordinators[0].percent, view.coordinators[0].how) == (97.0, "top")


def test_steps_come_from_metrics_and_count_once_in_two_homes() -> None:
    values = {"timing/step": 400.0, "timing/wait_for_generation_buffer": 8.0, "async/staleness_mean": 0.5}
    view = _after(saw(10, StepMetrics(3, "train", values)), saw(11, StepMetrics(3, "train", values)))
    assert [(step.step, step.waited_seconds, step.staleness_mean) for step in view.steps] == [(3, 8.0, 0.5)]


def test_steps_come_from_timers_where_there_are_no_metrics() -> None:
    wait, whole = finished(10, "wait_for_generation_buffer", 8.0), finished(400, "step", 398.0)
    view = _after(wait, wait, whole, whole)
    assert [(step.seconds, step.waited_seconds) for step in view.steps] == [(398.0, 8.0)]


def test_a_step_that_waits_for_no_buffer_is_not_timed() -> None:
    assert _after(finished(10, "generate", 300.0), finished(400, "step", 398.0)).steps == ()


def test_an_evaluations_metrics_are_no_step() -> None:
    values = {"timing/step": 400.0, "timing/wait_for_generation_buffer": 8.0}
    assert _after(saw(10, StepMetrics(3, "eval", values))).steps == ()


def test_a_refused_dump_is_kept_until_that_process_answers() -> None:
    failure = refused(5, "stacks", "p0", "py-spy", "dump", "--pid", "11", output="Permission Denied: no ptrace")
    assert _after(failure).stack_failures[0].failure.output.startswith("Permission Denied")
    assert _after(failure, stack(9, "p0", 11, "ray::FSDPPolicyWorkerBase", "f")).stack_failures == ()
