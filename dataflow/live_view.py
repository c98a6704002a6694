"""The live view of `watch`: one line a job on a terminal, what was told above it.

    with LiveView(sys.stdout, lags) as view:
        view.write(record)

It is a sink; lags is asked twice a second for a JobLag of each job. Only the view's own thread draws. `write` and
`told` put down what is new and return, so that they may be called from any worker, and `told` from a signal's handler.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, TextIO

from dataflow.ending import tell, told_through, write_told
from dataflow.job_rows import JobLag, Line, Looks, row_of, unjudged_row, verdict_said
from dataflow.outcome import plain, told

Record = dict[str, Any]
EACH = 0.5
"""Seconds from one drawing to the next."""
MARKED = 10.0
"""Seconds for which a change is set off."""
ENDED_WITHIN = 1.0
"""Seconds that the last drawing may take; a terminal that is held (Ctrl-S) takes for ever."""


class Board:
    """What was said of each job so far: the lines of the view, without a terminal."""

    def __init__(self) -> None:
        self._verdicts: dict[str, Record] = {}
        self._gates: dict[str, dict[str, Record]] = {}
        self._looks = Looks(MARKED)
        self._lock = threading.Lock()

    def write(self, record: Record) -> str:
        """Takes one record. Gives a line of news where the job's verdict is another now, else nothing."""
        job = record["job"]
        with self._lock:
            if record["kind"] == "gate":
                self._gates.setdefault(job, {})[record["gate"]] = record
                return ""
            if record["kind"] != "verdict":
                return ""
            before, self._verdicts[job] = self._verdicts.get(job), record
        said = verdict_said(record)
        if before is not None and verdict_said(before) == said:
            return ""
        was = "" if before is None else f"{verdict_said(before)} → "
        return f"{record['at']}  {job}  {was}{said}  ({record['confidence']})"

    def lines(self, lags: Iterable[JobLag], now: datetime) -> list[Line]:
        """A look at all jobs, by name: those that records or lags tell of."""
        by_job = {lag.job: lag for lag in lags}
        with self._lock:
            rows = []
            for job in sorted({*by_job, *self._verdicts, *self._gates}):
                gates, verdict = self._gates.get(job, {}), self._verdicts.get(job)
                rows.append(unjudged_row(job, gates) if verdict is None else row_of(verdict, gates))
        return self._looks.look(rows, now, by_job.values())


class LiveView:
    """A sink that shows. lags is called by the drawing thread; now is the clock by which ages are told."""

    def __init__(
        self,
        stream: TextIO,
        lags: Callable[[], Iterable[JobLag]],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        each: float = EACH,
    ) -> None:
        from rich.live import Live

        from dataflow.job_table import SteadyConsole

        self._console = SteadyConsole(file=stream)
        self._live = Live(console=self._console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
        self._board = Board()
        self._lags = lags
        self._now = now
        self._each = each
        self._told: deque[str] = deque()
        self._ended = threading.Event()
        self._gone = False
        self._thread = threading.Thread(target=self._show, name="live view", daemon=True)
        self._ending = ExitStack()

    def __enter__(self) -> "LiveView":
        self._ending.enter_context(told_through(self.told))
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Draws the last state, which stays on the terminal."""
        self._ended.set()
        self._thread.join(ENDED_WITHIN)
        self._ending.close()
        self._give_up()

    def write(self, record: Record) -> None:
        """Takes one record: the job's line changes, and a verdict that is another is told above the table."""
        if news := self._board.write(record):
            self.told(news)

    def told(self, note: str) -> None:
        """A line above the table; on standard error once the view has ended."""
        if self._gone:
            write_told(plain(note))
        else:
            self._told.append(note)

    def _show(self) -> None:
        """Draws until the end. A terminal that is gone, or an error of our own, ends the view and not the watch."""
        try:
            with self._live:
                while not self._ended.is_set():
                    self._draw()
                    self._ended.wait(self._each)
                self._draw()
        except Exception as error:
            self._give_up()
            if not isinstance(error, OSError):
                tell(f"internal error: {told(error)}; the live view ends, the watch goes on")

    def _give_up(self) -> None:
        """From now on lines go straight to standard error, those first that wait."""
        self._gone = True
        while self._told:
            write_told(plain(self._told.popleft()))

    def _draw(self) -> None:
        from dataflow.job_table import WATCHED, screenful, unread_said

        while self._told:
            self._console.print(plain(self._told.popleft()), markup=False, highlight=False, soft_wrap=True)
        now = self._now()
        lines = self._board.lines(list(self._lags()), now)
        self._live.update(screenful(lines, WATCHED, now, self._console, unread_said(lines)), refresh=True)
