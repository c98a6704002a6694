"""Gate A, rules 1 to 4, and done but not exited."""

from extractors.polls import Pod, PodsPolled, PollFailed, SyncPolled
from extractors.record import SourceEnded, SourceFailed, SourceKind
from extractors.signal import Fault, Teardown
from extractors.supervisor import DriverExited, UploadCut
from extractors.trainer import Ending, StepCompleted, TrainingDone
from state.gate import Status
from state.gates.liveness import LIVENESS
from tests.builders import ACTOR_LOG, both_homes, case_after, in_time, polled, polls, reading, saw, started


def ruled(*observations, now=None):
    return LIVENESS.judge(case_after(*in_time(*observations), now=now))


def said(ruling):
    return ruling.status, ruling.condition


def refused(at, probe="state", output="connection refused"):
    failure = PollFailed(probe, "", ("ops", "--once", "--json"), 3, output, "exit 3")
    return saw(at, failure, source=f"polls/{probe}.jsonl")


def pods(at, *statuses):
    listed = tuple(Pod(f"pod-{place}", status) for place, status in enumerate(statuses))
    return saw(at, PodsPolled(listed), source="polls/pods.jsonl", quote="NAME READY STATUS")


def died(at=100, cause="engine_meta_tensors", **where):
    return saw(at, Fault(cause, "no kernel"), **{"actor": "AsyncVLLMInferenceEngine", "pid": 9, **where})


RUNNING = [*both_homes(), started(10, "generate"), *polls("running", until=120)]

# --- rule 1


def test_job_without_a_state_poll_cannot_be_judged():
    ruling = ruled(*both_homes(), started(10, "generate"))
    assert said(ruling) == (Status.ERROR, "INCOMPLETE")
    assert ruling.missing[0].what == "the state poll"


def test_state_poll_that_only_failed_gives_its_command_and_output():
    (gap,) = ruled(*both_homes(), refused(0), refused(60)).missing
    assert (gap.command, gap.exit, gap.output) == (("ops", "--once", "--json"), 3, "connection refused")


def test_state_poll_older_than_three_intervals_is_no_state():
    assert said(ruled(*RUNNING, now=299)) == (Status.PASS, "ALIVE")
    ruling = ruled(*RUNNING, refused(180), refused(240), now=301)
    assert said(ruling) == (Status.ERROR, "INCOMPLETE")
    assert ruling.missing[0].output == "connection refused"


def test_lone_state_poll_holds_for_ten_minutes():
    one = [*both_homes(), started(10, "generate"), polled(20, "running")]
    assert said(ruled(*one, now=619)) == (Status.PASS, "ALIVE")
    assert said(ruled(*one, now=621)) == (Status.ERROR, "INCOMPLETE")


def test_failed_poll_after_a_fresh_one_is_forgiven():
    assert said(ruled(*RUNNING, refused(180), now=190)) == (Status.PASS, "ALIVE")


def test_end_of_a_job_does_not_grow_old():
    ruling = ruled(*both_homes(), died(), polled(200, "failed", exit_code=1), now=90_000)
    assert said(ruling) == (Status.FAIL, "DEAD")


# --- rule 2


def test_running_state_with_an_empty_pod_list_is_unreconciled():
    ruling = ruled(*RUNNING, pods(100))
    assert said(ruling) == (Status.ERROR, "UNRECONCILED")
    assert {"polls/state.jsonl", "polls/pods.jsonl"} == {item.source for item in ruling.evidence}


def test_running_state_with_two_empty_pod_lists_is_an_end():
    lists = [pods(60), pods(120), pods(185)]
    assert said(ruled(*RUNNING, died(), *lists[:2])) == (Status.ERROR, "UNRECONCILED")
    assert said(ruled(*RUNNING, died(), *lists)) == (Status.FAIL, "DEAD")


def test_empty_pod_lists_of_a_job_whose_trainer_moves_on_are_unreconciled():
    job = [*RUNNING, died(), *polls("running", since=180, until=900), *(pods(at) for at in range(60, 900, 120))]
    ruling = ruled(*job, started(890, "policy_train"))
    assert said(ruling) == (Status.ERROR, "UNRECONCILED")
    assert "moved on until 08:14:50Z" in ruling.reason
    assert said(ruled(*job, started(100, "policy_train"))) == (Status.FAIL, "DEAD")


