"""A `wedgewatch ship` that runs, and what it put on the topics."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from dataflow.kafka import Topic
from dataflow.kafka_follower import Follower
from dataflow.kafka_settings import Brokers
from dataflow.wire import Arrived, read
from tests.kafka.hearing import PATIENCE

ROOT = Path(__file__).resolve().parents[2]


class Shipper:
    """A process. It is started again by `start`, with the same state."""

    def __init__(self, folder: Path, bootstrap: str, *words: str | Path) -> None:
        self.err, self.out = folder / "shipper.err", folder / "shipper.out"
        self._command = [sys.executable, "-m", "dataflow.cli", "ship", "--brokers", bootstrap]
        self._command += ["--store", str(folder / "store"), *map(str, words)]
        self.start()

    def start(self) -> None:
        with self.out.open("ab") as out, self.err.open("ab") as err:
            self.process = subprocess.Popen(self._command, stdout=out, stderr=err, cwd=ROOT, env={**os.environ})

    @property
    def said(self) -> str:
        """All that it said on standard error."""
        return self.err.read_text()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, float]:
        """Its exit code, and the seconds that it took to end."""
        begun = time.monotonic()
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        return code, time.monotonic() - begun

    def until(self, wanted: Callable[[], object]) -> None:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if wanted():
                return
            assert self.process.poll() in (None, 0), self.said
            time.sleep(0.02)
        raise AssertionError(f"never came; it said: {self.said}")


class Heard:
    """What comes on the topics of lines and polls, from their beginning."""

    def __init__(self, brokers: Brokers) -> None:
        topics = tuple(topic.under(brokers.prefix) for topic in (Topic.LINES, Topic.POLLS))
        self.arrived: list[Arrived] = []
        self._follower = Follower(brokers, topics)

    def poll(self, seconds: float = 0.2) -> "Heard":
        for message in self._follower.poll(seconds).messages:
            found = read(message)
            assert isinstance(found, Arrived), found
            self.arrived.append(found)
        return self

    def until(self, wanted: Callable[[list[Arrived]], object]) -> "Heard":
        end = time.monotonic() + PATIENCE
        while not wanted(self.poll().arrived):
            assert time.monotonic() < end, f"never came, of {len(self.arrived)} messages"
        return self

    def close(self) -> None:
        self._follower.close()
