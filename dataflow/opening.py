"""What a command opens before it runs: the captures it reads, the places it writes to, its own code."""

import gc
import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from dataflow.ending import cannot_write, tell, unusable

if TYPE_CHECKING:
    from dataflow.feed import ReplayFeed
    from dataflow.outcome import Outcome
    from dataflow.sinks import Sink


GARBAGE_OBJECTS = 50_000
"""So many new objects are made before garbage is looked for. Little of it is in circles, and thousands of open files
are looked at each time."""


def tell_of_no_job(captured: str, as_of: int | None) -> None:
    """Tells that a capture holds no line of a job (before a time, in microseconds)."""
    then = "" if as_of is None else " at that time"
    tell(f"nothing in {captured} tells of a job{then}; is it a capture, or a log of one?")


@contextmanager
def starting() -> Iterator[None]:
    """Loads without looking for garbage, of which there is none: it would take a sixth of the start."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.set_threshold(GARBAGE_OBJECTS)
        gc.enable()


def feeds_of(
    captures: tuple[str, ...], job_toml: Path | None, as_of: int | None, journal: Path | None = None
) -> "list[ReplayFeed]":
    """The captures, each ready to be read. Ends the command (exit 2) over one that can't be, or that comes twice."""
    from dataflow.capture import CaptureError
    from dataflow.feed import open_feed
    from dataflow.opened import STDIN
    from dataflow.outcome import SettingsError

    feeds: dict[str, ReplayFeed] = {}
    if captures.count(STDIN) > 1:
        unusable("-: standard input can be read only once; name it once")
    for path in captures:
        try:
            feed = open_feed(path, job_toml=job_toml, as_of_us=as_of, journal=journal)
        except (CaptureError, SettingsError) as error:
            unusable(str(error))
        if feed.job in feeds:
            unusable(f"{path}: job {feed.job} is already read from {feeds[feed.job].captured}; name each job once")
        feeds[feed.job] = feed
    return list(feeds.values())


def refuse_to_overwrite(out: Path, feeds: "list[ReplayFeed]") -> None:
    """No command writes into a capture's files, by whatever name they are given."""
    if not out.exists():
        return
    place = out.resolve()
    for feed in feeds:
        for each in (*feed.capture.sources, *feed.capture.trials):
            held = Path(each.path)
            twin = held.is_file() and held.samefile(out)
            if twin or place.is_relative_to(held.resolve()):
                unusable(f"{out}: is {each.relative} of {feed.captured}, which is to be read, and is not overwritten")


def refuse_to_write_into(places: tuple[Path | None, ...], feeds: "list[ReplayFeed]") -> None:
    """What is written into a capture would be read as the job's the next time."""
    for feed in feeds:
        captured = Path(feed.captured)
        for place in places:
            if place is not None and captured.is_dir() and place.resolve().is_relative_to(captured.resolve()):
                unusable(
                    f"{place}: lies in the capture {feed.captured}, into which nothing is written; name another place"
                )


@contextmanager
def outputs_of(
    layout: str | None,
    out: Path | None,
    log_folder: Path | None,
    outcome: "Outcome",
    text: "Callable[[TextIO], Sink] | None" = None,
) -> "Iterator[list[Sink]]":
    """Where the records go, `text` for people. An output that can't be opened ends the command before anything is
    read."""
    from dataflow.dated import DatedReports
    from dataflow.sinks import JsonLines, TextReports

    try:
        stream = out.open("w", encoding="utf-8", errors="backslashreplace") if out else _stdout()
        if log_folder:
            log_folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        unusable(cannot_write(error, str(out)))
    layout = layout or ("text" if out is None and stream.isatty() else "jsonl")
    sinks: list[Sink] = [(text or TextReports)(stream) if layout == "text" else JsonLines(stream)]
    try:
        yield [*sinks, DatedReports(log_folder)] if log_folder else sinks
    finally:
        try:
            if out:
                stream.close()
        except OSError as error:
            outcome.unwritable = outcome.unwritable or error


@contextmanager
def stored(folder: Path | None) -> "Iterator[list[Sink]]":
    """The store as a place for records, where one is asked for."""
    if folder is None:
        yield []
        return
    from state.store import Store, StoreError

    try:
        store = Store(folder)
        try:
            yield [store]
        finally:
            store.close()
    except StoreError as error:
        unusable(str(error))


def _stdout() -> TextIO:
    """Standard output, able to take any character whatever the terminal's encoding."""
    if sys.stdout is None:
        unusable("standard output: cannot be written: it is closed")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    return sys.stdout
