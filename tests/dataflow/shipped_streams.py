"""Builders for tests of what is shipped: a sender whose messages are those of the wire, and the job that takes them."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dataflow.homes import writer_of
from dataflow.kafka_follower import Message
from dataflow.reads import Compression
from dataflow.shipped_job import ShippedJob
from dataflow.wire import Arrived, Carried, Part, PollLine, Wire, read
from dataflow.wire_words import Begun, Ended, Listed, Tick, Told, Word
from extractors.record import Beat, Block, Observation, SourceKind
from tests.dataflow.live_feeds import JOB, LATENESS_US, SECOND_US, START_US

LINES, POLLS = "test.lines", "test.polls"
CAPTURED = "runs/rl"


@dataclass
class Sender:
    """A shipper's words, in its order. It knows how far it is in each file."""

    host: str = "node-1"
    session: str = "s1"
    job: str = JOB
    places: dict[str, tuple[int, int]] = field(default_factory=dict)

    def message(self, carried: Carried, topic: str = LINES) -> Message:
        """What stands in the topic."""
        return Message(topic, 0, 0, self.job.encode(), carried.value, carried.headers)

    @property
    def wire(self) -> Wire:
        return Wire(self.host, self.session)

    def begun(self, job_toml: str | None = None, recorded: bool = False, bare: bool = False) -> Message:
        return self.word(Begun(CAPTURED, job_toml, recorded, bare))

    def listed(self, source: str, kind: SourceKind = SourceKind.AGGREGATED) -> Message:
        return self.word(Listed(source, kind, Compression.NONE, writer_of(source)))

    def lines(self, source: str, data: bytes, generation: int = 0) -> Message:
        """The next lines of a file."""
        offset, line = self.places.get(source, (0, 1))
        self.places[source] = (offset + len(data), line + data.count(b"\n"))
        return self.block(source, offset, line, data, generation)

    def block(self, source: str, offset: int, line: int, data: bytes, generation: int = 0) -> Message:
        return self.message(self.wire.block(Block(source, offset, line, data, generation)))

    def poll(self, source: str, data: bytes) -> Message:
        """The next record of a poll file."""
        offset, line = self.places.get(source, (0, 1))
        self.places[source] = (offset + len(data) + 1, line + 1)
        return self.message(self.wire.poll(PollLine(source, offset, line, data)), POLLS)

    def part(self, source: str, offset: int, data: bytes, size: int, mtime_ns: int = 0) -> Message:
        return self.message(self.wire.part(Part(source, offset, data, size, mtime_ns)))

    def tick(self, second: float, **said: Any) -> Message:
        """All up to so many seconds after the start was sent."""
        return self.word(Tick(START_US + int(second * SECOND_US), **said))

    def ended(self, files: dict[str, int], failures: list[tuple[str, str]] | None = None) -> Message:
        return self.word(Ended(files, failures or []))

    def told(self, piece: Any) -> Message:
        return self.word(Told(piece))

    def word(self, word: Word) -> Message:
        return self.message(self.wire.word(word))


@dataclass
class Taken:
    """A job that takes messages, and what it gave. monotonic is turned by hand."""

    folder: Path
    now: float = 1000.0
    beats: list[Beat] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.job = self._made()

    def _made(self) -> ShippedJob:
        return ShippedJob(JOB, self.folder / "spool", LATENESS_US, lambda: self.now)

    def take(self, *messages: Message) -> list[Beat]:
        """What these messages give."""
        given: list[Beat] = []
        for message in messages:
            arrived = read(message)
            assert isinstance(arrived, Arrived), arrived
            given += self.job.take(arrived)
        self.beats += given
        return given

    def restart(self) -> None:
        """Goes on with a job that knows but the snapshot."""
        snapshot = self.job.snapshot()
        self.job.close()
        self.job = self._made()
        self.job.restore(snapshot)

    @property
    def notes(self) -> list[str]:
        return self.job.notes

    @property
    def observations(self) -> list[Observation]:
        return [each for beat in self.beats for each in beat.observations]

    def replayed(self) -> list[Beat]:
        """All beats of the recording that it took."""
        self.job.turn(0, True)
        given: list[Beat] = []
        while self.job.recordings.replays:
            given += self.job.recordings.more(64)
        self.beats += given
        return given
