"""Gate D: a window of ten steps, two signs that the trials confirm, or values that are no numbers."""

import math

from extractors.metrics import MetricsUnreadable
from extractors.polls import JobState
from state.gate import Status
from tests.builders import case_after, polled, saw
from tests.state.rollout_cases import coming_up, declared, gate_d, in_time, many, running, step

BLOWN = {"grad_norm": 9.0, "entropy": 0.2, "log_ratio": 0.5}


def steps(good: int, bad: int, **values: float) -> list[object]:
    """So many healthy steps and then so many others."""
    return [step(n) for n in range(1, good + 1)] + [step(n, **values) for n in range(good + 1, good + bad + 1)]


def falling_trials() -> tuple[object, ...]:
    """Half of the early trials pass, none of the late ones does."""
    early = (*many(60, 1000, 20, reward=1.0), *many(60, 1010, 20, reward=0.0))
    return (*early, *many(110, 9000, 20, reward=0.0))


def test_nine_steps_are_insufficient_and_quote_the_newest_metrics() -> None:
    ruling = gate_d(*running(), *steps(9, 0))
    assert (ruling.status, ruling.condition) == (Status.PASS, "INSUFFICIENT")
    assert "step=9" in ruling.evidence[0].quote


def test_bring_up_quotes_its_line_and_a_bare_poll_will_do() -> None:
    assert "Ray nodes" in gate_d(declared(), polled(5, JobState.RUNNING), coming_up()).evidence[0].quote
    assert gate_d(declared(), polled(5, JobState.PENDING)).evidence[0].source == "polls/state.jsonl"
    assert "generate" in gate_d(*running()).evidence[0].quote


def test_nothing_read_at_all_is_incomplete() -> None:
    assert gate_d(declared()).status is Status.ERROR


def test_ten_healthy_steps_are_steady_with_the_phase_table() -> None:
    ruling = gate_d(*running(), *steps(10, 0))
    assert (ruling.status, ruling.condition) == (Status.PASS, "STEADY")
    assert "wait_for_generation_buffer 600 s (60%)" in ruling.reason
    assert "unattributed 10 s (1%)" in ruling.reason


def test_a_plateau_is_never_a_failure() -> None:
    assert gate_d(*running(), *[step(n, reward=0.0) for n in range(1, 31)]).condition == "STEADY"


def test_two_signs_with_falling_trials_are_collapse() -> None:
    ruling = gate_d(*running(), *steps(8, 6, **BLOWN), *falling_trials())
    assert (ruling.status, ruling.condition) == (Status.FAIL, "COLLAPSED")
    assert "gradient norm" in ruling.reason
    assert "entropy" in ruling.reason


def test_two_signs_against_healthy_trials_are_noted_only() -> None:
    ruling = gate_d(*running(), *steps(8, 6, **BLOWN), *many(120, 1000, 100, reward=1.0))
    assert ruling.condition == "STEADY"
    assert "gradient norm" in ruling.reason


def test_one_sign_is_no_collapse() -> None:
    assert gate_d(*running(), *steps(12, 6, grad_norm=9.0), *many(120, 1000, 100, reward=1.0)).condition == "STEADY"


def test_a_last_step_that_is_well_again_is_a_recovery() -> None:
    spike = [*steps(8, 2, **BLOWN), step(11)]
    assert gate_d(*running(), *spike, *falling_trials()).condition == "STEADY"
    assert gate_d(*running(), *steps(8, 3, **BLOWN), *falling_trials()).condition == "COLLAPSED"


def test_a_window_that_recovers_is_no_collapse() -> None:
    recovering = [*steps(8, 3, **BLOWN), *(step(n) for n in range(12, 22))]
    assert gate_d(*running(), *recovering, *falling_trials()).condition == "STEADY"


def test_a_pass_rate_that_was_never_higher_is_no_sign() -> None:
    assert gate_d(*running(), *steps(12, 6, grad_norm=9.0), *many(220, 1000, 50, reward=0.0)).condition == "STEADY"


def test_without_trials_the_mean_reward_speaks_for_them() -> None:
    ruling = gate_d(*running(mode="standard"), *steps(8, 6, **BLOWN, reward=0.01))
    assert ruling.condition == "COLLAPSED"


def test_two_non_finite_steps_of_the_newest_third_are_collapse_by_themselves() -> None:
    observations = (*running(), *steps(10, 2, loss=math.nan))
    ruling = gate_d(*observations)
    assert (ruling.status, ruling.condition) == (Status.FAIL, "COLLAPSED")
    assert case_after(*in_time(observations)).dynamics.non_finite_collapse
    assert gate_d(*running(), *steps(11, 1, loss=math.nan)).condition == "STEADY"
    assert (
        gate_d(*running(), *[step(n, loss=math.nan) for n in (1, 2)], *[step(n) for n in range(3, 14)]).condition
        == "STEADY"
    )


def test_a_huge_rollout_difference_is_benign() -> None:
    observed = [step(n) for n in range(1, 12)]
    for seen in observed:
        seen.signal.values["policy/rollout_train_prob_diff_mean"] = 6_900_000.0
    assert gate_d(*running(), *observed).condition == "STEADY"


def test_torn_metrics_that_would_make_the_window_are_incomplete() -> None:
    torn = [saw(1000 * n, MetricsUnreadable(n, "the JSON object is cut or torn")) for n in range(5, 12)]
    ruling = gate_d(*running(), *steps(4, 0), *torn)
    assert (ruling.status, ruling.condition) == (Status.ERROR, "INCOMPLETE")
    few = gate_d(*running(), *steps(4, 0), *torn[:2])
    assert few.condition == "INSUFFICIENT"
    assert few.missing


def test_over_is_not_applicable() -> None:
    assert gate_d(*running(), *steps(12, 0), polled(90000, JobState.SUCCEEDED)).status is Status.NOT_APPLICABLE
