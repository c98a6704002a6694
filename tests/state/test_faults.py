"""First cause, cascade, handled errors, hang signatures."""

from extractors.harbor import BatchCompleted
from extractors.metrics import StepMetrics
from extractors.polls import Pod, PodsPolled
from extractors.record import SourceKind
from extractors.signal import Fault, Teardown
from extractors.trainer import Ending, ForwardEntered, TrainingDone
from state.trackers.faults import EARLIEST_KEPT, NEWEST_KEPT
from tests.builders import ACTOR_LOG, both_homes, case_after, finished, reading, saw, started

POLICY = "FSDPPolicyWorkerBase"
ENGINE = "AsyncVLLMInferenceEngine"


def faults(*observations):
    return case_after(*both_homes(), *observations).faults


def fault(at, cause, *, pattern=None, actor="", pid=0, rank=None, entity="", **where):
    signal = Fault(cause, f"{cause} told", rank=rank, entity=entity)
    return saw(at, signal, pattern=pattern, actor=actor, pid=pid, **where)


def crash(at, exception="ValueError", site="forward", **where):
    return saw(at, Fault("python_exception", "bad shape", exception, site), **where)


def abort_of(rank, at):
    """The chain of lines that one policy rank leaves behind: watchdog, a minute later its abort and its signal."""
    who = {"actor": POLICY, "pid": 4000 + rank, "rank": rank}
    return [
        fault(at, "collective_timeout", pattern="collective_timeout", **who),
        fault(at + 60, "collective_abort", **who),
        saw(at + 60.2, Fault("fatal_signal", "SIGABRT"), actor=POLICY, pid=4000 + rank),
    ]


def test_no_error_has_no_first_cause():
    assert faults(started(0, "step")).first is None


def test_earliest_root_is_the_first_cause_and_explains_the_rest():
    seen = faults(
        crash(10, pid=5, actor=POLICY), fault(12, "actor_died", entity=POLICY), fault(13, "peer_lost", rank=3)
    )
    assert seen.first.fault.cause == "python_exception"
    assert seen.cascade == 2


def test_own_time_decides_not_the_order_of_arrival():
    loud = fault(12, "actor_died", entity=POLICY)
    late = crash(60, pid=5, actor=POLICY, source=ACTOR_LOG, own_seconds=10)
    assert faults(loud, late).first.fault.cause == "python_exception"


def test_same_error_in_two_homes_is_one_event_with_both_places():
    who = {"actor": ENGINE, "pid": 9}
    seen = faults(crash(10, **who), crash(13, source=ACTOR_LOG, **who))
    assert len(seen.events) == 1
    assert [place.source for place in seen.first.sources] == ["finelog.log", ACTOR_LOG]


def test_same_error_of_another_process_is_another_event():
    seen = faults(crash(10, actor=ENGINE, pid=9), crash(11, actor=ENGINE, pid=10, source=ACTOR_LOG))
    assert len(seen.events) == 2


def test_chain_of_one_process_begins_with_its_watchdog_line():
    seen = faults(*abort_of(5, 100), fault(102, "peer_lost", actor=POLICY, pid=4000, rank=0))
    assert (seen.first.fault.cause, seen.first.fault.rank) == ("collective_timeout", 5)
    assert seen.cascade == 3


def test_within_a_burst_the_order_of_the_file_is_truer_than_its_clocks():
    who = {"actor": "WorkerDict", "pid": 3}
    line = fault(10.9, "collective_timeout", pattern="collective_timeout", line=1, **who)
    signal = saw(10.6, Fault("fatal_signal", "SIGABRT"), pattern="collective_abort", line=40, **who)
    assert faults(signal, line).first.fault.cause == "collective_timeout"


def test_abort_of_an_actor_of_an_unknown_class_counts_as_policy():
    assert faults(fault(10, "collective_abort", actor="WorkerDict", pid=3)).abort is not None


def test_watchdog_behind_another_ranks_error_is_a_cascade():
    seen = faults(crash(10, actor=POLICY, pid=4003), *abort_of(5, 1700))
    assert seen.first.fault.cause == "python_exception"


