"""The writer that plays a capture as if it was live: what it leaves behind, and what stands at each published time."""

import filecmp
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dataflow.capture import open_capture
from dataflow.feed import open_feed
from dataflow.reads import unpacked_name
from extractors.clocks import SECOND_US, parse_iso
from tests.live.recorded import recorded
from tests.live.writer import Manner, Writer, play

ROOT = Path(__file__).resolve().parents[2]
CAPTURE = ROOT / "tests" / "captures" / "one_slot_401_burst"
PLAIN = ROOT / "tests" / "captures" / "engine_death_meta_tensors"
CAPTURES = sorted(path.parent for path in (ROOT / "tests" / "captures").glob("*/job.toml"))
LATENESS_US = 5 * SECOND_US
BRIEF = 6.0
TORN = Manner(rate=1e6, seed=3, torn=True, step=BRIEF)


class Stage:
    """A folder that a writer plays into, and what is looked at after each publication."""

    def __init__(self, folder: Path, capture: Path, manner: Manner) -> None:
        self.target, self.clock = folder / "capture", folder / "clock"
        self.target.mkdir(parents=True)
        self.writer = Writer(self.target, recorded(capture), manner)

    def play(self, look: Callable[[int], None] = lambda at_us: None) -> "Stage":
        play([self.writer], self.clock, monotonic=lambda: 0.0, sleep=lambda _: look(self.now_us))
        return self

    @property
    def now_us(self) -> int:
        at_us = parse_iso(self.clock.read_text())
        assert at_us is not None
        return at_us

    def files(self) -> dict[str, bytes]:
        paths = sorted(path for path in self.target.rglob("*") if path.is_file())
        return {path.relative_to(self.target).as_posix(): path.read_bytes() for path in paths}


@pytest.mark.parametrize("copied", [False, True])
def test_what_is_played_is_in_the_end_what_was_recorded(tmp_path: Path, copied: bool) -> None:
    stage = Stage(tmp_path, PLAIN, replace(TORN, copied=copied)).play()
    same = filecmp.dircmp(PLAIN, stage.target)
    assert (same.left_only, same.right_only) == ([], [])
    for name, content in stage.files().items():
        assert content == (PLAIN / name).read_bytes()


def test_what_is_played_asks_for_no_probes_that_would_add_to_it(tmp_path: Path) -> None:
    recording = tmp_path / "recorded"
    shutil.copytree(PLAIN, recording)
    toml = (PLAIN / "job.toml").read_text()
    probe = '[probes.state]\ncommand = ["iris_ops.py", "/kim/rl-demo"]\nevery = "60s"\n'
    (recording / "job.toml").write_text(f'{toml}{probe}[expect]\nbring_up = "45m"\n[sync]\ncommand = ["pull.py"]\n')
    stage = Stage(tmp_path / "played", recording, TORN).play()
    assert stage.files()["job.toml"].decode() == f'{toml}[expect]\nbring_up = "45m"\n'


def test_packed_logs_and_archived_trials_are_played_as_they_were_written(tmp_path: Path) -> None:
    stage = Stage(tmp_path, CAPTURE, TORN).play()
    assert not any(name.endswith((".gz", ".zst", ".tar")) for name in stage.files())
    assert [trials.relative for trials in open_capture(str(stage.target)).trials] == ["trace_jobs"]


def test_all_lines_that_are_due_are_whole_before_their_time_is_published(tmp_path: Path) -> None:
    stage = Stage(tmp_path, PLAIN, TORN)
    torn = 0

    def look(at_us: int) -> None:
        nonlocal torn
        there = stage.files()
        for file in stage.writer.schedule.files:
            due, found = file.due(at_us), there.get(file.relative, b"")
            assert len(found) >= due
            assert file.data.startswith(found)
            torn += len(found) > max(due, 0)

    stage.play(look)
    assert torn > 20


def test_a_file_appears_when_its_first_line_is_due_or_just_before(tmp_path: Path) -> None:
    stage = Stage(tmp_path, PLAIN, TORN)

    def look(at_us: int) -> None:
        for file in stage.writer.schedule.files:
            there = (stage.target / file.relative).exists()
            assert there or at_us < file.dues[0]
            assert not there or at_us >= file.dues[0] - BRIEF * SECOND_US

    stage.play(look)


