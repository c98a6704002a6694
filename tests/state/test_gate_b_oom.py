"""Memory that ran out: fatal or survived, confirmed or only suspected."""

import dataclasses
from typing import Any

import msgspec
import pytest

from extractors.host import HostMemory
from extractors.pattern import Role
from extractors.polls import Pod, PodsPolled
from extractors.record import Observation
from extractors.signal import Fault
from extractors.trainer import ForwardEntered
from state.gate import Ruling, Status
from state.gates.resources import RESOURCES
from state.trackers.fault_list import FaultEvent
from state.trackers.faults import FaultsView
from tests.builders import saw, us
from tests.state.resources_cases import all_gpus, fleet, job, started

ACTOR = "FSDPPolicyWorkerBase"
TRAINING = [started(100, "step"), started(100, "policy_train"), *fleet(60, 90, 20)]


def _oom(at: float = 200, **said: Any) -> Observation:
    return saw(at, Fault("cuda_oom", "tried to allocate 3.10 GiB", rank=3), **{"actor": ACTOR, "pid": 61, **said})


def _judged(*parts: Any, now: float) -> Ruling:
    return RESOURCES.judge(job(TRAINING, *parts, all_gpus(now - 10), now=now))


def test_an_oom_whose_actor_died_is_fatal() -> None:
    died = saw(230, Fault("actor_died", entity=ACTOR), pid=61)
    ruling = _judged(_oom(), died, now=260)
    assert (ruling.status, ruling.condition) == (Status.FAIL, "OOM_GPU")
    assert "rank 3" in ruling.reason
    assert "micro-batch" in ruling.fix


def test_an_oom_that_failed_the_train_loop_is_fatal() -> None:
    failed = saw(215, Fault("train_loop_failed", "out of memory"), actor="skyrl_entrypoint", pid=9)
    assert _judged(_oom(), failed, now=260).condition == "OOM_GPU"


def test_a_fresh_oom_alone_is_not_yet_fatal() -> None:
    assert _judged(_oom(), now=260).condition == "TRAINING"


def test_an_oom_without_progress_for_a_quarter_of_the_allowance_is_fatal() -> None:
    ruling = _judged(_oom(), now=200 + 46 * 60)
    assert ruling.condition == "OOM_GPU"
    assert "progressed" in ruling.reason


def test_an_oom_that_the_trainer_moved_on_from_is_not_fatal() -> None:
    assert _judged(_oom(), started(400, "dump_data_batch"), now=200 + 46 * 60).condition == "TRAINING"


def test_another_ranks_marker_in_the_same_seconds_is_no_moving_on() -> None:
    marker = saw(203, ForwardEntered(5), actor=ACTOR, pid=62)
    assert _judged(_oom(), marker, now=200 + 46 * 60).condition == "OOM_GPU"


def test_another_actors_death_does_not_make_it_fatal() -> None:
    died = saw(230, Fault("actor_died", entity="RolloutCoordinator"), actor="RolloutCoordinator", pid=77)
    assert _judged(_oom(), died, now=260).condition == "TRAINING"


def test_a_memory_monitor_kill_whose_actor_died_is_a_host_oom() -> None:
    killed = saw(200, Fault("memory_monitor_kill", entity=ACTOR), pid=61)
    died = saw(204, Fault("actor_died", entity=ACTOR), pid=61)
    ruling = _judged(killed, died, now=260)
    assert (ruling.status, ruling.condition) == (Status.FAIL, "OOM_HOST")


@pytest.mark.parametrize("comm", ["ray::FSDPPolicy", "ray::AsyncVLLMI"])
def test_a_rank_that_the_kernel_killed_for_memory_is_a_host_oom(comm: str) -> None:
    killed = saw(200, Fault("host_oom", entity=comm), pattern="kernel_oom_kill")
    event = FaultEvent(killed.signal, Role.CONFIRMS, us(200), killed.origin, (killed.evidence,))
    case = job(TRAINING, all_gpus(250), now=260)
    shown = dataclasses.replace(case, faults=FaultsView(confirms=(event,)))
    assert RESOURCES.judge(shown).condition == "OOM_HOST"
    idle = msgspec.structs.replace(event, fault=Fault("host_oom", entity="ray::IDLE"))
    assert RESOURCES.judge(dataclasses.replace(case, faults=FaultsView(confirms=(idle,)))).condition == "TRAINING"


def test_a_pod_that_kubernetes_killed_for_memory_is_a_host_oom() -> None:
    pods = saw(
        200, PodsPolled((Pod("p-0", "OOMKilled", "n", reason="OOMKilled", exit_code=137), Pod("p-1", "Running")))
    )
    ruling = _judged(pods, now=260)
    assert ruling.condition == "OOM_HOST"
    assert "p-0" in ruling.reason


def test_a_pod_that_came_back_from_an_old_kill_is_none() -> None:
    pods = saw(200, PodsPolled((Pod("p-0", "Running", "n", restarts=1, reason="OOMKilled"),)))
    assert _judged(pods, now=260).condition == "TRAINING"


def test_memory_at_its_limit_is_a_warning() -> None:
    full = saw(200, HostMemory("cgroup", 1250.0, 1300.0, "node-a"), quote="cgroup mem 1250/1300 GiB")
    ruling = _judged(full, now=260)
    assert ruling.condition == "TRAINING"
    assert any("node-a" in note and "96%" in note for note in ruling.notes)
    assert any(line.quote.startswith("cgroup") for line in ruling.evidence)


def test_memory_below_its_limit_is_not_mentioned() -> None:
    assert _judged(saw(200, HostMemory("cgroup", 900.0, 1300.0, "node-a")), now=260).notes == ()


def test_a_full_cgroup_is_not_hidden_by_a_roomy_node() -> None:
    full = saw(200, HostMemory("cgroup", 1290.0, 1300.0, "node-a"))
    assert _judged(full, saw(210, HostMemory("node", 500.0, 2000.0, "node-a")), now=260).notes
