"""`wedgewatch ship`: captures on their way to Kafka, live until it is asked to end, or a recorded one once."""

import os
import stat
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import msgspec

from dataflow.capture import shown
from dataflow.ending import end, halting, tell, unusable
from dataflow.kafka import Topic
from dataflow.kafka_publisher import Publisher
from dataflow.kafka_settings import Brokers
from dataflow.kafka_topics import topics_of
from dataflow.live_clock import AnyClock
from dataflow.naming import SETTINGS_US, Naming
from dataflow.opened import STDIN
from dataflow.outbox import Happened, Outbox
from dataflow.outcome import Outcome
from dataflow.ship_live import Means, Shipment
from dataflow.ship_state import Kept, Places, new_session
from dataflow.smaller import smaller_of
from dataflow.state_lock import StateError, locked

LAST_SECONDS = 1.0
"""How long the last words are waited for; the whole has two seconds to end."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user asked for. every is from one round to the next, where there is nothing more to be read at once
    (seconds)."""

    captures: tuple[str, ...]
    brokers: Brokers
    job_toml: Path | None
    store: Path
    host: str
    clock: AnyClock
    every: float = 0.25
    bundles: bool = False


@dataclass(slots=True)
class Sender:
    """The outbox, and what people should hear of it. refused counts what the brokers will never take."""

    brokers: Brokers
    outbox: Outbox
    refused: int = 0
    _told: str = ""

    def hear(self) -> Happened:
        """What came of what was sent; tells of trouble that begins, changes and ends. Ends the command where the
        brokers never let this user in. Raises an error of our own."""
        happened, outbox = self.outbox.happened(), self.outbox
        if outbox.failed is not None:
            raise outbox.failed
        if outbox.denied is not None:
            unusable(str(outbox.denied))
        if outbox.trouble != self._told:
            again = f"{outbox.trouble}; what is new waits, and it is tried again"
            tell(again if outbox.trouble else f"{self.brokers.name}: reached again")
            self._told = outbox.trouble
        self.refused += len(happened.refused)
        for refused in happened.refused:
            tell(f"{refused.message.job}: {refused.why}; it is left out")
        if happened.lost:
            tell(f"{self.brokers.name}: the topics lost what had been shipped; all is sent anew")
        return happened


def sender(brokers: Brokers, recorded: bool) -> Sender:
    """Sends to the topics of lines and polls of these brokers."""
    lines = Topic.LINES.under(brokers.prefix)
    publisher = Publisher(brokers, instead=smaller_of(lines, recorded))
    return Sender(brokers, Outbox(publisher, lambda: _standing(brokers), lambda topic: topic.under(brokers.prefix)))


def _standing(brokers: Brokers) -> dict[str, str]:
    """The identities of the topics of lines and polls. Raises BrokerError."""
    with topics_of(brokers) as topics:
        found = topics.needed(Topic.LINES.under(brokers.prefix), Topic.POLLS.under(brokers.prefix))
    return {each.name: each.identity for each in found}


@dataclass(slots=True)
class _Live:
    """A capture that is shipped live, once it is there and its job has a name. names are those of all jobs, with the
    capture of each."""

    path: str
    asked: Asked
    means: Means
    names: dict[str, str]
    shipment: Shipment | None = None
    lost: Kept | None = None
    broken: bool = False
    naming: Naming = field(init=False)
    _looked_us: int | None = None

    def __post_init__(self) -> None:
        self.naming = Naming(self.path, self.asked.job_toml, self.means.notes)

    def round(self, now_us: int) -> None:
        """Sends what is new."""
        if self.shipment is None or self._looked_us is None or now_us - self._looked_us >= SETTINGS_US:
            self._looked_us = now_us
            before = self.naming.settings
            usable = self.naming.look()
            topics = self.means.outbox.topics
            if usable and self.shipment is None and topics is not None:
                self._begin(now_us, topics)
            elif usable and self.shipment is not None and self.naming.settings is not before:
                self.shipment.declare(self.naming.text)
        if self.shipment is not None:
            self.shipment.round(now_us)

    def begin_anew(self, now_us: int) -> None:
        """All is to be sent once more, from the beginning."""
        if self.shipment is not None:
            self.lost = msgspec.structs.replace(self.shipment.how_far(now_us), topics={})
            self.means.places.keep(self.path, self.lost)
            self.shipment.close()
            self.shipment = None

    def _begin(self, now_us: int, topics: dict[str, str]) -> None:
        captured = shown(self.path)
        kept = self.lost or self.means.places.read(self.path)
        job = kept.job if kept is not None else self.naming.name(now_us)
        if not job:
            return
        if self.names.setdefault(job, self.path) != self.path:
            self.naming.tell(f"{captured}: is of the job {job}, as {shown(self.names[job])} is; it is not shipped")
            return
        contents = {} if kept is None else kept.contents(self.means.places.contents(self.path))
        settings = self.naming.settings
        if settings is not None and (settings.probes or settings.sync):
            self.means.notes.append(
                f"{captured}: `ship` runs no probes and no sync; `wedgewatch record` beside it does"
            )
        kept = kept or new_session(captured, job, topics)
        if kept.topics != topics:
            if self.lost is None:
                self.means.notes.append(
                    f"{captured}: the topics are not those that it was shipped to; all is sent anew"
                )
            kept = kept.begun_anew(topics)
        # A session is known before its first word is sent: killed then, it goes on all the same.
        self.means.places.keep(self.path, kept)
        self.means.places.save(at_once=True)
        self.asked.clock.not_before(kept.now_us)
        self.shipment = Shipment(self.path, kept, contents, self.naming.text, self.means)
        self.lost = None


