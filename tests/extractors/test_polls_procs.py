"""Process tables, stack dumps and listings of trials."""

import json

import pytest

from extractors.polls import PollFailed, Process, StacksPolled, Thread, TrialsListed
from tests.builders import us
from tests.extractors.poll_builders import reading, said, why

PS = """\
    PID    PPID %CPU   RSS     ELAPSED COMMAND
      1       0  0.0     4012  1-02:03:04 /bin/bash /iris/task.sh
   9158      61 58.0  9742038    01:25:50 ray::AsyncVLLMInferenceEngine
  15033      61 97.5  2195521       25:50 ray::RolloutCoordinator.run_batch --with spaces
"""


def test_ps_is_read_by_its_header_and_quotes_the_coordinator() -> None:
    found = reading("procs", PS, target="pod-2")
    (table,) = found.signals
    assert table.target == "pod-2"
    assert table.processes[0] == Process(1, 0.0, 4012.0, 93784.0, "/bin/bash /iris/task.sh", lifetime=True)
    assert table.processes[2] == Process(
        15033, 97.5, 2195521.0, 1550.0, "ray::RolloutCoordinator.run_batch --with spaces"
    )
    assert "RolloutCoordinator" in found.quotes[0]


def test_ps_without_header_is_read_by_its_command() -> None:
    (process,) = said(
        "procs", "  7 1 3.5 100 00:09 sleep 9\n", command="ps -eo pid=,ppid=,pcpu=,rss=,etime=,args="
    ).processes
    assert (process.pid, process.cpu_percent, process.elapsed_seconds, process.command) == (7, 3.5, 9.0, "sleep 9")


TOP = """\
top - 09:15:00 up 2 days,  1:02,  0 users,  load average: 8.01, 7.90, 7.77
Tasks: 120 total,   3 running
%Cpu(s): 12.0 us,  1.0 sy,  0.0 ni, 87.0 id

    PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND
  15033 root      20   0   22.1g   2.0g 412312 R  {rate}   0.1  80:12.33 ray::RolloutCoordinator
"""


def test_top_is_a_current_rate_and_its_last_frame_counts() -> None:
    (process,) = said("procs", TOP.format(rate="12.0") + "\n" + TOP.format(rate="99,5")).processes
    assert (process.cpu_percent, process.rss_kib, process.lifetime) == (99.5, 2.0 * 1024 * 1024, False)


def test_a_table_without_rows_is_a_failure() -> None:
    assert "not found" in why("procs", "    PID    PPID %CPU   RSS     ELAPSED COMMAND\n")
    assert "executable file not found" in why(
        "procs", exit=126, stderr='exec: "ps": executable file not found in $PATH'
    )


DUMP = """\
Process 4242: ray::FSDPPolicyWorkerBase.forward
Python v3.12.3 (/usr/bin/python3.12)
Parent Process 99: raylet

Thread 4242 (idle): "MainThread"
    main_loop (ray/_private/worker.py:963)
        Arguments:
            self: <Worker at 0x7f> (not a frame.py:1)
    <module> (default_worker.py:321)
Thread 4310 (active+gil): "AsyncIO Thread: default"
    ncclGroupEnd (libnccl.so.2)
    forward (moe.py:88)
Thread 0x7F00AA (idle)
    wait (threading.py:355)
"""


def test_a_dump_gives_threads_and_frames_without_locals() -> None:
    found = reading("stacks", DUMP, target="pod-0")
    threads = (
        Thread("MainThread", "idle", ("main_loop (ray/_private/worker.py:963)", "<module> (default_worker.py:321)")),
        Thread("AsyncIO Thread: default", "active+gil", ("ncclGroupEnd (libnccl.so.2)", "forward (moe.py:88)")),
        Thread("thread 0x7F00AA", "idle", ("wait (threading.py:355)",)),
    )
    assert found.signals == (StacksPolled("pod-0", 4242, "ray::FSDPPolicyWorkerBase.forward", threads),)
    assert found.quotes == ("    ncclGroupEnd (libnccl.so.2)",)


def test_subprocesses_are_dumps_of_their_own() -> None:
    signals = reading("stacks", DUMP + "-" * 40 + "\n" + DUMP.replace("4242", "4999")).signals
    assert [signal.pid for signal in signals if isinstance(signal, StacksPolled)] == [4242, 4999]


