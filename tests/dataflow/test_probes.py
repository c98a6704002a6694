"""The pool of probes: each run is a record, whatever came of it; nothing blocks who asks. Real processes."""

import json
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dataflow.capture import Source
from dataflow.poll_files import RECORD_BYTES, append_record, poll_record
from dataflow.polls import poll_observations
from dataflow.probe_run import MOST_OUTPUT, Ran
from dataflow.probes import Polled, ProbedJob, ProbePool
from dataflow.reads import Compression
from dataflow.settings import Probe, Settings, Sync
from extractors.clocks import parse_iso
from extractors.polls import JobState, PollFailed, StatePolled, SyncPolled
from extractors.record import SourceKind

NOON_US = parse_iso("2026-07-20T12:00:00.250Z") or 0
NEVER = 3_600.0
SAYS_RUNNING = "printf 'JobID|State|ExitCode\\n42|RUNNING|0:0\\n'"


@pytest.fixture
def pool() -> Iterator[ProbePool]:
    made = ProbePool(clock=lambda: NOON_US)
    yield made
    made.stop()


def job(folder: Path, *probes: Probe, sync: Sync | None = None, name: str = "/kim/rl-demo") -> ProbedJob:
    return ProbedJob(name, folder, Settings(probes=probes, sync=sync))


def shell(name: str, text: str, every: float = NEVER, timeout: float = 20.0) -> Probe:
    return Probe(name, ("sh", "-c", text), every=every, timeout=timeout)


def polled(pool: ProbePool, count: int, within: float = 30.0) -> list[Polled]:
    found: list[Polled] = []
    wait_for(lambda: found.extend(pool.poll()) or len(found) >= count, within)
    return found


def wait_for(holds: Callable[[], bool], within: float = 30.0) -> None:
    until = time.monotonic() + within
    while not holds():
        assert time.monotonic() < until, "it did not come"
        time.sleep(0.005)


def records(folder: Path, probe: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / f"polls/{probe}.jsonl").read_bytes().splitlines()]


def signals(folder: Path, probe: str) -> list[object]:
    path = folder / f"polls/{probe}.jsonl"
    source = Source(f"polls/{probe}.jsonl", str(path), SourceKind.POLL, Compression.NONE)
    told: list[str] = []
    found = [seen.signal for seen in poll_observations(source, 65_536, told, NOON_US)][:-1]
    assert told == []
    return found


def test_run_is_recorded_in_the_contracts_shape_and_read_as_its_signal(tmp_path: Path, pool: ProbePool) -> None:
    pool.start([job(tmp_path, shell("state", f"{SAYS_RUNNING}; echo slow >&2"))])
    (one,) = polled(pool, 1)
    (record,) = records(tmp_path, "state")
    assert 0 <= record.pop("elapsed_ms") < 20_000  # type: ignore[operator]
    assert record == {
        "at": "2026-07-20T12:00:00.250Z",
        "probe": "state",
        "target": "",
        "command": ["sh", "-c", f"{SAYS_RUNNING}; echo slow >&2"],
        "exit": 0,
        "stdout": "JobID|State|ExitCode\n42|RUNNING|0:0\n",
        "stderr": "slow\n",
    }
    assert (one.job, one.probe, one.exit, one.error, one.unwritten) == ("/kim/rl-demo", "state", 0, "", "")
    assert one.record == (tmp_path / "polls/state.jsonl").read_bytes()
    (state,) = signals(tmp_path, "state")
    assert isinstance(state, StatePolled)
    assert state.state is JobState.RUNNING


def test_each_target_is_asked_by_its_own_command(tmp_path: Path, pool: ProbePool) -> None:
    gpu = Probe("gpu", ("echo", "asked {target}"), ("pod-0", "pod-1", "pod-2"), every=NEVER)
    pool.start([job(tmp_path, gpu)])
    polled(pool, 3)
    said = {(record["target"], record["stdout"]) for record in records(tmp_path, "gpu")}
    assert said == {(pod, f"asked {pod}\n") for pod in ("pod-0", "pod-1", "pod-2")}


