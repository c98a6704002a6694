"""The real processes of a fleet, for drills: shippers, flow processes and a consumer, started, stopped and killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from dataflow.kafka_settings import BOOTSTRAP
from dataflow.live_clock import FileClock
from tests.live.harness import ROOT, SECOND_US, SLOW, replayed

GRACEFUL = 3.0
"""Seconds within which a process ends when it is asked to: two, and what a busy machine adds."""


@dataclass
class Running:
    """One process of a fleet and its files, which outlive the process."""

    name: str
    words: Sequence[str]
    folder: Path
    bootstrap: str
    module: str = "dataflow.cli"
    process: "subprocess.Popen[bytes] | None" = None
    killed: int = 0

    @property
    def out(self) -> Path:
        """What it printed."""
        return self.folder / f"{self.name}.out"

    def lines(self) -> list[bytes]:
        """The records that it printed; a last one that is not whole is not counted."""
        return self.out.read_bytes().split(b"\n")[:-1]

    @property
    def said(self) -> str:
        """All that it said to people."""
        path = self.folder / f"{self.name}.err"
        return path.read_text(errors="replace") if path.exists() else ""

    def start(self) -> "Running":
        """Starts it; it appends to the files of the process before it."""
        with self.out.open("ab") as out, (self.folder / f"{self.name}.err").open("ab") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", self.module, *self.words],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT), BOOTSTRAP: self.bootstrap},
                stdout=out,
                stderr=err,
            )
        return self

    @property
    def minds(self) -> bool:
        """Whether it has come so far that it hears SIGTERM itself."""
        assert self.process is not None
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
        return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)

    def kill(self) -> None:
        """kill -9."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
            self.killed += 1

    def stop(self) -> int:
        """Asks it to end; gives its exit code. Raises AssertionError where it takes too long."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(GRACEFUL * SLOW)
        except subprocess.TimeoutExpired as late:
            raise AssertionError(f"{self.name} did not end: {self.said[-2000:]}") from late
        finally:
            self.kill()


@dataclass
class Fleet:
    """All processes of one drill. Its topics are those of the test, by the environment. module is what they run."""

    folder: Path
    bootstrap: str
    clock: Path | None = None
    module: str = "dataflow.cli"
    flows: list[Running] = field(default_factory=list)
    shippers: list[Running] = field(default_factory=list)
    consumer: Running | None = None

    def run(self, name: str, *words: str) -> Running:
        """A process, which isn't started yet."""
        return Running(name, words, self.folder, self.bootstrap, self.module)

    def topics(self, partitions: int) -> None:
        """Makes the topics, as whoever sets up the brokers does."""
        made = self.run("topics", "topics", "create", "--partitions", str(partitions), "--replication", "1").start()
        assert made.process is not None
        assert made.process.wait(60) == 0, made.said

    def flow(self, of: int = 1, *options: str) -> list[Running]:
        """Starts so many flow processes."""
        for number in range(1, of + 1):
            store = self.folder / f"store-{number}"
            words = ["watch", "--store", str(store), "--share", f"{number}/{of}", "--format", "jsonl", *options]
            self.flows.append(self.run(f"flow-{number}", *words, *self._clock()).start())
        return self.flows

    def ship(self, *captures: Path, name: str = "shipper", options: Sequence[str] = ()) -> Running:
        """Starts a live shipper."""
        words = ["ship", "--store", str(self.folder / name), "--host", name, *options, *map(str, captures)]
        self.shippers.append(self.run(name, *words, *self._clock()).start())
        return self.shippers[-1]

    def ship_once(self, *captures: Path) -> None:
        """Ships recorded captures."""
        words = ["ship", "--once", "--store", str(self.folder / "once"), *map(str, captures)]
        shipped = self.run("once", *words).start()
        assert shipped.process is not None
        assert shipped.process.wait(60 * SLOW) == 0, shipped.said

    def consume(self) -> Running:
        """Starts a consumer of all verdicts."""
        words = ["consume", "--from-beginning", "--format", "jsonl", "--state", str(self.folder / "consumed.json")]
        self.consumer = self.run("consumer", *words).start()
        return self.consumer

    def consumed(self) -> list[bytes]:
        """The records that the consumer printed, each once: a kill may let it print some twice, with the same bytes."""
        assert self.consumer is not None
        seen: dict[str, bytes] = {}
        for line in self.consumer.out.read_bytes().split(b"\n")[:-1]:
            try:
                id = orjson.loads(line)["id"]
            except orjson.JSONDecodeError:
                assert self.consumer.killed, line
                continue
            assert seen.setdefault(id, line) == line
        return list(seen.values())

    def until(self, holds: Callable[[], bool], within: float = 60.0) -> None:
        """Waits for something. Raises AssertionError with what all of them said."""
        end = time.monotonic() + within * SLOW
        while not holds():
            assert time.monotonic() < end, self.said()
            time.sleep(0.1)

    def until_consumed(self, records: Sequence[bytes], within: float = 60.0) -> None:
        """Waits until these records were consumed."""
        wanted = set(records)
        self.until(lambda: wanted <= set(self.consumed()), within)

    def until_played(self, recorded: Path, within: float = 120.0) -> None:
        """Waits until a writer has played a capture to its end, and a little beyond."""
        assert self.clock is not None
        clock, end_us = FileClock(self.clock), replayed(recorded, self.folder).end_us + 20 * SECOND_US
        self.until(lambda: clock() >= end_us, within)

    def said(self) -> str:
        """What each process said last."""
        every = [*self.flows, *self.shippers, *([self.consumer] if self.consumer else [])]
        return "\n".join(f"{each.name}: {each.said[-1500:]}" for each in every)

    def end(self) -> None:
        """Ends all."""
        for each in (*self.shippers, *self.flows, *([self.consumer] if self.consumer else [])):
            each.kill()
        assert "Traceback" not in self.said()

    def _clock(self) -> list[str]:
        return ["--clock", str(self.clock)] if self.clock is not None else []


@contextmanager
def fleet(folder: Path, bootstrap: str, clock: Path | None = None, module: str = "dataflow.cli") -> Iterator[Fleet]:
    """A fleet that ends with the block. module is what its processes run."""
    each = Fleet(folder, bootstrap, clock, module)
    try:
        yield each
    finally:
        each.end()
