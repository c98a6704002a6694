"""The training stage: idle policy ranks need stacks before they are called so."""

from typing import Any

from extractors.record import Observation
from state.gate import Ruling, Status
from state.gates.resources import RESOURCES
from tests.state.resources_cases import POLICY, all_gpus, declared, fleet, gpus, job, refused, stack, started

HOURS = 3600.0
TRAINING = [started(100, "step"), started(100, "policy_train"), *fleet(60, 90, 20)]
TITLE = "ray::FSDPPolicyWorkerBase.ppo_train"
NOW = 100 + 4 * HOURS


def _judged(*parts: Any, policy: tuple[float, float] = (0, 1), now: float = NOW) -> Ruling:
    polls = [*all_gpus(now - 200, policy=policy[0]), *all_gpus(now - 60, policy=policy[1])]
    return RESOURCES.judge(job(TRAINING, polls, *parts, now=now))


def _dumps(*frames: str, second: str = "") -> list[Observation]:
    return [
        stack(NOW - 300, POLICY[0], 61, TITLE, *frames),
        stack(NOW - 100, POLICY[0], 61, TITLE, *((second,) if second else frames)),
    ]


def test_idle_policy_ranks_in_the_same_frames_past_the_allowance_are_idle() -> None:
    ruling = _judged(_dumps("wait (store.py:1)"))
    assert (ruling.status, ruling.condition) == (Status.FAIL, "IDLE_TRAINING")
    assert sum(line.source == "polls/stacks.jsonl" for line in ruling.evidence) == 2


def test_idle_policy_ranks_without_stacks_are_unmeasured() -> None:
    denied = refused(NOW - 90, "stacks", POLICY[0], "py-spy", "dump", "--pid", "61", output="Permission Denied: no")
    assert _judged().condition == "UNMEASURED"
    ruling = _judged(denied)
    assert (ruling.status, "Permission Denied" in ruling.missing[0].output) == (Status.ERROR, True)


def test_ranks_whose_frames_change_are_at_work() -> None:
    assert _judged(_dumps("wait (store.py:1)", second="forward (moe.py:2)")).condition == "TRAINING"


def test_one_idle_poll_is_not_enough() -> None:
    assert _judged(_dumps("wait (store.py:1)"), policy=(70, 1)).condition == "TRAINING"


def test_one_busy_card_is_enough_to_be_at_work() -> None:
    busy = gpus(NOW - 50, POLICY[1], 80)
    assert _judged(_dumps("wait (store.py:1)"), busy).condition == "TRAINING"


def test_ranks_of_a_policy_pod_that_no_poll_names_are_not_called_idle() -> None:
    facts = declared(policy_mesh=(*POLICY, "iris-bob-rl-mix-9-c4f1e-0"))
    polls = [*all_gpus(NOW - 200, policy=0), *all_gpus(NOW - 60, policy=1)]
    case = job(TRAINING, polls, _dumps("wait (store.py:1)"), now=NOW, facts=facts)
    assert RESOURCES.judge(case).condition == "TRAINING"


def test_idle_ranks_within_the_allowance_are_at_work() -> None:
    assert _judged(now=100 + 0.5 * HOURS).condition == "TRAINING"


def test_low_engines_while_training_are_healthy() -> None:
    ruling = _judged(policy=(80, 85), now=600)
    assert (ruling.status, ruling.condition) == (Status.PASS, "TRAINING")
    assert any(line.source == "polls/gpu.jsonl" for line in ruling.evidence)
