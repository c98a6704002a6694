"""Builders for tests of what is shipped: who takes what is sent, and the files that can be made of it again."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dataflow.kafka import Topic
from dataflow.kafka_follower import Message
from dataflow.ship_live import Means, Shipment
from dataflow.ship_state import Kept, Places, new_session
from dataflow.turns import Continued
from dataflow.wire import Arrived, Carried, Part, PollLine, Wire, read
from dataflow.wire_words import FolderSeen, LinkSeen, Told, Word
from extractors.record import Block
from tests.dataflow.live_feeds import SECOND_US, START_US

JOB = "/ines/rl-curlew-3"
TOPICS = {"wedgewatch.lines": "a", "wedgewatch.polls": "b"}
Sent = Block | Part | PollLine | Word


@dataclass
class Taken:
    """An outbox that keeps what it is given, as it would arrive."""

    sent: list[Sent] = field(default_factory=list)
    arrived: list[Arrived] = field(default_factory=list)
    notes: list[tuple[str, Kept]] = field(default_factory=list)
    is_full: bool = False
    trouble: str = ""

    def send(self, topic: Topic, job: str, carried: Carried, note: Any = None) -> None:
        found = read(
            Message(topic.under("wedgewatch"), 0, len(self.sent), job.encode(), carried.value, carried.headers)
        )
        assert isinstance(found, Arrived), found
        assert isinstance(found.what, PollLine) == (topic is Topic.POLLS)
        self.arrived.append(found)
        self.sent.append(found.what)
        if note is not None:
            self.notes.append(note)

    def words(self, *kinds: type) -> list[Any]:
        return [each for each in self.sent if isinstance(each, kinds)]


class Shipped:
    """A capture that is shipped live, with a clock that is turned by hand: a second is a second for all. What is kept
    of it lies in a folder beside it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.taken = Taken()
        self.notes: list[str] = []
        self.now_us = START_US
        self.seconds: Callable[[], float] = lambda: self.now_us / SECOND_US
        kept = path.with_name(f"{path.name}.kept")
        kept.mkdir()
        self.places = Places(kept, self.notes)
        self.kept = new_session(str(path), JOB, TOPICS)
        self.begin(self.kept)

    def begin(self, kept: Kept) -> None:
        """Begins, or goes on from there."""
        outbox: Any = self.taken
        means = Means("node-4", outbox, self.places, self.notes, lambda: self.seconds())
        contents = kept.contents(self.places.contents(str(self.path)))
        self.shipment = Shipment(str(self.path), kept, contents, None, means)

    def rounds(self, count: int, seconds: float = 1.0) -> None:
        for _ in range(count):
            self.now_us += int(seconds * SECOND_US)
            self.shipment.round(self.now_us)

    def killed(self) -> None:
        """Nothing is known but what the newest note says, and which contents were begun."""
        self.shipment.close()
        self.kept = self.taken.notes[-1][1] if self.taken.notes else self.kept
        self.taken.notes.clear()
        self.begin(self.kept)


def laid_out(sent: list[Sent]) -> dict[tuple[str, int], bytes]:
    """The bytes of each file and generation, whatever came twice; a hole is a failure."""
    files: dict[tuple[str, int], bytearray] = {}
    for each in sent:
        if isinstance(each, Told) and isinstance(each.piece, Continued):
            before = files.get((each.piece.from_source, each.piece.from_generation), bytearray())
            files.setdefault((each.piece.source, each.piece.generation), bytearray(before))
        if not isinstance(each, Block | Part | PollLine):
            continue
        data = each.data + (b"\n" if isinstance(each, PollLine) else b"")
        file = files.setdefault((each.source, getattr(each, "generation", 0)), bytearray())
        if isinstance(each, PollLine) and each.offset > len(file):
            file += b"\n" * (each.offset - len(file))
        assert each.offset <= len(file), f"a hole in {each.source} before {each.offset}"
        again = file[each.offset : each.offset + len(data)]
        assert isinstance(each, Part) or data.startswith(again), f"{each.source} at {each.offset} was something else"
        file[each.offset : each.offset + len(data)] = data
    return {name: bytes(file) for name, file in files.items()}


def mirrored(sent: list[Sent], sizes: dict[str, int], folder: Path) -> Path:
    """A folder with the files that were sent."""
    folder.mkdir()
    for each in sent:
        if isinstance(each, FolderSeen):
            (folder / each.relative).mkdir(parents=True, exist_ok=True)
    for (name, _), data in laid_out(sent).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data[: sizes[name]])
    for each in sent:
        if isinstance(each, LinkSeen):
            (folder / each.relative).symlink_to("nowhere")
    return folder


def wire() -> Wire:
    return Wire("node-4", "5eed")
