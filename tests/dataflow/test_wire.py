"""What is put on the topics comes back as it was; what anybody else put there never does harm."""

import os

import msgspec
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from dataflow.blocks import LineCut
from dataflow.envelope import Poison
from dataflow.homes import Writer
from dataflow.kafka_follower import Message
from dataflow.reads import Compression
from dataflow.turns import Continued, Gap, Held, How, Rotated, TailFailed, TailResumed, Trouble
from dataflow.wire import ANYWHERE, POLLS_SOURCE, UNPACKED_BYTES, Arrived, Carried, Part, PollLine, Wire, read
from dataflow.wire_words import (
    ArchiveSeen,
    Begun,
    DumpSeen,
    Ended,
    Failed,
    FolderSeen,
    LinkSeen,
    Listed,
    Stopped,
    Tick,
    Told,
    TrialSeen,
    Word,
)
from extractors.extract import Skew
from extractors.record import Block, SourceKind

WIRE = Wire("node-7", "5eed")
LINES, POLLS = "wedgewatch.lines", "wedgewatch.polls"
JOB = b"/ines/rl-plover-8"
BLOCK = Block("logs/finelog.log", 4_096, 17, b"Step 3 of 90 took 41 s\n" * 800, 2)
WORDS: list[Word] = [
    Begun("runs/rl-plover-8", '[job]\nid = "x"\n', recorded=True),
    Listed("pod_logs/pod_rank3.log.gz", SourceKind.POD, Compression.GZ, Writer(host="pod_rank3", node_rank=3)),
    Told(Rotated("logs/a.log", How.ROTATED, 1, 90, 4, 0)),
    Told(TailFailed("logs/a.log", Trouble.VANISHED, "No such file or directory", 0, 90)),
    Told(TailResumed("logs/a.log", 0, 90)),
    Told(LineCut("logs/a.log", 4, 90, 2_000_000)),
    Told(Continued("logs/a.log.1", "logs/a.log", 0, 0)),
    Told(Held("logs/a.log", 90, 4, b"\xff 12%|#\r 13%|#")),
    TrialSeen("sum__Ab3dE9x", "trace_jobs/sum__Ab3dE9x", ended=True),
    ArchiveSeen("trace_jobs.tar.zst", Compression.ZST),
    DumpSeen("flight_recorder/_dump_3"),
    FolderSeen("trace_jobs"),
    LinkSeen("trace_jobs/old__Ab3dE9x"),
    Failed("polls/", "cannot be listed: Permission denied"),
    Tick(7, ["logs/a.log"], {"polls/state.jsonl": (1, 512)}, 3, {"node-7": Skew(5, 6)}),
    Ended({"logs/a.log": 90}, [("polls/", "cannot be listed: Permission denied")]),
    Stopped(9),
]


def message(carried: Carried, topic: str = LINES, key: bytes | None = JOB) -> Message:
    return Message(topic, 0, 12, key, carried.value, carried.headers)


def sent(value: bytes = b"one\n", topic: str = LINES, key: bytes | None = JOB, **headers: object) -> Message:
    """A message that anybody may have written."""
    said = {"source": "logs/a.log", "offset": 0, "line": 1, "host": "node-7", "encoding": "identity"} | headers
    carried = tuple((name, str(text).encode()) for name, text in said.items() if text is not None)
    return Message(topic, 0, 12, key, value, carried)


def why(found: Arrived | Poison) -> str:
    assert isinstance(found, Poison), found
    return found.why


def test_block_comes_back_as_it_was_and_was_packed_on_its_way() -> None:
    carried = WIRE.block(BLOCK)
    assert len(carried.value) < len(BLOCK.data) / 4
    assert read(message(carried)) == Arrived(JOB.decode(), "node-7", "5eed", BLOCK)
    assert dict(carried.headers)["schema"] == b"wedgewatch/1"


def test_few_lines_travel_as_they_are_and_are_packed_with_those_of_other_messages() -> None:
    few = Block("logs/finelog.log", 4_096, 17, b"Step 3 of 90 took 41 s\n" * 80, 2)
    carried = WIRE.block(few)
    assert carried.value == few.data
    assert read(message(carried)) == Arrived(JOB.decode(), "node-7", "5eed", few)


