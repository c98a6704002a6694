"""`wedgewatch watch` on a full disk, with probes and syncs of all kinds, and on a terminal."""

import random
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from tests.dataflow.disks import fill, remount, small_disk
from tests.dataflow.live_feeds import SECOND_US, START_US, Player, bar, bars
from tests.dataflow.terminals import Terminal
from tests.dataflow.test_book_commands import wedgewatch
from tests.dataflow.watch_drills import Drill, drill
from tests.live.harness import ROOT, differing, replayed
from tests.live.recorded import recorded

RUN = ROOT / "tests" / "captures" / "engine_death_meta_tensors"


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[Drill]:
    with drill(tmp_path) as watched:
        yield watched


def test_a_full_disk_is_told_and_waited_for_and_no_record_is_lost_by_it(tmp_path: Path) -> None:
    schedule = recorded(RUN)
    middle_us = (schedule.begin_us + schedule.end_us) // 2
    with small_disk(tmp_path / "disk", 32 << 10) as disk, drill(tmp_path, disk) as watch:
        player = Player(watch.captures[0], schedule, random.Random(7))
        player.write(middle_us + 6 * SECOND_US)
        watch.ran_to(middle_us)
        watch.wait(lambda: bool(watch.lines()), 20)
        filling = fill(disk)
        player.write(schedule.end_us + 30 * SECOND_US)
        watch.at(schedule.end_us + 26 * SECOND_US)
        watch.wait(lambda: "the records wait in memory" in watch.said, 40)
        filling.unlink()
        watch.wait(lambda: "can be written again" in watch.said, 40)
        watch.wait_released(schedule.end_us + 20 * SECOND_US)
        watch.stop()
        expected = replayed(watch.captures[0], watch.folder)
        assert differing(expected.of(watch.lines()), expected.lines) == ""


def test_a_full_disk_from_the_start_and_a_read_only_one_are_told_in_one_line(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1 << 10) as disk, drill(tmp_path, disk) as watch:
        watch.logs(60)
        filling = fill(disk)
        assert watch.start().process is not None
        assert watch.process is not None
        assert watch.process.wait(30) == 2
        assert "the disk is full; make room, or name a --store on another one" in watch.said
        filling.unlink()
        remount(disk, "ro")
        assert watch.start().process.wait(30) == 2  # type: ignore[union-attr]
        assert "read-only" in watch.said
        assert watch.said.count("\n") == 2


def command(script: str) -> str:
    """A command of a job.toml that runs Python."""
    return orjson.dumps([sys.executable, "-c", script]).decode()


def probe(name: str, script: str, every: str = "1s", timeout: str = "3s") -> str:
    return f'[probes.{name}]\ncommand = {command(script)}\nevery = "{every}"\ntimeout = "{timeout}"\n'


def polls(watch: Drill, name: str) -> list[dict[str, object]]:
    path = watch.captures[0] / "polls" / f"{name}.jsonl"
    return [orjson.loads(line) for line in path.read_bytes().split(b"\n")[:-1]] if path.exists() else []


STATE = {"job": "/kim/rl", "state": "JOB_STATE_FAILED", "exit_code": 1, "error": "Exit code 1", "failure_count": 1}


def test_probes_run_beside_the_watch_and_what_they_say_or_fail_to_say_is_judged(watch: Drill) -> None:
    """One says that the job has failed, one hangs, one floods, one is not there."""
    watch.logs(
        60,
        probe("state", f"print({orjson.dumps(STATE).decode()!r})")
        + probe("gpu", "import time; time.sleep(600)", timeout="1s")
        + probe("procs", "import sys; any(not sys.stdout.write('x' * 65536) for _ in iter(int, 1))", timeout="20s")
        + '[probes.pods]\ncommand = ["/nowhere/kubectl"]\nevery = "1s"\n',
    )
    now_us = START_US + 60 * SECOND_US
    watch.at(now_us).start()

    def goes_on() -> bool:
        nonlocal now_us
        now_us += SECOND_US // 4
        watch.at(now_us)
        return all(polls(watch, name) for name in ("state", "gpu", "procs", "pods")) and any(
            b'"OVER"' in line for line in watch.lines()
        )

    watch.wait(goes_on, 60)
    assert polls(watch, "gpu")[0]["error"] == "timeout after 1 s"
    assert "more than is kept" in str(polls(watch, "procs")[0]["error"])
    assert polls(watch, "pods")[0]["error"] == "not found: /nowhere/kubectl"
    assert watch.stop() < 4
    assert any(b'"source":"polls/state.jsonl"' in line for line in watch.lines())


