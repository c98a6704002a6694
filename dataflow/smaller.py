"""What is sent in the place of a message that the brokers find too large: its halves, and word of what can't be halved.

Lines stay whole while they can. Of a line that is too large alone as much is sent as may be, and that it was cut, as
the reading of a file does with lines over 1 MiB.
"""

from collections.abc import Callable, Sequence

from dataflow.blocks import LineCut
from dataflow.bundles import opened
from dataflow.envelope import Poison
from dataflow.kafka_follower import Message
from dataflow.kafka_publisher import Outgoing
from dataflow.wire import Arrived, Carried, Part, PollLine, Wire, read
from dataflow.wire_words import Told
from extractors.record import Block

LEAST_BYTES = 1_024
"""Of a block or part; brokers that take less take nothing."""
LEFT_BYTES = 512
"""Of a poll that is too large."""
_CUT = ("cut", b"1")
"""The header of what was cut out of a line that was told as cut already."""


def smaller_of(lines: str, recorded: bool) -> Callable[[Outgoing], Sequence[Outgoing]]:
    """For a Publisher. lines is the name of the topic of lines; recorded says that files are sent as they are, so that
    no byte may be left out."""

    def instead(message: Outgoing) -> Sequence[Outgoing]:
        whole = Message(message.topic, 0, 0, message.job.encode("utf-8", "surrogatepass"), *message[2:4])
        inner = opened(whole)
        if not isinstance(inner, Poison) and len(inner) > 1:
            several = [Outgoing(message.topic, message.job, each.value, each.headers) for each in inner]
            return [*several[:-1], several[-1]._replace(note=message.note)]
        arrived = read(whole)
        if not isinstance(arrived, Arrived):
            return ()
        wire, what = Wire(arrived.host, arrived.session), arrived.what
        if isinstance(what, PollLine):
            pieces = _of_poll(wire, message, what, lines, recorded)
        elif isinstance(what, Block | Part) and len(what.data) > LEAST_BYTES:
            made = _of_block(wire, what, message, recorded) if isinstance(what, Block) else _of_part(wire, what)
            pieces = [Outgoing(message.topic, message.job, *carried) for carried in made]
        else:
            return ()
        return [*pieces[:-1], pieces[-1]._replace(note=message.note)] if pieces else ()

    return instead


def _of_part(wire: Wire, part: Part) -> list[Carried]:
    half = len(part.data) // 2
    return [
        wire.part(part._replace(data=part.data[:half])),
        wire.part(part._replace(data=part.data[half:], offset=part.offset + half)),
    ]


def _of_block(wire: Wire, block: Block, message: Outgoing, recorded: bool) -> list[Carried]:
    data, half = block.data, len(block.data) // 2
    at = data.rfind(b"\n", 0, half) + 1 or data.find(b"\n") + 1
    if at in (0, len(data)):
        return _of_line(wire, block, message, recorded)
    rest = Block(block.source, block.offset + at, block.line + data.count(b"\n", 0, at), data[at:], block.generation)
    return [wire.block(Block(block.source, block.offset, block.line, data[:at], block.generation)), wire.block(rest)]


def _of_line(wire: Wire, block: Block, message: Outgoing, recorded: bool) -> list[Carried]:
    half = len(block.data) // 2
    if recorded:
        first = Part(block.source, block.offset, block.data[:half], 0, 0)
        return [wire.part(first), wire.part(first._replace(offset=block.offset + half, data=block.data[half:]))]
    begin = wire.block(Block(block.source, block.offset, block.line, block.data[:half], block.generation))
    begin = begin._replace(headers=(*begin.headers, _CUT))
    if _CUT in message.headers:
        return [begin]
    size = len(block.data) - block.data.endswith(b"\n")
    return [begin, wire.word(Told(LineCut(block.source, block.line, block.offset, size)))]


def _of_poll(wire: Wire, message: Outgoing, poll: PollLine, lines: str, recorded: bool) -> list[Outgoing]:
    """A poll can't be halved: its line goes where the files' bytes go; or its beginning alone, which is no record and
    will be told so, in a line of the same length."""
    if recorded:
        part = Part(poll.source, poll.offset, poll.data + b"\n", 0, 0)
        return [Outgoing(lines, message.job, *carried) for carried in _of_part(wire, part)]
    left = poll.data[:LEFT_BYTES].ljust(len(poll.data))
    return [] if left == poll.data else [message._replace(**wire.poll(poll._replace(data=left), pack=True)._asdict())]