def test_watchdog_behind_a_death_of_a_cascade_is_not_blamed():
    seen = faults(fault(10, "engine_dead", pattern="engine_dead", actor=ENGINE), *abort_of(5, 1700))
    assert seen.first.fault.cause == "engine_dead"


def test_death_long_before_the_timeout_explains_nothing():
    seen = faults(fault(10, "engine_dead", pattern="engine_dead", actor=ENGINE), *abort_of(5, 9000))
    assert seen.first.fault.cause == "collective_timeout"


def test_cascade_is_never_first_while_a_root_is_on_file():
    who = {"actor": ENGINE, "pid": 9}
    dead = fault(10, "engine_dead", pattern="engine_dead", actor=ENGINE, pid=8)
    root = fault(12, "engine_meta_tensors", **who)
    assert faults(dead, root).first.fault.cause == "engine_meta_tensors"


def test_traceback_is_the_cause_not_its_headline():
    who = {"actor": ENGINE, "pid": 9, "source": ACTOR_LOG}
    headline = fault(10, "engine_core_fatal", pattern="engine_core_fatal", **who)
    assert faults(headline, fault(10, "engine_meta_tensors", **who)).first.fault.cause == "engine_meta_tensors"


def test_headline_stands_in_where_its_traceback_is_not_on_file():
    assert faults(fault(10, "engine_core_fatal", pattern="engine_core_fatal")).first.fault.cause == "engine_core_fatal"


def test_deduplicated_copies_count():
    seen = faults(crash(10), fault(12, "peer_lost", rank=1, repeated=31))
    assert seen.cascade == 31


def test_what_both_homes_tell_is_counted_once():
    other = "ray_session_logs/rank1-node-b/worker-2.err"
    told = [fault(12 + rank / 10, "peer_lost", rank=rank, source=other) for rank in range(5)]
    seen = faults(crash(10), reading(SourceKind.ACTOR, other), fault(11, "peer_lost", rank=9, repeated=5), *told)
    assert seen.cascade == 5


def test_error_whose_component_progressed_was_handled():
    seen = faults(crash(10, actor=POLICY, pid=5), saw(60, ForwardEntered(3), actor=POLICY, pid=5))
    assert seen.first is None
    assert seen.noted[0].handled_by.line == 601


def test_progress_of_another_component_handles_nothing():
    seen = faults(crash(10, actor=POLICY, pid=5), saw(60, ForwardEntered(3), actor=POLICY, pid=6))
    assert seen.first is not None


def test_finished_line_written_by_the_exception_handles_nothing():
    assert faults(crash(10, pid=77), finished(12, "policy_train", 12)).first is not None


def test_coordinator_that_completes_a_batch_handled_its_error():
    who = {"actor": "RolloutCoordinator", "pid": 8}
    assert faults(crash(10, **who), saw(90, BatchCompleted(8, 8, 0, 0), **who)).first is None


def test_two_steps_banked_after_an_error_show_that_the_job_moved_on():
    old = crash(10, actor="RolloutCoordinator", pid=8)
    steps = [saw(at, StepMetrics(step, "train", {})) for step, at in ((3, 600), (4, 1200))]
    assert faults(old, *steps).first is None
    assert faults(old, steps[0]).first is not None


def test_in_a_log_without_clocks_the_order_of_its_lines_shows_that_the_job_moved_on():
    old = crash(0, actor="ToolWorker", pid=8, line=40)
    steps = [saw(0, StepMetrics(step, "train", {}), line=line) for step, line in ((3, 50), (4, 60), (5, 70))]
    assert faults(old, *steps[:2]).first is None
    young = crash(0, actor="ToolWorker", pid=8, line=65)
    assert faults(steps[0], steps[1], young, steps[2]).first is not None


def test_in_a_log_without_clocks_an_error_said_again_is_one_event_until_a_step_is_banked():
    step = saw(0, StepMetrics(3, "train", {}), line=50)
    again = [crash(0, pid=8, line=line) for line in (60, 61, 62)]
    (event,) = faults(step, *again).events
    assert event.count == 3
    assert len(faults(crash(0, pid=8, line=40), step, *again).events) == 2


