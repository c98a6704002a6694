"""Where attempts are cut."""

from extractors.polls import JobState, Pod, PodsPolled
from extractors.relaunches import Anew, Launched
from extractors.signal import Fault
from extractors.supervisor import NodeRole, RoleAssigned
from state.attempts import AttemptCutter
from state.tracker import AttemptStarted
from tests.builders import polled, saw, started


def cuts(*observations):
    cutter = AttemptCutter()
    return [signal for signal in map(cutter.observe, observations) if signal is not None]


def banner(at, role=NodeRole.HEAD, source="finelog.log"):
    return saw(at, RoleAssigned(role, 0, 4), source=source)


def pods(at, *names):
    return saw(at, PodsPolled(tuple(Pod(name, "Running") for name in names)), source="polls/pods.jsonl")


def test_first_attempt_begins_without_a_signal():
    assert cuts(banner(0), polled(60, "running", failures=0)) == []


def test_attempt_suffix_of_a_task_begins_an_attempt():
    assert cuts(started(0, "step"), started(10, "step", attempt=1)) == [AttemptStarted(1)]


def test_failure_count_counts_only_while_the_job_runs():
    assert cuts(polled(0, JobState.FAILED, failures=1)) == []
    assert cuts(polled(0, JobState.RUNNING, failures=2)) == [AttemptStarted(2)]


def test_pod_generation_begins_an_attempt():
    assert cuts(pods(0, "iris-alice-rl-demo-0-0a9c4-0"), pods(60, "iris-alice-rl-demo-0-0a9c4-1")) == [
        AttemptStarted(1)
    ]


def test_index_at_the_end_of_a_plain_pod_name_is_no_generation():
    assert cuts(pods(0, "trainer-worker-3", "rl-demo-head-0")) == []


def test_one_banner_in_two_homes_is_one_life():
    assert cuts(banner(0), banner(4, source="pod_logs/rank0.log")) == []


def test_second_head_banner_begins_an_attempt():
    assert cuts(banner(0), banner(900)) == [AttemptStarted(1)]


def test_banners_of_workers_begin_nothing():
    assert cuts(banner(0), banner(900, NodeRole.WORKER)) == []


def test_signs_that_agree_cut_once():
    assert cuts(banner(0), banner(900), polled(930, "running", failures=1), started(950, "step", attempt=1)) == [
        AttemptStarted(1)
    ]


def test_number_never_falls():
    assert cuts(started(0, "step", attempt=2), started(5, "step", attempt=1)) == [AttemptStarted(2)]


def test_banner_that_another_home_tells_by_another_clock_is_no_new_attempt():
    def local(at):
        where = {"source": "pod_logs/rl-0.log", "own_seconds": at - 7 * 3600}
        return saw(at, RoleAssigned(NodeRole.HEAD, 0, 4), **where)

    assert cuts(banner(10), local(90)) == []
    assert cuts(banner(10), local(90), local(900)) == [AttemptStarted(1)]


KILLED = Fault("worker_crashed", "exit code -9", entity="local rank 3")


def launch(at, by="DeepSpeed", after=Anew.END, **where):
    return saw(at, Launched(by, after), **where)


def killed(at, **where):
    return saw(at, KILLED, pattern="launched_process_failed", **where)


def test_launch_after_an_end_in_the_same_home_begins_an_attempt():
    assert cuts(launch(0), killed(30), launch(50), killed(80), launch(100)) == [AttemptStarted(1), AttemptStarted(2)]


def test_launch_without_an_end_before_it_is_the_next_stage_of_a_script():
    assert cuts(launch(0), launch(900)) == []


def test_end_in_another_home_makes_no_launch_a_new_attempt():
    assert cuts(launch(0), killed(30, source="slurm-7.out"), launch(900)) == []


def test_launchers_of_several_nodes_are_one_launch():
    assert cuts(launch(0), killed(30), launch(50), killed(52), launch(55)) == [AttemptStarted(1)]


def test_a_launcher_that_restarts_its_workers_says_itself_that_they_ended():
    restarts = [launch(at, "torchrun", Anew.NOTHING) for at in (100, 103, 900)]
    assert cuts(launch(0, "torchrun"), *restarts) == [AttemptStarted(1), AttemptStarted(2)]


def test_second_start_of_a_process_that_is_alone_in_its_file_begins_an_attempt():
    assert cuts(launch(0, after=Anew.START), launch(1, after=Anew.START)) == [AttemptStarted(1)]


def test_error_of_the_program_itself_is_no_end_of_its_launcher():
    assert cuts(launch(0), saw(30, Fault("python_exception", "", "KeyError")), launch(900)) == []
