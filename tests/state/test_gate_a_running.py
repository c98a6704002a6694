"""Gate A, rules 5 to 10: wedged, stale, bringing up, alive."""

import pytest

from extractors.nccl import CommInit
from extractors.polls import PollFailed, StacksPolled, SyncPolled, Thread
from extractors.record import SourceKind
from extractors.signal import BringUp, Fault
from extractors.trainer import BufferProgress, ForwardEntered
from extractors.vllm import EngineLoad
from state.gate import Status
from state.gates.liveness import LIVENESS
from state.trackers.facts import JobDeclared, JobFacts
from tests.builders import ACTOR_LOG, both_homes, case_after, finished, in_time, polled, polls, reading, saw, started

POLICY = "FSDPPolicyWorkerBase"
HOUR = 3600
RANK_5 = {"actor": POLICY, "pid": 4005, "rank": 5}


def ruled(*observations, now, since=0):
    """Gate A over a job that the state poll shows running from `since` to now."""
    return LIVENESS.judge(case_after(*in_time(*observations, *polls("running", since=since, until=now)), now=now))


def said(ruling):
    return ruling.status, ruling.condition


def training(at=0, **where):
    """A trainer that has trained before and trains again since `at` (allowance: the floor of 90 min)."""
    before = [*both_homes(), started(at - 300, "policy_train"), finished(at - 1, "policy_train", 299)]
    return [*before, started(at, "policy_train", **where)]


def watchdog(at, **who):
    return saw(
        at, Fault("collective_timeout", "ALLREDUCE timed out"), pattern="collective_timeout", **{**RANK_5, **who}
    )


def abort(at, **who):
    return saw(at, Fault("collective_abort", "taking the process down"), **{**RANK_5, **who})


def stack(at, frame="all_gather (nccl.py:9)", pid=4001, title=f"ray::{POLICY}.forward"):
    dump = StacksPolled("pod-0", pid, title, (Thread("MainThread", "active", (frame, "step (trainer.py:1)")),))
    return saw(at, dump, source="polls/stacks.jsonl", quote=frame)


def refused_stack(at):
    failure = PollFailed("stacks", "pod-0", ("py-spy", "dump", "--pid", "1"), 1, "Permission Denied", "exit 1")
    return saw(at, failure, source="polls/stacks.jsonl")


# --- rule 5


def test_abort_wedges_after_fifteen_minutes_without_progress_and_without_stacks():
    job = [*training(), watchdog(60), abort(120)]
    assert said(ruled(*job, now=890)) == (Status.PASS, "ALIVE")
    ruling = ruled(*job, now=910)
    assert said(ruling) == (Status.FAIL, "WEDGED")
    assert "policy" in ruling.reason
    assert ruling.evidence[0].line == 601
    assert any(item.source == "polls/state.jsonl" for item in ruling.evidence)


def test_abort_wedges_at_once_where_the_trainer_is_silent_already():
    assert said(ruled(*training(), watchdog(1800), abort(1860), now=1861)) == (Status.FAIL, "WEDGED")


def test_abort_wedges_whatever_the_launcher_expects():
    declared = saw(0, JobDeclared(JobFacts(expect={"phases.policy_train": 4 * HOUR})), source="job.toml")
    assert said(ruled(declared, *training(), abort(120), now=1000)) == (Status.FAIL, "WEDGED")


def test_abort_with_progress_of_another_rank_after_it_is_no_wedge():
    job = [*training(), abort(120), saw(300, ForwardEntered(2), actor=POLICY, pid=4002)]
    assert said(ruled(*job, now=1300)) == (Status.PASS, "ALIVE")


def test_abort_of_an_engine_does_not_shorten_the_allowance():
    engine = {"actor": "AsyncVLLMInferenceEngine", "pid": 9, "rank": 0}
    assert said(ruled(*training(), abort(120, **engine), now=1300)) == (Status.PASS, "ALIVE")


@pytest.mark.parametrize("cause", ["store_wait_timeout", "weight_sync_bootstrap_timeout", "raylet_died", "actor_died"])
def test_hang_signature_needs_live_stacks_of_the_stall(cause):
    job = [*training(), saw(1800, Fault(cause, entity=POLICY if cause == "actor_died" else ""))]
    assert said(ruled(*job, now=5000)) == (Status.PASS, "ALIVE")
    assert said(ruled(*job, now=5500)) == (Status.ERROR, "STALE")
    ruling = ruled(*job, stack(5400), now=5500)
    assert said(ruling) == (Status.FAIL, "WEDGED")
    assert any(item.source == "polls/stacks.jsonl" for item in ruling.evidence)


