"""How far a replay is: the words of its line without a terminal, and the line on real ones."""

import gzip
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.text import Text

from dataflow.capture import open_capture
from dataflow.ending import tell, told_through
from dataflow.feed import open_feed
from dataflow.progress_line import Beside, ProgressLine, Reading
from dataflow.read_so_far import bytes_to_read
from dataflow.terminal import can_redraw
from tests.dataflow.terminals import ROOT, Terminal, screen

SMALL = ROOT / "tests/captures/bring_up"


def said(steps: int) -> bytes:
    return "".join(
        f"[{at // 36000 % 24:02}:{at // 600 % 60:02}:{at // 10 % 60:02}] task=/kim/rl/0 | "
        f"(Trainer pid=77) Generation Buffer Progress: {at % 64}/64 ({at % 64 * 100 // 64}%) [{at}s]\n"
        for at in range(steps)
    ).encode()


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture that takes some seconds to read."""
    folder = tmp_path_factory.mktemp("long") / "run"
    folder.mkdir()
    (folder / "finelog.log.gz").write_bytes(gzip.compress(said(200_000), 1))
    return folder


def replayed(*words: Path | str) -> bytes:
    command = [sys.executable, "-m", "dataflow.cli", "replay", *map(str, words)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=120, check=False)
    assert done.stderr == b""
    return done.stdout


def line_after(seconds: float, taken: int, total: int | None, width: int = 100, trials: int = 0) -> str:
    reading = Reading(total, 100.0, width)
    for part in range(1, 11):
        line = reading.line(100.0 + seconds * part / 10, taken * part // 10, trials)
    return Text.from_ansi(line).plain


def test_line_says_what_was_read_of_how_much_how_fast_and_what_is_left() -> None:
    line = line_after(2.0, 50_000_000, 250_000_000)
    assert line.startswith("reading ")
    assert "50.0/250.0 MB 25.0 MB/s 8 s left" in line


def test_rate_is_that_of_the_last_seconds_and_known_from_the_first_piece_on() -> None:
    reading = Reading(1_000_000_000, 100.0, 120)
    assert "/s" not in reading.line(101.0, 0, 0)
    assert "10.0 MB/s 98 s left" in Text.from_ansi(reading.line(102.0, 20_000_000, 0)).plain
    for second in range(103, 141):
        line = Text.from_ansi(reading.line(second, 20_000_000 + (second - 102) * 2_000_000, 0)).plain
    assert "2.0 MB/s 7 min left" in line


def test_line_without_a_known_total_promises_nothing() -> None:
    line = line_after(2.0, 50_000_000, None, trials=1234)
    assert "50.0/? MB 25.0 MB/s 1,234 trials" in line
    assert "left" not in line


@pytest.mark.parametrize("width", [1, 10, 40, 69, 70, 99, 100, 200])
def test_line_never_reaches_the_last_column_where_a_terminal_would_wrap_it(width: int) -> None:
    line = line_after(2.0, 50_000_000, 250_000_000, width, trials=1234)
    assert "\n" not in line
    assert cell_len(line) < max(2, width)


def test_a_file_that_grew_is_not_read_beyond_its_end() -> None:
    assert "250.0/250.0 MB" in line_after(2.0, 260_000_000, 250_000_000)


def test_records_and_messages_step_in_above_the_line() -> None:
    ours, theirs = os.pipe()
    line = ProgressLine(theirs, lambda: "reading 1 MB")

    class Straight:
        def write(self, record: dict[str, object]) -> None:
            os.write(theirs, json.dumps(record).encode() + b"\n")

    line.draw()
    Beside(Straight(), line).write({"a": 1})
    line.draw()
    os.write(theirs, b"")
    assert screen(os.read(ours, 4_096).decode()) == ['{"a": 1}', "reading 1 MB"]
    line.end()
    line.draw()
    assert os.read(ours, 4_096) == b"\r\x1b[2K"
    os.close(ours)
    os.close(theirs)


def test_what_is_told_goes_through_the_newest_teller_and_then_through_the_old_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    heard: list[str] = []
    with told_through(heard.append):
        tell("one")
    tell("two")
    assert (heard, capsys.readouterr().err) == (["wedgewatch: one"], "wedgewatch: two\n")


def test_all_that_is_to_be_read_is_counted_by_its_bytes_on_the_disk(tmp_path: Path) -> None:
    run = tmp_path / "run"
    for folder in ("polls", "ray_session_logs", "trace_jobs/task__aBcDeFg", "pod_logs"):
        (run / folder).mkdir(parents=True)
    (run / "finelog.log").write_bytes(said(9_000))
    (run / "ray_session_logs/worker-ab-01000000-77.out.gz").write_bytes(gzip.compress(said(5_000)))
    (run / "pod_logs/pod-0.log").write_bytes(b"")
    (run / "polls/state.jsonl").write_text('{"at": "2026-07-20T10:14:00Z", "probe": "state", "exit": 0}\nno record\n')
    (run / "trace_jobs/task__aBcDeFg/result.json").write_text("{}")
    with tarfile.open(run / "rl_trace_jobs.tar.gz", "w:gz") as tar:
        member = tarfile.TarInfo("trace_jobs/task__hIjKlMn/result.json")
        member.size = 2
        tar.addfile(member, io.BytesIO(b"{}"))
    feed = open_feed(str(run))
    assert feed.read.taken == 0
    for _ in feed.beats():
        pass
    assert feed.read.taken == bytes_to_read(feed.capture)
    assert feed.read.trials == 2


def test_standard_input_has_no_known_end(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = subprocess.Popen(["sh", "-c", f"printf 'a\\nb\\n' > {pipe}"])
    capture = open_capture(str(pipe))
    assert writer.wait(10) == 0
    assert bytes_to_read(capture) is None


def test_long_replay_shows_its_progress_on_standard_error_and_leaves_no_trace(long: Path) -> None:
    with Terminal("replay", long, streams="err") as terminal:
        code, out, _ = terminal.ended()
        assert (code, [json.loads(line)["job"] for line in out.splitlines()][-1]) == (0, "/kim/rl")
        assert " MB" in terminal.drawn
        assert "/s" in terminal.drawn
        assert "left" in terminal.drawn
        assert not any(terminal.screen)
        assert terminal.is_as_before()


def test_records_on_the_same_terminal_stay_clean(long: Path) -> None:
    with Terminal("replay", "--format", "jsonl", "--heartbeat", "10m", long) as terminal:
        assert terminal.ended()[0] == 0
        assert "left" in terminal.drawn
        shown = [line for line in terminal.screen if line]
        assert len(shown) > 10
        assert shown == replayed("--heartbeat", "10m", long).decode().splitlines()


def test_what_draws_is_not_loaded_for_a_small_capture() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "dataflow.cli", "replay", str(SMALL)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert "dataflow.progress_line" in done.stderr
    assert "rich" not in {line.rpartition("|")[2].strip().split(".")[0] for line in done.stderr.splitlines()}


def test_small_capture_is_read_without_a_word() -> None:
    with Terminal("replay", SMALL, streams="err") as terminal:
        assert terminal.ended()[0] == 0
        assert not any(terminal.screen)


def test_terminal_that_cannot_redraw_is_not_drawn_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    with open(theirs, "w") as terminal, open(tmp_path / "file", "w") as file:
        monkeypatch.setenv("TERM", "xterm")
        assert (can_redraw(terminal), can_redraw(file), can_redraw(None)) == (True, False, False)
        monkeypatch.setenv("TERM", "dumb")
        assert not can_redraw(terminal)
    os.close(ours)


def test_progress_without_colours_where_none_are_wanted(long: Path) -> None:
    with Terminal("replay", long, streams="err", NO_COLOR="1") as terminal:
        terminal.wait_for_text("left")
        assert "m" not in {found[-1] for found in terminal.drawn.split("\x1b[")[1:] if found[:1].isdigit()}


def test_interrupted_replay_says_so_and_takes_its_line_away(long: Path) -> None:
    with Terminal("replay", "--out", "/dev/null", long) as terminal:
        terminal.wait_for_text("left")
        assert terminal.signalled(signal.SIGINT)[0] == 130
        said = [line for line in terminal.screen if line]
        assert said == ["wedgewatch: SIGINT: stopping; the records so far stand, and there is no final verdict"]
        assert terminal.is_as_before()


def test_killed_replay_leaves_the_terminal_sane(long: Path) -> None:
    with Terminal("replay", long, streams="err") as terminal:
        terminal.wait_for_text("left")
        terminal.process.kill()
        terminal.process.wait()
        assert terminal.is_as_before()
