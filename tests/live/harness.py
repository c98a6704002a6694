"""Real processes for drills of `wedgewatch watch`: the watch that is started, stopped and killed, the writer beside it,
and the replay that says what should have come."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
from click.testing import CliRunner

from dataflow.cli import main
from dataflow.tailing import family
from extractors.clocks import parse_iso, write_iso

ROOT = Path(__file__).resolve().parents[2]
SECOND_US = 1_000_000
SLOW = float(os.environ.get("WEDGEWATCH_PATIENCE", "1"))
"""By how much longer to wait on a slow machine."""
GRACEFUL = 2.0
"""Seconds within which a watch ends when it is asked to."""


@dataclass
class Watch:
    """A watch of some captures: its process, when it runs, and its files, which outlive the process."""

    captures: Sequence[Path]
    folder: Path
    clock: Path | None = None
    options: Sequence[str] = ()
    process: "subprocess.Popen[bytes] | None" = None
    ended: list[int] = field(default_factory=list)

    @property
    def out(self) -> Path:
        """Where the records are appended."""
        return self.folder / "out.jsonl"

    @property
    def store(self) -> Path:
        """Where the watch keeps what it knows."""
        return self.folder / "store"

    @property
    def said(self) -> str:
        """All that it said to people."""
        path = self.folder / "stderr"
        return path.read_text(errors="replace") if path.exists() else ""

    def command(self, workers: int = 1) -> list[str]:
        """The command line."""
        words = [sys.executable, "-m", "dataflow.cli", "watch", *map(str, self.captures), "--format", "jsonl"]
        words += ["--out", str(self.out), "--store", str(self.store), "--workers", str(workers), *self.options]
        return words if self.clock is None else [*words, "--clock", str(self.clock)]

    def start(self, workers: int = 1) -> "Watch":
        """Starts the process, which appends to the files of the ones before it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "stderr").open("ab") as stderr:
            self.process = subprocess.Popen(
                self.command(workers),
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdout=subprocess.DEVNULL,
                stderr=stderr,
            )
        return self

    def kill(self) -> None:
        """kill -9."""
        if self.process is not None:
            self.process.kill()
            self.ended.append(self.process.wait())
            self.process = None

    def stop(self, how: int = signal.SIGTERM) -> float:
        """Asks it to end and gives the seconds that it took. Raises AssertionError where it ends otherwise."""
        assert self.process is not None
        begun = time.monotonic()
        self.process.send_signal(how)
        try:
            code = self.process.wait(10 * GRACEFUL * SLOW)
        finally:
            self.kill()
        took = time.monotonic() - begun
        assert code == 0, f"exit code {code}: {self.said[-2000:]}"
        return took

    def health(self) -> dict[str, Any]:
        """What the watch says of itself; empty before it does."""
        try:
            found = orjson.loads((self.store / "watch" / "health.json").read_bytes())
        except (OSError, orjson.JSONDecodeError):
            return {}
        return dict(found)

    def released_us(self) -> int:
        """Up to when all jobs of this process were judged; 0 before that."""
        health = self.health()
        jobs = health.get("jobs", {})
        if self.process is None or health.get("pid") != self.process.pid or len(jobs) < len(self.captures):
            return 0
        return min(parse_iso(job.get("released") or "") or 0 for job in jobs.values())

    def wait_released(self, at_us: int, within: float = 60.0) -> None:
        """Waits until everything up to a time was judged. Raises AssertionError where the watch ends before that."""
        self.wait(lambda: self.released_us() >= at_us, within, lambda: f"judged up to {write_iso(self.released_us())}")

    def wait(self, holds: Callable[[], bool], within: float, stands: Callable[[], str] = lambda: "") -> None:
        """Waits for something while the process runs."""
        until = time.monotonic() + within * SLOW
        while not holds():
            assert self.process is not None
            code = self.process.poll()
            assert code is None, f"the watch ended with {code}: {self.said[-3000:]}"
            assert time.monotonic() < until, f"not within {within:.0f} s; {stands()}: {self.said[-3000:]}"
            time.sleep(0.05)

    def lines(self) -> list[bytes]:
        """The records as they were written; a last one that is not whole is not counted."""
        content = self.out.read_bytes() if self.out.exists() else b""
        return content.split(b"\n")[:-1]