def test_exception_that_the_run_survived_before_is_not_blamed_for_a_later_death():
    parser = {"exception": "BadAnswer", "site": "parse", "actor": "ToolWorker"}
    steps = [saw(at, StepMetrics(step, "train", {})) for step, at in ((3, 600), (4, 1200))]
    again = crash(1300, pid=9, **parser)
    seen = faults(crash(10, pid=8, **parser), *steps, again, fault(1310, "actor_died", entity=POLICY))
    assert seen.first.fault.cause == "actor_died"
    assert faults(crash(10, pid=8, **parser), *steps, again).first.fault.exception == "BadAnswer"
    assert faults(crash(10, pid=8, **parser), *steps, crash(1300, pid=9)).first.fault.exception == "ValueError"


def test_errors_after_training_was_done_are_noise():
    assert faults(saw(10, TrainingDone(Ending.DONE)), crash(20)).first is None


def test_ambiguous_death_within_a_teardown_is_its_consequence():
    assert faults(saw(10, Teardown("ray stop")), fault(11, "worker_crashed", pid=5)).first is None


def test_root_within_a_teardown_still_counts():
    assert faults(saw(10, Teardown("Generator shutdown")), crash(11)).first is not None


def test_killed_pod_tells_why_its_worker_died():
    listed = PodsPolled((Pod("pod-2", "OOMKilled", reason="OOMKilled", exit_code=137),))
    seen = faults(fault(10, "worker_crashed", pid=5), saw(40, listed, source="polls/pods.jsonl"))
    assert seen.first.fault.cause == "host_oom"


def test_memory_report_tells_why_a_call_that_nobody_waited_for_failed():
    lost = saw(10, Fault("python_exception", "an error that nobody waited for", "", "update_weight", entity=ENGINE))
    report = fault(9, "memory_monitor_kill", pattern="memory_report_tail")
    assert faults(report, lost).first.fault.cause == "memory_monitor_kill"
    assert faults(report, crash(10)).first.fault.cause == "python_exception"


def test_pod_list_confirms_a_death_when_it_is_next_asked_for():
    listed = PodsPolled((Pod("pod-2", "OOMKilled", reason="OOMKilled"),))
    seen = faults(fault(10, "worker_crashed", pid=5), saw(310, listed, source="polls/pods.jsonl"))
    assert seen.first.fault.cause == "host_oom"


def test_pod_that_runs_again_was_killed_in_a_life_before():
    listed = PodsPolled((Pod("pod-2", "Running", restarts=1, reason="OOMKilled"),))
    assert not faults(saw(40, listed, source="polls/pods.jsonl")).confirms


def test_pod_that_a_later_generation_replaced_confirms_nothing():
    pods = (Pod("rl-0-2de69-0", "OOMKilled", reason="OOMKilled"), Pod("rl-0-77ab1-1", "Running"))
    assert not faults(saw(40, PodsPolled(pods), source="polls/pods.jsonl")).confirms


def test_killed_pod_long_after_tells_nothing_of_an_earlier_death():
    listed = PodsPolled((Pod("pod-2", "OOMKilled", reason="OOMKilled"),))
    seen = faults(fault(10, "worker_crashed", pid=5), saw(4000, listed, source="polls/pods.jsonl"))
    assert seen.first.fault.cause == "worker_crashed"


def test_kernel_oom_of_a_neighbour_on_the_node_explains_nothing():
    def killed(name):
        told = Fault("host_oom", "the kernel killed a process", entity=f"{name} (4242)")
        return saw(20, told, pattern="kernel_oom")

    ours, neighbour = killed("ray::FSDPPolicy"), killed("vector")
    death = fault(10, "worker_crashed", pid=5)
    assert faults(death, ours).first.fault.cause == "host_oom"
    assert faults(death, neighbour).first.fault.cause == "worker_crashed"
    assert faults(neighbour).first is None


def test_lone_watchdog_line_is_no_hang_signature():
    assert faults(abort_of(5, 100)[0]).hang is None


def test_watchdog_and_abort_are_one():
    seen = faults(*abort_of(5, 100))
    assert seen.hang is not None
    assert seen.abort.origin.pid == 4005


