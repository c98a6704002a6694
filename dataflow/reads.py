"""The bytes of one file, uncompressed, as a stream of chunks in bounded memory. Whatever goes wrong is a value.

What a chunk holds depends on read_size for plain files only; blocks.py makes boundaries that do not.
"""

import zlib
from collections.abc import Iterator
from enum import StrEnum

import msgspec
import zstandard

from dataflow.opened import READ_BYTES, STDIN, Damage, Taken, counted, file_chunks, stdin_chunks

_GZ_FEED = 16_384
_ZST_FEED = 1_024
"""Compressed bytes given at once: 4 of them can make 128 KiB, so this bounds one step at 32 MiB."""
_ZST_WINDOW = 1 << 27


class Compression(StrEnum):
    """How a file's bytes are packed, by the end of its name."""

    NONE = "none"
    GZ = "gz"
    ZST = "zst"


_BY_SUFFIX = {".gz": Compression.GZ, ".zst": Compression.ZST}


class Limits(msgspec.Struct, frozen=True):
    """When unpacking stops: above `total` uncompressed bytes, or above `ratio` to one once `ratio_from` bytes are out.

    Text of logs packs to 5–300 to one; only a bomb reaches a thousand.
    """

    total: int = 1 << 36
    ratio: int = 1000
    ratio_from: int = 1 << 26


LIMITS = Limits()


def compression_of(name: str) -> Compression:
    """The compression that a file's name says."""
    return _BY_SUFFIX.get(name[name.rfind(".") :], Compression.NONE)


def unpacked_name(name: str) -> str:
    """The name without its `.gz` or `.zst`."""
    return name.rpartition(".")[0] if compression_of(name) is not Compression.NONE else name


def chunks(
    path: str,
    compression: Compression = Compression.NONE,
    read_size: int = READ_BYTES,
    limits: Limits = LIMITS,
    taken: Taken | None = None,
    by_lines: bool = False,
) -> Iterator[bytes | Damage]:
    """The uncompressed bytes of a file in order; damages come last, except that a bomb is cut short.

    A file that cannot be opened gives one Damage and no bytes. taken is told of the bytes as they lie; by_lines, a
    chunk of a plain file ends with a line where that is at hand. Never raises OSError.
    """
    raw = stdin_chunks(read_size) if path == STDIN else file_chunks(path, read_size, by_lines)
    if taken is not None:
        raw = counted(raw, taken)
    if compression is Compression.NONE:
        return raw
    meter = _Meter(limits)
    if compression is Compression.GZ:
        return _bounded(_gunzip(_feeds(raw, _GZ_FEED), meter), meter)
    return _bounded(_unzstd(_feeds(raw, _ZST_FEED), meter), meter)


def _feeds(raw: Iterator[bytes | Damage], size: int) -> Iterator[bytes | Damage]:
    """The same bytes in pieces of exactly this size, so that what unpacks does not depend on how it was read."""
    held = bytearray()
    for chunk in raw:
        if isinstance(chunk, Damage):
            yield chunk
            continue
        held += chunk
        whole = len(held) - len(held) % size
        for at in range(0, whole, size):
            yield bytes(held[at : at + size])
        del held[:whole]
    if held:
        yield bytes(held)


class _Meter:
    """Counts packed bytes taken and unpacked bytes given, and says when that is too much."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.taken = 0
        self.given = 0

    def excess(self) -> str:
        """Why to stop, or nothing."""
        if self.given > self.limits.total:
            return f"more than {self.limits.total} bytes when unpacked"
        if self.given > self.limits.ratio_from and self.given > self.limits.ratio * self.taken:
            return f"decompression bomb: {self.taken} bytes unpack to more than {self.limits.ratio} times as many"
        return ""


def _bounded(unpacked: Iterator[bytes | Damage], meter: _Meter) -> Iterator[bytes | Damage]:
    for chunk in unpacked:
        if isinstance(chunk, bytes):
            meter.given += len(chunk)
        yield chunk
        if excess := meter.excess():
            yield Damage(f"{excess}; stopped at byte {meter.given}")
            return


def _gunzip(feeds: Iterator[bytes | Damage], meter: _Meter) -> Iterator[bytes | Damage]:
    """All members of a gzip file. After a damage nothing more can be read, so it ends there."""
    inflater, begun, members = zlib.decompressobj(31), False, 0
    for feed in feeds:
        if isinstance(feed, Damage):
            yield feed
            continue
        meter.taken += len(feed)
        pending = feed
        while pending := pending if begun else pending.lstrip(b"\0"):
            before = inflater.copy()
            try:
                out = inflater.decompress(pending, READ_BYTES)
            except zlib.error as error:
                yield from _salvaged(before, pending)
                what = "gzip data damaged" if begun or not members else "other bytes follow the gzip data"
                yield Damage(f"{what} ({error}); good up to byte {meter.given}")
                return
            begun = True
            if out:
                yield out
            pending = inflater.unconsumed_tail
            if inflater.eof:
                pending = inflater.unused_data
                inflater, begun, members = zlib.decompressobj(31), False, members + 1
    if begun:
        yield from _salvaged(inflater, b"")
    if begun or not members:
        yield Damage(f"gzip data ends early (torn tail); good up to byte {meter.given}")


def _salvaged(inflater: "zlib._Decompress", packed: bytes) -> Iterator[bytes]:
    """What still unpacks, byte by byte, of the piece in which the damage is, or at the end of torn data."""
    pieces = [packed[at : at + 1] for at in range(len(packed))] or [b""]
    try:
        for piece in pieces:
            if out := inflater.decompress(piece):
                yield out
    except zlib.error:
        return


def _unzstd(feeds: Iterator[bytes | Damage], meter: _Meter) -> Iterator[bytes | Damage]:
    """All frames of a zstd file, good to the last whole block (up to 128 KiB) before a damage."""
    unpacker = zstandard.ZstdDecompressor(max_window_size=_ZST_WINDOW)
    frame, begun = unpacker.decompressobj(), False
    for feed in feeds:
        if isinstance(feed, Damage):
            yield feed
            continue
        meter.taken += len(feed)
        pending = feed
        while pending:
            begun = True
            try:
                out = frame.decompress(pending)
            except zstandard.ZstdError as error:
                yield Damage(f"zstd data damaged ({error}); good up to byte {meter.given}")
                return
            if out:
                yield out
            pending = b""
            if frame.eof:
                pending = frame.unused_data
                frame, begun = unpacker.decompressobj(), False
    if begun or not meter.taken:
        yield Damage(f"zstd data ends early (torn tail); good up to byte {meter.given}")
