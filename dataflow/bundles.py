"""Several messages of one job as one: what a round of a shipper has to say, of many files a little each.

A message costs the brokers and their clients more than the lines in it, so that a fleet of many small ones is dear.
"""

from collections.abc import Sequence

import msgspec

from dataflow.envelope import Poison, poison
from dataflow.kafka_follower import Message
from dataflow.wire import Carried, Headers

KIND = ("kind", b"bundle")
MOST_BYTES = 256 << 10
"""Of a bundle; what is larger by itself travels alone."""
_COMMON = ("schema", "host", "session")

_Inner = tuple[tuple[tuple[str, bytes], ...], bytes]
_DECODER = msgspec.msgpack.Decoder(list[_Inner])


def bundled(messages: Sequence[Carried]) -> list[Carried]:
    """The messages in their order, as bundles. Each says its own headers but for those that all of them share."""
    bundles: list[list[Carried]] = []
    size = 0
    for each in messages:
        size += len(each.value)
        if not bundles or size > MOST_BYTES:
            bundles.append([])
            size = len(each.value)
        bundles[-1].append(each)
    return [_one(bundle) if len(bundle) > 1 else bundle[0] for bundle in bundles]


def opened(message: Message) -> list[Message] | Poison:
    """The messages in a bundle, each at the bundle's place; any other message as it is."""
    if KIND not in message.headers:
        return [message]
    common = tuple(each for each in message.headers if each[0] in _COMMON)
    try:
        inner = _DECODER.decode(message.value)
    except (msgspec.MsgspecError, ValueError) as error:
        return poison(message.value, f"no bundle of messages: {error}")
    if any(KIND in headers for headers, _ in inner):
        return poison(message.value, "a bundle in a bundle")
    return [message._replace(headers=(*headers, *common), value=value) for headers, value in inner]


def _one(messages: Sequence[Carried]) -> Carried:
    common = tuple(each for each in messages[0].headers if each[0] in _COMMON)
    return Carried(msgspec.msgpack.encode([(_own(each.headers), each.value) for each in messages]), (KIND, *common))


def _own(headers: Headers) -> Headers:
    return tuple(each for each in headers if each[0] not in _COMMON)