def test_the_clock_starts_with_the_first_line_and_passes_the_last_by_the_slack(tmp_path: Path) -> None:
    times: list[int] = []
    stage = Stage(tmp_path, PLAIN, Manner(rate=1e6, slack=30)).play(times.append)
    assert times == sorted(times)
    assert times[0] // 1000 == stage.writer.schedule.begin_us // 1000
    assert stage.now_us >= stage.writer.end_us + 30 * SECOND_US


@pytest.mark.parametrize("rotate", ["rename", "copytruncate"])
def test_a_turned_log_holds_the_same_lines_in_two_files(tmp_path: Path, rotate: str) -> None:
    stage = Stage(tmp_path, PLAIN, Manner(rate=1e6, torn=True, step=BRIEF, rotate=rotate)).play()
    log = stage.writer.schedule.files[0]
    there = stage.files()
    assert log.relative == "finelog.log"
    first, second = there["finelog.log.1"], there["finelog.log"]
    assert first + second == log.data
    assert first.endswith(b"\n")
    assert second


def test_a_line_that_was_torn_when_its_log_was_renamed_is_ended_in_the_renamed_file(tmp_path: Path) -> None:
    ended = 0
    for seed in range(12):
        stage = Stage(tmp_path / str(seed), PLAIN, Manner(rate=1e6, seed=seed, torn=True, step=BRIEF, rotate="rename"))
        begun = False

        def look(_: int, stage: Stage = stage) -> None:
            nonlocal ended, begun
            turned = stage.target / "finelog.log.1"
            if not begun and turned.exists():
                begun, ended = True, ended + (not turned.read_bytes().endswith(b"\n"))

        stage.play(look)
    assert ended > 0


def test_lines_that_are_held_back_come_so_much_later_and_in_order(tmp_path: Path) -> None:
    on_time = Stage(tmp_path / "on_time", PLAIN, Manner(rate=1e6)).writer
    late = Stage(tmp_path / "late", PLAIN, Manner(rate=1e6, late=60)).play()
    before = next(each.file.dues for each in on_time.files if each.file.relative == "finelog.log")
    after = next(each.file.dues for each in late.writer.files if each.file.relative == "finelog.log")
    delays = [late_us - due_us for due_us, late_us in zip(before, after, strict=True)]
    assert max(delays) == 60 * SECOND_US
    assert after == sorted(after)
    assert late.files()["finelog.log"] == (PLAIN / "finelog.log").read_bytes()


def test_the_same_seed_writes_the_same_parts_at_the_same_times(tmp_path: Path) -> None:
    def sizes(folder: str, seed: int) -> list[tuple[int, dict[str, int]]]:
        stage, seen = Stage(tmp_path / folder, PLAIN, Manner(rate=1e6, seed=seed, torn=True, step=60)), []
        stage.play(lambda at_us: seen.append((at_us, {name: len(data) for name, data in stage.files().items()})))
        return seen

    first = sizes("first", 3)
    assert first == sizes("again", 3)
    assert first != sizes("other", 4)


def test_it_is_a_process_of_its_own(tmp_path: Path) -> None:
    words = [str(PLAIN), str(tmp_path / "capture"), "--clock", str(tmp_path / "clock"), "--rate", "0", "--torn"]
    also = ["--also", str(PLAIN), str(tmp_path / "other")]
    command = [sys.executable, "-m", "tests.live.writer", *words]
    subprocess.run([*command, *also], cwd=ROOT, check=True)
    assert not filecmp.dircmp(tmp_path / "capture", tmp_path / "other").diff_files
    again = subprocess.run(command, cwd=ROOT, capture_output=True)
    assert b"holds files already" in again.stderr


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.name)
def test_nothing_that_a_replay_observes_is_due_later_than_a_watch_waits_for_it(capture: Path) -> None:
    schedule, files = recorded(capture), {}
    for file in schedule.files:
        files[file.relative] = file
    late = [
        (observation.evidence.source, due - observation.at_us)
        for beat in open_feed(str(capture)).beats()
        for observation in beat.observations
        if (file := files.get(played_as(observation.evidence.source))) is not None
        and (due := file.due_of(observation.evidence.offset)) > observation.at_us + LATENESS_US
    ]
    assert late == []


def played_as(source: str) -> str:
    """The name under which a file of a packed log or an archive is played."""
    archive, _, member = source.partition("!/")
    return f"trace_jobs/{member.partition('/')[2]}" if member else unpacked_name(archive)