def test_bytes_that_do_not_pack_travel_as_they_are() -> None:
    noise = Block("logs/a.log", 0, 1, os.urandom(40_000))
    carried = WIRE.block(noise)
    assert carried.value == noise.data
    assert read(message(carried)) == Arrived(JOB.decode(), "node-7", "5eed", noise)


@given(st.binary(max_size=2_000), st.integers(0, 1 << 47), st.integers(1, 1 << 47), st.integers(0, 1 << 30))
def test_any_bytes_come_back(data: bytes, offset: int, line: int, generation: int) -> None:
    block = Block("ray_logs/rank3-node7/worker-a-b-7.out", offset, line, data, generation)
    part = Part("trace_jobs.tar", offset, data, line, generation)
    poll = PollLine("polls/gpu.jsonl", offset, line, data.replace(b"\n", b" "), generation)
    for carried, was, topic in (
        (WIRE.block(block), block, LINES),
        (WIRE.part(part), part, LINES),
        (WIRE.poll(poll), poll, POLLS),
    ):
        assert read(message(carried, topic)) == Arrived(JOB.decode(), "node-7", "5eed", was)


@pytest.mark.parametrize("word", WORDS, ids=lambda word: type(word).__name__)
def test_word_comes_back_as_it_was(word: Word) -> None:
    assert read(message(WIRE.word(word))) == Arrived(JOB.decode(), "node-7", "5eed", word)


def test_poll_of_many_megabytes_is_packed_and_comes_back() -> None:
    poll = PollLine("polls/stacks.jsonl", 3, 2, b'{"probe":"stacks","stdout":"' + b"x" * 9_000_000 + b'"}')
    carried = WIRE.poll(poll)
    assert len(carried.value) < 1_000_000
    assert read(message(carried, POLLS)) == Arrived(JOB.decode(), "node-7", "5eed", poll)


def test_job_may_have_any_name() -> None:
    name = "/ines/rl-\udcff"
    found = read(message(WIRE.block(BLOCK), key=name.encode("utf-8", "surrogatepass")))
    assert isinstance(found, Arrived)
    assert found.job == name


def test_what_another_shipper_sends_with_the_documented_headers_alone_is_read() -> None:
    assert read(sent()) == Arrived(JOB.decode(), "node-7", "", Block("logs/a.log", 0, 1, b"one\n"))
    bare = Message(POLLS, 0, 12, JOB, b'{"probe":"state"}\n', ())
    assert read(bare) == Arrived(JOB.decode(), "", "", PollLine(POLLS_SOURCE, ANYWHERE, ANYWHERE, b'{"probe":"state"}'))


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../x.log",
        "logs/../../x.log",
        "logs//x.log",
        "logs/./x",
        "",
        "logs/",
        "logs/a\0b",
        "x" * 300,
        "a/" * 3_000,
    ],
)
def test_no_path_leads_out_of_the_capture(path: str) -> None:
    assert "path" in why(read(sent(source=path)))
    assert "path" in why(read(sent(kind="part", size=9, mtime_ns=0, source=path)))
    assert "path" in why(read(sent(topic=POLLS, value=b"{}", source=path)))
    for word in (
        TrialSeen("x", path, ended=True),
        Told(TailResumed(path, 0, 0)),
        Told(Continued("logs/a.log", path, 0, 0)),
        Listed(path, SourceKind.POD, Compression.NONE, Writer()),
        Ended({path: 3}),
        Tick(1, [path]),
        Tick(1, polls={path: (0, 0)}),
    ):
        assert "path" in why(read(message(WIRE.word(word))))


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (sent(key=None), "names no job"),
        (sent(key=b""), "names no job"),
        (sent(key=b"\xff\xfe"), "its key is no text"),
        (sent(source=None), "no header source"),
        (sent(offset=None), "header offset is missing"),
        (sent(offset="-1"), "header offset is no number"),
        (sent(offset="1e3"), "header offset is no number"),
        (sent(offset="9" * 19), "header offset is no number"),
        (sent(offset="9" * 9_000), "header offset is no number"),
        (sent(line=0), "header line is no number"),
        (sent(kind="rumour"), "unknown kind 'rumour'"),
        (sent(kind="part"), "header size is missing"),
        (sent(encoding="lz77"), "encoding 'lz77' is not known here"),
        (sent(encoding="zstd"), "zstd data is damaged"),
        (sent(b"", encoding="zstd"), "ends early"),
        (sent(zstandard.compress(b"x" * 9_999)[:-3], encoding="zstd"), "ends early"),
        (sent(zstandard.compress(b"x") + b"more", encoding="zstd"), "other bytes follow"),
        (sent(zstandard.compress(b"x") + b"m" * 5_000, encoding="zstd"), "other bytes follow"),
        (sent(schema="wedgewatch/2"), "written by a newer version"),
        (sent(schema="elk/1"), "its schema is 'elk/1'"),
        (sent(b"{", kind="word"), "no word that is known here"),
        (sent(b'{"type":"Rumour"}', kind="word"), "Rumour"),
        (sent(b'{"type":"Stopped","now_us":"soon"}', kind="word"), "now_us"),
        (sent(b'{"type":"Stopped","now_us":1,"x":' + b"[" * 99_999, kind="word"), "no word that is known here"),
        (sent(b"\xff", kind="word"), "no word that is known here"),
        (sent(b"{}\n{}", topic=POLLS), "a poll of several lines"),
    ],
)
def test_what_cannot_be_used_says_why(bad: Message, says: str) -> None:
    assert says in why(read(bad))


