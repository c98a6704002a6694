"""A watch of a capture that grows says, byte for byte, what a replay of the finished capture says, whatever is done to
its files and to its process meanwhile.

Real processes in event time: the writer publishes a time once its lines are there, so that a slow machine makes nothing
late. WEDGEWATCH_DRILL=full plays every capture there is, more slowly.
"""

import os
import random
import signal
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from extractors.clocks import SECOND_US, parse_iso
from tests.live.harness import (
    GRACEFUL,
    ROOT,
    SLOW,
    Replayed,
    Watch,
    copied,
    differing,
    folded,
    job_of,
    playing,
    replayed,
)
from tests.live.writer import Manner

FULL = os.environ.get("WEDGEWATCH_DRILL") == "full"
OWN = ROOT / "tests" / "captures"
SHARED = ROOT.parent / "shared" / "captures"
SMALL = ("engine_death_meta_tensors", "one_slot_401_burst", "crash_loop_same_failure", "frozen_buffer_with_stacks")
EVERY = sorted(path.parent for home in (OWN, SHARED) for path in home.glob("*/job.toml"))
CAPTURES = EVERY if FULL else [OWN / name for name in SMALL]
RATE = 150 if FULL else 900
RUN = OWN / "engine_death_meta_tensors"
LAST_WORDS = """:job_id:01000000
:actor_name:FSDPPolicyWorkerBase
2026-03-20 16:08:20.250 | INFO     | skyrl_train.workers.worker:init_model:88 - loading the model of rank 9
Traceback (most recent call last):
  File "/opt/venv/lib/python3.12/site-packages/skyrl_train/workers/worker.py", line 91, in init_model
    weights = self.read_shard(path)
RuntimeError: CUDA error: an illegal memory access was encountered
"""
KILLS, STOPS = 20, 8
SLACK_US = int(Manner().slack * SECOND_US)
"""How far the writer's clock runs on after the last line."""


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[Watch]:
    watched = Watch([tmp_path / "capture"], tmp_path / "watch", tmp_path / "clock")
    watched.captures[0].mkdir()
    yield watched
    watched.kill()
    assert "Traceback" not in watched.said


def followed(watch: Watch, recorded: Path, *options: str, rate: float = RATE) -> Replayed:
    """Plays a capture beside the watch to its end and gives what a replay of it says, with the watch's journal where it
    has one: nothing dates the start of a trial, for one, but the moment in which its config was seen."""
    target, clock = watch.captures[0], watch.clock or watch.captures[0]
    if watch.process is None:
        watch.start()
    with playing(recorded, target, clock, "--rate", str(rate), *options) as writer:
        watch.wait(lambda: writer.poll() is not None, within=120)
        watch.wait_released(max(_end_of(recorded, watch.folder), _published(clock) - SLACK_US))
    watch.stop()
    return replayed(target, watch.folder, *journal_of(watch))


def _published(clock: Path) -> int:
    """What a clock says."""
    at_us = parse_iso(clock.read_text())
    assert at_us is not None
    return at_us


def journal_of(watch: Watch) -> tuple[str, ...]:
    """The option that names the watch's journals, where there are any."""
    journals = watch.store / "watch" / "journal"
    return ("--journal", str(journals)) if journals.is_dir() and any(journals.iterdir()) else ()


def _end_of(recorded: Path, folder: Path) -> int:
    return replayed(recorded, folder).end_us


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: f"{path.parent.parent.name}-{path.name}")
def test_a_watch_of_growing_files_says_what_a_replay_of_the_finished_ones_says(watch: Watch, capture: Path) -> None:
    expected = followed(watch, capture, "--torn")
    assert expected.lines
    assert differing(expected.of(watch.lines()), expected.lines) == ""


@pytest.mark.parametrize("rotate", ["rename", "copytruncate"])
def test_a_log_that_is_rotated_amid_the_run_is_read_once_and_whole(watch: Watch, rotate: str) -> None:
    """In a replay the turned log is another file, so that records are compared with its family's name."""
    expected = followed(watch, RUN, "--torn", "--rotate", rotate, "--step", "1", rate=RATE / 3)
    assert (watch.captures[0] / "finelog.log.1").exists()
    assert folded(expected.of(watch.lines())) == folded(expected.lines)