def ship(asked: Asked) -> NoReturn:
    """Ships until SIGINT or SIGTERM, and ends then with exit code 0; with 2 where it can't begin."""
    outcome, folder = Outcome(), asked.store / "ship"
    _check(asked)
    try:
        with halting(outcome, lives=True), locked(folder, "shipper", "ships"):
            _run(asked, folder, outcome)
    except StateError as error:
        unusable(str(error))
    outcome.signal = 0
    end(outcome, "the brokers", 0)


def _run(asked: Asked, folder: Path, outcome: Outcome) -> None:
    notes: list[str] = []
    names: dict[str, str] = {}
    sending, places = sender(asked.brokers, recorded=False), Places(folder, notes)
    means = Means(asked.host, sending.outbox, places, notes, bundles=asked.bundles)
    lives = [_Live(path, asked, means, names) for path in asked.captures]
    try:
        while not outcome.halted:
            _hear(sending, places, lives, asked.clock())
            for live in lives:
                if now_us := asked.clock():
                    _round(live, now_us, outcome)
            places.save()
            _tell(notes)
            if sending.outbox.is_full or not any(each.shipment is not None and each.shipment.brisk for each in lives):
                _rest(asked.every, outcome)
        _stop(sending, places, lives, asked.clock())
        _tell(notes)
    finally:
        sending.outbox.close()
        for live in lives:
            if live.shipment is not None:
                live.shipment.close()


def _rest(seconds: float, outcome: Outcome) -> None:
    """Waits, unless the end is asked for."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0 and not outcome.halted:
        time.sleep(min(left, 0.25))


def _hear(sending: Sender, places: Places, lives: list[_Live], now_us: int) -> None:
    happened = sending.hear()
    for path, kept in happened.arrived:
        places.keep(path, kept)
    if happened.lost:
        for live in lives:
            live.begin_anew(now_us)
        places.save(at_once=True)
        sending.outbox.begin_anew()


def _round(live: _Live, now_us: int, outcome: Outcome) -> None:
    """One capture's turn. An error of our own ends this one alone."""
    if live.broken or outcome.halted:
        return
    try:
        live.round(now_us)
    except Exception as error:
        live.broken = True
        tell(f"{shown(live.path)}: internal error: {outcome.failed(live.path, error)}; it is not shipped further")


def _stop(sending: Sender, places: Places, lives: list[_Live], now_us: int) -> None:
    """Says that the shipping ends, and keeps how far it came."""
    for live in lives:
        if live.shipment is not None and not live.broken:
            live.shipment.stop(now_us)
    sending.outbox.flush(0 if sending.outbox.trouble else LAST_SECONDS)
    for path, kept in sending.outbox.happened().arrived:
        places.keep(path, kept)
    places.save(at_once=True)


def _tell(notes: list[str]) -> None:
    for note in notes:
        tell(note)
    notes.clear()


def _check(asked: Asked) -> None:
    """Ends the command over captures that can't be shipped."""
    refuse_streams(asked.captures)
    if len({os.path.realpath(path) for path in asked.captures}) < len(asked.captures):
        unusable("a capture is named twice; name each once")
    for path in asked.captures:
        if not os.path.exists(path) and not Path(path).absolute().parent.is_dir():
            unusable(f"{path}: its folder is not there, so that nothing can come; check the path")
        if asked.store.resolve().is_relative_to(Path(path).resolve()):
            unusable(f"{asked.store}: lies in the capture {path}, into which nothing is written; name another --store")


def refuse_streams(captures: Iterable[str]) -> None:
    """Ends the command over what can be read only once."""
    for path in captures:
        if path == STDIN:
            unusable("-: standard input can't be shipped; write it to a file")
        try:
            mode = os.stat(path).st_mode
        except OSError:
            continue
        if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
            unusable(f"{path}: is neither a folder nor a file, and can't be shipped")
