"""`wedgewatch ship --once`: recorded captures, each sent whole."""

import time
from collections.abc import Callable
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, NoReturn

import click

from dataflow.ending import end, halting, tell, unusable
from dataflow.kafka import Topic
from dataflow.opening import feeds_of
from dataflow.outcome import Outcome
from dataflow.ship_recorded import Piece, Recorded
from dataflow.shipping import Asked, Sender, refuse_streams, sender
from dataflow.wire import Carried, Part, PollLine, Wire
from extractors.record import Block

if TYPE_CHECKING:
    from dataflow.feed import ReplayFeed

PAUSE_SECONDS = 0.02


class _Lost(Exception):
    """The topics have lost what was sent. Never leaves this module."""


def ship_once(asked: Asked) -> NoReturn:
    """Sends the captures, and ends when all has arrived; brokers that are away are waited for. Exit code 2 where a
    capture can't be read, or the brokers refuse something of it."""
    refuse_streams(asked.captures)
    outcome = Outcome()
    feeds = feeds_of(asked.captures, asked.job_toml, None)
    texts = [_facts(feed, asked.job_toml) for feed in feeds]
    with halting(outcome, lives=True, resumes=False):
        sending = sender(asked.brokers, recorded=True)
        try:
            done = _send_all(feeds, texts, asked.host, sending, outcome)
        finally:
            sending.outbox.close()
    for job, recorded in done.items():
        for relative, why in recorded.failures:
            tell(f"{relative}: {why}")
        click.echo(f"{job}: {len(recorded.files)} files, {sum(recorded.files.values())} bytes")
    if sending.refused:
        unusable("not all could be sent, and it can't be judged; see the topics' max.message.bytes")
    end(outcome, "the brokers", 0)


def _send_all(
    feeds: "list[ReplayFeed]", texts: list[str | None], host: str, sending: Sender, outcome: Outcome
) -> dict[str, Recorded]:
    """The captures that were sent, by their jobs. Sends all anew where the topics lost it."""
    wires = [Wire(host, token_hex(8), recorded=True) for _ in feeds]
    anew = 0
    while True:
        done = {feed.job: Recorded(feed) for feed in feeds}
        try:
            for (job, recorded), text, wire in zip(done.items(), texts, wires, strict=True):
                for piece in recorded.pieces(text, anew):
                    if outcome.halted:
                        return {}
                    topic, carried = _carried(wire, piece)
                    sending.outbox.send(topic, job, carried)
                    if sending.outbox.is_full:
                        _wait(sending, outcome, lambda: not sending.outbox.is_full)
            _wait(sending, outcome, lambda: sending.outbox.is_empty)
        except _Lost:
            anew += 1
            sending.outbox.begin_anew()
            continue
        return {} if outcome.halted else done


def _wait(sending: Sender, outcome: Outcome, over: Callable[[], bool]) -> None:
    """Waits for the brokers. Raises _Lost."""
    while not outcome.halted:
        if sending.hear().lost:
            raise _Lost
        if over():
            return
        time.sleep(PAUSE_SECONDS)


def _carried(wire: Wire, piece: Piece) -> tuple[Topic, Carried]:
    if isinstance(piece, PollLine):
        return Topic.POLLS, wire.poll(piece)
    if isinstance(piece, Block):
        return Topic.LINES, wire.block(piece)
    return Topic.LINES, wire.part(piece) if isinstance(piece, Part) else wire.word(piece)


def _facts(feed: "ReplayFeed", job_toml: Path | None) -> str | None:
    """The text of the launcher's facts, which were read before."""
    path = job_toml or feed.capture.job_toml
    return Path(path).read_bytes().decode() if path else None
