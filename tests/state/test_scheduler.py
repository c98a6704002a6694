"""What the state and pod polls come to."""

import pytest

from extractors.polls import JobState, Pod, PodsPolled, PollFailed
from state.over import job_over
from tests.builders import case_after, polled, polls, saw, us


def pods(at, *statuses):
    listed = tuple(Pod(f"pod-{place}", status) for place, status in enumerate(statuses))
    return saw(at, PodsPolled(listed), source="polls/pods.jsonl", quote="NAME READY STATUS")


def refused(at, probe="state"):
    failure = PollFailed(probe, "", ("ops", "--json"), 3, "connection refused", "exit 3")
    return saw(at, failure, source=f"polls/{probe}.jsonl")


def test_interval_is_the_median_of_all_polls_failed_ones_included():
    seen = case_after(polled(0, "running"), refused(60), polled(120, "running"), polled(900, "running")).scheduler
    assert seen.interval_seconds == 60


def test_one_poll_gives_no_interval():
    assert case_after(polled(0, "running")).scheduler.interval_seconds is None


def test_failure_goes_once_a_poll_succeeds():
    assert case_after(polled(0, "running"), refused(60)).scheduler.failed_in_a_row == 1
    assert case_after(refused(0), polled(60, "running")).scheduler.failure is None


def test_running_since_survives_an_absent_blip():
    seen = case_after(polled(0, "running"), polled(60, "absent"), polled(120, "running")).scheduler
    assert seen.running_since_us == us(0)
    assert seen.absent_since_us is None


def test_queue_time_starts_anew_where_the_job_is_requeued():
    seen = case_after(polled(0, "pending"), polled(60, "running"), polled(600, "pending")).scheduler
    assert seen.queued_since_us == us(600)


def test_empty_pod_lists_are_kept_as_first_and_newest():
    seen = case_after(polled(0, "running"), pods(10), pods(70), pods(130, "Completed")).scheduler
    assert seen.empty_pods_us == (us(10), us(130))


def test_living_pod_ends_a_run_of_empty_lists():
    assert case_after(polled(0, "running"), pods(10), pods(70, "Running")).scheduler.empty_pods_us == ()


@pytest.mark.parametrize(
    ("observations", "over"),
    [
        ([*polls("running", until=300)], False),
        ([polled(0, "running"), polled(60, "failed")], True),
        ([polled(0, "running"), pods(10)], False),
        ([polled(0, "running"), pods(10), pods(60)], False),
        ([polled(0, "running"), pods(10), pods(130)], True),
        ([polled(0, "running"), polled(60, "absent")], False),
        ([polled(0, "running"), pods(30), polled(60, "absent")], False),
        ([polled(0, "running"), polled(60, "absent"), pods(90)], True),
        ([polled(0, "absent"), pods(30)], False),
    ],
)
def test_job_is_over_only_by_record_or_by_two_sources(observations, over):
    assert (job_over(case_after(*observations)) is not None) is over


def test_states_that_end_a_job():
    assert [state for state in JobState if not state.over] == [JobState.PENDING, JobState.RUNNING, JobState.ABSENT]


def test_pod_that_a_later_generation_replaced_is_no_pod_of_the_job():
    pods = (Pod("rl-0-2de69-0", "OOMKilled"), Pod("rl-0-77ab1-1", "Running"), Pod("rl-1-2de69-0", "Running"))
    listed = case_after(saw(40, PodsPolled(pods), source="polls/pods.jsonl")).scheduler.pods
    assert [pod.name for pod in listed] == ["rl-0-77ab1-1", "rl-1-2de69-0"]
