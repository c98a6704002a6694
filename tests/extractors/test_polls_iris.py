"""The Iris tools' outputs as a job state."""

import json
from typing import Any

import pytest

from extractors.polls import JobState, StatePolled
from tests.extractors.poll_builders import reading, said, why

JOB = "/bob/rl-tiny"
HUMAN = f"[09:15:00] {JOB} state=running (3) src=summary pods=6 tasks=0/6 exit=0 preempts=1"


def state_object(**changed: object) -> dict[str, object]:
    said_by_tool = {"job_id": JOB, "state": "running", "state_int": 3, "error": None, "exit_code": 0}
    counts = {"failure_count": 0, "preemption_count": 1, "task_count": 6, "source": "summary", "pods_alive": 6}
    return said_by_tool | counts | changed


def test_the_human_line_before_the_json_is_the_quote() -> None:
    found = reading("state", HUMAN + "\n" + json.dumps(state_object(), indent=2) + "\n")
    assert found.signals == (StatePolled(JobState.RUNNING, 0, failures=0, preemptions=1, pods_alive=6),)
    assert found.quotes == (HUMAN,)


def test_the_json_alone_is_quoted_by_its_state_line() -> None:
    found = reading("state", json.dumps(state_object(), indent=2))
    assert found.quotes == ('  "state": "running",',)


def test_the_human_line_alone_is_enough() -> None:
    line = f"[09:15:00] {JOB} state=failed (5) src=query pods=0 tasks=0/6 exit=1 preempts=0 error='Exit code 1'"
    assert said("state", line) == StatePolled(JobState.FAILED, 1, preemptions=0, pods_alive=0, error="Exit code 1")


def test_the_tool_exits_1_for_a_failed_job_and_that_is_an_answer() -> None:
    output = json.dumps(state_object(state="failed", state_int=5, exit_code=1, error="Exit code 1"), indent=2)
    assert said("state", output, exit=1, stderr="[watch] TERMINAL: failed\n").state is JobState.FAILED


def test_a_torn_json_falls_back_to_the_human_line() -> None:
    assert said("state", HUMAN + '\n{\n  "job_id": "/bob').state is JobState.RUNNING
    assert "damaged" in why("state", '{\n  "job_id": "/bob')


def test_no_record_and_no_pods_is_absent() -> None:
    output = json.dumps(state_object(state="absent", source="absent", pods_alive=0), indent=2)
    assert said("state", output, exit=2).state is JobState.ABSENT


def test_the_tools_own_error_is_never_a_state() -> None:
    stderr = f"[watch] ERROR: could not read state for {JOB}: tunnel closed\n"
    assert "exit 3" in why("state", "", exit=3, stderr=stderr)


@pytest.mark.parametrize(
    ("word", "state"),
    [("building", "pending"), ("worker_failed", "failed"), ("unschedulable", "unschedulable"), ("killed", "killed")],
)
def test_words_of_iris_come_to_states(word: str, state: str) -> None:
    assert said("state", json.dumps(state_object(state=word))).state == JobState(state)


@pytest.mark.parametrize("word", ["unspecified", "JOB_STATE_UNSPECIFIED", 0, 99, True, [], None])
def test_what_is_no_state_is_a_failure_that_names_the_key(word: object) -> None:
    assert "key state" in why("state", json.dumps(state_object(state=word)))


def test_a_killed_job_that_was_preempted_is_preempted() -> None:
    output = json.dumps(state_object(state="killed", error="Preempted by /carol/eval-7"))
    assert said("state", output).state is JobState.PREEMPTED


SUMMARY = """\
I20260720 09:15:00 1234 iris.cli.connect Tunnel ready: 127.0.0.1:10000
Job: /bob/rl-tiny (/bob/rl-tiny)
State: failed  exit=0  failures=1  preemptions=2
Tasks: 0/2 completed  failed=2
Error: worker task exited

  TASK  STATE      EXIT  DURATION       PEAK MEM
     0  failed      134  3 minutes      -
     1  failed      143  3 minutes      -
"""


def test_the_summary_text_takes_the_tasks_exit_where_the_job_says_0() -> None:
    found = reading("state", SUMMARY)
    assert found.signals == (StatePolled(JobState.FAILED, 134, 1, 2, error="worker task exited"),)
    assert found.quotes[0].startswith("State: failed")


def test_a_dash_is_no_exit_code() -> None:
    assert said("state", "State: running  exit=-  failures=0  preemptions=0\n").exit_code is None


def test_the_summary_json_takes_the_tasks_exit_too() -> None:
    output = json.dumps(state_object(state="failed", tasks=[{"exit_code": 0}, {"exit_code": "139"}]))
    assert said("state", output).exit_code == 139


