"""`status --watch` as a process: a live table on a terminal, a line a change in a pipe."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from state.store import Store
from tests.dataflow.job_lines import verdict
from tests.dataflow.terminals import ROOT, Terminal
from tests.dataflow.test_book_commands import wedgewatch


def kept(folder: Path, *records: dict[str, object]) -> Path:
    """The store with these records."""
    store = Store(folder)
    for number, record in enumerate(records):
        store.write({**record, "id": f"{record['at']}-{number}"})
    store.close()
    return folder


@pytest.fixture
def piped(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    kept(tmp_path / "s", verdict("/kim/one"), verdict("/kim/two"))
    command = [sys.executable, "-m", "dataflow.cli", "status", "--store", str(tmp_path / "s"), "--watch", "0.2s"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_table_marks_what_changes_and_ends_at_a_signal_with_exit_0(tmp_path: Path, number: int) -> None:
    store = kept(tmp_path / "s", verdict("/kim/one"), verdict("/kim/two"))
    with Terminal("status", "--store", store, "--watch", "0.2s", columns=140) as terminal:
        terminal.wait_for_text("/kim/two")
        kept(store, verdict("/kim/two", "KILL", A="FAIL WEDGED", at="2026-07-20T11:56:00.000Z"))
        terminal.wait_for_text("*WEDGED")
        assert terminal.signalled(number)[0] == 0
        lines = [line for line in terminal.screen if line]
        assert [line.split()[0] for line in lines[:3]] == ["job", "/kim/one", "/kim/two"]
        assert "ago: NO-KILL → KILL, A ALIVE → WEDGED" in lines[2]
        assert "every 0.2 s; Ctrl-C ends" in lines[3]
        assert terminal.is_as_before()


def test_what_a_watch_is_behind_with_stands_beneath_the_table_while_it_runs(tmp_path: Path) -> None:
    names = [f"/kim/{number}" for number in range(5)]
    store = kept(tmp_path / "s", *(verdict(name) for name in names))
    (store / "watch").mkdir()
    health = store / "watch" / "health.json"
    health.write_text(json.dumps({"jobs": {name: {"lag": 400.0, "sync": None} for name in names}}))
    with Terminal("status", "--watch", "--store", store, columns=140) as terminal:
        terminal.wait_for_text("/kim/2: is judged 6 min behind the clock")
        assert not any("/kim/3: is judged" in line for line in terminal.screen)
        assert any("and 2 more behind" in line for line in terminal.screen)
        terminal.signalled()
    os.utime(health, (0, 0))
    rows = [json.loads(line) for line in wedgewatch("status", "--store", store).stdout.splitlines()]
    assert [(row["lag"], row["sync"]) for row in rows] == [(None, None)] * 5


def test_ctrl_c_typed_on_the_terminal_ends_it(tmp_path: Path) -> None:
    store = kept(tmp_path / "s", verdict())
    with Terminal("status", "--watch", "--store", store) as terminal:
        terminal.wait_for_text("every 2 s; Ctrl-C ends")
        terminal.type("\x03")
        assert terminal.ended()[0] == 0
        assert terminal.is_as_before()


def test_store_that_goes_away_is_told_beneath_the_rows_that_are_known(tmp_path: Path) -> None:
    store = kept(tmp_path / "s", verdict())
    with Terminal("status", "--watch", "0.2s", "--store", store, columns=140) as terminal:
        terminal.wait_for_text("/kim/rl")
        shutil.move(store, tmp_path / "aside")
        terminal.wait_for_text("holds no store")
        assert any(line.startswith("/kim/rl") for line in terminal.screen)
        shutil.move(tmp_path / "aside", store)
        terminal.wait_for(lambda: terminal.drawn.rpartition("holds no store")[2].count("Ctrl-C ends") > 1)
        assert terminal.signalled()[0] == 0
        assert not any("holds no store" in line for line in terminal.screen)


def test_pipe_gets_each_row_once_and_again_when_it_changes(piped: subprocess.Popen[str], tmp_path: Path) -> None:
    assert piped.stdout is not None
    first = [json.loads(piped.stdout.readline()) for _ in range(2)]
    assert [row["job"] for row in first] == ["/kim/one", "/kim/two"]
    heartbeat = verdict("/kim/one", at="2026-07-20T12:05:00.000Z")
    kept(tmp_path / "s", heartbeat, verdict("/kim/two", step=8, at="2026-07-20T12:05:00.000Z"))
    row = json.loads(piped.stdout.readline())
    assert (row["job"], row["step"]["done"]) == ("/kim/two", 8)
    piped.send_signal(signal.SIGINT)
    assert piped.communicate(timeout=30) == ("", "")
    assert piped.returncode == 0


def test_reader_of_the_pipe_that_goes_away_ends_it_quietly(piped: subprocess.Popen[str], tmp_path: Path) -> None:
    assert piped.stdout is not None
    assert piped.stderr is not None
    piped.stdout.readline()
    piped.stdout.close()
    kept(tmp_path / "s", verdict("/kim/two", "KILL", at="2026-07-20T12:05:00.000Z"))
    assert piped.wait(30) == 141
    assert piped.stderr.read() == ""


def test_text_without_a_terminal_is_an_error_that_says_what_works(tmp_path: Path) -> None:
    done = wedgewatch("status", "--watch", "--format", "text", "--store", kept(tmp_path / "s", verdict()))
    assert (done.returncode, done.stdout) == (2, "")
    assert "standard output is no terminal that can redraw; --format jsonl prints changes" in done.stderr


def test_watch_without_a_store_or_too_often_is_an_error(tmp_path: Path) -> None:
    done = wedgewatch("status", "--watch", "--store", tmp_path / "none")
    assert (done.returncode, "holds no store" in done.stderr) == (2, True)
    done = wedgewatch("status", "--watch", "0.01s", "--store", kept(tmp_path / "s", verdict()))
    assert (done.returncode, "looks are at least 0.2 s apart" in done.stderr) == (2, True)
