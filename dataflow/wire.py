"""How a capture travels: its lines, its files, its polls, and words about them, as messages and back (docs/kafka.md).

A topic may have been written to by anybody: what can't be used comes back as a value that says why, and no path leads
out of the folder that it is relative to.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple, TypeVar

import msgspec
import zstandard

from dataflow.envelope import Poison, of_another_version, poison
from dataflow.kafka import MOST_BYTES, Topic
from dataflow.kafka_follower import Message
from dataflow.wire_words import Word, names_of, numbers_of, times_of
from extractors.record import Block
from state.report import SCHEMA

UNPACKED_BYTES = 16 * MOST_BYTES
"""What one body may unpack to."""
PATH_BYTES = 4_096
POLLS_SOURCE = "polls/polls.jsonl"
"""Under this name are the polls read whose sender names no file."""
ANYWHERE = -1
_NAME_BYTES = 255
_WINDOW = 1 << 27
_FEED = 1_024
"""Packed bytes given at once; they can make 32 MiB."""
_PACKED_FROM = 16 << 10
"""Fewer bytes are packed by the client, with those of other messages: together they become smaller than one by one."""
_KNOWN, _KNOWN_BYTES = 65_536, 512
"""So many paths, of so many bytes at most, are remembered as ones that can be used: they come again and again."""
_MOST = 1 << 48
"""Bytes or lines of a file; no file system has a larger one."""
_LATEST_US = 4_102_444_800_000_000
"""The year 2100. A word that brings a job to a far time would keep all others waiting while it passes."""
_NUMBER = re.compile(rb"\d{1,19}")
_WORD = msgspec.json.Decoder(Word)
Headers = tuple[tuple[str, bytes], ...]
_Made = TypeVar("_Made")


class Carried(NamedTuple):
    """What a message carries beside its job."""

    value: bytes
    headers: Headers


class Part(NamedTuple):
    """Raw bytes of a file that is read as a whole, or whose bytes are sent as they are: from this offset on, of so many
    in all, as the sender saw it. size and mtime_ns are 0 where it does not say. In a live session one at offset 0
    begins the file anew."""

    source: str
    offset: int
    data: bytes
    size: int
    mtime_ns: int


class PollLine(NamedTuple):
    """A line of a poll file, without its newline. offset is ANYWHERE where the sender does not say: behind what came of
    the file before."""

    source: str
    offset: int
    line: int
    data: bytes
    generation: int = 0


class Arrived(NamedTuple):
    """A message that was read. session names one reading of a capture by one shipper; host and session are empty where
    the sender says neither. recorded says that the session is that of a recorded capture."""

    job: str
    host: str
    session: str
    what: Block | Part | Word | PollLine
    recorded: bool = False


class Wire:
    """Makes what messages carry, for one session of one shipper. Used by one thread at a time."""

    def __init__(self, host: str, session: str, recorded: bool = False) -> None:
        self._sent_by: Headers = (("schema", SCHEMA.encode()), ("host", _encoded(host)), ("session", session.encode()))
        if recorded:
            self._sent_by += (("recorded", b"1"),)
        self._packer = zstandard.ZstdCompressor()

    def block(self, block: Block) -> Carried:
        """Whole lines of a file."""
        body, encoding = self._packed(block.data)
        return self._carried(
            body,
            kind="block",
            source=block.source,
            offset=block.offset,
            line=block.line,
            encoding=encoding,
            generation=block.generation,
        )

    def part(self, part: Part) -> Carried:
        """Raw bytes of a file."""
        body, encoding = self._packed(part.data)
        return self._carried(
            body,
            kind="part",
            source=part.source,
            offset=part.offset,
            size=part.size,
            mtime_ns=part.mtime_ns,
            encoding=encoding,
        )

    def word(self, word: Word) -> Carried:
        """A word about the capture."""
        body, encoding = self._packed(msgspec.json.encode(word))
        return self._carried(body, kind="word", encoding=encoding)

    def poll(self, poll: PollLine, pack: bool = False) -> Carried:
        """A line of a poll file, for the topic of polls; packed only where it is large, or asked for."""
        place: dict[str, str | int] = {"source": poll.source, "offset": poll.offset}
        place |= {"line": poll.line, "generation": poll.generation}
        if len(poll.data) <= MOST_BYTES // 4 and not pack:
            return self._carried(poll.data, **place)
        body, encoding = self._packed(poll.data, least=0)
        return self._carried(body, **place, encoding=encoding)

    def _packed(self, data: bytes, least: int = _PACKED_FROM) -> tuple[bytes, str]:
        packed = self._packer.compress(data) if len(data) >= least else data
        return (packed, "zstd") if len(packed) < len(data) else (data, "identity")

    def _carried(self, body: bytes, **said: str | int) -> Carried:
        own = tuple((name, _encoded(str(value))) for name, value in said.items())
        return Carried(body, (*own, *self._sent_by))


def read(message: Message) -> Arrived | Poison:
    """What a message of the topics of lines and polls says. Never raises."""
    try:
        headers = {name: value or b"" for name, value in message.headers}
        if "schema" in headers and (why := of_another_version(_text(headers, "schema"))):
            raise _Unusable(why)
        what = _poll(message, headers) if message.topic.endswith(f".{Topic.POLLS}") else _line(message, headers)
        sent_by = _text(headers, "host", ""), _text(headers, "session", "")
        return Arrived(_job(message.key), *sent_by, what, headers.get("recorded") == b"1")
    except _Unusable as unusable:
        return poison(message.value or b"", str(unusable))


class _Unusable(Exception):
    """A message that can't be used. Its text says why; never leaves this module."""


