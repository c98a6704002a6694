"""Several messages as one: they come out as they went in, and a bundle that is none is poison."""

import random

import msgspec
import pytest

from dataflow.bundles import KIND, MOST_BYTES, bundled, opened
from dataflow.envelope import Poison
from dataflow.kafka_follower import Message
from dataflow.kafka_publisher import Outgoing
from dataflow.smaller import smaller_of
from dataflow.wire import Arrived, Carried, Wire, read
from dataflow.wire_words import Tick
from extractors.record import Block
from tests.dataflow.live_feeds import bars
from tests.dataflow.shipped_streams import LINES

WIRE = Wire("node-1", "s1")


def message(carried: Carried) -> Message:
    return Message(LINES, 3, 17, b"/kim/rl", carried.value, carried.headers)


def round_of(seed: int) -> list[Carried]:
    """What one round says: lines of many files, and the tick."""
    chance = random.Random(seed)
    blocks = [Block(f"pod_logs/pod-{n}.log", 90 * n, n + 1, bars(n, chance.randint(1, 9))) for n in range(30)]
    return [*map(WIRE.block, blocks), WIRE.word(Tick(5, behind=["a"]))]


@pytest.mark.parametrize("seed", range(5))
def test_what_comes_out_of_a_bundle_is_what_went_in(seed: int) -> None:
    said = round_of(seed)
    (bundle,) = bundled(said)
    inner = opened(message(bundle))
    assert not isinstance(inner, Poison)
    assert [read(each) for each in inner] == [read(message(each)) for each in said]
    assert {each.place for each in inner} == {f"{LINES}[3] at 17"}
    assert len(bundle.value) < sum(len(e.value) + sum(len(n) + len(v) for n, v in e.headers) for e in said)


def test_what_is_large_travels_alone_and_in_its_order() -> None:
    large = [Carried(bytes([n]) * (MOST_BYTES // 2 + 1), (("kind", b"part"),)) for n in range(3)]
    bundles = bundled([*round_of(1)[:2], *large, *round_of(1)[2:4]])
    out = [each for bundle in bundles for each in opened(message(bundle))]
    assert [each.value[:1] for each in out if len(each.value) > MOST_BYTES // 2] == [b"\0", b"\1", b"\2"]
    assert len(out) == 7
    assert all(len(bundle.value) < MOST_BYTES + 4_096 for bundle in bundles)


def test_a_message_that_is_no_bundle_is_itself() -> None:
    (alone,) = bundled(round_of(1)[:1])
    assert opened(message(alone)) == [message(alone)]


@pytest.mark.parametrize(
    "value",
    [b"", b"\xc1", msgspec.msgpack.encode(5), msgspec.msgpack.encode([([("kind", b"bundle")], b"")]), b"\x91" * 5_000],
)
def test_what_is_no_bundle_though_it_says_so_is_poison(value: bytes) -> None:
    found = opened(Message(LINES, 0, 0, b"/kim/rl", value, (KIND,)))
    assert isinstance(found, Poison)
    assert "bundle" in found.why


def test_a_bundle_that_the_brokers_find_too_large_comes_apart() -> None:
    said = round_of(2)
    (bundle,) = bundled(said)
    parts = smaller_of(LINES, recorded=False)(Outgoing(LINES, "/kim/rl", *bundle, note="kept"))
    assert [read(message(Carried(each.value, each.headers))) for each in parts] == [read(message(e)) for e in said]
    assert [each.note for each in parts] == [None] * (len(said) - 1) + ["kept"]
    assert all(isinstance(read(message(Carried(each.value, each.headers))), Arrived) for each in parts)
