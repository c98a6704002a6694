"""What `wedgewatch explain` was asked for, and its records: a gate's trace at a capture's end, or a cause."""

from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from shutil import get_terminal_size
from typing import Any, TextIO

from dataflow.feed import ReplayFeed
from dataflow.opened import STDIN
from dataflow.outcome import Halted, Outcome
from state.case import Case
from state.causes import CAUSES
from state.track import TRACKS, Track, Views
from state.weighed.cause import cause_record, cause_text
from state.weighed.report import LETTERS, explanation_text, explanations

COLUMNS = 140
"""The width of text that goes into no terminal."""
FEWEST_COLUMNS = 80
NEAR = 4
"""Cause codes that are offered for a mistyped one."""


def is_capture(named: str) -> bool:
    """Whether the name is that of something to read."""
    return named == STDIN or Path(named).exists()


def unknown(named: str) -> str:
    """What to say of a name that is no capture, no job of the store and no cause."""
    near = get_close_matches(named.lower().replace("-", "_"), CAUSES, NEAR, 0.5)
    offered = f"; near it: {', '.join(near)}" if near else ""
    kinds = "neither a capture (a folder, a log file, or -), nor a job of the store, nor the code of a cause"
    return f"{named}: {kinds}{offered}"


def case_at_end(feed: ReplayFeed, outcome: Outcome) -> Case | None:
    """The job as it stands at the end of its feed; None where the feed tells of none, or was halted."""
    tracks = [Track(step) for step in TRACKS]
    case: Case | None = None
    try:
        for beat in feed.beats(outcome):
            views: Views = {}
            for track in tracks:
                views = track.fold(beat, views)
            case = case if beat.partial else Case(job=beat.job, now_us=beat.tick.at_us, **views)
    except Halted:
        return None
    return case


def explained(case: Case, gate: str | None) -> Iterator[dict[str, Any]]:
    """The explanation of one gate, or of all four."""
    return explanations(case, (gate,) if gate else LETTERS)


def cause_explained(code: str) -> dict[str, Any]:
    """The record of a cause."""
    return cause_record(code)


class Explanations:
    """A sink that writes records of either kind as text, as wide as the terminal is."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._width = max(FEWEST_COLUMNS, get_terminal_size((COLUMNS, 0)).columns)

    def write(self, record: dict[str, Any]) -> None:
        """Takes one record."""
        text = cause_text if record["kind"] == "cause" else explanation_text
        self._stream.write(text(record, self._width) + "\n\n")
        self._stream.flush()
