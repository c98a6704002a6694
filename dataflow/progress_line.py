"""A line at the foot of the terminal that says how far the reading is: bytes, rate and time left.

It is drawn on standard error, where that is a terminal, once the work has taken a second, and is gone at the end. The
cursor is never hidden and nothing else of the terminal is changed, so that whatever ends the process leaves it sane.
"""

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from dataflow.ending import told_through, write_told
from dataflow.outcome import Outcome
from dataflow.read_so_far import bytes_to_read
from dataflow.terminal import can_redraw
from state.wording import span

if TYPE_CHECKING:
    from rich.progress import Progress

    from dataflow.feed import ReplayFeed
    from dataflow.sinks import Sink

SHOWN_AFTER = 1.0
"""Seconds of work without a word; a small capture is read by then."""
EACH = 0.2
"""Seconds from one drawing to the next."""
_BAR_FROM = 70
"""Columns of a terminal that has room for a bar."""
_RATE_OVER = 15.0
"""Seconds over which the rate is measured."""
_ERASED = b"\r\x1b[2K"


class Reading:
    """The words of the line: what was read, of how much, how fast, and how long it may still take.

    begun is when the reading began, in seconds of the clock whose time `line` is given; width is the terminal's, in
    columns. The rate is that of the last seconds, many enough for packed files, which are taken in large pieces.
    """

    def __init__(self, total: int | None, begun: float, width: int | None = None) -> None:
        from rich.console import Console

        self._total = total
        self._samples = deque([(begun, 0)])
        self._console = Console(stderr=True, width=width)
        self._progress = self._columns(total)
        self._task = self._progress.add_task("", total=total, rate="", trials="", left="")

    def _columns(self, total: int | None) -> "Progress":
        from rich import progress as shown

        columns: list[shown.ProgressColumn] = [shown.TextColumn("reading")]
        if total and self._console.width >= _BAR_FROM:
            columns.append(shown.BarColumn(bar_width=None if self._console.width < 100 else 40))
        fields = ("rate", "left", "trials") if total else ("rate", "trials")
        columns += [shown.DownloadColumn(), *(shown.TextColumn(f"{{task.fields[{field}]}}") for field in fields)]
        return shown.Progress(*columns, console=self._console, auto_refresh=False)

    def line(self, now: float, taken: int, trials: int) -> str:
        """The line as it stands now, with the terminal's colours, within its width."""
        from rich.filesize import decimal

        done = taken if self._total is None else min(taken, self._total)
        rate = self._rate(now, done)
        self._progress.update(
            self._task,
            completed=done,
            rate=f"{decimal(int(rate))}/s" if rate else "",
            left=f"{span((self._total - done) / rate)} left" if rate and self._total else "",
            trials=f"{trials:,} trials" if trials else "",
        )
        width = max(1, self._console.width - 1)
        with self._console.capture() as drawn:
            self._console.print(
                self._progress.get_renderable(), width=width, end="", no_wrap=True, overflow="crop", crop=True
            )
        return drawn.get().split("\n", 1)[0]

    def _rate(self, now: float, done: int) -> float:
        """Bytes a second."""
        while len(self._samples) > 1 and self._samples[1][0] < now - _RATE_OVER:
            self._samples.popleft()
        at, had = self._samples[0]
        self._samples.append((now, done))
        return (done - had) / (now - at) if now > at else 0.0


class ProgressLine:
    """The line on a terminal (a file descriptor). Other writers to the terminal step in with `aside`."""

    def __init__(self, terminal: int, say: Callable[[], str]) -> None:
        self._terminal = terminal
        self._say = say
        self._shown = b""
        self._gone = False
        self._lock = threading.RLock()

    def draw(self) -> None:
        """Draws the line as it stands now. A process in the background has no say on its terminal."""
        line = self._say().encode(errors="replace") if _in_front(self._terminal) else b""
        with self._lock:
            if self._gone:
                return
            if line or self._shown:
                self._write(_ERASED + line)
            self._shown = line

    def end(self) -> None:
        """Takes the line away for good."""
        with self._lock:
            self._gone = True
            if self._shown:
                self._write(_ERASED)
            self._shown = b""

    @contextmanager
    def aside(self) -> Iterator[None]:
        """The line is away while others write whole lines, and comes back below them."""
        with self._lock:
            shown, self._shown = self._shown, b""
            if shown:
                self._write(_ERASED)
            try:
                yield
            finally:
                if shown:
                    self._write(shown)
                self._shown = shown

    def told(self, message: str) -> None:
        """A message on standard error, above the line."""
        with self.aside():
            write_told(message)

    def _write(self, drawn: bytes) -> None:
        """Past Python's buffers: a signal's handler may draw while the main thread does. A terminal that is gone is no
        reason to end the work."""
        with suppress(OSError):
            os.write(self._terminal, drawn)


class Beside:
    """A sink whose records go to the terminal on which the line stands."""

    def __init__(self, sink: "Sink", line: ProgressLine) -> None:
        self._sink = sink
        self._line = line

    def write(self, record: dict[str, Any]) -> None:
        """Takes one record."""
        with self._line.aside():
            self._sink.write(record)


Wrapping = Callable[["Sink"], "Sink"]


@contextmanager
def progress_shown(feeds: "list[ReplayFeed]", outcome: Outcome) -> Iterator[Wrapping]:
    """Shows how far these feeds are read, where standard error is a terminal. Gives what each sink must be wrapped in
    that may write to the same one."""
    if not can_redraw(sys.stderr):
        yield lambda sink: sink
        return
    ended = threading.Event()
    line = ProgressLine(sys.stderr.fileno(), _Words(feeds))
    threading.Thread(target=_show, args=(line, ended, outcome), name="progress", daemon=True).start()
    try:
        with told_through(line.told):
            yield lambda sink: Beside(sink, line)
    finally:
        ended.set()
        line.end()


class _Words:
    """The line over all feeds. What draws it is loaded, and the files are measured, only when it is first asked."""

    def __init__(self, feeds: "list[ReplayFeed]") -> None:
        self._feeds = feeds
        self._begun = time.monotonic()
        self._reading: Reading | None = None

    def __call__(self) -> str:
        if self._reading is None:
            sizes = [bytes_to_read(feed.capture) for feed in self._feeds]
            total = None if None in sizes else sum(size for size in sizes if size is not None)
            self._reading = Reading(total or None, self._begun)
        read = [feed.read for feed in self._feeds]
        taken, trials = sum(each.taken for each in read), sum(each.trials for each in read)
        return self._reading.line(time.monotonic(), taken, trials)


def _show(line: ProgressLine, ended: threading.Event, outcome: Outcome) -> None:
    """Draws until the work has ended or halts."""
    if ended.wait(SHOWN_AFTER):
        return
    while not ended.is_set() and not outcome.halted:
        line.draw()
        ended.wait(EACH)
    line.end()


def _in_front(terminal: int) -> bool:
    """Whether the terminal is ours to draw on. One that isn't the process's own knows no foreground."""
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return True
