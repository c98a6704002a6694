"""Poll records at the door: what is no record is a value that names the key and the place."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extractors.poll_reading import READERS, PollReading, PollUnreadable, read_poll
from extractors.polls import PollFailed, SyncPolled
from tests.builders import T0
from tests.extractors.poll_builders import line, reading, said, why


def unreadable(raw: bytes) -> PollUnreadable:
    found = read_poll(raw)
    assert isinstance(found, PollUnreadable)
    return found


def test_the_time_of_a_record_is_in_microseconds() -> None:
    assert reading("sync").at_us == T0 + 75 * 60 * 1_000_000


def test_malformed_json_names_its_byte_and_is_quoted() -> None:
    found = unreadable(b'{"at": "2026-07-20T09:15:00Z", "probe": state}\n')
    assert "malformed JSON at byte 40" in found.why
    assert '"probe": state' in found.quote


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"exit": "0"}, "key `exit` at byte"),
        ({"command": "kubectl get pods"}, "key `command` at byte"),
        ({"command": ["kubectl", 7]}, "key `command` at byte"),
        ({"stdout": ["a"]}, "key `stdout` at byte"),
        ({"elapsed_ms": "fast"}, "key `elapsed_ms` at byte"),
        ({"at": 1784534400}, "key `at` at byte 1"),
        ({"at": "yesterday"}, "key `at` at byte 1"),
        ({"at": "2026-07-20T09:15:00"}, "key `at` at byte 1"),
        ({"probe": "disk"}, "key `probe` at byte"),
        ({"probe": None}, "key `probe` is missing"),
    ],
)
def test_a_wrong_record_names_its_key_and_place(changes: dict[str, object], key: str) -> None:
    assert key in unreadable(json.dumps(json.loads(line("state")) | changes).encode()).why


@pytest.mark.parametrize("raw", [b"[]", b"7", b"", b"\x00\x00", b'"state"', b'{"at": "2026-07-20T09:1'])
def test_what_is_no_object_is_unreadable(raw: bytes) -> None:
    assert unreadable(raw).why


def test_null_stands_for_not_said() -> None:
    assert reading("sync", target=None, stderr=None).record.target == ""


def test_bytes_that_are_no_utf8_do_not_lose_the_record() -> None:
    raw = line("state", "[09:15:00] /a/b state=running (3) src=summary pods=2").replace(b"summary", b"summ\xffary")
    assert isinstance(read_poll(raw), PollReading)


@pytest.mark.parametrize("probe", list(READERS))
def test_a_timeout_is_a_failure_quoted_from_the_record_itself(probe: str) -> None:
    found = reading(probe, exit=None, error="timeout after 20 s", command="tool --flag")
    (failure,) = found.signals
    assert isinstance(failure, PollFailed)
    assert (failure.why, failure.output, failure.command) == ("timeout after 20 s",) * 2 + (("tool", "--flag"),)
    assert '"error": "timeout after 20 s"' in found.quotes[0]


@pytest.mark.parametrize("probe", ["state", "pods", "gpu", "procs", "stacks"])
def test_silence_with_exit_0_is_no_answer(probe: str) -> None:
    assert why(probe) == "the output is empty"


@pytest.mark.parametrize("probe", list(READERS))
def test_a_refused_command_keeps_its_output_and_exit(probe: str) -> None:
    refusal = "error: You must be logged in to the server (Unauthorized)"
    found = reading(probe, exit=1, stderr=refusal + "\n")
    (failure,) = found.signals
    assert isinstance(failure, PollFailed)
    assert (failure.exit, failure.output, found.quotes[0]) == (1, refusal, refusal)


def test_a_sync_that_worked_says_how_long_it_took() -> None:
    assert said("sync", elapsed_ms=2500) == SyncPolled(2.5)


def test_a_sync_that_failed_is_a_failure() -> None:
    assert "exit 23" in why("sync", exit=23, stderr="rsync: connection unexpectedly closed")


def test_a_long_line_is_quoted_as_a_window() -> None:
    found = reading("state", "noise " * 200)
    assert len(found.quotes[0]) == 500
    assert found.quotes[0].endswith("…")


def test_a_thousand_polls_are_read_in_a_moment() -> None:
    rows = "".join(f"{i}, 87 %, 512.34 W, 70123 MiB, 81559 MiB\n" for i in range(8))
    header = "index, utilization.gpu [%], power.draw [W], memory.used [MiB], memory.total [MiB]\n"
    raw = line("gpu", header + rows)
    start = time.process_time()
    for _ in range(1000):
        read_poll(raw)
    assert time.process_time() - start < 1.0


PIECES = st.sampled_from(
    ["[", "{", "}", "]", '"state"', ":", "3", ",", "\n", "\r\n", "9" * 5000, "\x00", "NAME ", "PID %CPU", "  7 1.0"]
) | st.sampled_from(
    [
        "State: running  exit=0  failures=0  preemptions=0",
        "JobID|State|ExitCode",
        "123|FAILED|1:0",
        "job_id,state",
        "JOB ID  STATE",
        "/a/b  running",
        "index, pid",
        "0, 5",
        "Thread 1 (idle)",
        "Process 9999999999: x",
        "    f (a.py:1)",
        'DCGM_FI_DEV_GPU_UTIL{gpu="0"} 5',
        '{"kind": "List", "items": [',
        '{"kind": "Job"}',
    ]
)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(sorted(READERS)),
    st.lists(PIECES | st.text(max_size=20), max_size=12),
    st.sampled_from([0, 1, 3, None]),
)
def test_no_output_whatever_raises(probe: str, pieces: list[str], code: int | None) -> None:
    for command in ("", "squeue -h", "sacct -P -o jobid,state", "nvidia-smi --query-gpu=index,pid"):
        found = read_poll(line(probe, " ".join(pieces), exit=code, command=command))
        assert isinstance(found, PollReading)
        assert found.signals
