"""What is on its way: told when it has arrived, when nothing arrives, and when what had arrived is lost."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from dataflow.kafka import BrokerError, Topic, Trouble
from dataflow.kafka_publisher import MOST_PENDING, Outgoing, Refused, Settled
from dataflow.outbox import Outbox
from dataflow.wire import Carried

PATIENCE = 10.0
SILENT = BrokerError("kafka:9092", "no answer")


@dataclass
class Brokers:
    """Stands where a Publisher does: what arrives, and what the topics are, is for the test to say."""

    topics: dict[str, str] | BrokerError = field(default_factory=lambda: {"w.lines": "a"})
    trouble: BrokerError | None = None
    lost: bool = False
    pending_bytes: int = 0
    recalled: int = 0
    arrived: list[Outgoing] = field(default_factory=list)
    kept: list[Outgoing] = field(default_factory=list)

    @property
    def pending(self) -> int:
        return len(self.kept)

    def standing(self) -> dict[str, str]:
        if isinstance(self.topics, BrokerError):
            raise self.topics
        return self.topics

    def connect(self) -> None:
        """They can be reached."""

    def send(self, message: Outgoing) -> None:
        self.kept.append(message)
        self.pending_bytes += len(message.value)

    def settle(self, seconds: float) -> Settled:
        settled = Settled(trouble=self.trouble)
        if self.trouble is not None:
            threading.Event().wait(0.01)
            return settled
        settled.refused = [Refused(each, "too large") for each in self.kept if each.value == b"huge"]
        settled.arrived = [each for each in self.kept if each.value != b"huge"]
        settled.lost, self.lost = {"w.lines"} if self.lost else set(), False
        self.arrived += settled.arrived
        self.kept, self.pending_bytes = [], 0
        return settled

    def recall(self) -> None:
        self.recalled += 1

    def abandon(self) -> None:
        self.kept, self.pending_bytes = [], 0


@pytest.fixture
def brokers() -> Brokers:
    return Brokers()


@pytest.fixture
def outbox(brokers: Brokers, monkeypatch: pytest.MonkeyPatch) -> Iterator[Outbox]:
    for name, seconds in (("PATIENCE_SECONDS", 0.05), ("RECALL_SECONDS", 0.1), ("AGAIN_SECONDS", 0.01)):
        monkeypatch.setattr(f"dataflow.outbox.{name}", seconds)
    made = Outbox(brokers, brokers.standing, lambda topic: topic.under("w"))
    yield made
    made.close()


def until(wanted: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not wanted():
        assert time.monotonic() < end, "never came"
        threading.Event().wait(0.005)


def say(outbox: Outbox, *words: bytes) -> None:
    for word in words:
        outbox.send(Topic.LINES, "job", Carried(word, ()), word.decode())


def test_notes_of_what_arrived_are_told_in_order(outbox: Outbox, brokers: Brokers) -> None:
    say(outbox, b"one", b"two", b"three")
    outbox.send(Topic.LINES, "job", Carried(b"four", ()))
    outbox.flush(PATIENCE)
    assert outbox.happened().arrived == ["one", "two", "three"]
    assert outbox.is_empty
    assert [each.topic for each in brokers.arrived] == ["w.lines"] * 4


def test_what_is_refused_is_told(outbox: Outbox) -> None:
    say(outbox, b"one", b"huge", b"two")
    outbox.flush(PATIENCE)
    happened = outbox.happened()
    assert happened.arrived == ["one", "two"]
    assert [each.message.value for each in happened.refused] == [b"huge"]


def test_who_reads_is_to_wait_when_much_is_on_its_way(outbox: Outbox, brokers: Brokers) -> None:
    brokers.trouble = SILENT
    say(outbox, b"x" * MOST_PENDING)
    assert outbox.is_full
    brokers.trouble = None
    until(lambda: outbox.is_empty or outbox.happened().arrived)
    assert not outbox.is_full


def test_nothing_is_sent_before_the_topics_are_there(outbox: Outbox, brokers: Brokers) -> None:
    until(lambda: outbox.topics)
    outbox.close()
    away = Brokers(topics=BrokerError("kafka:9092", "topic w.lines is not there", Trouble.NO_TOPIC))
    waiting = Outbox(away, away.standing, lambda topic: topic.under("w"))
    say(waiting, b"early")
    until(lambda: "is not there" in waiting.trouble)
    assert (away.kept, waiting.denied) == ([], None)
    away.topics = {"w.lines": "a"}
    waiting.flush(PATIENCE)
    assert waiting.happened().arrived == ["early"]
    assert waiting.trouble == ""
    waiting.close()


def test_user_that_was_never_let_in_is_denied_and_one_that_was_is_in_trouble(outbox: Outbox, brokers: Brokers) -> None:
    refused = BrokerError("kafka:9092", "the credentials are refused", Trouble.DENIED)
    stranger = Brokers(topics=refused)
    shut = Outbox(stranger, stranger.standing, lambda topic: topic.under("w"))
    until(lambda: shut.denied)
    shut.close()
    say(outbox, b"one")
    outbox.flush(PATIENCE)
    brokers.trouble = refused
    say(outbox, b"two")
    until(lambda: outbox.trouble)
    assert outbox.denied is None


def test_brokers_that_confirm_nothing_are_asked_for_their_topics_before_more_is_sent(
    outbox: Outbox, brokers: Brokers
) -> None:
    say(outbox, b"one")
    outbox.flush(PATIENCE)
    brokers.trouble = SILENT
    say(outbox, b"two")
    until(lambda: brokers.recalled)
    assert outbox.trouble == str(SILENT)
    brokers.trouble = None
    until(lambda: outbox.is_empty or "two" in outbox.happened().arrived)
    until(lambda: not outbox.trouble)


def test_topics_that_are_others_now_have_lost_all_and_nothing_more_is_sent_to_them(
    outbox: Outbox, brokers: Brokers
) -> None:
    say(outbox, b"one")
    outbox.flush(PATIENCE)
    brokers.trouble, brokers.topics = SILENT, {"w.lines": "b"}
    say(outbox, b"two")
    until(lambda: outbox.happened().lost)
    brokers.trouble = None
    say(outbox, b"three")
    assert [each.value for each in brokers.arrived] == [b"one"]
    outbox.begin_anew()
    until(lambda: outbox.topics == {"w.lines": "b"})
    say(outbox, b"one again")
    outbox.flush(PATIENCE)
    assert [each.value for each in brokers.arrived] == [b"one", b"one again"]
    assert not outbox.happened().lost


def test_loss_that_only_shows_when_something_arrives_is_told_too(outbox: Outbox, brokers: Brokers) -> None:
    brokers.lost = True
    say(outbox, b"one")
    until(lambda: outbox.happened().lost)


def test_error_of_our_own_is_kept_and_not_lost_in_a_thread(outbox: Outbox, brokers: Brokers) -> None:
    brokers.settle = lambda seconds: 1 / 0  # type: ignore[assignment,method-assign]
    say(outbox, b"one")
    until(lambda: outbox.failed)
    assert isinstance(outbox.failed, ZeroDivisionError)