def _line(message: Message, headers: dict[str, bytes]) -> Block | Part | Word:
    kind = _text(headers, "kind", "block")
    if kind not in ("block", "part", "word"):
        raise _Unusable(f"a message of unknown kind {kind[:40]!r}")
    data = _unpacked(message.value or b"", _text(headers, "encoding", "identity"))
    if kind == "word":
        return _word(data)
    source, offset = _path(headers), _number(headers, "offset")
    if kind == "part":
        return Part(
            source, offset, data, _number(headers, "size"), _number(headers, "mtime_ns", most=1000 * _LATEST_US)
        )
    return Block(source, offset, _number(headers, "line", least=1), data, _number(headers, "generation", 0))


def _poll(message: Message, headers: dict[str, bytes]) -> PollLine:
    data = _unpacked(message.value or b"", _text(headers, "encoding", "identity")).removesuffix(b"\n")
    if b"\n" in data:
        raise _Unusable("a poll of several lines")
    source = _path(headers) if "source" in headers else POLLS_SOURCE
    offset, line = _number(headers, "offset", ANYWHERE), _number(headers, "line", ANYWHERE, 1)
    if ANYWHERE in (offset, line):
        return PollLine(source, ANYWHERE, ANYWHERE, data)
    return PollLine(source, offset, line, data, _number(headers, "generation", 0))


def _word(value: bytes) -> Word:
    try:
        word = _WORD.decode(value)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise _Unusable(f"no word that is known here: {error}") from error
    for name in names_of(word):
        _checked(name)
    if any(not 0 <= each < _LATEST_US for each in times_of(word)):
        raise _Unusable("its time is none at which logs are written")
    if any(not 0 <= each < _MOST for each in numbers_of(word)):
        raise _Unusable("its numbers are none of a file")
    return word


def _job(key: bytes | None) -> str:
    if not key:
        raise _Unusable("it names no job (it has no key)")
    return _tried(lambda: key.decode("utf-8", "surrogatepass"), "its key is no text")


def _path(headers: dict[str, bytes]) -> str:
    value = headers.get("source")
    if value is None or len(value) > _KNOWN_BYTES:
        return _checked(_text(headers, "source"))
    return _known(value)


@lru_cache(maxsize=_KNOWN)
def _known(value: bytes) -> str:
    return _checked(_text({"source": value}, "source"))


def _checked(relative: str) -> str:
    """A path that leads to a place below the folder that it is relative to."""
    parts = relative.split("/")
    if {"", ".", ".."} & set(parts) or "\0" in relative:
        raise _Unusable(f"its path {relative[:80]!r} is none inside a capture")
    encoded = _tried(relative.encode, "its path is no text")
    if len(encoded) > PATH_BYTES or any(len(part.encode()) > _NAME_BYTES for part in parts):
        raise _Unusable("its path is too long")
    return relative


def _text(headers: dict[str, bytes], name: str, without: str | None = None) -> str:
    value = headers.get(name)
    if value is None:
        if without is None:
            raise _Unusable(f"it has no header {name}")
        return without
    try:
        return value.decode()
    except ValueError as error:
        raise _Unusable(f"its header {name} is no text") from error


def _number(headers: dict[str, bytes], name: str, without: int | None = None, least: int = 0, most: int = _MOST) -> int:
    value = headers.get(name)
    if value is None and without is not None:
        return without
    if value is None or not _NUMBER.fullmatch(value) or not least <= int(value) <= most:
        raise _Unusable(f"its header {name} is {'missing' if value is None else f'no number: {value[:40]!r}'}")
    return int(value)


def _unpacked(body: bytes, encoding: str) -> bytes:
    """The bytes of a body, in bounded memory."""
    if encoding == "identity":
        return body
    if encoding != "zstd":
        raise _Unusable(f"its encoding {encoding[:40]!r} is not known here")
    frame, out = zstandard.ZstdDecompressor(max_window_size=_WINDOW).decompressobj(), bytearray()
    for at in range(0, len(body), _FEED):
        if frame.eof:
            raise _Unusable("other bytes follow its zstd data")
        try:
            out += frame.decompress(body[at : at + _FEED])
        except zstandard.ZstdError as error:
            raise _Unusable(f"its zstd data is damaged ({error})") from error
        if len(out) > UNPACKED_BYTES:
            raise _Unusable(f"its zstd data unpacks to more than {UNPACKED_BYTES} bytes")
    if not frame.eof or frame.unused_data:
        raise _Unusable("other bytes follow its zstd data" if frame.eof else "its zstd data ends early")
    return bytes(out)


def _tried(make: Callable[[], _Made], why: str) -> _Made:
    try:
        return make()
    except ValueError as error:
        raise _Unusable(why) from error


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")