def test_vanished_record_of_a_job_whose_trainer_moves_on_is_unreconciled():
    job = [*RUNNING, died(), polled(180, "absent"), pods(200), polled(400, "absent"), started(390, "policy_train")]
    assert said(ruled(*job)) == (Status.ERROR, "UNRECONCILED")


def test_pod_that_is_back_reconciles():
    assert said(ruled(*RUNNING, pods(60), pods(100, "Running"))) == (Status.PASS, "ALIVE")


def test_vanished_record_with_an_empty_pod_list_is_an_end():
    assert said(ruled(*RUNNING, died(), polled(180, "absent"), pods(200))) == (Status.FAIL, "DEAD")


def test_vanished_record_without_a_pod_list_is_unreconciled():
    ruling = ruled(*RUNNING, polled(180, "absent"), refused(190, "pods", "Unauthorized"))
    assert said(ruling) == (Status.ERROR, "UNRECONCILED")
    assert ruling.missing[0].output == "Unauthorized"


def test_record_that_was_never_seen_proves_nothing():
    assert said(ruled(*both_homes(), polled(0, "absent"), pods(30))) == (Status.ERROR, "UNRECONCILED")


# --- rule 3


def test_succeeded_with_a_training_done_line_is_completed():
    done = saw(100, TrainingDone(Ending.DONE))
    assert said(ruled(*both_homes(), done, polled(200, "succeeded"))) == (Status.PASS, "COMPLETED")


def test_an_error_of_a_dropped_task_explains_a_failure_and_no_success():
    dropped = saw(100, Fault("python_exception", "", "KeyError", "ask"), pattern="detached_exception")
    assert said(ruled(*both_homes(), dropped, polled(200, "failed"))) == (Status.FAIL, "DEAD")
    assert said(ruled(*both_homes(), dropped, polled(200, "succeeded"))) == (Status.ERROR, "UNEXPLAINED")


def test_succeeded_at_the_last_step_is_completed_whatever_broke_after_it():
    last = saw(100, StepCompleted(80, 80, 60.0))
    ruling = ruled(*both_homes(), last, died(110), polled(200, "succeeded"))
    assert said(ruling) == (Status.PASS, "COMPLETED")


def test_exit_zero_before_the_last_step_is_not_completed():
    steps = saw(100, StepCompleted(7, 80, 60.0))
    ruling = ruled(*both_homes(), steps, died(110), polled(200, "succeeded", exit_code=0))
    assert said(ruling) == (Status.FAIL, "DEAD")


# --- rule 4


def test_dead_job_names_its_first_cause_and_what_it_explains():
    cascade = saw(105, Fault("engine_dead", "EngineDeadError"), pattern="engine_dead", pid=11, repeated=8)
    ruling = ruled(*both_homes(), died(source=ACTOR_LOG), cascade, polled(200, "failed", exit_code=1))
    assert said(ruling) == (Status.FAIL, "DEAD")
    assert ruling.evidence[0].source == ACTOR_LOG
    assert "meta tensors" in ruling.reason
    assert "deterministic" in ruling.reason
    assert "8 later errors" in ruling.reason
    assert "hold" in ruling.fix


def test_dead_job_with_one_home_unread_is_incomplete():
    ruling = ruled(reading(), died(), polled(200, "failed"))
    assert said(ruling) == (Status.ERROR, "INCOMPLETE")
    assert ruling.missing[0].what == "the per-actor Ray logs"


def test_unreadable_home_says_why():
    broken = saw(1, SourceFailed(SourceKind.ACTOR, "permission denied"), source=ACTOR_LOG)
    (gap,) = ruled(reading(), broken, died(), polled(200, "failed")).missing
    assert "permission denied" in gap.why


def test_empty_log_of_a_dead_job_is_no_home_that_was_read():
    empty = saw(1, SourceEnded(SourceKind.ACTOR, 0, 0, unparsed=0, complete=True), source=ACTOR_LOG)
    ruling = ruled(*both_homes(), empty, died(), polled(200, "failed"))
    assert said(ruling) == (Status.ERROR, "INCOMPLETE")
    assert ruling.missing[0].why == f"{ACTOR_LOG} is empty"


def test_dead_job_without_a_cause_is_unexplained_and_quotes_where_it_looked():
    ruling = ruled(
        *both_homes(),
        started(10, "generate"),
        saw(20, Teardown("ray stop")),
        saw(30, Fault("worker_crashed", "SIGKILL")),
        polled(200, "failed", exit_code=137),
    )
    assert said(ruling) == (Status.ERROR, "UNEXPLAINED")
    assert any(item.searched for item in ruling.evidence)


