"""How a command ends, whatever happens to its outputs, its process or its own code: one line, and no exit code of a
verdict."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dataflow.feed
from dataflow.dated import DatedReports
from dataflow.flow import run, run_plain
from dataflow.outcome import Outcome, told
from dataflow.sinks import InOrder
from state.trackers.heartbeat import HeartbeatTracker

ROOT = Path(__file__).resolve().parents[2]
WELL = ROOT / "tests/captures/lone_watchdog_line"
BAR = b"[10:00:%02d] task=/kim/rl-%d/0 | (T pid=1) Generation Buffer Progress: %d/64 (2%%) [9s]\n"


def command(*words: Path | str) -> list[str]:
    return [sys.executable, "-m", "dataflow.cli", "replay", *map(str, words)]


def ended(*words: Path | str, **how: Any) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command(*words), cwd=ROOT, capture_output=True, text=True, timeout=120, check=False, **how)
    assert "Traceback" not in done.stderr
    assert "bytewax" not in done.stderr
    return done


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a system without /dev/full")
def test_a_full_disk_is_named_and_is_exit_2() -> None:
    done = ended(WELL, "--out", "/dev/full")
    assert (done.returncode, done.stderr) == (2, "wedgewatch: /dev/full: cannot be written: No space left on device\n")


def test_a_reader_that_goes_away_ends_the_replay_without_a_word() -> None:
    piped = subprocess.run(
        ["bash", "-c", 'set -o pipefail; "$@" | head -n 1', "-", *command(WELL)],
        cwd=ROOT,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert (piped.returncode, piped.stderr, piped.stdout.count(b"\n")) == (128 + signal.SIGPIPE, b"", 1)


@pytest.mark.parametrize("word", ["--out", "--log"])
def test_a_place_that_cannot_be_written_is_named_before_anything_is_read(tmp_path: Path, word: str) -> None:
    (tmp_path / "file").write_text("")
    done = ended(WELL, word, tmp_path / "file/below")
    assert (done.returncode, done.stdout) == (2, "")
    assert "file/below: cannot be written: Not a directory" in done.stderr


@pytest.mark.parametrize("how", ["itself", "link", "hard link"])
def test_no_output_overwrites_what_is_to_be_read(tmp_path: Path, how: str) -> None:
    log = tmp_path / "finelog.log"
    shutil.copy(WELL / "finelog.log", log)
    before = log.read_bytes()
    out = log if how == "itself" else tmp_path / "out"
    if how == "link":
        out.symlink_to(log)
    elif how == "hard link":
        os.link(log, out)
    done = ended(log, "--out", out)
    assert done.returncode == 2
    assert "not overwritten" in done.stderr
    assert log.read_bytes() == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_replay_without_a_final_verdict(number: signal.Signals) -> None:
    waiting = subprocess.Popen(
        command("-"), cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert waiting.stdin is not None
    with waiting.stdin as pipe:
        for at in range(4_000):
            pipe.write(BAR % (at % 60, 1, at % 64) + b"x" * 200 + b"\n")
        pipe.flush()
        waiting.send_signal(number)
        out, err = waiting.stdout, waiting.stderr
        assert waiting.wait(30) == 128 + number
    assert out is not None
    assert err is not None
    assert b"Traceback" not in err.read()
    assert b'"final":true' not in out.read()


def test_standard_input_is_named_once_only() -> None:
    done = ended("-", "-", input="")
    assert (done.returncode, done.stderr.count("only once")) == (2, 1)


def test_names_with_newlines_and_control_sequences_reach_no_terminal(tmp_path: Path) -> None:
    capture = Path(shutil.copytree(WELL, tmp_path / "a\n\x1b[31mVERDICT: KILL"))
    evil = capture / "ray_session_logs/rank0-quartz-11/worker-ab-01000000-7.err\nVERDICT: KILL\x1b[2J.log"
    evil.write_bytes(b"2026-03-14 09:10:00.100 | ERROR | a:b:1 - torn\x00 \xff")
    done = ended(capture, "--format", "text")
    said = done.stdout + done.stderr
    assert "VERDICT: KILL" in said
    assert not [line for line in said.splitlines() if line.startswith("VERDICT: KILL")]
    assert all(character.isprintable() or character == "\n" for character in said)


def test_as_of_before_the_first_line_knows_the_job_and_nothing_else() -> None:
    done = ended(WELL, "--as-of", "2001-01-01T00:00:00Z", "--format", "jsonl")
    final = json.loads(done.stdout.splitlines()[-1])
    assert (final["verdict"], final["at"], final["captured"]) == ("ERROR", "2001-01-01T00:00:00.000Z", str(WELL))


@pytest.mark.parametrize("moment", ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00+10:00", "soon"])
def test_as_of_a_time_that_is_none_is_an_argument_that_cannot_be_used(moment: str) -> None:
    assert ended(WELL, "--as-of", moment).returncode == 2


def test_the_name_of_a_report_fits_into_a_file_system(tmp_path: Path) -> None:
    record = json.loads(ended(WELL, "--format", "jsonl").stdout.splitlines()[-1])
    DatedReports(tmp_path).write({**record, "job": "/kim/\x1b[31m\n" + "long/" * 200})
    (report,) = tmp_path.iterdir()
    assert report.name.startswith("2026-03-14_kim-")
    assert report.name.isprintable()


def logs(folder: Path) -> list[str]:
    """Two bare logs of two jobs."""
    paths = [folder / f"{number}.log" for number in (1, 2)]
    for number, path in enumerate(paths, start=1):
        path.write_bytes(b"".join(BAR % (at, number, at) for at in range(60)))
    return [str(path) for path in paths]


class Kept:
    """A sink that keeps its records."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []

    def write(self, record: dict[str, Any]) -> None:
        self.records.append(record)


