"""`wedgewatch watch` as a process: what it refuses, how it ends, what it makes of damage to what it keeps."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import pytest

from tests.dataflow.live_feeds import SECOND_US, START_US, Player, bars
from tests.dataflow.watch_drills import Drill, drill
from tests.live.harness import GRACEFUL, ROOT, SLOW, Replayed, differing, replayed
from tests.live.recorded import recorded

RUN = ROOT / "tests" / "captures" / "engine_death_meta_tensors"


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[Drill]:
    with drill(tmp_path) as watched:
        yield watched


def refused(*words: str | Path) -> str:
    """What a watch that must not begin says; it does so within a few seconds, in one line."""
    done = subprocess.run(
        [sys.executable, "-m", "dataflow.cli", "watch", *map(os.fspath, words)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        timeout=60,
        check=False,
    )
    said = done.stderr.decode()
    assert (done.returncode, done.stdout, said.count("\n")) == (2, b"", 1), said
    return said


def test_outputs_that_would_lie_in_a_capture_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    log = tmp_path / "finelog.log"
    log.write_bytes(bars(0, 3))
    run, store = tmp_path / "run", tmp_path / "store"
    assert "lies in the capture" in refused(run, "--store", run / "store")
    assert "lies in the capture" in refused(run, "--store", store, "--out", run / "out.jsonl")
    assert "lies in the capture" in refused(log, "--store", store, "--out", log)
    assert [path.name for path in tmp_path.iterdir()] == ["finelog.log"]
    assert log.read_bytes() == bars(0, 3)


def test_what_cannot_be_watched_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.log")
    store = ("--store", tmp_path / "store")
    assert "is neither a folder nor a file" in refused(tmp_path / "pipe.log", *store)
    assert "its folder is not there" in refused(tmp_path / "none" / "run", *store)
    assert "standard input can't be watched" in refused("-", *store)
    (tmp_path / "run").mkdir()
    (tmp_path / "link").symlink_to("run")
    assert "named twice" in refused(tmp_path / "run", tmp_path / "link", *store)
    (tmp_path / "run" / "job.toml").write_text("[job]\nid = 7\n")
    assert "job.toml" in refused(tmp_path / "run", *store)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "job.toml").write_text('[job]\nid = "/kim/rl"\n')
    assert "is of the job /kim/rl, as" in refused(tmp_path / "one", tmp_path / "two", *store)


def test_a_second_watch_on_a_store_is_refused_and_told_who_has_it(watch: Drill) -> None:
    watch.at(START_US).start()
    watch.wait(lambda: bool(watch.health()), 20)
    assert watch.process is not None
    said = refused(watch.captures[0], "--store", watch.store)
    assert f"another wedgewatch (process {watch.process.pid}) watches with this state" in said
    watch.stop()


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_within_two_seconds_of_being_asked_to(watch: Drill, workers: int, how: int) -> None:
    watch.logs(60)
    watch.ran_to(START_US + 50 * SECOND_US, workers)
    assert watch.stop(how) < GRACEFUL * SLOW


def test_a_second_signal_ends_it_at_once(watch: Drill) -> None:
    watch.at(START_US).start()
    watch.wait(lambda: bool(watch.health()), 20)
    assert watch.process is not None
    watch.process.send_signal(signal.SIGTERM)
    watch.process.send_signal(signal.SIGTERM)
    assert watch.process.wait(5) in (0, -signal.SIGTERM)


def test_a_capture_of_any_bytes_in_its_name_is_watched(tmp_path: Path, watch: Drill) -> None:
    watch.captures = [Path(os.fsdecode(os.fsencode(tmp_path) + b"/r\xff\x1bn"))]
    watch.captures[0].mkdir()
    watch.logs(60)
    watch.ran_to(START_US + 50 * SECOND_US)
    watch.stop()
    assert watch.lines()


@pytest.fixture
def damaged(watch: Drill) -> Callable[[Callable[[Drill], None], int], Replayed]:
    """Runs a watch over a capture up to its middle, ends it, lets somebody damage what it keeps, and runs it on to the
    end; gives what a replay says."""
    schedule = recorded(RUN)
    player = Player(watch.captures[0], schedule, random.Random(7))

    def run(damage: Callable[[Drill], None], how: int) -> Replayed:
        middle_us = (schedule.begin_us + schedule.end_us) // 2
        player.write(middle_us + 6 * SECOND_US)
        watch.ran_to(middle_us)
        watch.wait(lambda: bool(watch.lines()), 20)
        watch.stop() if how == signal.SIGTERM else watch.kill()
        damage(watch)
        player.write(schedule.end_us + 30 * SECOND_US)
        watch.ran_to(schedule.end_us + 20 * SECOND_US)
        watch.stop()
        return replayed(watch.captures[0], watch.folder)

    return run


def respelled(run: Path) -> list[str]:
    """Other words for a capture's path."""
    (run.parent / "link").symlink_to(run)
    return [os.path.relpath(run, ROOT), f"{run}/", f"{run}/../run", f"{run.parent}/link"]


