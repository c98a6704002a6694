"""The live view of a watch on a real terminal, and the board behind it without one."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TextIO

import pytest

from dataflow.ending import tell
from dataflow.job_rows import JobLag
from dataflow.live_view import Board, LiveView
from tests.dataflow.job_lines import NOON, gate, verdict
from tests.dataflow.terminals import screen, uncoloured


class Drawn:
    """What comes out of a pseudo-terminal."""

    def __init__(self, ours: int) -> None:
        self._ours = ours
        self._bytes = bytearray()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        try:
            while got := os.read(self._ours, 65_536):
                self._bytes += got
        except OSError:
            return

    @property
    def text(self) -> str:
        return self._bytes.decode()

    def has(self, text: str) -> None:
        self.holds(lambda: text in uncoloured(self.text))

    def holds(self, what: Callable[[], bool]) -> None:
        until = time.monotonic() + 30
        while not what():
            assert time.monotonic() < until, self.text[-2_000:]
            time.sleep(0.005)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[TextIO, Drawn]]:
    for name, value in (("TERM", "xterm-256color"), ("COLUMNS", "150"), ("LINES", "30")):
        monkeypatch.setenv(name, value)
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    ours, theirs = os.openpty()
    drawn = Drawn(ours)
    with open(theirs, "w", encoding="utf-8") as stream:
        yield stream, drawn
    drawn.reader.join(30)
    os.close(ours)


def watched(stream: TextIO, *lags: JobLag) -> LiveView:
    return LiveView(stream, lambda: lags, now=lambda: NOON, each=0.01)


def test_board_tells_the_first_verdict_and_each_that_is_another() -> None:
    board = Board()
    assert board.write(gate("A", "PASS ALIVE")) == ""
    assert board.write(verdict()) == "2026-07-20T11:55:00.000Z  /kim/rl  NO-KILL  (high)"
    assert board.write(verdict(step=9)) == ""
    assert board.write(verdict(says="KILL")).endswith("/kim/rl  NO-KILL → KILL  (high)")
    assert board.write({"kind": "cause", "job": "/kim/rl"}) == ""


def test_board_has_a_line_for_each_job_that_is_watched_or_was_judged() -> None:
    board = Board()
    board.write(verdict("/kim/judged"))
    board.write(gate("B", "PASS FED", "/kim/begun"))
    lines = board.lines([JobLag("/kim/quiet", 5.0)], NOON)
    assert [(line.row["job"], line.row["verdict"]) for line in lines] == [
        ("/kim/begun", None),
        ("/kim/judged", "NO-KILL"),
        ("/kim/quiet", None),
    ]
    board.write(gate("A", "FAIL WEDGED", "/kim/judged"))
    judged = board.lines([], NOON + timedelta(seconds=2))[1]
    assert judged.marks == {"A"}
    assert judged.change is not None
    assert judged.change.says == "A ALIVE → WEDGED"


def test_view_shows_a_line_a_job_and_what_was_told_above(terminal: tuple[TextIO, Drawn]) -> None:
    stream, drawn = terminal
    with watched(stream, JobLag("/kim/rl", 5.0, unreadable=("finelog.log",))) as view:
        view.write(verdict())
        drawn.has("LEARNING")
        tell("finelog.log: cannot be opened: Permission denied")
        drawn.has("Permission denied")
        view.write(gate("B", "FAIL STARVED"))
        view.write(verdict(says="KILL", B="FAIL STARVED"))
        drawn.has("*STARVED")
        drawn.has("→ KILL")
    lines = [line.rstrip() for line in screen(drawn.text) if line]
    assert lines[:3] == [
        "2026-07-20T11:55:00.000Z  /kim/rl  NO-KILL  (high)",
        "wedgewatch: finelog.log: cannot be opened: Permission denied",
        "2026-07-20T11:55:00.000Z  /kim/rl  NO-KILL → KILL  (high)",
    ]
    assert lines[3].startswith("job ")
    assert lines[4].split()[:4] == ["/kim/rl", "*KILL", "ALIVE", "*STARVED"]
    assert "5 s, 1 unread" in lines[4]
    assert lines[5:] == ["/kim/rl: finelog.log can't be read"]
    assert "\x1b[?25l" not in drawn.text
    assert "\x1b[33m5 s, 1 unread" in drawn.text


def test_what_is_told_at_the_very_end_is_not_lost(terminal: tuple[TextIO, Drawn]) -> None:
    stream, drawn = terminal
    with LiveView(stream, list, now=lambda: NOON, each=60) as view:
        drawn.has("job")
        view.told("SIGTERM: stopping")
    drawn.has("SIGTERM: stopping")


def test_view_has_no_colours_where_none_are_wanted(
    terminal: tuple[TextIO, Drawn], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    stream, drawn = terminal
    with watched(stream) as view:
        view.write(verdict(says="KILL"))
        drawn.has("KILL")
    assert not any(f"\x1b[{style}m" in drawn.text for style in ("31", "1;31", "32", "33"))


def test_error_of_the_view_ends_it_and_is_told_and_the_watch_goes_on(
    terminal: tuple[TextIO, Drawn], capsys: pytest.CaptureFixture[str]
) -> None:
    stream, _ = terminal

    def broken() -> list[JobLag]:
        raise RuntimeError("no lags")

    with LiveView(stream, broken, now=lambda: NOON, each=0.01) as view:
        view._thread.join(30)
        view.write(verdict())
        view.told("after all")
    said = capsys.readouterr().err
    assert "internal error: RuntimeError: no lags" in said
    assert "the live view ends, the watch goes on" in said
    assert "after all" in said