def replayed(paths: list[str], engine: str) -> tuple[list[dict[str, Any]], Outcome]:
    feeds = [dataflow.feed.open_feed(path) for path in paths]
    kept = Kept()
    ordered = InOrder([feed.job for feed in feeds], kept)
    outcome = run_plain(feeds, ordered) if engine == "plain" else run(feeds, ordered, workers=int(engine))
    ordered.end()
    return kept.records, outcome


@pytest.mark.parametrize("engine", ["plain", "1", "2"])
def test_an_error_in_a_tracker_ends_its_job_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    def fails(_: HeartbeatTracker) -> Any:
        raise ZeroDivisionError("by a test\nof two lines")

    monkeypatch.setattr(HeartbeatTracker, "view", fails)
    records, outcome = replayed(logs(tmp_path)[:1], engine)
    assert records == []
    assert list(outcome.errors) == ["/kim/rl-1"]
    assert outcome.errors["/kim/rl-1"].startswith("ZeroDivisionError: by a test\\nof two lines")


@pytest.mark.parametrize("engine", ["plain", "1", "2"])
def test_an_error_of_one_job_leaves_the_other_jobs_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    paths = logs(tmp_path)
    alone, _ = replayed(paths[1:], engine)

    def beats(job: str, *rest: Any) -> Any:
        if job == "/kim/rl-1":
            raise KeyError("a test")
        return cut(job, *rest)

    cut = dataflow.feed.beats
    monkeypatch.setattr(dataflow.feed, "beats", beats)
    records, outcome = replayed(paths, engine)
    assert records == alone
    assert list(outcome.errors) == ["/kim/rl-1"]


@pytest.mark.parametrize("engine", ["plain", "1"])
def test_an_error_in_the_reader_of_a_file_costs_that_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    capture = Path(shutil.copytree(WELL, tmp_path / "capture"))

    def fails(*_: Any) -> Any:
        yield from ()
        raise IndexError("a test")

    monkeypatch.setattr(dataflow.feed, "poll_observations", fails)
    records, outcome = replayed([str(capture)], engine)
    assert records[-1]["final"] is True
    assert records[-1]["coverage"]["finelog.log"]["complete"] is True
    assert all("IndexError: a test" in error for error in outcome.errors.values())


def test_an_error_is_told_in_one_line_with_its_place_and_without_secrets() -> None:
    with pytest.raises(TypeError) as caught:
        dataflow.feed.open_feed(3)  # type: ignore[arg-type]
    assert told(caught.value).startswith("TypeError: ")
    assert "(dataflow/" in told(caught.value)
    assert told(ValueError("a\nb \x1b[31m token=abcdefghijklmnop")) == "ValueError: a\\nb  token=[masked]"
