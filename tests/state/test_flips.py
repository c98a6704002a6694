"""Flip signals: the condition that an earlier verdict named is checked when the next record is said."""

import msgspec
import pytest

from state.flips import FlipSignal, fired
from state.gate import Gap, Status, not_applicable, passed, unjudged
from state.judge import Judge
from tests.builders import case_after, polled, started, us
from tests.state.rollout_cases import ended

POLL = polled(0, "running")
KILLED_BY_C = FlipSignal("a trial ends with a reward above 0", "trial_ended", None, us(100), "C")
AWAITED = FlipSignal("what is missing arrives: the gpu poll", "evidence_arrived", None, us(100), "B", "the gpu poll")
DUE = FlipSignal("no phase finished before 08:10", "phase_finished", us(600), us(100), "A")


@pytest.mark.parametrize(("at", "reward", "tells"), [(50, 1.0, False), (150, 0.0, False), (150, 1.0, True)])
def test_a_kill_of_gate_c_is_flipped_by_a_reward_that_came_after_it(at, reward, tells):
    assert (
        "a trial ended with a reward"
        in fired(KILLED_BY_C, case_after(POLL, ended(at, "mend-1__abc", reward=reward)), {})
    ) is tells


def test_awaited_evidence_has_arrived_when_it_is_no_longer_missing():
    case, found = case_after(POLL), POLL.evidence
    still = unjudged("INCOMPLETE", "unread", Gap("the gpu poll", "refused"))
    other = unjudged("UNMEASURED", "unread", Gap("live stacks", "refused"))
    assert fired(AWAITED, case, {"B": still}) == ""
    assert fired(AWAITED, case, {"B": other}).endswith("fired: the gpu poll arrived")
    assert fired(AWAITED, case, {"B": passed("FED", "well", found)}).endswith("the gpu poll arrived")


def test_a_gate_that_is_over_did_not_get_what_it_waited_for():
    assert fired(AWAITED, case_after(POLL), {"B": not_applicable("OVER", "the job is over", POLL.evidence)}) == ""


def test_a_deadline_fires_only_when_it_passed_without_progress():
    assert fired(DUE, case_after(POLL, started(50, "step"), now=500), {}) == ""
    assert fired(DUE, case_after(POLL, started(50, "step"), now=601), {}) != ""
    assert fired(DUE, case_after(POLL, started(300, "step"), now=601), {}) == ""


def test_the_judge_remembers_its_flip_signal_in_a_snapshot():
    judge = Judge(flip=AWAITED, stood={"B": str(Status.PASS)})
    assert msgspec.msgpack.decode(judge.snapshot(), type=Judge) == judge
