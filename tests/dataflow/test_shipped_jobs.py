"""Many jobs out of one partition: each message to its job, and none suffers from what another one is, or meets."""

import errno
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dataflow import shipped_jobs
from dataflow.kafka import BrokerError
from dataflow.kafka_follower import Heard, Message, Position
from dataflow.kafka_settings import Brokers, brokers_of
from dataflow.outcome import Outcome
from dataflow.shelf import Shelf
from dataflow.shipped_job import ShippedJob
from dataflow.shipped_jobs import ShippedJobs, Snapshot
from dataflow.shipped_live import SILENT_SECONDS
from dataflow.shipped_recordings import FORGOTTEN_SECONDS
from extractors.record import Beat, Unheard
from tests.dataflow.live_feeds import SECOND_US, START_US
from tests.dataflow.shipped_streams import Sender
from tests.dataflow.test_shipped_apart import Once
from tests.dataflow.test_shipped_job import NAME, recorded, sent, shipped, told

OTHER = "/sam/other"
GREETING = "kafka:9092: listens to 1 partition of the topics wedgewatch.*"
"""Said at first by all of them."""
BROKERS: Brokers = brokers_of("kafka:9092", {})


@dataclass
class Topic:
    """What stands in the one partition, and a Follower of it."""

    turns: deque[list[Message]] = field(default_factory=deque)
    trouble: BrokerError | None = None
    caught_up: bool = True
    positions: tuple[Position, ...] = (Position("test.lines", 0, "id", 0), Position("test.polls", 0, "id", 0))

    def poll(self, seconds: float) -> Heard:
        messages = self.turns.popleft() if self.turns else []
        messages = [each._replace(offset=number) for number, each in enumerate(messages)]
        return Heard(messages, trouble=self.trouble)

    def partitions(self, topic: str) -> int:
        return 1

    def is_caught_up(self, job: str) -> bool:
        return self.caught_up

    def close(self) -> None:
        pass


@dataclass
class Many:
    """Jobs that hear of a topic. now is turned by hand."""

    folder: Path
    monkeypatch: pytest.MonkeyPatch
    topic: Topic = field(default_factory=Topic)
    outcome: Outcome = field(default_factory=Outcome)
    notes: list[str] = field(default_factory=list)
    now: float = 1000.0

    def __post_init__(self) -> None:
        self.monkeypatch.setattr(shipped_jobs, "Follower", lambda *_, **__: self.topic)
        self.jobs = self.made(None)

    def made(self, kept: Snapshot | None) -> ShippedJobs:
        rest = (BROKERS, self.folder / "spool", 5 * SECOND_US, self.outcome, self._hear)
        return ShippedJobs(*rest, owns=lambda *_: True, clock=lambda: START_US, kept=kept, monotonic=lambda: self.now)

    def _hear(self, note: str) -> None:
        if note != GREETING:
            self.notes.append(note)

    def next(self, *messages: Message, seconds: float = 0.3) -> list[Beat]:
        self.topic.turns.append(list(messages))
        self.now += seconds
        return self.jobs.next()


@pytest.fixture
def many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Many:
    return Many(tmp_path, monkeypatch)


def unheard(beats: list[Beat]) -> list[str]:
    return [each.job for each in beats if told(list(each.observations), Unheard)]


def test_an_error_of_ours_in_one_job_stops_no_other(many: Many) -> None:
    take = ShippedJob.take

    def breaks(job: ShippedJob, arrived: object) -> list[Beat]:
        if job.job == OTHER:
            raise KeyError("nowhere")
        return take(job, arrived)  # type: ignore[arg-type]

    many.monkeypatch.setattr(ShippedJob, "take", breaks)
    other = sent(Sender(job=OTHER), 40)
    mixed = [each for pair in zip(sent(Sender(), 40), other, strict=True) for each in pair]
    beats = many.next(*mixed)
    assert {each.job for each in beats} == {Sender().job}
    assert len(beats) > 2
    assert len(many.notes) == 1
    assert f"{OTHER}: internal error: KeyError: 'nowhere'" in many.notes[0]
    _, kept = many.jobs.snapshot()
    assert set(kept) == {Sender().job}