def test_stacks_from_before_the_newest_progress_show_nothing():
    job = [stack(-100), *training(), saw(1800, Fault("store_wait_timeout"))]
    assert said(ruled(*job, now=5500, since=-400)) == (Status.ERROR, "STALE")


def test_refused_stacks_are_named_with_command_and_output():
    ruling = ruled(*training(), saw(1800, Fault("store_wait_timeout")), refused_stack(5000), now=5500)
    (gap,) = ruling.missing
    assert "live stacks" in gap.what
    assert (gap.command[0], gap.output) == ("py-spy", "Permission Denied")


def test_coordinators_bounded_put_timeout_is_a_signature():
    put = saw(1800, Fault("bounded_put_timeout", "put timed out"), actor="RolloutCoordinator", pid=8)
    assert said(ruled(*training(), put, stack(5400), now=5500)) == (Status.FAIL, "WEDGED")


def test_new_attempt_after_the_signature_is_not_wedged_by_it():
    anew = [saw(1000, BringUp("staging"), attempt=1)]
    assert said(ruled(*training(), abort(120), *anew, now=1500)) == (Status.PASS, "BRINGING_UP")


# --- half-built communicators


def half_built():
    began = [CommInit(f"node-a:{rank}", f"0x{rank}", "0xabc1", rank, 4, False) for rank in range(3)]
    ended = [CommInit(f"node-a:{rank}", f"0x{rank}", "0xabc1", rank, 4, True) for rank in range(2)]
    return [saw(1800, init, source=ACTOR_LOG) for init in (*began, *ended)]


def test_half_built_communicator_names_its_ranks():
    ruling = ruled(*training(), *half_built(), stack(5400), now=5500)
    assert said(ruling) == (Status.FAIL, "WEDGED")
    assert "rank 2 of 4 began, never completed" in ruling.reason
    assert "rank 3 never began" in ruling.reason


def test_half_built_communicator_is_given_its_time():
    assert said(ruled(*training(), *half_built(), now=3600)) == (Status.PASS, "ALIVE")


def test_progress_after_a_half_built_communicator_takes_it_back():
    job = [*training(), *half_built(), started(2000, "policy_train")]
    assert said(ruled(*job, now=2000 + 5500)) == (Status.ERROR, "STALE")
    assert "half-built" not in ruled(*job, now=2000 + 5500).reason


def forwards(at, *ranks):
    return [
        saw(at, ForwardEntered(rank), source=f"ray_session_logs/rank0-node-a/{rank}.err", pid=rank) for rank in ranks
    ]


def test_rank_that_did_not_enter_the_newest_forward_is_named_while_all_wait_for_it():
    job = [*training(), *forwards(1000, 0, 1, 2, 3), *forwards(1100, 0, 1, 2)]
    behind = "rank 3 did not enter the forward of 08:18:20Z"
    assert not any(behind in note for note in ruled(*job, now=1200).notes)
    ruling = ruled(*job, now=4000)
    assert said(ruling) == (Status.PASS, "ALIVE")
    assert behind in ruling.notes
    assert behind in ruled(*job, now=7000).reason


def test_rank_whose_forward_came_late_is_not_named():
    job = [*training(), *forwards(1000, 0, 1, 2, 3), *forwards(1100, 0, 1, 2), *forwards(1130, 3)]
    assert not any("forward" in note for note in ruled(*job, now=4000).notes)


def test_half_built_communicator_is_named_beside_another_signature():
    job = [*training(), *half_built(), saw(2000, Fault("store_wait_timeout"))]
    assert "rank 3 never began" in ruled(*job, now=5500).reason
    assert any("rank 3 never began" in note for note in ruled(*job, stack(5400), now=5500).notes)


# --- rule 6


def test_stale_without_a_signature_misses_live_stacks():
    ruling = ruled(*training(), now=5500)
    assert said(ruling) == (Status.ERROR, "STALE")
    assert "live stacks" in ruling.missing[0].what


