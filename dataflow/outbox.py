"""What is on its way to the brokers, sent by a thread of its own: reading files never waits for them.

Nothing is sent before it is known which topics stand there: those that were made anew since hold nothing of what was
sent, and all is to be sent again.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from dataflow.kafka import BrokerError, Topic, Trouble
from dataflow.kafka_publisher import MOST_PENDING, Outgoing, Refused, Settled
from dataflow.wire import Carried

SETTLE_SECONDS = 0.2
"""How long what is under way is waited for before what came meanwhile is added."""
PATIENCE_SECONDS = 3.0
"""After which brokers that confirm nothing are told to be away."""
RECALL_SECONDS = 1.5
"""After which nothing more is sent to them before it is known whether they still have the topics; brokers don't begin
anew within this time. Where nothing arrives then either, twice as long, and so on."""
MOST_RECALL_SECONDS = 60.0
AGAIN_SECONDS = 1.0
"""From one try to reach brokers that are away to the next."""


class Sends(Protocol):
    """A Publisher, as far as it is used here."""

    pending_bytes: int

    @property
    def pending(self) -> int:
        """Messages that are not known to have arrived."""
        ...

    def send(self, message: Outgoing) -> None:
        """Takes a message."""
        ...

    def settle(self, seconds: float) -> Settled:
        """Waits for all that was sent, and tells what became of it."""
        ...

    def connect(self) -> None:
        """Makes the connection, unless it is there. Raises BrokerError."""
        ...

    def recall(self) -> None:
        """Takes back what has not arrived, and ends the connection."""
        ...

    def abandon(self) -> None:
        """Forgets what has not arrived, and the connection."""
        ...


Standing = Callable[[], dict[str, str]]
"""The identity of each topic that is sent to, by its name. Raises BrokerError, also where one is not there."""


@dataclass(slots=True)
class Happened:
    """What came of it since the last time it was asked. arrived are the notes of what arrived, in order; lost says that
    the topics have lost what had arrived, so that all is to be sent anew: nothing is sent until `begin_anew`."""

    arrived: list[Any] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    lost: bool = False


class Outbox:
    """Takes messages from one thread. name gives a topic's whole name. trouble is why nothing arrives now, in words, ""
    where all is well; denied why brokers never let this user in; topics the identities of the topics, None while they
    are not known; failed an error of our own, which ended the sending."""

    def __init__(self, publisher: Sends, standing: Standing, name: Callable[[Topic], str]) -> None:
        self.trouble = ""
        self.denied: BrokerError | None = None
        self.topics: dict[str, str] | None = None
        self.failed: Exception | None = None
        self._publisher = publisher
        self._standing = standing
        self._name = name
        self._waiting: deque[Outgoing] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self._happened = Happened()
        self._lost = self._ended = self._turning = self._was_heard = False
        self._quiet_since = time.monotonic()
        self._patience = RECALL_SECONDS
        self._known: dict[str, str] = {}
        self._thread = threading.Thread(target=self._run, name="outbox", daemon=True)
        self._thread.start()

    @property
    def is_full(self) -> bool:
        """Whether who reads is to wait."""
        return self._bytes + self._publisher.pending_bytes >= MOST_PENDING

    @property
    def is_empty(self) -> bool:
        """Whether all that was taken has arrived, and was told of."""
        with self._changed:
            return self._idle and not self._happened.arrived and not self._lost

    @property
    def _idle(self) -> bool:
        return not self._waiting and not self._turning and not self._publisher.pending

    def send(self, topic: Topic, job: str, carried: Carried, note: Any = None) -> None:
        """Takes a message; its note is told when it has arrived, unless it is None."""
        with self._changed:
            self._waiting.append(Outgoing(self._name(topic), job, carried.value, carried.headers, note))
            self._bytes += len(carried.value)
            self._changed.notify()

    def happened(self) -> Happened:
        """What came of it since the last time."""
        with self._changed:
            found, self._happened = self._happened, Happened(lost=self._lost)
            found.lost = self._lost
        return found

    def begin_anew(self) -> None:
        """Forgets all that has not arrived: after a loss, all is sent anew."""
        with self._changed:
            self._waiting.clear()
            self._bytes, self._happened, self._lost, self.topics = 0, Happened(), False, None
            self._known = {}
            self._changed.notify()

    def flush(self, seconds: float) -> None:
        """Waits so long for all to arrive."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            with self._changed:
                if self._lost or self._idle:
                    return
            time.sleep(0.01)

    def close(self, seconds: float = 0.5) -> None:
        """Ends. What has not arrived may be lost."""
        with self._changed:
            self._ended = True
            self._changed.notify()
        self._thread.join(seconds)

    def _run(self) -> None:
        try:
            self._send_on()
        except Exception as error:
            self.failed = error
        self._publisher.abandon()

    def _send_on(self) -> None:
        while not self._ended:
            if self._lost:
                self._rest(AGAIN_SECONDS, lambda: not self._lost)
                continue
            try:
                if self.topics is None:
                    self._look()
                    continue
                self._publisher.connect()
            except BrokerError as error:
                self._away(error)
                self._rest(AGAIN_SECONDS, lambda: False)
                continue
            self._turn()

    def _look(self) -> None:
        """Learns which topics stand there. Raises BrokerError."""
        topics = self._standing()
        if self._known and topics != self._known:
            self._lose()
        self.topics = self._known = topics
        self._quiet_since = time.monotonic()
        if not self._publisher.pending:
            self.trouble = ""

    def _turn(self) -> None:
        """Sends what waits, and hears what became of it."""
        with self._changed:
            if not self._waiting and not self._publisher.pending:
                self.trouble, self._quiet_since = "", time.monotonic()
                self._changed.wait_for(lambda: self._waiting or self._ended or self._lost, SETTLE_SECONDS)
            while self._waiting:
                self._publisher.send(self._waiting.popleft())
            self._bytes, self._turning = 0, True
        settled = self._publisher.settle(SETTLE_SECONDS)
        if settled.arrived:
            self._was_heard, self._patience = True, RECALL_SECONDS
            self.trouble, self._quiet_since = "", time.monotonic()
        elif settled.trouble is not None:
            self._hindered(settled.trouble)
        with self._changed:
            self._turning = False
            self._happened.arrived += [each.note for each in settled.arrived if each.note is not None]
            self._happened.refused += settled.refused
        if settled.lost:
            self._lose()

    def _lose(self) -> None:
        with self._changed:
            self._lost = True
            self._publisher.abandon()

    def _hindered(self, error: BrokerError) -> None:
        """A confirmation that takes its time is no trouble yet."""
        quiet = time.monotonic() - self._quiet_since
        if error.trouble is not Trouble.UNREACHABLE or quiet >= PATIENCE_SECONDS:
            self._away(error)
        if quiet >= self._patience:
            self._patience = min(2 * self._patience, MOST_RECALL_SECONDS)
            self._publisher.recall()
            self.topics = None

    def _away(self, error: BrokerError) -> None:
        self.trouble = str(error)
        if error.trouble is Trouble.DENIED and not self._was_heard:
            self.denied = error

    def _rest(self, seconds: float, over: Callable[[], bool]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._ended or over(), seconds)
