"""The GPU tracker: who is policy, who is engine, and what was not answered."""

from typing import Any

from extractors.facts import ConfigFact
from extractors.polls import GpuProcess, GpuProcessesPolled, Pod, PodsPolled
from state.trackers.gpus import GpusTracker, GpusView, Separation, pod_stem
from tests.builders import saw
from tests.state.resources_cases import ENGINE, POLICY, all_gpus, declared, gpus, load, ps, refused


def _after(*observations: Any) -> GpusView:
    tracker = GpusTracker()
    for seen in observations:
        tracker.FOLDS[type(seen.signal)](tracker, seen)
    return GpusTracker.restore(tracker.snapshot()).view()


def test_the_mesh_parts_policy_from_engines() -> None:
    view = _after(declared(), *all_gpus(10))
    assert view.separation is Separation.KNOWN
    assert tuple(poll.target for poll in view.policy) == POLICY
    assert tuple(poll.target for poll in view.engine) == ENGINE


def test_pods_are_compared_without_hash_and_generation() -> None:
    mesh = declared(policy_mesh=("iris-bob-rl-mix-0-aa11b-0",), engine_mesh=("iris-bob-rl-mix-2",))
    view = _after(mesh, gpus(10, POLICY[0], 5), gpus(10, ENGINE[0], 6))
    assert [poll.target for poll in view.policy] == [POLICY[0]]
    assert [poll.target for poll in view.engine] == [ENGINE[0]]
    assert pod_stem("iris-bob-rl-mix-0-c4f1e-0") == pod_stem("iris-bob-rl-mix-0-90817-2") == "iris-bob-rl-mix-0"


def test_a_job_whose_name_ends_like_a_suffix_is_told_by_exact_names() -> None:
    mesh = declared(policy_mesh=("rl-20260-0",), engine_mesh=("rl-20260-1",))
    view = _after(mesh, gpus(10, "rl-20260-0", 5), gpus(10, "rl-20260-1", 6))
    assert [poll.target for poll in view.policy] == ["rl-20260-0"]
    assert [poll.target for poll in view.engine] == ["rl-20260-1"]


def test_a_mesh_may_divide_the_cards_of_one_pod() -> None:
    mesh = declared(policy_mesh=(f"{POLICY[0]}:0-2",), engine_mesh=(f"{POLICY[0]}:3-7",))
    view = _after(mesh, gpus(10, POLICY[0], 5))
    assert [len(poll.gpus) for poll in (*view.policy, *view.engine)] == [3, 5]


def test_compute_apps_say_who_holds_the_cards() -> None:
    holders = [
        saw(9, GpuProcessesPolled("a", (GpuProcess("GPU-1", 5, "ray::FSDPPolicyWorkerBase.forward"),))),
        saw(9, GpuProcessesPolled("b", (GpuProcess("GPU-2", 6, "VLLM::Worker_TP0"),))),
    ]
    view = _after(*holders, gpus(10, "a", 5), gpus(10, "b", 6))
    assert view.separation is Separation.KNOWN
    assert ([poll.target for poll in view.policy], [poll.target for poll in view.engine]) == (["a"], ["b"])


def test_actor_classes_on_the_pods_node_say_who_is_who() -> None:
    pods = saw(5, PodsPolled((Pod("a", "Running", "node-a"), Pod("b", "Running", "node-c"))))
    worker = ps(6, "a", 5, 40.0, 900.0, "ray::FSDPPolicyWorkerBase")
    view = _after(pods, worker, load(7, 7001, 3, host="rank2-node-c"), gpus(10, "a", 5), gpus(10, "b", 6))
    assert view.separation is Separation.KNOWN
    assert [poll.target for poll in view.engine] == ["b"]


def test_a_folder_of_rank_and_node_names_the_pod_of_that_rank_where_no_pods_were_listed() -> None:
    policy = load(6, 11, 3, host="a", actor="FSDPPolicyWorkerBase", source="ray_session_logs/rank0-a/worker-1.out")
    engine = load(7, 7001, 3, host="c", source="ray_session_logs/rank2-c/worker-2.out")
    view = _after(policy, engine, gpus(10, POLICY[0], 5), gpus(10, ENGINE[0], 6))
    assert view.separation is Separation.KNOWN
    assert [poll.target for poll in view.engine] == [ENGINE[0]]
    assert _after(policy, engine, gpus(10, "a-0", 5), gpus(10, "a-2", 6)).separation is Separation.UNKNOWN


def test_cards_that_both_hold_are_colocated() -> None:
    both = (GpuProcess("GPU-1", 5, "ray::FSDPPolicyWorkerBase"), GpuProcess("GPU-1", 6, "VLLM::EngineCore"))
    assert _after(saw(9, GpuProcessesPolled("a", both)), gpus(10, "a", 5)).separation is Separation.COLOCATED


def test_polls_of_unnamed_hosts_are_not_told_apart() -> None:
    view = _after(gpus(10, "a", 5), gpus(10, "b", 90))
    assert view.separation is Separation.UNKNOWN
    assert len(view.unknown) == 2


def test_a_failure_stands_until_its_target_answers() -> None:
    failure = refused(20, "gpu", POLICY[0], output="container not found")
    assert len(_after(declared(), *all_gpus(10), failure).failures) == 1
    assert _after(declared(), *all_gpus(10), failure, gpus(30, POLICY[0], 7)).failures == ()


def test_the_poll_before_the_newest_is_kept_for_the_policy() -> None:
    view = _after(declared(), *all_gpus(10, policy=50), *all_gpus(130, policy=2))
    assert {poll.gpus[0].utilization_percent for poll in view.policy_before} == {50}
    assert {poll.gpus[0].utilization_percent for poll in view.policy} == {2}


def test_a_pod_of_the_mesh_that_no_poll_names_is_said() -> None:
    view = _after(declared(), *all_gpus(10)[:3])
    assert view.unasked == (ENGINE[1],)


def test_mesh_entries_that_name_the_same_card_are_colocated() -> None:
    overlapping = declared(policy_mesh=(f"{POLICY[0]}:0-4",), engine_mesh=(f"{POLICY[0]}:4-7",))
    assert _after(overlapping, gpus(10, POLICY[0], 5)).separation is Separation.COLOCATED
    inside = declared(policy_mesh=(POLICY[0],), engine_mesh=(f"{POLICY[0]}:4-7", ENGINE[0]))
    assert _after(inside, gpus(10, POLICY[0], 5)).separation is Separation.COLOCATED


def test_a_configuration_that_colocates_is_read() -> None:
    line = ConfigFact("colocate_all", "true")
    assert _after(saw(5, line), gpus(10, "a", 5)).separation is Separation.COLOCATED
