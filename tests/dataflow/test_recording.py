"""`wedgewatch record` as a process: what it writes, how it ends, and what it leaves behind."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest
from click.testing import CliRunner

from dataflow.cli import main

ROOT = Path(__file__).resolve().parents[2]
RUNNING = "printf 'JobID|State|ExitCode\\\\n42|%s|0:0\\\\n'"


def capture(folder: Path, *tables: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "job.toml").write_text("\n".join(('[job]\nid = "/kim/rl-demo"', *tables)))
    return folder


def probe(name: str, script: str, every: str = "1h", timeout: str = "20s") -> str:
    command = json.dumps(["sh", "-c", script])
    return f'[probes.{name}]\ncommand = {command}\nevery = "{every}"\ntimeout = "{timeout}"'


@pytest.fixture
def record() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    begun: list[subprocess.Popen[bytes]] = []

    def start(*words: Path | str, stderr: int | IO[bytes] = subprocess.PIPE) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dataflow.cli", "record", *map(str, words)]
        begun.append(subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=stderr))
        return begun[-1]

    yield start
    for each in begun:
        each.kill()
        each.communicate()


def wait_for(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < until, "it did not come"
        time.sleep(0.01)


def lines(folder: Path, name: str) -> int:
    path = folder / f"polls/{name}.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def judged(folder: Path) -> dict[str, object]:
    done = CliRunner().invoke(main, ["replay", "--format", "jsonl", str(folder)])
    final: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return final


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_it_with_exit_0_within_two_seconds_and_leaves_no_child(
    tmp_path: Path, record: Callable[..., subprocess.Popen[bytes]], number: int
) -> None:
    folder = capture(
        tmp_path / "run",
        probe("gpu", "echo x", every="100s"),
        probe("state", f"trap '' TERM; echo $$ > {tmp_path}/pid; sleep 600", timeout="10m"),
    )
    running = record(folder)
    wait_for(lambda: lines(folder, "gpu") > 0 and (tmp_path / "pid").exists() and bool((tmp_path / "pid").read_text()))
    before = time.monotonic()
    running.send_signal(number)
    out, err = running.communicate(timeout=30)
    assert time.monotonic() - before < 2
    assert (running.returncode, out, err) == (0, b"", b"")
    pid = int((tmp_path / "pid").read_text())
    wait_for(lambda: not alive(pid))
    assert not (folder / "polls/state.jsonl").exists()


def test_kill_9_leaves_whole_lines_and_no_child(tmp_path: Path, record: Callable[..., subprocess.Popen[bytes]]) -> None:
    folder = capture(
        tmp_path / "run",
        *(probe(name, "head -c 1000000 /dev/zero | tr '\\\\0' x", every="0.02s") for name in ("pods", "gpu", "procs")),
        probe("state", f"trap '' TERM; echo $$ > {tmp_path}/pid; sleep 600", timeout="10m"),
    )
    for _ in range(3):
        (tmp_path / "pid").unlink(missing_ok=True)
        had = lines(folder, "gpu")
        running = record(folder)
        wait_for(lambda had=had: lines(folder, "gpu") > had and (tmp_path / "pid").exists())  # type: ignore[misc]
        wait_for(lambda: bool((tmp_path / "pid").read_text()))
        running.kill()
        running.wait()
        pid = int((tmp_path / "pid").read_text())
        wait_for(lambda pid=pid: not alive(pid))  # type: ignore[misc]
    for name in ("pods", "gpu", "procs"):
        path = folder / f"polls/{name}.jsonl"
        wait_for(lambda path=path: path.read_bytes().endswith(b"\n"))  # type: ignore[misc]
        written = path.read_bytes()
        assert all(len(json.loads(line)["stdout"]) == 1_000_000 for line in written.splitlines())


def test_second_signal_ends_it_at_once(tmp_path: Path, record: Callable[..., subprocess.Popen[bytes]]) -> None:
    folder = capture(tmp_path / "run", probe("gpu", f"trap '' TERM; echo x > {tmp_path}/begun; sleep 600"))
    running = record(folder)
    wait_for((tmp_path / "begun").exists)
    running.send_signal(signal.SIGTERM)
    time.sleep(0.1)
    running.send_signal(signal.SIGTERM)
    assert running.wait(30) in (0, -signal.SIGTERM)


def test_it_ends_by_itself_and_a_replay_judges_from_what_was_recorded(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.write_text("RUNNING")
    folder = capture(tmp_path / "run", probe("state", f'{RUNNING} "$(cat {state})"'))
    for said in ("RUNNING", "FAILED"):
        state.write_text(said)
        done = CliRunner().invoke(main, ["record", str(folder), "--for", "1s"])
        assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")
        final = judged(folder)
        assert final["job"] == "/kim/rl-demo"
        assert "no state poll" not in json.dumps(final)
        assert f"42|{said}|0:0" in json.dumps(final)


def test_terminal_sees_each_poll_with_its_exit_time_and_bytes(
    tmp_path: Path, record: Callable[..., subprocess.Popen[bytes]]
) -> None:
    folder = capture(tmp_path / "run", probe("gpu", "printf 12345; exit 7"), probe("state", "sleep 600", timeout="1s"))
    ours, theirs = pty.openpty()
    running = record(folder, "--for", "4s", stderr=theirs)
    os.close(theirs)
    assert running.wait(60) == 0
    shown = os.read(ours, 65_536).decode()
    os.close(ours)
    assert re.search(r"^wedgewatch: \d\d:\d\d:\d\dZ gpu: exit 7, [\d,]+ ms, 5 bytes\r$", shown, re.MULTILINE)
    assert re.search(
        r"^wedgewatch: \d\d:\d\d:\d\dZ state: timeout after 1 s, 1,\d+ ms, 0 bytes\r$", shown, re.MULTILINE
    )


def unusable(*words: Path | str) -> str:
    done = CliRunner().invoke(main, ["record", *map(str, words)])
    assert (done.exit_code, done.stdout) == (2, "")
    return done.stderr


def test_capture_without_anything_to_run_is_exit_2_and_says_what_to_do(tmp_path: Path) -> None:
    assert unusable(tmp_path / "none") == (
        f"wedgewatch: {tmp_path}/none: is no folder; polls are recorded into a capture's folder, "
        "which holds its job.toml\n"
    )
    assert "job.toml: there is none, so there is nothing to run; write one with [probes.*]" in unusable(tmp_path)
    assert "job.toml: names no probe to run; add one, such as [probes.state]" in unusable(capture(tmp_path))


def test_command_that_would_change_something_is_exit_2_and_nothing_is_run(tmp_path: Path) -> None:
    folder = capture(tmp_path / "run", probe("state", f"touch {tmp_path}/ran; scancel 42"))
    assert f"{folder}/job.toml: line 4: probes.state.command.2: 'scancel' ends, holds or restarts jobs" in unusable(
        folder
    )
    assert not (tmp_path / "ran").exists()
    assert not (folder / "polls").exists()


def test_polls_that_cannot_be_written_are_exit_2_before_anything_is_run(tmp_path: Path) -> None:
    folder = capture(tmp_path / "run", probe("state", f"touch {tmp_path}/ran"))
    (folder / "polls").write_text("")
    assert f"{folder}/polls: cannot be written: File exists" in unusable(folder)
    assert not (tmp_path / "ran").exists()


def test_polls_that_cannot_be_written_later_are_told_and_counted(tmp_path: Path) -> None:
    folder = capture(tmp_path / "run", probe("gpu", "echo x"))
    (folder / "polls/gpu.jsonl").mkdir(parents=True)
    done = CliRunner().invoke(main, ["record", str(folder), "--for", "1s"])
    assert done.exit_code == 0
    assert done.stderr == (
        "wedgewatch: polls/gpu.jsonl: cannot be written: Is a directory; the probes go on\n"
        "wedgewatch: polls/gpu.jsonl: 1 polls are lost: Is a directory\n"
    )


def test_command_that_is_not_there_is_told_once_for_all_its_targets(tmp_path: Path) -> None:
    missing = probe("gpu", "x", every="0.1s").replace('"sh"', '"no-such-smi"') + '\ntargets = ["pod-0", "pod-1"]'
    folder = capture(tmp_path / "run", missing.replace('"x"', '"{target}"'), probe("state", "exit 7"))
    done = CliRunner().invoke(main, ["record", str(folder), "--for", "2s"])
    assert done.exit_code == 0
    assert done.stderr == "wedgewatch: probe gpu: not found: no-such-smi; that is recorded, and tried again\n"
    assert lines(folder, "gpu") > 2


def test_probes_of_another_job_toml_are_recorded_into_the_capture(tmp_path: Path) -> None:
    other = capture(tmp_path / "other", probe("procs", "pwd"))
    (tmp_path / "run").mkdir()
    done = CliRunner().invoke(main, ["record", str(tmp_path / "run"), "--job", str(other / "job.toml"), "--for", "1s"])
    assert done.exit_code == 0
    (line,) = (tmp_path / "run/polls/procs.jsonl").read_text().splitlines()
    assert json.loads(line)["stdout"] == f"{tmp_path}/run\n"
