"""Builders for tests of what is watched: a live job's feed with a clock that is turned by hand, over real files."""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from dataflow.journal import Journal
from dataflow.live import LiveFeed
from extractors.clocks import parse_iso
from extractors.record import Beat, Observation
from state.trackers.facts import JobDeclared, JobFacts
from tests.live.recorded import Recorded

SECOND_US = 1_000_000
START_US = parse_iso("2026-05-04T08:00:00Z") or 0
"""When the logs of these tests begin."""
LATENESS_US = 5 * SECOND_US
JOB = "/kim/rl"
OPENED: list[LiveFeed] = []
"""Feeds that a test made; they hold files open, of which a process has few, until they are closed."""


def bar(second: int, held: int = 0) -> bytes:
    """A line of the trainer's buffer bar, so many seconds after the start."""
    stamp = f"2026-05-04 08:{second // 60 % 60:02}:{second % 60:02}.000"
    share = held * 100 // 64
    head = f"{stamp} | INFO     | skyrl_train.fully_async:wait:88 - "
    return f"{head}Generation Buffer Progress: {held}/64 ({share}%) [{second}s]\n".encode()


def bars(first: int, count: int) -> bytes:
    """A line each second."""
    return b"".join(bar(second, second % 65) for second in range(first, first + count))


@dataclass
class Watched:
    """A feed over a folder, and what it gave. now_us is the clock."""

    path: Path
    journal: Path | None = None
    holds: Callable[[int], int | None] = lambda _: None
    now_us: int = START_US
    beats: list[Beat] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.feed = self._feed()

    def _feed(self) -> LiveFeed:
        feed = LiveFeed(
            JOB,
            str(self.path),
            JobDeclared(JobFacts(), captured=str(self.path)),
            lateness_us=LATENESS_US,
            journal=Journal(self.journal),
            holds=lambda now_us: self.holds(now_us),
            clock=lambda: self.now_us,
        )
        OPENED.append(feed)
        return feed

    def poll(self, seconds: float = 1.0, times: int = 1) -> list[Beat]:
        """What so many polls give, each so long after the one before it."""
        out: list[Beat] = []
        for _ in range(times):
            self.now_us += int(seconds * SECOND_US)
            out += self.feed.poll(self.now_us)
            self.notes += self.feed.notes
            self.feed.notes.clear()
        self.beats += out
        return out

    def restart(self) -> None:
        """Goes on in another feed, which knows what a snapshot tells and the journal."""
        snapshot = self.feed.snapshot()
        self.feed.close()
        self.feed = self._feed()
        self.feed.restore(snapshot)

    def begin_anew(self) -> None:
        """Goes on in a feed that knows the journal alone, as after a recovery that was moved aside."""
        self.feed.close()
        self.feed = self._feed()
        self.beats.clear()


def said(beats: Iterable[Beat], signal: str = "") -> list[Observation]:
    """The observations of beats, of one kind of signal where one is named."""
    every = [each for beat in beats for each in beat.observations]
    return [each for each in every if not signal or type(each.signal).__name__ == signal]


def places(beats: Iterable[Beat], signal: str = "BufferProgress") -> list[tuple[str, int]]:
    """The sources and offsets of the lines that said it, in their order."""
    return [(each.evidence.source, each.evidence.offset) for each in said(beats, signal)]


class Player:
    """Writes a recorded capture into a folder up to a time, and parts of the lines behind it."""

    def __init__(self, folder: Path, schedule: Recorded, chance: random.Random) -> None:
        self._folder, self._schedule, self._chance = folder, schedule, chance

    def write(self, until_us: int) -> None:
        for file in self._schedule.files:
            end = file.due(until_us)
            if end < 0:
                continue
            path = self._folder / file.relative
            path.parent.mkdir(parents=True, exist_ok=True)
            if file.grows and self._chance.random() < 0.3:
                end = min(len(file.data), end + self._chance.randrange(200))
                end = min([end, *(each for each in file.ends if each > file.due(until_us))])
                end -= file.data[:end].endswith(b"\n") and end > file.due(until_us)
            with path.open("ab") as written:
                written.write(file.data[written.tell() : end])