def test_policy_ranks_in_the_same_frames_a_minute_apart_are_wedged():
    assert said(ruled(*training(), stack(5000), stack(5061), now=5500)) == (Status.FAIL, "WEDGED")


def test_one_look_or_two_within_a_minute_is_no_wedge():
    assert said(ruled(*training(), stack(5000), now=5500)) == (Status.ERROR, "STALE")
    assert said(ruled(*training(), stack(5000), stack(5059), now=5500)) == (Status.ERROR, "STALE")


def test_policy_rank_in_other_frames_moves():
    moved = [stack(5000), stack(5070), stack(5000, pid=4002), stack(5070, "forward (moe.py:3)", pid=4002)]
    assert said(ruled(*training(), *moved, now=5500)) == (Status.ERROR, "STALE")


def test_frozen_engines_do_not_wedge_the_policy():
    engine = "ray::AsyncVLLMInferenceEngine.generate"
    dumps = [stack(5000, title=engine), stack(5070, title=engine)]
    assert said(ruled(*training(), *dumps, now=5500)) == (Status.ERROR, "STALE")


# --- rule 7


def test_lone_watchdog_line_without_abort_is_not_a_wedge_and_is_noted():
    ruling = ruled(*training(), watchdog(60), saw(200, ForwardEntered(5), **RANK_5), now=1500)
    assert said(ruling) == (Status.PASS, "ALIVE")
    assert any("lone-watchdog-line" in note for note in ruling.notes)


def test_lone_watchdog_line_without_progress_waits_for_the_allowance():
    assert said(ruled(*training(), watchdog(60), now=1500)) == (Status.PASS, "ALIVE")
    assert said(ruled(*training(), watchdog(60), now=5500)) == (Status.ERROR, "STALE")


# --- rule 8


def test_queued_job_comes_up():
    ruling = LIVENESS.judge(case_after(*polls("pending", until=7200), now=7200))
    assert said(ruling) == (Status.PASS, "BRINGING_UP")
    assert "Queued since 08:00:00Z" in ruling.reason
    assert ruling.allowance


def test_young_job_with_fresh_bring_up_lines_comes_up():
    ruling = ruled(*both_homes(), saw(400, BringUp("ray nodes alive")), now=420)
    assert said(ruling) == (Status.PASS, "BRINGING_UP")
    assert ruling.allowance


def test_bring_up_clock_starts_when_the_job_runs():
    queued = polls("pending", until=2 * HOUR - 60)
    up = [*both_homes(), saw(2 * HOUR + 3000, BringUp("loading weights"))]
    assert said(ruled(*queued, *up, now=2 * HOUR + 3500, since=2 * HOUR)) == (Status.PASS, "BRINGING_UP")


def test_bring_up_past_its_allowance_is_stale():
    ruling = ruled(*both_homes(), saw(3500, BringUp("loading weights")), now=3700)
    assert said(ruling) == (Status.ERROR, "STALE")


def test_bring_up_whose_signals_dried_up_is_stale():
    assert said(ruled(*both_homes(), saw(300, BringUp("staging")), now=2400)) == (Status.ERROR, "STALE")


def test_running_job_without_a_log_is_incomplete():
    ruling = ruled(now=300)
    assert said(ruling) == (Status.ERROR, "INCOMPLETE")
    assert "phase-timer" in ruling.missing[0].what


def test_log_that_tells_neither_of_bring_up_nor_of_a_phase_is_incomplete():
    chatter = saw(200, EngineLoad("000", 3, 0, 4.0, 0.0, 90.0))
    frozen = [stack(5000), stack(5100)]
    assert said(ruled(*both_homes(), chatter, now=300)) == (Status.ERROR, "INCOMPLETE")
    ruling = ruled(*both_homes(), chatter, *frozen, now=5500)
    assert said(ruling) == (Status.ERROR, "INCOMPLETE")
    assert "heads may be missing" in ruling.missing[0].why
    assert any(item.searched for item in ruling.evidence)


def synced(at):
    return saw(at, SyncPolled(4.0), source="polls/sync.jsonl")


def sync_refused(at):
    failure = PollFailed("sync", "", ("sync_rl_logs.py", "--dest", "."), 1, "no route to host", "exit 1")
    return saw(at, failure, source="polls/sync.jsonl")