def test_bomb_is_no_message() -> None:
    assert "unpacks to more than" in why(read(sent(zstandard.compress(bytes(UNPACKED_BYTES + 1)), encoding="zstd")))


def test_poison_is_quoted_fit_for_a_terminal() -> None:
    found = read(sent(b"\x1b[31mhello\nthere", kind="rumour"))
    assert isinstance(found, Poison)
    assert found.quote == "hello\\nthere"


def test_fields_and_headers_of_a_later_version_are_passed_over() -> None:
    later = msgspec.json.encode({"type": "Stopped", "now_us": 4, "why": "upgrade"})
    found = read(sent(later, kind="word", mood="calm"))
    assert isinstance(found, Arrived)
    assert found.what == Stopped(4)


_HEADER = st.tuples(
    st.sampled_from(["kind", "source", "offset", "line", "encoding", "schema", "generation", "size", "other"]),
    st.one_of(st.binary(max_size=20), st.sampled_from([b"block", b"part", b"word", b"0", b"1", b"zstd", b"a/b"])),
)


@given(
    st.binary(max_size=300),
    st.lists(_HEADER, max_size=9).map(tuple),
    st.sampled_from([LINES, POLLS]),
    st.one_of(st.none(), st.binary(max_size=9)),
)
def test_nothing_that_is_on_a_topic_raises(
    value: bytes, headers: tuple[tuple[str, bytes], ...], topic: str, key: bytes | None
) -> None:
    assert isinstance(read(Message(topic, 0, 0, key, value, headers)), Arrived | Poison)


FAR_US = 4_102_444_800_000_000


@pytest.mark.parametrize(
    "word",
    [
        Tick(FAR_US),
        Tick(-1),
        Tick(1, anchor_us=1 << 62),
        Tick(1, polls={"polls/gpu.jsonl": (0, 1 << 62)}),
        Stopped(1 << 62),
        Begun("runs/rl", None, False, lateness_us=-1),
        Told(Rotated("a.log", How.ROTATED, (1 << 64) - 1, 0, 0, 0)),
        Told(Gap("a.log", -1, 1)),
        Ended({"a.log": 1 << 60}),
    ],
    ids=str,
)
def test_times_and_numbers_that_no_capture_has_are_poison(word: Word) -> None:
    assert "its time" in why(read(message(WIRE.word(word)))) or "its numbers" in why(read(message(WIRE.word(word))))