def test_logs_that_are_replaced_by_longer_copies_are_read_once(watch: Watch) -> None:
    expected = followed(watch, RUN, "--torn", "--copied")
    assert not journal_of(watch)
    assert differing(expected.of(watch.lines()), expected.lines) == ""


def test_a_traceback_that_its_process_did_not_outlive_is_told_in_time(watch: Watch, tmp_path: Path) -> None:
    """No line follows that would end it."""
    recorded = copied(RUN, tmp_path / "recorded", "/sam/rl-last-words-20260320")
    home = next(recorded.glob("ray_vllm_logs/*/*"))
    (home / f"worker-{'9c' * 28}-01000000-6001.err").write_text(LAST_WORDS)
    expected = followed(watch, recorded, "--torn")
    assert any(b"illegal memory access" in line for line in expected.lines)
    assert differing(expected.of(watch.lines()), expected.lines) == ""


def test_lines_that_come_too_late_are_counted_and_the_journal_replays_them(watch: Watch) -> None:
    watch.start()
    watch.wait(lambda: bool(watch.health()), within=60)
    expected = followed(watch, RUN, "--late", "400", rate=100)
    job = next(iter(watch.health()["jobs"].values()))
    assert job["late"] > 0
    assert journal_of(watch)
    assert differing(expected.of(watch.lines()), expected.lines) == ""


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Watch, Path, Path]]:
    """A watch of two jobs, which two workers share, and their recorded captures."""
    first, second = RUN, copied(RUN, tmp_path / "second", "/sam/rl-second-20260320")
    watched = Watch([tmp_path / "one", tmp_path / "two"], tmp_path / "watch", tmp_path / "clock")
    for each in watched.captures:
        each.mkdir()
    yield watched, first, second
    watched.kill()
    assert "Traceback" not in watched.said


def same_for_each_job(watch: Watch) -> None:
    """Each job's records are those of its replay: none is missing, none is there twice."""
    said = defaultdict(list)
    for line in watch.lines():
        said[job_of(line)].append(line)
    assert len(said) == len(watch.captures)
    for capture in watch.captures:
        expected = replayed(capture, watch.folder, *journal_of(watch))
        job = job_of(expected.lines[0])
        assert differing(expected.of(said[job]), expected.lines) == "", job


def test_twenty_kills_at_any_time_lose_no_record_and_repeat_none(pair: tuple[Watch, Path, Path]) -> None:
    watch, first, second = pair
    chance = random.Random(20)
    end_us = _end_of(first, watch.folder.parent)
    one, two = watch.captures
    with playing(first, one, watch.clock or one, "--torn", "--rate", "55", also=(second, two)):
        for number in range(KILLS):
            watch.start(workers=1 + number % 2)
            time.sleep(chance.uniform(0.2, 2.5 if FULL else 1.2) * SLOW)
            watch.kill()
        watch.start(workers=2)
        watch.wait_released(end_us)
    watch.stop()
    assert watch.ended.count(-signal.SIGKILL) == KILLS
    same_for_each_job(watch)


def test_eight_graceful_ends_with_one_and_two_workers_lose_nothing_either(pair: tuple[Watch, Path, Path]) -> None:
    watch, first, second = pair
    end_us = _end_of(first, watch.folder.parent)
    one, two = watch.captures
    took = []
    with playing(first, one, watch.clock or one, "--torn", "--rate", "110", also=(second, two)):
        for number in range(STOPS):
            watch.start(workers=1 + number % 2)
            watch.wait(lambda: watch.released_us() > 0, within=20)
            took.append(watch.stop(signal.SIGTERM if number % 2 else signal.SIGINT))
        watch.start()
        watch.wait_released(end_us)
    took.append(watch.stop())
    assert max(took) < GRACEFUL * SLOW
    same_for_each_job(watch)
