"""Why a rule fired or stayed quiet, read off its own run: concrete, with figures and lines, and the same as judged."""

import sys

from extractors.signal import Fault
from state.gates.liveness import LIVENESS
from state.gates.resources import RESOURCES
from state.gates.rollouts import ROLLOUTS
from state.weighed.report import explanation, explanation_text
from state.weighed.trace import Came, Kind, Step, Trace, trace
from state.weighed.watch import watched
from tests.builders import both_homes, case_after, finished, in_time, polls, saw, started
from tests.state import resources_cases as resources
from tests.state import rollout_cases as rollouts

POLICY = "FSDPPolicyWorkerBase"


def liveness(*observations, now):
    return trace(LIVENESS, case_after(*in_time(*observations, *polls("running", until=now)), now=now))


def training(at=0):
    """A trainer that has trained before and trains again since `at` (allowance: the floor of 90 min)."""
    return [
        *both_homes(),
        started(at - 300, "policy_train"),
        finished(at - 1, "policy_train", 299),
        started(at, "policy_train"),
    ]


def abort(at):
    return saw(at, Fault("collective_abort", "taking the process down"), actor=POLICY, pid=4005, rank=5, quote="abort")


def step_of(weighed: Trace, name: str) -> Step:
    return next(step for step in weighed.steps if step.clause.__name__ == name)


def why(weighed: Trace, name: str) -> str:
    return step_of(weighed, name).why.says


def test_young_stall_says_its_age_against_its_allowance_and_quotes_the_progress() -> None:
    step = step_of(liveness(*training(), now=180), "stale")
    assert step.came is Came.QUIET
    assert step.why.says.startswith(
        "the newest progress is of 08:00:00Z, 3 min before now, against the allowance of 90 min"
    )
    assert "training floor of 90 min" in step.why.says
    assert [place.signal for place in step.why.evidence] == ["phase_started"]


def test_met_requirement_says_by_what() -> None:
    step = step_of(liveness(*training(), now=180), "state_poll_unread")
    assert (step.kind, step.came) == (Kind.REQUIREMENT, Came.MET)
    assert "says running; a state poll may be" in step.why.says
    assert step.why.evidence[0].source == "polls/state.jsonl"


def test_rule_without_its_sign_says_that_none_stands() -> None:
    assert (
        why(liveness(*training(), now=180), "wedged")
        == "no hang signature stands (0 errors on record, none of them one)"
    )


def test_rule_that_decides_has_its_ruling_and_those_after_it_are_not_reached() -> None:
    weighed = liveness(*training(), abort(120), now=120 + 1200)
    assert weighed.fired.clause.__name__ == "wedged"
    assert weighed.fired.ruling == weighed.ruling
    places = [step.reached for step in weighed.steps]
    assert places == sorted(places, reverse=True)
    assert weighed.steps[-1].came is Came.NOT_REACHED


def test_rule_after_the_deciding_one_says_what_it_would_have_said() -> None:
    weighed = liveness(*training(), abort(120), now=120 + 7200)
    later = step_of(weighed, "stale")
    assert (weighed.fired.clause.__name__, later.came) == ("wedged", Came.WOULD_FIRE)
    assert later.ruling is not None
    assert later.ruling.condition == "STALE"


def test_only_one_rule_is_the_next_best() -> None:
    weighed = trace(
        ROLLOUTS, case_after(*rollouts.running(), *rollouts.many(30, 1800, 60, exception="AddTestsDirError"))
    )
    assert [step.came for step in weighed.steps].count(Came.WOULD_FIRE) == 1


def test_rule_that_an_excuse_holds_back_is_told_with_both() -> None:
    healthy = rollouts.many(10, 3600, 60, reward=1.0)
    flood = rollouts.many(200, 7200, 2, exception="DaytonaError")
    stragglers = rollouts.many(30, 7800, 5, exception="DaytonaError")
    case = case_after(*rollouts.in_time((*rollouts.running(), *healthy, *flood, *stragglers)))
    weighed = trace(ROLLOUTS, case)
    held = step_of(weighed, "infra_fault")
    assert held.came is Came.EXCUSED
    assert held.ruling is not None
    assert held.ruling.condition == "INFRA_FAULT"
    assert held.excuse is not None
    assert held.excuse[0].name == "transient-burst"
    assert held.excuse[1].evidence
    assert weighed.ruling.condition == "LEARNING"
    text = explanation_text(explanation(case, weighed), 140)
    assert "held back by transient-burst: at least 80 %" in text
    assert "excuse transient-burst (holds back INFRA_FAULT) shows itself" in text


def test_measure_stands_against_its_threshold() -> None:
    weighed = trace(ROLLOUTS, case_after(*rollouts.running(), *rollouts.many(30, 1800, 60, reward=1.0)))
    assert why(weighed, "no_signal") == "30 scored trials, less than 64"
    assert (
        why(weighed, "container_fault")
        == "0 of 30 attempts (0%) ended in AddTestsDirError; 95% of at least 20 are needed"
    )


def test_stage_that_was_asked_for_is_named_beside_the_one_that_is() -> None:
    parts = [*resources.all_gpus(700), *resources.fleet(100, 700, 30), resources.started(90, "policy_train")]
    weighed = trace(RESOURCES, resources.job(*parts, now=710))
    assert why(weighed, "backpressure").startswith("the stage is training, in 'policy_train' since ")
    assert why(weighed, "backpressure").endswith(", not generation")


def test_rule_inside_a_wrapper_is_watched_itself() -> None:
    weighed = trace(RESOURCES, resources.job(*resources.all_gpus(700), resources.started(90, "policy_train"), now=710))
    assert why(weighed, "oom_gpu") == "no unhandled GPU out-of-memory error is on record in this attempt"


def test_every_rule_of_a_job_without_a_line_can_be_explained() -> None:
    for gate in (LIVENESS, RESOURCES, ROLLOUTS):
        weighed = trace(gate, case_after())
        assert all(step.why.says for step in weighed.steps)
        assert weighed.fired.ruling == weighed.ruling


def test_watching_leaves_no_trace_function_behind() -> None:
    before = sys.gettrace()
    watched(LIVENESS.judge, case_after())
    assert sys.gettrace() is before


def test_fired_rule_of_an_error_shows_what_could_not_be_had() -> None:
    case = case_after(*both_homes(), started(10, "generate"), now=60)
    text = explanation_text(explanation(case, trace(LIVENESS, case)), 100)
    assert "> fired" in text
    assert "missing: the state poll — no state poll is on file" in text
