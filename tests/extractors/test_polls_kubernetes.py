"""kubectl's and Ray's outputs: states of jobs, and pods as JSON or table."""

import json

import pytest

from extractors.polls import JobState, Pod, PodsPolled, StatePolled
from tests.extractors.poll_builders import reading, said, why


def job(kind: str = "Job", **status: object) -> str:
    return json.dumps({"apiVersion": "v1", "kind": kind, "metadata": {"name": "rl"}, "status": status}, indent=4)


def condition(kind: str, status: str = "True", **more: str) -> dict[str, str]:
    return {"type": kind, "status": status, **more}


def test_a_job_runs_while_pods_of_it_are_ready() -> None:
    assert said("state", job(active=4, ready=4)) == StatePolled(JobState.RUNNING, pods_alive=4)
    assert said("state", job(active=4)).state is JobState.RUNNING


def test_a_job_whose_pods_all_wait_is_pending() -> None:
    assert said("state", job(active=4, ready=0)).state is JobState.PENDING
    assert said("state", job()).state is JobState.PENDING
    assert said("state", job(conditions=[condition("Suspended")])).state is JobState.PENDING


def test_a_failed_job_gives_the_clusters_reason() -> None:
    failed = condition("Failed", reason="BackoffLimitExceeded", message="Job has reached the specified backoff limit")
    found = reading("state", job(failed=2, conditions=[failed]))
    expected = "BackoffLimitExceeded: Job has reached the specified backoff limit"
    assert found.signals == (StatePolled(JobState.FAILED, failures=2, error=expected),)
    assert found.quotes[0].strip() == '"type": "Failed",'


def test_a_deadline_is_a_timeout_and_a_false_condition_says_nothing() -> None:
    assert said("state", job(conditions=[condition("Failed", reason="DeadlineExceeded")])).state is JobState.TIMED_OUT
    assert said("state", job(active=1, conditions=[condition("Failed", "False")])).state is JobState.RUNNING
    assert said("state", job(succeeded=1, conditions=[condition("Complete")])).state is JobState.SUCCEEDED


def test_a_pytorchjob_counts_its_replicas() -> None:
    replicas = {"Master": {"active": 1}, "Worker": {"active": 3, "failed": 1}}
    history = [condition("Created"), condition("Restarting", "False"), condition("Running")]
    expected = StatePolled(JobState.RUNNING, failures=1, pods_alive=4)
    assert said("state", job("PyTorchJob", conditions=history, replicaStatuses=replicas)) == expected


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ({"jobStatus": "RUNNING", "jobDeploymentStatus": "Running"}, JobState.RUNNING),
        ({"jobStatus": "STOPPED", "jobDeploymentStatus": "Complete"}, JobState.KILLED),
        ({"jobStatus": "FAILED", "jobDeploymentStatus": "Failed", "reason": "AppFailed"}, JobState.FAILED),
        ({"jobDeploymentStatus": "Initializing"}, JobState.PENDING),
        ({"jobStatus": "RUNNING", "jobDeploymentStatus": "Failed", "reason": "DeadlineExceeded"}, JobState.TIMED_OUT),
    ],
)
def test_a_rayjob_is_its_jobs_status(status: dict[str, str], state: JobState) -> None:
    assert said("state", job("RayJob", **status)).state is state


def test_a_job_that_is_not_found_is_absent_but_its_pod_or_namespace_is_not_the_job() -> None:
    missing = 'Error from server (NotFound): jobs.batch "rl" not found\n'
    assert said("state", exit=1, stderr=missing).state is JobState.ABSENT
    assert "exit 1" in why("state", exit=1, stderr='Error from server (NotFound): pods "rl-0" not found\n')
    assert "exit 1" in why("state", exit=1, stderr='Error from server (NotFound): namespaces "iris" not found\n')


def test_several_listed_jobs_are_not_guessed_between() -> None:
    one = json.loads(job(active=1))
    assert "several" in why("state", json.dumps({"kind": "List", "items": [one, one]}))
    assert said("state", json.dumps({"kind": "List", "items": [one]})).state is JobState.RUNNING
    assert said("state", json.dumps({"kind": "List", "items": []})).state is JobState.ABSENT


def test_a_torn_object_is_no_state() -> None:
    assert "damaged" in why("state", job(active=1)[:60])


@pytest.mark.parametrize(
    ("output", "state", "code"),
    [
        (
            "Status for job 'raysubmit_7Xa': RUNNING\nStatus message: Job is currently running.\n",
            JobState.RUNNING,
            None,
        ),
        ("-----\nJob 'raysubmit_7Xa' succeeded\n-----\n", JobState.SUCCEEDED, None),
        ("Job 'raysubmit_7Xa' was stopped\n", JobState.KILLED, None),
        (
            "Job 'raysubmit_7Xa' failed\nStatus message: Job entrypoint command failed with exit code 3, last logs:\n",
            JobState.FAILED,
            3,
        ),
    ],
)
def test_ray_job_status_in_its_forms(output: str, state: JobState, code: int | None) -> None:
    polled = said("state", output, command="ray job status raysubmit_7Xa")
    assert (polled.state, polled.exit_code) == (state, code)