def test_logs_that_a_sync_pulls_begin_a_job_and_are_read_once(tmp_path: Path, watch: Drill) -> None:
    """The capture is empty at first, and its job.toml names no job."""
    remote, copied = tmp_path / "remote.log", watch.captures[0] / "finelog.log"
    remote.write_bytes(bars(0, 30))
    pull = command(f"import shutil; shutil.copy({str(remote)!r}, 'new'); import os; os.replace('new', 'finelog.log')")
    (watch.captures[0] / "job.toml").write_text(f'[sync]\ncommand = {pull}\nevery = "1s"\ntimeout = "5s"\n')
    now_us = START_US + 30 * SECOND_US
    watch.at(now_us).start()
    written = 30

    def goes_on() -> bool:
        nonlocal now_us, written
        now_us += SECOND_US if written < 120 else 20 * SECOND_US
        if written < 120:
            remote.write_bytes(remote.read_bytes() + bar(written, written % 65))
            written += 1
        watch.at(now_us)
        return any(b'"kind":"verdict"' in line for line in watch.lines())

    watch.wait(goes_on, 90)
    watch.stop()
    assert copied.read_bytes() == bars(0, 120)
    newest = [orjson.loads(line) for line in watch.lines() if b'"kind":"verdict"' in line][-1]
    assert newest["coverage"]["finelog.log"]["lines"] == 120
    assert newest["job"] == "run"


def test_a_sync_that_fails_for_long_holds_nothing_up_and_shows_in_status(watch: Drill) -> None:
    pull = f'[sync]\ncommand = {command("raise SystemExit(1)")}\nevery = "1s"\ntimeout = "10m"\n'
    watch.logs(60, pull + probe("state", f"print({orjson.dumps(STATE).decode()!r})", every="1h"))
    watch.at(START_US + 60 * SECOND_US).start()
    watch.wait(lambda: "exit 1" in str(watch.health()) and bool(polls(watch, "state")), 20)
    end_us = START_US + 900 * SECOND_US
    watch.at(end_us)
    watch.wait_released(end_us - 5 * SECOND_US)
    watch.wait(lambda: any(b'"kind":"verdict"' in line for line in watch.lines()), 20)
    assert watch.health()["jobs"]["/kim/rl"]["sync"] == {"good": None, "fails": "exit 1"}
    status = ("status", "--store", watch.store)
    (row,) = [orjson.loads(line) for line in wedgewatch(*status).stdout.splitlines()]
    assert (row["lag"], row["sync"]["fails"]) == (5.0, "exit 1")
    assert "/kim/rl: its sync fails (exit 1), none was good yet" in wedgewatch(*status, "--format", "text").stdout
    watch.stop()


@pytest.mark.parametrize("how", ["ctrl-c", "SIGTERM"])
def test_a_terminal_shows_what_the_jobs_do_and_is_left_as_it_was(watch: Drill, how: str) -> None:
    watch.logs(60)
    watch.at(START_US + 90 * SECOND_US)
    words = shlex.split(f"watch {watch.captures[0]} --store {watch.store} --clock {watch.clock}")
    with Terminal(*words, columns=120) as terminal:
        terminal.wait_for_text("/kim/rl")
        terminal.wait_for_text("INSUFFICIENT")
        if how == "ctrl-c":
            terminal.type("\x03")
            assert terminal.ended()[0] == 0
        else:
            assert terminal.signalled()[0] == 0
        assert terminal.is_as_before()
        assert any("stopping" in line for line in terminal.screen)
        assert "Traceback" not in terminal.drawn
