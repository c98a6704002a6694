"""Slurm's outputs as a job state, the lying batch row and the silent controller among them."""

import pytest

from extractors.polls import JobState, StatePolled
from tests.extractors.poll_builders import reading, said, why

SACCT = "sacct -j 771 -P"
HEADER = "JobID|JobName|State|ExitCode\n"


def sacct(*rows: str, header: str = HEADER, command: str = SACCT, **fields: object) -> StatePolled:
    signal = said("state", header + "\n".join(rows) + "\n", command=command, **fields)
    assert isinstance(signal, StatePolled), signal
    return signal


def test_the_jobs_row_is_its_state() -> None:
    found = reading("state", HEADER + "771|rl|RUNNING|0:0\n771.batch|batch|RUNNING|0:0\n771.0|train|RUNNING|0:0\n")
    assert found.signals == (StatePolled(JobState.RUNNING),)
    assert found.quotes == ("771|rl|RUNNING|0:0",)


@pytest.mark.parametrize(
    ("cell", "exit_cell", "state", "code", "error"),
    [
        ("CANCELLED by 1234", "0:15", JobState.KILLED, 143, "CANCELLED by 1234"),
        ("TIMEOUT", "0:0", JobState.TIMED_OUT, 0, "TIMEOUT"),
        ("OUT_OF_MEMORY", "0:125", JobState.FAILED, 253, "OUT_OF_MEMORY"),
        ("NODE_FAIL", "1:0", JobState.FAILED, 1, "NODE_FAIL"),
        ("PREEMPTED", "0:15", JobState.PREEMPTED, 143, "PREEMPTED"),
        ("CANCELLED+", "0:9", JobState.KILLED, 137, "CANCELLED+"),
        ("COMPLETED", "0:0", JobState.SUCCEEDED, 0, ""),
        ("REQUEUED", "0:0", JobState.PENDING, None, "REQUEUED"),
    ],
)
def test_states_and_exits_of_sacct(cell: str, exit_cell: str, state: JobState, code: int | None, error: str) -> None:
    assert sacct(f"771|rl|{cell}|{exit_cell}") == StatePolled(state, exit_code=code, error=error)


@pytest.mark.parametrize(
    ("cell", "state"),
    [("OUT_OF_ME+", JobState.FAILED), ("NODE_FAI+", JobState.FAILED), ("PREEMPTE+", JobState.PREEMPTED)],
)
def test_a_state_that_a_narrow_column_cut_is_known(cell: str, state: JobState) -> None:
    assert sacct(f"771|rl|{cell}|0:0").state is state
    assert "job state" in why("state", HEADER + "771|rl|O+|0:0\n", command=SACCT)


def test_a_table_of_fixed_widths_is_read_and_quoted_as_printed() -> None:
    table = (
        "JobID           JobName      State ExitCode \n"
        "------------ ---------- ---------- -------- \n"
        "771                  rl CANCELLED+      0:0 \n"
        "771.batch         batch  CANCELLED     0:15 \n"
    )
    found = reading("state", table, command="sacct -j 771")
    assert found.signals == (StatePolled(JobState.KILLED, exit_code=0, error="CANCELLED+"),)
    assert found.quotes[0].startswith("771                  rl CANCELLED+")


def test_a_queued_jobs_reason_may_be_several_words() -> None:
    head = "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"
    row = "               771       gpu       rl    alice PD       0:00     16 (launch failed requeued held)\n"
    polled = said("state", head + row, command="squeue -j 771")
    assert polled == StatePolled(JobState.PENDING, error="launch failed requeued held")


def test_a_completed_batch_script_lies_where_its_step_failed() -> None:
    rows = "771|rl|COMPLETED|0:0", "771.batch|batch|COMPLETED|0:0", "771.0|train|FAILED|1:0"
    found = reading("state", HEADER + "\n".join(rows), command=SACCT)
    assert found.signals == (StatePolled(JobState.FAILED, exit_code=1),)
    assert found.quotes == (rows[2],)


def test_a_step_that_a_later_one_of_its_name_made_good_does_not_count() -> None:
    rows = "771|rl|COMPLETED|0:0", "771.0|train|FAILED|1:0", "771.1|train|COMPLETED|0:0"
    assert sacct(*rows).state is JobState.SUCCEEDED


def test_a_failed_step_of_a_running_job_is_not_its_end() -> None:
    assert sacct("771|rl|RUNNING|0:0", "771.0|probe|FAILED|2:0").state is JobState.RUNNING


def test_of_a_requeued_job_the_last_row_counts() -> None:
    assert sacct("771|rl|PREEMPTED|0:15", "771|rl|RUNNING|0:0").state is JobState.RUNNING


def test_without_header_the_command_names_the_columns() -> None:
    state = sacct("COMPLETED|771|0:0|", header="", command="sacct -n -P -o state%20,jobid,exitcode -j 771")
    assert state.state is JobState.SUCCEEDED


def test_a_header_without_rows_is_absence_only_where_the_tool_worked() -> None:
    assert sacct().state is JobState.ABSENT
    assert "exit 1" in why("state", HEADER, command=SACCT, exit=1, stderr="sacct: error: slurmdbd: Connection refused")


def test_the_watchers_squeue_format_is_read() -> None:
    assert said("state", "RUNNING|tasktrove-tiny\n", command="squeue -h -o %T|%j -j 771").state is JobState.RUNNING


def test_of_a_chain_the_running_job_counts() -> None:
    output = "PENDING|rl-2\nRUNNING|rl-1\nPENDING|rl-3\n"
    found = reading("state", output, command="squeue -h -o %T|%j")
    assert found.quotes == ("RUNNING|rl-1",)


def test_the_default_squeue_table_has_compact_states_and_reasons() -> None:
    output = (
        "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"
        "               771      gpu      rl        R PD       0:00      4 (Priority)\n"
    )
    assert said("state", output, command="squeue -j 771") == StatePolled(JobState.PENDING, error="Priority")


def test_an_empty_queue_is_absence_but_a_silent_controller_is_not() -> None:
    assert said("state", "", command="squeue -h -j 771 -o %T").state is JobState.ABSENT
    outage = "slurm_load_jobs error: Socket timed out on send/recv operation"
    assert "did not answer" in why("state", "", command="squeue -h -j 771", exit=1, stderr=outage)
    assert "did not answer" in why("state", "", command="squeue -h -j 771", exit=0, stderr=outage)


def test_a_job_that_the_controller_forgot_is_absent() -> None:
    stderr = "slurm_load_jobs error: Invalid job id specified"
    assert said("state", "", command="scontrol show job 771 -o", exit=1, stderr=stderr).state is JobState.ABSENT


def test_scontrol_says_restarts_reason_and_exit() -> None:
    output = (
        "JobId=771 JobName=rl UserId=bob(1000) JobState=FAILED Reason=NonZeroExitCode Dependency=(null) Requeue=1 "
        "Restarts=2 BatchFlag=1 ExitCode=3:0 RunTime=01:02:03 StdOut=/logs/rl_771.out\n"
    )
    expected = StatePolled(JobState.FAILED, exit_code=3, error="NonZeroExitCode", requeues=2)
    assert said("state", output, command="scontrol show job 771 -o") == expected
    running = output.replace("FAILED", "RUNNING").replace("NonZeroExitCode", "None")
    assert said("state", running) == StatePolled(JobState.RUNNING, requeues=2)