def test_a_job_of_which_no_snapshot_can_be_made_stops_no_other(many: Many) -> None:
    snapshot = ShippedJob.snapshot

    def breaks(job: ShippedJob) -> bytes:
        if job.job == OTHER:
            raise OverflowError("too large")
        return snapshot(job)

    many.monkeypatch.setattr(ShippedJob, "snapshot", breaks)
    many.next(*sent(Sender(), 20), *sent(Sender(job=OTHER), 20))
    assert set(many.jobs.snapshot()[1]) == {Sender().job}
    assert f"{OTHER}: internal error: OverflowError" in many.notes[0]
    assert many.next(*sent(Sender(), 60)[60:])


def test_a_replay_that_breaks_lets_the_brokers_be_waited_for_again(many: Many, tmp_path: Path) -> None:
    def breaks(*_: object) -> None:
        raise KeyError("finish")

    many.monkeypatch.setattr(Shelf, "finish", breaks)
    many.next(*shipped(Once(), recorded(tmp_path / "runs/rl")))
    assert "internal error: KeyError: 'finish'" in many.notes[0]
    assert many.jobs._replaying == []


def test_what_holds_the_flow_up_is_no_silence_of_a_shipper(many: Many) -> None:
    many.next(*sent(Sender(), 30))
    assert unheard(many.next(seconds=10 * SILENT_SECONDS)) == []
    assert unheard([beat for _ in range(70) for beat in many.next()]) == [Sender().job]


def test_a_backlog_that_is_read_is_no_silence_of_a_job_behind_it(many: Many) -> None:
    many.next(*sent(Sender(), 30))
    many.topic.caught_up = False
    other = sent(Sender(job=OTHER), 100)
    assert unheard([beat for message in other for beat in many.next(message)]) == []


def test_brokers_that_are_away_are_no_silence_of_a_shipper(many: Many) -> None:
    many.next(*sent(Sender(), 30))
    many.topic.trouble = BrokerError("kafka:9092", "nothing listens there (connection refused)")
    for _ in range(8):
        assert unheard(many.next(seconds=1.0)) == []
    many.topic.trouble = None
    assert unheard([beat for _ in range(8) for beat in many.next(seconds=1.0)]) == []


def test_a_full_disk_is_waited_for_and_costs_nothing(many: Many, tmp_path: Path) -> None:
    files = recorded(tmp_path / "runs/rl")
    messages = shipped(Once(), files)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "there")

    with many.monkeypatch.context() as patched:
        patched.setattr(Shelf, "put", full)
        for _ in range(5):
            assert many.next(*messages, seconds=2.0) == []
            messages = []
        assert many.notes == ["there: cannot be written: No space left on device; it is tried again"]
    beats = [beat for _ in range(5) for beat in many.next(seconds=2.0)]
    assert beats[-2].tick.final
    assert beats[0].observations


def test_a_snapshot_whose_files_are_gone_is_read_anew_from_the_topics(many: Many, tmp_path: Path) -> None:
    many.next(*shipped(Once(), recorded(tmp_path / "runs/rl"))[:-1])
    kept = many.jobs.snapshot()
    Shelf(tmp_path / "spool").remove()
    again = many.made(kept)
    assert again.jobs == {}
    assert "all topics are read again" in many.notes[-1]
    assert NAME in many.notes[-1] or "job.toml" in many.notes[-1]


def test_what_lies_on_the_shelves_of_a_flow_that_begins_anew_is_removed(many: Many, tmp_path: Path) -> None:
    many.next(*shipped(Once(), recorded(tmp_path / "runs/rl"))[:-1])
    assert list((tmp_path / "spool").iterdir())
    many.made(None)
    assert not (tmp_path / "spool").exists()


def test_what_time_alone_changes_is_in_the_next_snapshot(many: Many, tmp_path: Path) -> None:
    many.next(*shipped(Once(), recorded(tmp_path / "runs/rl"))[:-1])
    before = many.jobs.snapshot()[1]
    for _ in range(int(FORGOTTEN_SECONDS) + 2):
        many.next(seconds=1.0)
    assert "never came from its shipper" in many.notes[-1]
    for _ in range(4):
        positions, after = many.jobs.snapshot()
    assert after != before
    again = many.made((positions, after))
    assert set(again.jobs) == {Sender().job}
    assert list((tmp_path / "spool").rglob("recorded-*")) == []
