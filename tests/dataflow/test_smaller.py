"""What the brokers find too large is sent in smaller pieces: they say the same together, or what is missing."""

import os
from itertools import pairwise

import pytest

from dataflow.blocks import LineCut
from dataflow.kafka_follower import Message
from dataflow.kafka_publisher import Outgoing
from dataflow.smaller import LEAST_BYTES, LEFT_BYTES, smaller_of
from dataflow.wire import Arrived, Carried, Part, PollLine, read
from dataflow.wire_words import Stopped, Told
from extractors.record import Block
from tests.dataflow.live_feeds import bars
from tests.dataflow.shipments import JOB, Sent, laid_out, wire

LINES, POLLS = "wedgewatch.lines", "wedgewatch.polls"


def outgoing(carried: Carried, topic: str = LINES) -> Outgoing:
    return Outgoing(topic, JOB, *carried, note="the mark")


def in_pieces(message: Outgoing, most: int, recorded: bool = False) -> list[Sent]:
    """What arrives at brokers that take so many bytes."""
    waiting, arrived, notes = [message], [], []
    while waiting:
        first = waiting.pop(0)
        if len(first.value) > most:
            smaller = smaller_of(LINES, recorded)(first)
            assert smaller, "it is refused"
            waiting = [*smaller, *waiting]
            continue
        found = read(Message(first.topic, 0, 0, JOB.encode(), first.value, first.headers))
        assert isinstance(found, Arrived)
        assert (found.job, found.host, found.session) == (JOB, "node-4", "5eed")
        arrived.append(found.what)
        notes.append(first.note)
    assert notes == [None] * (len(notes) - 1) + ["the mark"], "all before the mark has arrived when it has"
    return arrived


def noise(size: int) -> bytes:
    return os.urandom(size).replace(b"\n", b"\0")


def test_block_is_cut_between_lines() -> None:
    data = b"".join(noise(97) + b"\n" for _ in range(99))
    block = Block("finelog.log", 1_000, 7, data, 2)
    pieces = in_pieces(outgoing(wire().block(block)), 1_500)
    assert len(pieces) > 4
    assert all(isinstance(each, Block) and each.data.endswith(b"\n") and each.generation == 2 for each in pieces)
    for before, after in pairwise(pieces):
        assert isinstance(before, Block)
        assert isinstance(after, Block)
        place = before.offset + len(before.data), before.line + before.data.count(b"\n")
        assert (after.offset, after.line) == place
    assert b"".join(each.data for each in pieces if isinstance(each, Block)) == data


def test_line_that_is_too_large_alone_is_cut_and_told_so_once() -> None:
    long = noise(9_000) + b"\n"
    block = Block("finelog.log", 0, 1, bars(0, 2) + long + bars(2, 2))
    pieces = in_pieces(outgoing(wire().block(block)), 1_200)
    told = [each.piece for each in pieces if isinstance(each, Told)]
    assert told == [LineCut("finelog.log", 3, len(bars(0, 2)), 9_000)]
    at = pieces.index(Told(told[0]))
    begin = pieces[at - 1]
    assert isinstance(begin, Block)
    assert long.startswith(begin.data[begin.data.rfind(b"\n") + 1 :])
    last = pieces[-1]
    assert isinstance(last, Block)
    assert (last.offset + len(last.data), last.data[-20:]) == (len(block.data), block.data[-20:])


def test_of_a_recorded_file_no_byte_is_left_out() -> None:
    data = bars(0, 2) + noise(9_000) + b"\n" + bars(2, 2)
    pieces = in_pieces(outgoing(wire().block(Block("finelog.log", 0, 1, data))), 1_200, recorded=True)
    assert laid_out(pieces) == {("finelog.log", 0): data}
    poll = noise(9_000)
    pieces = in_pieces(outgoing(wire().poll(PollLine("polls/gpu.jsonl", 0, 1, poll)), POLLS), 1_200, recorded=True)
    assert laid_out(pieces) == {("polls/gpu.jsonl", 0): poll + b"\n"}


def test_part_is_halved_wherever() -> None:
    data = noise(9_000)
    pieces = in_pieces(outgoing(wire().part(Part("x_trace_jobs.tar", 0, data, 9_000, 3))), 1_200)
    assert laid_out(pieces) == {("x_trace_jobs.tar", 0): data}
    assert all(isinstance(each, Part) and each[3:] == (9_000, 3) for each in pieces)


def test_of_a_poll_the_beginning_is_left_in_a_line_of_the_same_length() -> None:
    poll = PollLine("polls/gpu.jsonl", 40, 3, b'{"probe":' + noise(9_000), 1)
    (left,) = in_pieces(outgoing(wire().poll(poll), POLLS), 1_200)
    assert left == poll._replace(data=poll.data[:LEFT_BYTES].ljust(len(poll.data)))


@pytest.mark.parametrize(
    "message",
    [
        outgoing(wire().word(Stopped(3))),
        outgoing(wire().block(Block("a", 0, 1, noise(LEAST_BYTES)))),
        outgoing(wire().poll(PollLine("polls/a.jsonl", 0, 1, b"")), POLLS),
        Outgoing(LINES, JOB, b"what nobody knows", (("kind", b"rumour"),)),
    ],
)
def test_what_cannot_be_made_smaller_is_refused(message: Outgoing) -> None:
    assert not smaller_of(LINES, recorded=False)(message)
