"""Gate B says nothing without a GPU poll, the ranks apart and the engines' subscription."""

import pytest

from extractors.polls import GpuProcess, GpuProcessesPolled, JobState
from state.gate import Status
from state.gates.resources import RESOURCES
from state.policy import Stage
from tests.builders import polled, saw
from tests.state.resources_cases import (
    ENGINE,
    POLICY,
    all_gpus,
    bar,
    declared,
    finished,
    fleet,
    gpus,
    job,
    refused,
    started,
)

GENERATING = [started(100, "step"), started(101, "wait_for_generation_buffer")]


def test_a_job_that_is_over_is_not_applicable() -> None:
    ruling = RESOURCES.judge(job(GENERATING, all_gpus(200), polled(300, JobState.FAILED)))
    assert (ruling.status, ruling.condition) == (Status.NOT_APPLICABLE, "OVER")
    assert ruling.evidence[0].source == "polls/state.jsonl"


def test_a_job_without_any_gpu_poll_is_incomplete() -> None:
    ruling = RESOURCES.judge(job(GENERATING, fleet(110, 200, 20)))
    assert (ruling.status, ruling.condition) == (Status.ERROR, "INCOMPLETE")
    assert "gpu poll of the policy and engine ranks" in ruling.missing[0].what


def test_failed_gpu_polls_show_their_command_and_output() -> None:
    failures = [
        refused(150, "gpu", pod, "kubectl", "exec", pod, "--", "nvidia-smi", output='container not found ("task")')
        for pod in POLICY + ENGINE
    ]
    ruling = RESOURCES.judge(job(GENERATING, fleet(110, 200, 20), failures))
    assert (ruling.status, ruling.condition) == (Status.ERROR, "INCOMPLETE")
    assert all("nvidia-smi" in gap.command and "container not found" in gap.output for gap in ruling.missing)
    assert ruling.evidence[0].source == "polls/gpu.jsonl"


def test_a_poll_older_than_a_quarter_hour_is_incomplete() -> None:
    ruling = RESOURCES.judge(job(GENERATING, all_gpus(150), fleet(110, 1100, 20)))
    assert (ruling.status, ruling.condition) == (Status.ERROR, "INCOMPLETE")
    assert "min old" in ruling.reason


def test_one_failed_poll_of_a_target_that_answered_lately_is_no_gap() -> None:
    failure = refused(400, "gpu", POLICY[0], output="timed out")
    ruling = RESOURCES.judge(job(GENERATING, all_gpus(150), failure, fleet(110, 420, 20)))
    assert ruling.condition == "FED"


def test_a_pod_of_the_mesh_that_only_fails_is_incomplete_and_named() -> None:
    failure = refused(400, "gpu", ENGINE[1], output="container not found")
    polls = [gpus(150, pod, 20) for pod in (*POLICY, ENGINE[0])]
    ruling = RESOURCES.judge(job(GENERATING, polls, failure, fleet(110, 420, 20)))
    assert (ruling.status, ruling.condition) == (Status.ERROR, "INCOMPLETE")
    assert ENGINE[1] in ruling.reason


def test_polls_of_the_policy_alone_leave_the_engines_unread() -> None:
    ruling = RESOURCES.judge(job(GENERATING, [gpus(150, pod, 20) for pod in POLICY], fleet(110, 420, 20)))
    assert (ruling.status, ruling.condition) == (Status.ERROR, "INCOMPLETE")
    assert ruling.missing[0].what == "gpu poll of the engine ranks"


def test_cells_that_the_tool_could_not_fill_are_missing_evidence() -> None:
    polls = [gpus(150, pod, None) for pod in POLICY] + [gpus(150, pod, 90) for pod in ENGINE]
    ruling = RESOURCES.judge(job(GENERATING, polls, fleet(110, 420, 20)))
    assert (ruling.condition, ruling.missing[0].what) == ("INCOMPLETE", "gpu utilisation of the policy ranks")


def test_ranks_that_nobody_names_are_unseparated() -> None:
    nameless = declared(policy_mesh=(), engine_mesh=())
    ruling = RESOURCES.judge(
        job(GENERATING, [gpus(150, "a", 20), gpus(150, "b", 90)], fleet(110, 200, 20), facts=nameless)
    )
    assert (ruling.status, ruling.condition) == (Status.ERROR, "UNSEPARATED")