WIDE = """\
NAME              READY   STATUS      RESTARTS        AGE    IP         NODE        NOMINATED NODE   READINESS GATES
iris-rl-0-ab1-0   1/1     Running     2 (5m3s ago)    3h2m   10.1.0.4   node-7      <none>           <none>
iris-rl-1-ab1-0   0/1     OOMKilled   0               3h2m   10.1.0.5   node-8      <none>           <none>
iris-rl-2-ab1-0   0/1     Pending     0               3h2m   <none>     <none>      <none>           <none>
"""


def test_a_wide_table_with_restarts_ago_keeps_its_columns() -> None:
    found = reading("pods", WIDE)
    assert found.signals == (
        PodsPolled(
            (
                Pod("iris-rl-0-ab1-0", "Running", "node-7", 2),
                Pod("iris-rl-1-ab1-0", "OOMKilled", "node-8", 0, "OOMKilled"),
                Pod("iris-rl-2-ab1-0", "Pending"),
            )
        ),
    )
    assert found.quotes[0].startswith("iris-rl-1-ab1-0   0/1     OOMKilled")


def test_a_plain_table_and_one_with_namespaces_are_read() -> None:
    plain = "rl-0   1/1   Running   0   5m\n"
    assert said("pods", plain) == PodsPolled((Pod("rl-0", "Running"),))
    assert said("pods", "NAMESPACE  NAME  READY  STATUS  RESTARTS  AGE\niris   " + plain).pods[0].name == "rl-0"


def test_no_resources_is_an_empty_list_and_silence_is_not() -> None:
    found = reading("pods", "", stderr="No resources found in iris namespace.\n")
    assert found.signals == (PodsPolled(()),)
    assert found.quotes == ("No resources found in iris namespace.",)
    assert "exit 1" in why("pods", WIDE, exit=1, stderr="Unable to connect to the server: dial tcp: i/o timeout")


def pod(name: str, **status: object) -> dict[str, object]:
    return {"kind": "Pod", "metadata": {"name": name}, "spec": {"nodeName": "node-9"}, "status": status}


def pods(*items: dict[str, object]) -> str:
    return json.dumps({"kind": "List", "items": list(items)}, indent=4)


def container(name: str = "task", restarts: int = 0, **states: object) -> dict[str, object]:
    return {"name": name, "restartCount": restarts, **states}


def test_json_pods_say_how_their_main_container_last_ended() -> None:
    last = {"terminated": {"reason": "OOMKilled", "exitCode": 137}}
    statuses = [
        container("sidecar", 1, state={"running": {}}),
        container(restarts=3, state={"running": {}}, lastState=last),
    ]
    found = reading("pods", pods(pod("rl-0", phase="Running", containerStatuses=statuses)))
    assert found.signals == (PodsPolled((Pod("rl-0", "Running", "node-9", 4, "OOMKilled", 137),)),)
    assert found.quotes[0].strip() == '"reason": "OOMKilled",'


def test_a_disruption_says_more_than_an_error() -> None:
    ended = container(state={"terminated": {"reason": "Error", "exitCode": 143}})
    disrupted = condition("DisruptionTarget", reason="PreemptionByScheduler")
    (read,) = said("pods", pods(pod("rl-0", phase="Failed", containerStatuses=[ended], conditions=[disrupted]))).pods
    assert (read.status, read.reason, read.exit_code) == ("Error", "PreemptionByScheduler", 143)


@pytest.mark.parametrize(
    ("status", "word"),
    [
        (
            {"phase": "Pending", "conditions": [condition("PodScheduled", "False", reason="SchedulingGated")]},
            "SchedulingGated",
        ),
        (
            {"phase": "Pending", "containerStatuses": [container(state={"waiting": {"reason": "ErrImagePull"}})]},
            "ErrImagePull",
        ),
        ({"phase": "Failed", "reason": "Evicted"}, "Evicted"),
        ({"phase": "Pending", "initContainerStatuses": [container("init", state={"running": {}})]}, "Init:0/1"),
        ({"phase": "Running"}, "Running"),
    ],
)
def test_the_status_is_kubectls_word(status: dict[str, object], word: str) -> None:
    assert said("pods", pods(pod("rl-0", **status))).pods[0].status == word


def test_a_deleted_pod_is_terminating() -> None:
    item = pod("rl-0", phase="Running")
    item["metadata"] = {"name": "rl-0", "deletionTimestamp": "2026-07-20T09:00:00Z"}
    assert said("pods", pods(item)).pods[0].status == "Terminating"


def test_an_empty_json_list_is_an_answer_and_an_unnamed_pod_is_not() -> None:
    assert said("pods", pods()) == PodsPolled(())
    assert "metadata.name" in why("pods", pods({"kind": "Pod"}))
    assert "not found" in why("pods", pods(pod("rl-0"))[:50])