def test_standstill_of_logs_that_were_not_pulled_is_incomplete():
    job = [*training(), synced(60), *(sync_refused(at) for at in range(120, 5500, 60)), stack(5000), stack(5100)]
    ruling = ruled(*job, now=5500)
    assert said(ruling) == (Status.ERROR, "INCOMPLETE")
    assert (ruling.missing[0].what, ruling.missing[0].output) == ("the job's logs since 08:01:00Z", "no route to host")
    assert said(ruled(*job, synced(5490), now=5500)) == (Status.FAIL, "WEDGED")


def test_abort_that_the_pulled_logs_already_show_stays_a_wedge():
    job = [*training(), abort(120), synced(1100), *(sync_refused(at) for at in range(1160, 3000, 60))]
    assert said(ruled(*job, now=3000)) == (Status.FAIL, "WEDGED")


def test_one_failed_sync_is_forgiven():
    assert said(ruled(*training(), synced(60), sync_refused(120), now=300)) == (Status.PASS, "ALIVE")


# --- rule 9


def mesh(*kinds):
    facts = JobFacts(policy_mesh=("pod-0",), engine_mesh=("pod-1",))
    homes = [reading(kind, f"{kind}.log") for kind in kinds]
    return [saw(0, JobDeclared(facts), source="job.toml"), *homes]


def test_multi_mesh_without_the_actors_logs_is_incomplete():
    ruling = ruled(*mesh(SourceKind.AGGREGATED), started(10, "generate"), now=300)
    assert said(ruling) == (Status.ERROR, "INCOMPLETE")
    assert "actor-death record" in ruling.missing[0].what


def test_multi_mesh_without_the_aggregated_log_is_incomplete():
    ruling = ruled(*mesh(SourceKind.ACTOR), started(10, "generate", source="actor.log"), now=300)
    assert "watchdog record" in ruling.missing[0].what


def test_multi_mesh_is_seen_by_its_actor_classes():
    seen = [reading(), saw(5, ForwardEntered(0), actor=POLICY), saw(6, BringUp("up"), actor="AsyncVLLMInferenceEngine")]
    assert said(ruled(*seen, started(10, "generate"), now=300)) == (Status.ERROR, "INCOMPLETE")


def test_single_mesh_needs_no_actor_record():
    assert said(ruled(reading(), started(10, "generate"), now=300)) == (Status.PASS, "ALIVE")


def test_multi_mesh_before_its_first_phase_comes_up():
    job = [*mesh(SourceKind.AGGREGATED), saw(10, BringUp("staging"))]
    assert said(ruled(*job, now=300)) == (Status.PASS, "BRINGING_UP")


def test_both_records_read_let_the_job_be_alive():
    job = [*mesh(SourceKind.AGGREGATED, SourceKind.ACTOR), started(10, "generate")]
    assert said(ruled(*job, now=300)) == (Status.PASS, "ALIVE")


# --- rule 10


def test_alive_quotes_the_state_poll_and_the_open_phase():
    ruling = ruled(*both_homes(), started(10, "generate"), saw(60, BufferProgress(3, 64, 50.0)), now=300)
    assert said(ruling) == (Status.PASS, "ALIVE")
    assert "Started: 'generate'" in [item.quote for item in ruling.evidence]
    assert any(item.source == "polls/state.jsonl" for item in ruling.evidence)


def test_rising_buffer_keeps_a_long_generation_alive():
    bars = [saw(minute * 60, BufferProgress(minute, 64, minute * 60.0)) for minute in range(1, 90)]
    assert said(ruled(*both_homes(), started(10, "generate"), *bars, now=90 * 60)) == (Status.PASS, "ALIVE")


def test_frozen_buffer_is_no_progress():
    bars = [saw(minute * 60, BufferProgress(16, 64, minute * 60.0)) for minute in range(1, 65)]
    assert said(ruled(*both_homes(), started(10, "generate"), *bars, now=64 * 60)) == (Status.ERROR, "STALE")


def test_requeued_job_is_queued_whatever_phase_was_open():
    job = [*both_homes(), started(10, "generate"), polled(20, "running"), *polls("pending", since=60, until=600)]
    assert said(LIVENESS.judge(case_after(*job, now=600))) == (Status.PASS, "BRINGING_UP")