def test_end_by_the_schedulers_own_word_explains_itself():
    for state, cause in (("preempted", "preempted"), ("timed_out", "wall_clock")):
        ruling = ruled(*both_homes(), started(10, "generate"), polled(200, state, error="node reclaimed"))
        assert (*said(ruling), ruling.cause) == (Status.FAIL, "DEAD", cause)
        assert "transient" in ruling.reason
        assert "node reclaimed" in ruling.reason
    assert said(ruled(reading(), started(10, "generate"), polled(200, "preempted"))) == (Status.ERROR, "INCOMPLETE")


def test_bare_sigkill_by_an_unknown_hand_is_unexplained():
    crash = saw(100, Fault("worker_crashed", "SYSTEM_ERROR: connection error code 2"), actor="raylet", pid=7)
    ruling = ruled(*both_homes(), started(10, "generate"), crash, polled(200, "failed", exit_code=137))
    assert said(ruling) == (Status.ERROR, "UNEXPLAINED")
    assert "unknown hand" in ruling.reason
    assert crash.evidence in ruling.evidence
    assert said(ruled(*both_homes(), crash, polled(200, "failed", exit_code=1))) == (Status.FAIL, "DEAD")


def test_kill_that_the_pod_list_confirms_explains_the_errors_before_the_poll():
    crash = saw(100, Fault("worker_crashed", "SYSTEM_ERROR"), actor="raylet", pid=7)
    cascade = saw(105, Fault("engine_dead", "EngineDeadError"), pattern="engine_dead", pid=11, repeated=8)
    listed = PodsPolled((Pod("rl-2", "OOMKilled", reason="OOMKilled", exit_code=137),))
    told = saw(340, listed, source="polls/pods.jsonl")
    ruling = ruled(*both_homes(), crash, cascade, polled(200, "failed", exit_code=137), told)
    assert said(ruling) == (Status.FAIL, "DEAD")
    assert "9 later errors" in ruling.reason


def test_end_whose_logs_were_not_pulled_is_incomplete_not_unexplained():
    synced = saw(20, SyncPolled(4.0), source="polls/sync.jsonl")
    job = [*both_homes(), started(10, "generate"), synced, refused(900, "sync", "no route to host")]
    ruling = ruled(*job, polled(1000, "failed", exit_code=1))
    assert said(ruling) == (Status.ERROR, "INCOMPLETE")
    assert ruling.missing[0].output == "no route to host"


# --- done, not exited


def test_done_trainer_whose_job_runs_on_is_wedged_after_a_quarter_of_an_hour():
    done = [*both_homes(), started(10, "step"), saw(100, TrainingDone(Ending.DONE)), *polls("running", until=1200)]
    ruling = ruled(*done, now=1010)
    assert said(ruling) == (Status.FAIL, "WEDGED")
    assert "end the job" in ruling.fix


def test_done_trainer_may_take_its_time_to_exit():
    done = [*both_homes(), started(10, "step"), saw(100, TrainingDone(Ending.DONE)), *polls("running", until=900)]
    assert said(ruled(*done, now=940)) == (Status.PASS, "ALIVE")


def test_trainer_that_goes_on_after_its_last_step_is_not_done():
    more = [saw(100, TrainingDone(Ending.MAX_STEPS)), started(120, "save_checkpoints")]
    assert said(ruled(*both_homes(), *more, *polls("running", until=1500))) == (Status.PASS, "ALIVE")


def test_an_end_without_a_cause_whose_ray_logs_were_cut_is_no_end_without_a_cause():
    for said_so in (UploadCut(), DriverExited(1, upload_cut=True)):
        ruling = ruled(*both_homes(), saw(150, said_so), polled(200, "failed", exit_code=1))
        assert said(ruling) == (Status.ERROR, "INCOMPLETE")
        assert ruling.missing[0].what == "the ends of the per-actor Ray logs"
        assert said(ruled(*both_homes(), died(), saw(150, said_so), polled(200, "failed"))) == (Status.FAIL, "DEAD")
    assert said(ruled(*both_homes(), saw(150, DriverExited(1)), polled(200, "failed"))) == (Status.ERROR, "UNEXPLAINED")