def test_csv_of_a_query_has_crlf_ends_and_a_preamble() -> None:
    output = 'Tunnel ready\r\njob_id,state,exit_code,error\r\n/bob/rl-tiny,5,1,"two\r\nlines, quoted"\r\n'
    found = reading("state", output)
    assert (found.signals[0].state, found.signals[0].exit_code) == (JobState.FAILED, 1)
    assert found.quotes[0] == '/bob/rl-tiny,5,1,"two'


def test_csv_null_is_empty_and_no_row_is_absent() -> None:
    assert said("state", "job_id,state,exit_code\r\n/bob/rl-tiny,3,\r\n").exit_code is None
    assert said("state", "job_id,state,exit_code\r\n").state is JobState.ABSENT


def test_a_query_that_failed_after_its_header_is_no_absence() -> None:
    assert "exit 1" in why("state", "job_id,state\r\n", exit=1, stderr="Traceback (most recent call last):")


LISTED = [
    {"job_id": "/bob/rl-tiny-2", "state": "JOB_STATE_FAILED", "failure_count": 1},
    {"job_id": JOB, "state": "JOB_STATE_RUNNING", "submitted_at": "1784534400000", "preemption_count": "2"},
]


def test_the_listing_gives_the_job_of_the_command_and_zeros_that_protobuf_leaves_out() -> None:
    found = reading("state", json.dumps(LISTED, indent=2), command=f"iris job list --json --prefix {JOB}")
    assert found.signals == (StatePolled(JobState.RUNNING, failures=0, preemptions=2),)
    assert found.quotes == ('    "state": "JOB_STATE_RUNNING",',)


def test_a_listing_does_not_guess_which_job_is_meant() -> None:
    assert "2 jobs are listed" in why("state", json.dumps(LISTED), command="iris job list --json")


def test_a_listing_without_the_target_is_absence() -> None:
    assert said("state", json.dumps(LISTED), target="/bob/other").state is JobState.ABSENT
    assert said("state", "[]\n", command="iris job list --json").state is JobState.ABSENT


def test_the_plain_listing_is_read_by_its_columns() -> None:
    output = (
        "JOB ID          STATE    RESOURCES  SUBMITTED                         REASON\n"
        "/bob/rl-tiny-2  failed   8xH100     2026-07-20T07:00:00.000000+00:00  exit 1\n"
        "/bob/rl-tiny    pending  8xH100     2026-07-20T08:00:00.000000+00:00  waiting for capacity\n"
    )
    found = reading("state", output, target=JOB)
    assert found.signals == (StatePolled(JobState.PENDING, error="waiting for capacity"),)
    assert found.quotes[0].startswith("/bob/rl-tiny  ")
    assert said("state", "No jobs found.\n").state is JobState.ABSENT


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({"exit": 1, "stderr": "[watch] TERMINAL: failed\n"}, JobState.FAILED),
        ({"exit": 2, "stderr": "[watch] TERMINAL: absent\n"}, JobState.ABSENT),
        ({"stdout": "Job completed with state: 4\n"}, JobState.SUCCEEDED),
        ({"stdout": "INFO job=/bob/rl finished with state=killed, draining logs (total_lines=9)\n"}, JobState.KILLED),
    ],
)
def test_the_one_line_in_which_a_tool_tells_the_end_is_a_state(fields: dict[str, Any], state: JobState) -> None:
    assert said("state", **fields) == StatePolled(state)


def test_what_a_tool_tells_of_itself_is_no_end() -> None:
    assert "exit 3" in why("state", exit=3, stderr="[watch] ERROR: could not read state for /bob/rl\n")
    assert "Job failed" in why("state", exit=1, stderr="Job failed: no route\n")


def test_a_query_as_a_table_is_read_by_its_names() -> None:
    table = "job_id      state    exit_code  error\n/bob/rl         5            1  boom\n"
    found = reading("state", table, command="iris query -f table")
    assert found.signals == (StatePolled(JobState.FAILED, exit_code=1, error="boom"),)
    assert found.quotes == ("/bob/rl         5            1  boom",)


def test_of_a_table_with_an_empty_cell_only_the_first_columns_are_taken() -> None:
    table = "job_id      state    exit_code  error\n/bob/rl         3               \n"
    assert said("state", table, command="iris query -f table") == StatePolled(JobState.RUNNING)
    assert "job state" in why("state", "error    state  job_id\n    3  /bob/rl\n", command="iris query -f table")


def test_a_dropped_connection_is_no_state() -> None:
    assert "Connection lost" in why("state", f"Connection lost; job {JOB} is still running.\n", exit=1)