@pytest.mark.parametrize(
    ("text", "timeout", "exit_status", "why"),
    [
        ("exit 7", 20.0, 7, "exit 7: no output"),
        ("trap '' TERM; sleep 600", 0.2, None, "timeout after 0.2 s"),
        ("yes", 20.0, None, "ended after it had printed 64 MiB more than is kept"),
        ("printf '\\377\\376'", 20.0, 0, "a job state was not found in the output: \ufffd\ufffd"),
        ("head -c 9000000 /dev/zero", 20.0, 0, "its output is not whole: the first 4194304 of 9000000 bytes are kept"),
    ],
)
def test_whatever_goes_wrong_is_evidence(
    tmp_path: Path, pool: ProbePool, text: str, timeout: float, exit_status: int | None, why: str
) -> None:
    pool.start([job(tmp_path, shell("state", text, timeout=timeout))])
    polled(pool, 1)
    (record,) = records(tmp_path, "state")
    assert record["exit"] == exit_status
    (failure,) = signals(tmp_path, "state")
    assert isinstance(failure, PollFailed)
    assert failure.why == why


def test_missing_command_is_evidence(tmp_path: Path, pool: ProbePool) -> None:
    pool.start([job(tmp_path, Probe("pods", ("no-such-kubectl", "get", "pods"), every=NEVER))])
    polled(pool, 1)
    (record,) = records(tmp_path, "pods")
    assert (record["exit"], record["error"]) == (None, "not found: no-such-kubectl")


def test_failing_probe_is_recorded_each_time_it_runs(tmp_path: Path, pool: ProbePool) -> None:
    pool.start([job(tmp_path, shell("gpu", "exit 9", every=0.02))])
    polled(pool, 3)
    assert [record["exit"] for record in records(tmp_path, "gpu")][:3] == [9, 9, 9]


def test_sync_is_recorded_as_a_probe_of_its_own_and_runs_in_the_capture(tmp_path: Path, pool: ProbePool) -> None:
    pool.start([job(tmp_path, sync=Sync(("sh", "-c", "echo line >> finelog.log"), every=NEVER))])
    polled(pool, 1)
    assert (tmp_path / "finelog.log").read_text() == "line\n"
    (synced,) = signals(tmp_path, "sync")
    assert isinstance(synced, SyncPolled)


def test_no_more_probes_run_at_once_than_the_cap_over_all_jobs_and_syncs_do_not_hold_them_up(tmp_path: Path) -> None:
    pool = ProbePool(most_probes=2, most_syncs=1)
    counts = f"mkdir {tmp_path}/at.$$; ls -d {tmp_path}/at.* | wc -l; sleep 0.05; rmdir {tmp_path}/at.$$"
    jobs = []
    for number in range(4):
        folder = tmp_path / f"job{number}"
        folder.mkdir()
        hung = Sync(("sleep", "600"), every=NEVER)
        jobs.append(job(folder, shell("state", counts), shell("gpu", counts), sync=hung, name=f"/kim/{number}"))
    pool.start(jobs)
    found = polled(pool, 8)
    pool.stop()
    assert {int(json.loads(each.record)["stdout"]) for each in found} <= {1, 2}
    assert {each.probe for each in found} == {"state", "gpu"}


def test_nothing_blocks_who_asks_and_the_end_comes_within_two_seconds(tmp_path: Path) -> None:
    pool = ProbePool()
    hangs = f"trap '' TERM; echo x >> {tmp_path}/begun; sleep 600"
    before = time.monotonic()
    pool.start([job(tmp_path, shell("state", hangs), shell("gpu", hangs, timeout=600.0))])
    assert pool.poll() == []
    assert time.monotonic() - before < 1
    wait_for(lambda: (tmp_path / "begun").exists() and (tmp_path / "begun").read_text() == "x\nx\n")
    assert pool.due() is None
    before = time.monotonic()
    pool.stop(2.0)
    assert time.monotonic() - before < 2
    assert pool.poll() == []
    assert not (tmp_path / "polls").exists()
    assert not [each for each in threading.enumerate() if each.name.startswith("probes-")]


def test_time_until_the_next_run_is_told(tmp_path: Path, pool: ProbePool) -> None:
    assert pool.due() is None
    pool.start([job(tmp_path, shell("gpu", "true", every=900.0))])
    polled(pool, 1)
    wait_for(lambda: pool.due() is not None)
    due = pool.due()
    assert due is not None
    assert 800 < due <= 900