def test_abort_of_an_engine_ends_no_policy_process():
    seen = faults(fault(10, "collective_abort", actor=ENGINE, pid=9))
    assert seen.abort is None


def test_abort_of_an_unnamed_process_group_counts_as_policy():
    assert faults(fault(10, "collective_abort", rank=5)).abort is not None


def test_death_of_a_coordinator_is_no_hang_signature():
    assert faults(fault(10, "actor_died", entity="RolloutCoordinator")).hang is None
    assert faults(fault(10, "actor_died", entity=POLICY)).hang is not None


def test_new_attempt_starts_with_a_clean_sheet():
    assert faults(crash(10), started(900, "step", attempt=1)).events == ()


def test_memory_is_bounded_and_still_counts():
    seen = faults(*(crash(at, site=f"site_{at}", pid=at + 1) for at in range(200)))
    assert len(seen.events) == 128
    assert (seen.first.fault.site, seen.cascade) == ("site_0", 199)


def test_an_eviction_of_all_pods_is_a_cause_where_no_error_stands_before_it():
    listed = PodsPolled((Pod("pod-0", "Error", reason="PreemptionByScheduler", exit_code=137), Pod("pod-1", "Evicted")))
    seen = faults(
        started(0, "step"), saw(40, listed, source="polls/pods.jsonl"), saw(90, listed, source="polls/pods.jsonl")
    )
    assert seen.first is not None
    assert (seen.first.fault.cause, seen.first.fault.entity) == ("preempted", "pod-0")


def test_an_evicted_pod_beside_living_ones_tells_no_end():
    listed = PodsPolled((Pod("pod-0-x", "Evicted", reason="Evicted"), Pod("pod-0-y", "Running")))
    assert faults(started(0, "step"), saw(40, listed, source="polls/pods.jsonl")).first is None


def test_an_eviction_after_an_error_is_its_end():
    listed = PodsPolled((Pod("pod-0", "Error", reason="EvictionByEvictionAPI"),))
    seen = faults(crash(10), saw(40, listed, source="polls/pods.jsonl"))
    assert seen.first is not None
    assert seen.first.fault.cause == "python_exception"


def test_storm_of_many_errors_is_bounded_and_still_finds_its_like():
    storm = [crash(at, site=f"site_{at}", actor=POLICY, pid=7, source=ACTOR_LOG) for at in range(300)]
    again = [crash(299 + at / 10, site="site_299", actor=POLICY, pid=7, source=ACTOR_LOG) for at in range(1, 6)]
    seen = faults(*storm, *again)
    assert len(seen.events) == EARLIEST_KEPT + NEWEST_KEPT
    assert seen.events[-1].count == 6
    assert seen.total == 305


def dropped(at, exception="TypeError", **where):
    """An exception of a task that nobody awaits."""
    return crash(at, exception, "ask", pattern="detached_exception", **where)


def test_an_error_of_a_dropped_task_is_a_first_cause_where_nothing_else_is():
    assert faults(dropped(10)).first.fault.exception == "TypeError"


def test_an_error_of_a_dropped_task_is_handled_where_anybody_moves_on_after_it():
    seen = faults(dropped(10, pid=5), started(20, "step"))
    assert (seen.first, [event.fault.exception for event in seen.noted]) == (None, ["TypeError"])


def test_an_error_that_ended_its_process_is_blamed_before_an_earlier_one_of_a_dropped_task():
    seen = faults(dropped(10, pid=5), crash(60, "OSError", "main", pid=5))
    assert seen.first.fault.exception == "OSError"


def test_of_two_kinds_of_dropped_tasks_the_newer_one_is_blamed_since_the_process_went_on_after_the_other():
    seen = faults(dropped(10), dropped(4000, "KeyError"), dropped(4100, "KeyError"))
    assert (seen.first.fault.exception, seen.first.count) == ("KeyError", 2)


def test_a_bare_death_long_after_an_error_of_a_dropped_task_is_not_its_doing():
    death = fault(4000, "actor_died", entity=POLICY)
    assert faults(dropped(10), death).first.fault.cause == "actor_died"
    assert faults(dropped(3900), death).first.fault.exception == "TypeError"