@pytest.mark.parametrize("which", range(4))
def test_a_capture_that_is_spelled_otherwise_is_gone_on_with_and_not_read_anew(watch: Drill, which: int) -> None:
    watch.logs(60)
    watch.ran_to(START_US + 50 * SECOND_US)
    watch.stop()
    (watch.captures[0] / "finelog.log").unlink()
    spelled = respelled(watch.captures[0])[which]
    watch.captures = [spelled]  # type: ignore[list-item]
    watch.ran_to(START_US + 90 * SECOND_US)
    assert watch.health()["jobs"]["/kim/rl"]["captured"] == spelled
    watch.stop()


@pytest.mark.parametrize("which", [0, 3])
def test_another_spelling_is_told_from_then_on_and_changes_nothing_else(
    watch: Drill, damaged: Callable[[Callable[[Drill], None], int], Replayed], which: int
) -> None:
    run, before = str(watch.captures[0]), list[bytes]()
    spelled = respelled(watch.captures[0])[which]

    def respell(watch: Drill) -> None:
        before.extend(watch.lines())
        watch.captures = [Path(spelled)]

    expected = damaged(respell, signal.SIGTERM)
    records = [orjson.loads(line) for line in expected.of(watch.lines())]
    told = [record.pop("captured", "") for record in records]
    assert set(told[: len(before)]) == {run, ""}
    assert set(told[len(before) :]) == {spelled, ""}
    assert records == [
        {key: value for key, value in orjson.loads(line).items() if key != "captured"} for line in expected.lines
    ]


def recovery(watch: Drill) -> list[Path]:
    return sorted((watch.store / "watch" / "recovery").iterdir())


def cut_wal(watch: Drill) -> None:
    for path in recovery(watch):
        if path.name.endswith("-wal") and path.stat().st_size:
            os.truncate(path, path.stat().st_size * 2 // 3)


def zero_header(watch: Drill) -> None:
    with recovery(watch)[0].open("r+b") as file:
        file.write(b"\0" * 100)


def lose_database(watch: Drill) -> None:
    for path in recovery(watch):
        path.unlink()


def another_version(watch: Drill) -> None:
    (watch.store / "watch" / "fingerprint").write_text("of another version")


def break_store(watch: Drill) -> None:
    for path in watch.store.glob("*"):
        if path.name == "CURRENT" or path.suffix == ".sst":
            path.write_bytes(b"damaged")


def lose_store(watch: Drill) -> None:
    shutil.rmtree(watch.store)


def tear_output(watch: Drill) -> None:
    with watch.out.open("r+b") as file:
        file.truncate(watch.out.stat().st_size - 40)


def nothing(watch: Drill) -> None:
    """An undisturbed run."""


DAMAGES = [nothing, cut_wal, zero_header, lose_database, another_version, break_store, lose_store, tear_output]


@pytest.mark.parametrize(
    ("damage", "how"),
    [*((each, signal.SIGKILL) for each in DAMAGES), *((each, signal.SIGTERM) for each in (break_store, tear_output))],
)
def test_damage_to_what_it_keeps_loses_no_record_and_repeats_none(
    watch: Drill,
    damaged: Callable[[Callable[[Drill], None], int], Replayed],
    damage: Callable[[Drill], None],
    how: int,
) -> None:
    expected = damaged(damage, how)
    assert differing(expected.of(watch.lines()), expected.lines) == ""


def test_the_reader_of_its_pipe_that_goes_away_ends_it_quietly(watch: Drill) -> None:
    watch.logs(120)
    watch.at(START_US + 60 * SECOND_US)
    words = [word for word in watch.command() if word not in ("--out", str(watch.out))]
    watch.process = subprocess.Popen(
        words,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert watch.process.stdout is not None
    assert watch.process.stderr is not None
    assert watch.process.stdout.readline().startswith(b'{"schema":"wedgewatch/1"')
    watch.process.stdout.close()
    until = time.monotonic() + 30 * SLOW
    now_us = START_US + 60 * SECOND_US
    while watch.process.poll() is None and time.monotonic() < until:
        now_us += 300 * SECOND_US
        watch.at(now_us)
        time.sleep(0.1)
    assert watch.process.poll() == 141
    assert watch.process.stderr.read() == b""
