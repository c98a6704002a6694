"""One run of a command: bounded in time, output and children; what goes wrong is a value. Real processes."""

import os
import subprocess
import threading
import time
from pathlib import Path

import pytest

from dataflow.guardian import Guardian
from dataflow.probe_run import FLOOD, MOST_OUTPUT, Ran, run_command


def script(folder: Path, name: str, text: str, mode: int = 0o755) -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(mode)
    return str(path)


def ran(folder: Path, *command: str, timeout: float = 20.0) -> Ran:
    found = run_command(command, folder, timeout, Guardian())
    assert found is not None
    return found


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(pid: int, within: float = 5.0) -> bool:
    until = time.monotonic() + within
    while is_running(pid) and time.monotonic() < until:
        time.sleep(0.01)
    return not is_running(pid)


def pid_in(path: Path, within: float = 10.0) -> int:
    until = time.monotonic() + within
    while not (path.exists() and path.read_text().endswith("\n")) and time.monotonic() < until:
        time.sleep(0.01)
    return int(path.read_text())


def test_output_and_exit_status_are_kept_as_they_are(tmp_path: Path) -> None:
    found = ran(tmp_path, "sh", "-c", "printf 'a\\000b\\377'; echo wrong >&2; exit 7")
    assert (found.exit, found.error, found.stdout, found.stderr) == (7, "", b"a\x00b\xff", b"wrong\n")
    assert found.dropped == {}
    assert 0 < found.elapsed < 20


def test_command_is_a_list_of_words_and_no_shell_reads_it(tmp_path: Path) -> None:
    assert ran(tmp_path, "printf", "%s|", "$HOME; echo x", "*", "").stdout == b"$HOME; echo x|*||"


def test_command_runs_in_the_captures_folder_without_input(tmp_path: Path) -> None:
    script(tmp_path, "poll.sh", "pwd; cat; echo done")
    assert ran(tmp_path, "./poll.sh").stdout.decode() == f"{tmp_path}\ndone\n"


def test_probe_that_hangs_and_ignores_sigterm_is_ended_with_its_children(tmp_path: Path) -> None:
    hangs = script(tmp_path, "hangs", f"trap '' TERM; echo begun; sleep 600 & echo $! > {tmp_path}/child; wait; wait")
    found = ran(tmp_path, hangs, timeout=0.5)
    assert (found.exit, found.error, found.stdout) == (None, "timeout after 0.5 s", b"begun\n")
    assert 0.5 <= found.elapsed < 1.5
    assert gone(pid_in(tmp_path / "child"))


def test_probe_that_ends_at_sigterm_may_say_its_last_words(tmp_path: Path) -> None:
    polite = script(tmp_path, "polite", "trap 'echo ended; exit 3' TERM; echo begun; sleep 600 & wait")
    found = ran(tmp_path, polite, timeout=0.5)
    assert (found.exit, found.error, found.stdout) == (None, "timeout after 0.5 s", b"begun\nended\n")


def test_child_that_outlives_its_probe_holds_nothing_up_and_is_ended(tmp_path: Path) -> None:
    forks = script(tmp_path, "forks", f"sleep 600 & echo $! > {tmp_path}/child; echo done")
    found = ran(tmp_path, forks)
    assert (found.exit, found.error, found.stdout) == (0, "", b"done\n")
    assert found.elapsed < 10
    assert gone(pid_in(tmp_path / "child"))


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_output_beyond_the_cap_is_dropped_counted_and_the_exit_status_kept(tmp_path: Path, stream: str) -> None:
    printed = MOST_OUTPUT + 1_000_000
    into = "" if stream == "stdout" else " >&2"
    found = ran(tmp_path, "sh", "-c", f"head -c {printed} /dev/zero{into}; exit 4")
    assert len(getattr(found, stream)) == MOST_OUTPUT
    assert (found.exit, found.dropped) == (4, {stream: 1_000_000})
    whole = f"its output is not whole: the first {MOST_OUTPUT} of {printed} bytes are kept"
    assert found.error == (whole if stream == "stdout" else "")


def test_flood_is_ended_long_before_its_timeout(tmp_path: Path) -> None:
    found = ran(tmp_path, "yes", timeout=60.0)
    assert found.exit is None
    assert found.error == f"ended after it had printed {FLOOD // 1_048_576} MiB more than is kept"
    assert len(found.stdout) == MOST_OUTPUT
    assert found.elapsed < 30


def test_what_cannot_be_started_says_why(tmp_path: Path) -> None:
    (tmp_path / "odd").write_bytes(b"\x7fELF nothing")
    (tmp_path / "odd").chmod(0o755)
    script(tmp_path, "plain", "echo x", mode=0o644)
    (tmp_path / "lost").write_text("#!/no/such/interpreter\n")
    (tmp_path / "lost").chmod(0o755)
    assert ran(tmp_path, "no-such-tool", "x").error == "not found: no-such-tool"
    assert ran(tmp_path, "./plain").error == "not executable: ./plain"
    assert ran(tmp_path, "./odd").error == "cannot be run: ./odd: Exec format error"
    assert ran(tmp_path, "./lost").error == "not found: the interpreter of ./lost"
    away = tmp_path / "away"
    assert ran(away, "true").error == f"cannot be run in {away}: No such file or directory"
    assert ran(tmp_path, "echo", "a\0b").error == "cannot be run: echo: embedded null byte"


def test_end_by_a_signal_is_no_exit_status(tmp_path: Path) -> None:
    found = ran(tmp_path, "sh", "-c", "echo x; kill -SEGV $$")
    assert (found.exit, found.error, found.stdout) == (None, "ended by SIGSEGV", b"x\n")


def test_run_that_is_broken_off_says_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    stop = threading.Event()
    hangs = script(tmp_path, "hangs", f"trap 'exit 0' TERM; echo $$ > {tmp_path}/pid; sleep 600 & wait")

    def stopping() -> bool:
        return stop.is_set() or ((tmp_path / "pid").exists() and not stop.set())

    assert run_command((hangs,), tmp_path, 60.0, Guardian(), stopping) is None
    assert gone(pid_in(tmp_path / "pid"))


def test_guardian_ends_what_is_left_when_its_pipe_ends(tmp_path: Path) -> None:
    guardian = Guardian()
    with guardian.watching(os.getpid() + 4_000_000):
        pass
    thread = threading.Thread(
        target=run_command, args=(("sh", "-c", f"echo $$ > {tmp_path}/pid; sleep 600"), tmp_path, 60.0, guardian)
    )
    thread.start()
    pid = pid_in(tmp_path / "pid")
    assert is_running(pid)
    guardian.close()
    assert gone(pid)
    thread.join(5)
    assert not thread.is_alive()


def test_guardian_forgets_what_has_ended(tmp_path: Path) -> None:
    guardian = Guardian()
    first, second = (ran_by(guardian, tmp_path / name) for name in ("first", "second"))
    assert first != second
    bystander = subprocess.Popen(["sleep", "600"], start_new_session=True)
    for group in (first, bystander.pid, second):
        with guardian.watching(group):
            pass
    guardian.close()
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()


def ran_by(guardian: Guardian, said: Path) -> int:
    run_command(("sh", "-c", f"echo $$ > {said}"), said.parent, 20.0, guardian)
    return int(said.read_text())


def test_probe_is_a_session_of_its_own_which_a_terminal_cannot_interrupt(tmp_path: Path) -> None:
    session = ran(tmp_path, "sh", "-c", "cut -d' ' -f1,6 /proc/$$/stat").stdout.split()
    assert session[0] == session[1]
