"""`wedgewatch record`: the probes alone, so that a later replay sees what a live watch saw."""

import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from dataflow.ending import tell, unusable
from dataflow.homes import JOB_FILE
from dataflow.opened import reason
from dataflow.outcome import SettingsError
from dataflow.probes import Polled, ProbedJob, ProbePool
from dataflow.settings import Settings, load_job

STOPPED_WITHIN = 1.5
"""Seconds that probes have to end; the whole command has two."""
_TICK = 0.1


@dataclass(slots=True)
class _Asked:
    """The signal that asked for the end, 0 for none."""

    signal: int = 0


def record_polls(capture: Path, job_toml: Path | None, seconds: float | None) -> None:
    """Records until it is asked to end, or so many seconds. Ends the command with exit code 2 where it can't begin."""
    folder = Path(os.path.abspath(capture))
    settings = _settings(capture, job_toml)
    _refuse_unwritable(capture)
    job = settings.facts.id or folder.name
    until = None if seconds is None else time.monotonic() + seconds
    pool = ProbePool()
    heard = _Heard(shown=sys.stderr is not None and sys.stderr.isatty())
    with _asked_to_end() as asked:
        pool.start([ProbedJob(job, folder, settings)])
        while not asked.signal and (until is None or time.monotonic() < until):
            heard.say(pool.poll())
            time.sleep(_TICK)
        pool.stop(STOPPED_WITHIN)
        heard.say(pool.poll())
        heard.end()


def _settings(capture: Path, job_toml: Path | None) -> Settings:
    if not capture.is_dir():
        unusable(f"{capture}: is no folder; polls are recorded into a capture's folder, which holds its {JOB_FILE}")
    path = job_toml or capture / JOB_FILE
    if not path.exists():
        unusable(f"{path}: there is none, so there is nothing to run; write one with [probes.*], or name it with --job")
    try:
        settings = load_job(path)
    except SettingsError as error:
        unusable(error.message)
    if not settings.probes and settings.sync is None:
        unusable(
            f'{path}: names no probe to run; add one, such as [probes.state] with command = ["…"] and every = "60s"'
        )
    return settings


def _refuse_unwritable(capture: Path) -> None:
    polls = capture / "polls"
    try:
        polls.mkdir(exist_ok=True)
    except OSError as error:
        unusable(f"{polls}: cannot be written: {reason(error)}")
    if not os.access(polls, os.W_OK | os.X_OK):
        unusable(f"{polls}: cannot be written: the folder is read-only")


@contextmanager
def _asked_to_end() -> Iterator[_Asked]:
    """The first SIGINT or SIGTERM asks for the end, which then comes within 2 s; a second one ends at once."""
    asked = _Asked()

    def note(number: int, _frame: FrameType | None) -> None:
        for each in before:
            signal.signal(each, signal.SIG_DFL)
        asked.signal = number
        last_resort.start()

    last_resort = threading.Timer(STOPPED_WITHIN + 0.4, os._exit, (0,))
    last_resort.daemon = True
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, note)
    try:
        yield asked
    finally:
        last_resort.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)


class _Heard:
    """What is told of the polls: each on a terminal; anywhere, once, those that could not begin or be written."""

    def __init__(self, shown: bool) -> None:
        self._shown = shown
        self._unbegun: set[tuple[str, str]] = set()
        self._lost: Counter[tuple[str, str]] = Counter()

    def say(self, polls: list[Polled]) -> None:
        for polled in polls:
            if self._shown:
                tell(_told(polled))
            elif polled.unbegun and (polled.probe, polled.error) not in self._unbegun:
                self._unbegun.add((polled.probe, polled.error))
                tell(f"probe {polled.probe}: {polled.error}; that is recorded, and tried again")
            if polled.unwritten:
                place = (polled.probe, polled.unwritten)
                self._lost[place] += 1
                if self._lost[place] == 1:
                    tell(f"polls/{polled.probe}.jsonl: cannot be written: {polled.unwritten}; the probes go on")

    def end(self) -> None:
        for (probe, why), count in self._lost.items():
            tell(f"polls/{probe}.jsonl: {count} polls are lost: {why}")


def _told(polled: Polled) -> str:
    what = f"{polled.probe} {polled.target}".rstrip()
    came_to = polled.error if polled.exit is None else f"exit {polled.exit}"
    return f"{datetime.now(UTC):%H:%M:%SZ} {what}: {came_to}, {polled.elapsed * 1000:,.0f} ms, {polled.printed:,} bytes"