@contextmanager
def playing(
    recorded: Path, target: Path, clock: Path, *options: str, also: Sequence[Path] = ()
) -> "Iterator[subprocess.Popen[bytes]]":
    """A writer that plays a capture, and ends with the block at the latest. Raises AssertionError where it failed."""
    words = [sys.executable, "-m", "tests.live.writer", str(recorded), str(target), "--clock", str(clock), *options]
    if also:
        words += ["--also", *map(str, also)]
    process = subprocess.Popen(words, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE)
    try:
        yield process
        assert process.poll() in (0, None), process.communicate()[1]
    finally:
        process.kill()
        process.communicate()


@dataclass(frozen=True)
class Replayed:
    """What a replay of a finished capture says: its records before the capture's end, as they are written, and the
    final one."""

    lines: list[bytes]
    end_us: int
    final: bytes

    def of(self, lines: Sequence[bytes]) -> list[bytes]:
        """The records of a watch that tell of the time before the capture's end."""
        return [line for line in lines if at_of(line) < self.end_us]


def replayed(capture: Path, folder: Path, *options: str) -> Replayed:
    """Replays a finished capture with a watch's heartbeat."""
    out = folder / "replayed.jsonl"
    words = ["replay", str(capture), "--heartbeat", "10m", "--format", "jsonl", "--out", str(out), *options]
    ran = CliRunner().invoke(main, words)
    assert ran.exit_code == 0, ran.output
    lines = out.read_bytes().split(b"\n")[:-1]
    end_us = at_of(lines[-1])
    return Replayed([line for line in lines if at_of(line) < end_us], end_us, lines[-1])


def at_of(line: bytes) -> int:
    """The time of a record."""
    at_us = parse_iso(orjson.loads(line)["at"])
    assert at_us is not None
    return at_us


def job_of(line: bytes) -> str:
    """The job of a record."""
    return str(orjson.loads(line)["job"])


def differing(said: Sequence[bytes], expected: Sequence[bytes]) -> str:
    """Where two lists of records part, for people; empty where they are the same bytes."""
    if list(said) == list(expected):
        return ""
    place = next((n for n, (a, b) in enumerate(zip(said, expected, strict=False)) if a != b), None)
    if place is None:
        place = min(len(said), len(expected))
        longer = said if len(said) > len(expected) else expected
        return f"{len(said)} records, not {len(expected)}; the first beyond: {longer[place][:600]!r}"
    parted = _parted(orjson.loads(said[place]), orjson.loads(expected[place]))
    return f"record {place} of {len(said)} and {len(expected)} differs: " + "; ".join(parted[:8])


def _parted(said: Any, expected: Any, where: str = "") -> list[str]:
    """The places in which two records differ."""
    if isinstance(said, dict) and isinstance(expected, dict):
        keys = [*said, *(key for key in expected if key not in said)]
        return [each for key in keys for each in _parted(said.get(key), expected.get(key), f"{where}.{key}")]
    if isinstance(said, list) and isinstance(expected, list) and len(said) == len(expected):
        pairs = enumerate(zip(said, expected, strict=True))
        return [each for number, pair in pairs for each in _parted(*pair, f"{where}[{number}]")]
    return [] if said == expected else [f"{where.lstrip('.')}: {said!r:.200} is not {expected!r:.200}"]


_LOG_NAME = re.compile(r"[\w./-]+\.log\.\d+\b")


def folded(lines: Sequence[bytes]) -> list[dict[str, Any]]:
    """Records with each rotated log under its family's name, as a watch that followed it names it. Ids are of the
    content, and coverage is by file: both are left out."""
    found = []
    for line in lines:
        text = _LOG_NAME.sub(lambda name: family(name[0]), line.decode())
        found.append(_without(orjson.loads(text)))
    return found


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without(each) for key, each in value.items() if key not in ("id", "coverage")}
    return [_without(each) for each in value] if isinstance(value, list) else value


def copied(recorded: Path, folder: Path, job: str) -> Path:
    """A copy of a recorded capture under another job's name."""
    shutil.copytree(recorded, folder)
    toml = folder / "job.toml"
    toml.write_text(re.sub(r'(?m)^id = ".*"$', f'id = "{job}"', toml.read_text(), count=1))
    return folder