def test_a_json_dump_comes_to_the_same_threads() -> None:
    frames = [{"name": "forward", "filename": "/opt/x/moe.py", "short_filename": "moe.py", "line": 88, "locals": None}]
    native = [{"name": "ncclGroupEnd", "filename": "libnccl.so.2", "short_filename": None, "line": 0}]
    thread = {"pid": 4242, "thread_id": 7, "thread_name": "Worker", "active": True, "owns_gil": False}
    process = {"pid": 4242, "command_line": "ray::FSDPPolicyWorkerBase", "parent": None}
    found = reading("stacks", json.dumps([thread | {"frames": native + frames, "process_info": process}], indent=2))
    (dump,) = found.signals
    assert (dump.pid, dump.title) == (4242, "ray::FSDPPolicyWorkerBase")
    assert dump.threads == (Thread("Worker", "active", ("ncclGroupEnd (libnccl.so.2)", "forward (moe.py:88)")),)
    assert '"name": "ncclGroupEnd"' in found.quotes[0]


@pytest.mark.parametrize(
    "refusal",
    [
        "Permission Denied: Try running again with elevated permissions by going 'sudo env \"PATH=$PATH\" !!'",
        "Error: No such file or directory (os error 2)",
    ],
)
def test_a_refusal_is_a_failure_on_either_stream(refusal: str) -> None:
    assert why("stacks", exit=1, stderr=refusal + "\n") == refusal
    assert why("stacks", refusal + "\n") == refusal


def test_of_several_dumps_the_refused_one_is_told_beside_the_others() -> None:
    first, second = reading("stacks", DUMP, exit=1, stderr="Error: Failed to suspend process 9: EPERM\n").signals
    assert isinstance(first, PollFailed)
    assert isinstance(second, StacksPolled)


FAULTHANDLER = """\
Thread 0x00007f01 [ray_print_logs] (most recent call first):
  File "/usr/lib/python3.12/threading.py", line 355 in wait
  File "/opt/app/printer.py", line 9 in run

Current thread 0x00007f02 (most recent call first):
  File "/venv/torch/distributed/distributed_c10d.py", line 4321 in all_to_all_single
  File "/opt/app/moe.py", line 88 in forward
"""


def test_a_dump_of_pythons_own_faulthandler_stands_in_for_py_spy() -> None:
    found = reading("stacks", FAULTHANDLER, target="pod-0", command="cat stacks/worker-77ab.txt")
    threads = (
        Thread("ray_print_logs", "", ("wait (threading.py:355)", "run (printer.py:9)")),
        Thread("thread 0x00007f02", "", ("all_to_all_single (distributed_c10d.py:4321)", "forward (moe.py:88)")),
    )
    assert found.signals == (StacksPolled("pod-0", 0, "", threads),)
    assert "all_to_all_single" in found.quotes[0]


def test_of_a_faulthandler_file_that_is_written_again_the_newest_dump_counts() -> None:
    later = FAULTHANDLER.replace("line 88", "line 99")
    (dump,) = reading("stacks", FAULTHANDLER + "\n" + later).signals
    assert [thread.frames[-1] for thread in dump.threads] == ["run (printer.py:9)", "forward (moe.py:99)"]


def test_a_crash_report_without_frames_is_no_dump() -> None:
    assert "not found" in why("stacks", "Current thread 0x00007f02 (most recent call first):\n  <no Python frame>\n")


def test_a_dump_without_threads_is_a_failure() -> None:
    assert "not found" in why("stacks", "Process 4242: python\nPython v3.12.3 (/usr/bin/python3.12)\n")
    assert "not found" in why("stacks", "[]")


AWS = """\
2026-07-20 08:01:00       2214 runs/rl/trace_jobs/config.json
2026-07-20 08:01:00       2214 runs/rl/trace_jobs/fix-a__aB3dE9x/config.json
2026-07-20 08:30:00       9214 runs/rl/trace_jobs/fix-a__aB3dE9x/result.json
2026-07-20 08:40:00       2214 runs/rl/trace_jobs/fix-b__Zz3dE9x/config.json
2026-07-20 08:45:00         10 runs/rl/trace_jobs/fix-b__Zz3dE9x/artifacts/config.json
"""


def test_an_aws_listing_counts_trials_and_not_the_jobs_own_files() -> None:
    found = reading("trials", AWS)
    assert found.signals == (TrialsListed(2, 1, us(40 * 60)),)
    assert found.quotes[0].endswith("fix-b__Zz3dE9x/config.json")


def test_json_lines_are_a_listing_too() -> None:
    entry = {"key": "t/fix-a__aB3dE9x/result.json", "size": 7, "last_modified": "2026-07-20T10:30:00+02:00"}
    assert said("trials", json.dumps(entry) + "\n") == TrialsListed(1, 1, us(30 * 60))


def test_a_listing_in_another_time_zone_gives_no_time() -> None:
    assert said("trials", AWS.replace(" 08:", " 14:")).newest_us is None


def test_an_empty_listing_is_an_answer_with_exit_0_only() -> None:
    assert said("trials") == TrialsListed(0, 0, None)
    assert "exit 1" in why("trials", exit=1)
    assert "not found" in why("trials", "upload failed: nothing\n")