def test_polls_that_cannot_be_written_are_told_with_the_record(tmp_path: Path, pool: ProbePool) -> None:
    (tmp_path / "polls").write_text("a file where the folder should be")
    pool.start([job(tmp_path, shell("state", SAYS_RUNNING))])
    (one,) = polled(pool, 1)
    assert one.unwritten in ("File exists", "Not a directory")
    assert json.loads(one.record)["exit"] == 0


def test_no_record_is_written_through_a_link_into_a_log(tmp_path: Path, pool: ProbePool) -> None:
    (tmp_path / "finelog.log").write_text("a line\n")
    (tmp_path / "polls").mkdir()
    (tmp_path / "polls/state.jsonl").symlink_to(tmp_path / "finelog.log")
    pool.start([job(tmp_path, shell("state", "echo x"))])
    (one,) = polled(pool, 1)
    assert one.unwritten
    assert (tmp_path / "finelog.log").read_text() == "a line\n"


def test_secrets_of_a_command_are_masked_in_its_record(tmp_path: Path, pool: ProbePool) -> None:
    pool.start(
        [job(tmp_path, Probe("state", ("true", "--token", "abcdefghijklmnop", "--cluster", "lab"), every=NEVER))]
    )
    (one,) = polled(pool, 1)
    assert json.loads(one.record)["command"] == ["true", "--token", "[masked]", "--cluster", "lab"]


def test_torn_last_line_is_ended_before_the_next_record(tmp_path: Path) -> None:
    (tmp_path / "polls").mkdir()
    (tmp_path / "polls/gpu.jsonl").write_text('{"at": "2026-07-20T11:59')
    line = poll_record(NOON_US, "gpu", "", ("true",), Ran(0))
    append_record(tmp_path, "gpu", line)
    append_record(tmp_path, "gpu", line)
    assert (tmp_path / "polls/gpu.jsonl").read_bytes() == b'{"at": "2026-07-20T11:59\n' + line + line


def test_records_of_several_writers_never_mix(tmp_path: Path) -> None:
    lines = [poll_record(NOON_US, "gpu", str(n), ("true",), Ran(0, stdout=b"x" * 50_000)) for n in range(8)]

    def write(line: bytes) -> None:
        for _ in range(20):
            append_record(tmp_path, "gpu", line)

    threads = [threading.Thread(target=write, args=(line,)) for line in lines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    written = (tmp_path / "polls/gpu.jsonl").read_bytes().splitlines(keepends=True)
    assert sorted(written) == sorted(lines * 20)


@pytest.mark.parametrize("size", [10, 100_000])
def test_record_that_does_not_fit_leaves_the_file_as_it_was(tmp_path: Path, size: int) -> None:
    append_record(tmp_path, "gpu", b"{}\n")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3 + size // 2, limits[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            append_record(tmp_path, "gpu", b"x" * size + b"\n")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)
    assert (tmp_path / "polls/gpu.jsonl").read_bytes() == b"{}\n"


def test_largest_output_is_read_again_as_a_poll(tmp_path: Path) -> None:
    table = b"JobID|State|ExitCode\n42|RUNNING|0:0\n"
    note = b"\t" * 63 + b"\n"
    full = Ran(0, stdout=(table + note * 65_536)[:MOST_OUTPUT], stderr=note * 65_536)
    append_record(tmp_path, "state", poll_record(NOON_US, "state", "", ("sacct", "-P"), full))
    (state,) = signals(tmp_path, "state")
    assert isinstance(state, StatePolled)


def test_record_of_what_is_no_text_stays_within_what_is_read(tmp_path: Path) -> None:
    noise = Ran(0, stdout=b"\x01" * MOST_OUTPUT, stderr=b"\x02" * MOST_OUTPUT)
    line = poll_record(NOON_US, "state", "", ("sacct",), noise)
    assert len(line) <= RECORD_BYTES
    record = json.loads(line)
    assert record["dropped_bytes"] == {"stdout": MOST_OUTPUT - 1_048_576, "stderr": MOST_OUTPUT - 1_048_576}
    append_record(tmp_path, "state", line)
    (failure,) = signals(tmp_path, "state")
    assert isinstance(failure, PollFailed)
    assert failure.why == "its output is no text and not whole: the first 1048576 bytes are kept"