def test_ranks_on_the_same_cards_are_unseparated() -> None:
    nameless = declared(policy_mesh=(), engine_mesh=())
    both = (GpuProcess("GPU-1", 5, "ray::FSDPPolicyWorkerBase"), GpuProcess("GPU-1", 6, "VLLM::EngineCore"))
    holders = saw(140, GpuProcessesPolled("a", both))
    ruling = RESOURCES.judge(job(GENERATING, holders, gpus(150, "a", 20), fleet(110, 200, 20), facts=nameless))
    assert (ruling.condition, "share their GPUs" in ruling.reason) == ("UNSEPARATED", True)


def test_generation_without_an_engine_line_is_incomplete() -> None:
    ruling = RESOURCES.judge(job(GENERATING, all_gpus(150), now=170))
    assert (ruling.condition, ruling.missing[0].what) == ("INCOMPLETE", "engine statistics lines")


def test_the_first_minute_of_generation_waits_for_the_engines_to_speak() -> None:
    comes_up = RESOURCES.judge(job(GENERATING, all_gpus(120), now=130))
    assert (comes_up.status, comes_up.condition) == (Status.PASS, "BRINGING_UP")
    synced = finished(99, "sync_weights", 20)
    assert RESOURCES.judge(job(synced, GENERATING, all_gpus(120), now=130)).condition == "TRAINING"
    ruling = RESOURCES.judge(job(synced, GENERATING, all_gpus(120), now=130))
    assert {line.source for line in ruling.evidence} == {"polls/gpu.jsonl", "finelog.log"}


def test_engines_that_slept_through_a_long_training_have_a_minute_to_wake() -> None:
    wakes = [started(1500, "step"), started(1501, "wait_for_generation_buffer"), all_gpus(1490)]
    seen = [started(100, "generate"), fleet(110, 200, 20), finished(210, "generate", 110), *wakes]
    assert RESOURCES.judge(job(*seen, now=1520)).condition == "TRAINING"
    assert RESOURCES.judge(job(*seen, now=1570)).condition == "INCOMPLETE"


def test_engines_that_all_fell_silent_busy_are_no_subscription() -> None:
    ruling = RESOURCES.judge(job(GENERATING, fleet(110, 200, 20), all_gpus(1200), now=1300))
    assert (ruling.condition, ruling.missing[0].what) == ("INCOMPLETE", "engine statistics lines of the current stage")


def test_an_unknown_cap_is_missing_evidence() -> None:
    ruling = RESOURCES.judge(job(GENERATING, fleet(110, 200, 20), all_gpus(150), facts=declared(max_num_seqs=None)))
    assert (ruling.condition, ruling.missing[0].what) == ("INCOMPLETE", "the engines' cap (max_num_seqs)")


def test_bring_up_needs_a_gpu_poll_and_nothing_more() -> None:
    young = job(all_gpus(150, policy=1, engine=1), now=200)
    assert young.phases.stage is Stage.BRING_UP
    assert RESOURCES.judge(young).condition == "BRINGING_UP"
    assert RESOURCES.judge(job(now=200)).condition == "INCOMPLETE"


@pytest.mark.parametrize("phase", ["sync_weights", "save_checkpoints"])
def test_moving_weights_pass_with_the_poll_quoted_and_silent_engines(phase: str) -> None:
    ruling = RESOURCES.judge(job(started(100, phase), all_gpus(150), now=160))
    assert (ruling.status, ruling.condition) == (Status.PASS, "TRAINING")
    assert ruling.evidence[0].source == "polls/gpu.jsonl"


def test_a_fed_fleet_quotes_policy_and_engine_cards_and_an_engine_line() -> None:
    case = job(GENERATING, bar(190, 9), fleet(110, 200, 20), all_gpus(150), now=200)
    ruling = RESOURCES.judge(case)
    assert (ruling.status, ruling.condition) == (Status.PASS, "FED")
    quotes = " ".join(line.quote for line in ruling.evidence if line.source == "polls/gpu.jsonl")
    assert POLICY[0][:-8] in quotes
    assert ENGINE[0][:-8] in quotes
    assert any(line.signal == "engine_load" for line in ruling.evidence)
    assert "80 of 128 decode slots" in ruling.reason


def test_evaluation_reads_like_generation() -> None:
    case = job(started(100, "eval"), fleet(110, 200, 20), all_gpus(150), now=200)
    assert RESOURCES.judge(case).condition == "FED"


def test_the_innermost_phase_names_the_stage() -> None:
    trains = [finished(150, "wait_for_generation_buffer", 49), started(151, "policy_train")]
    assert RESOURCES.judge(job(GENERATING, trains, fleet(110, 200, 20), all_gpus(160), now=200)).condition == "TRAINING"
