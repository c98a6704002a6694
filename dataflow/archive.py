"""The members of a tar archive as a stream: nothing is unpacked to disk, nothing large is held, nothing is trusted.

Reads ustar, GNU and pax archives. tarfile is not used because it reads a header of any claimed size into memory and
takes a damaged header for the archive's end.
"""

from collections.abc import Callable, Iterator

import msgspec

from dataflow.opened import Damage

_RECORD = 512
_HEADER_BYTES = 1_048_576
"""What a long name or a pax header may take; real ones take a few hundred bytes."""
_FILES = frozenset(b"0\x007")
_KINDS = {ord("1"): "a hard link", ord("2"): "a link", ord("3"): "a device", ord("4"): "a device", ord("6"): "a pipe"}


class Member(msgspec.Struct, frozen=True):
    """A file of an archive. name is as the archive has it, size its true size in bytes, content its first bytes."""

    name: str
    size: int
    content: bytes


class Passed(msgspec.Struct, frozen=True):
    """A member that is not read, and why."""

    name: str
    why: str


class _Damaged(Exception):
    """The archive cannot be followed further. Its text says why; never leaves this module."""


def members(stream: Iterator[bytes | Damage], keep: Callable[[str], int]) -> Iterator[Member | Passed | Damage]:
    """The archive's files in its order. keep says how many bytes of a file's content to give; below 0, to leave the
    file out. Damages of the stream and of the archive come last."""
    source = _Bytes(stream)
    try:
        yield from _members(source, keep)
    except _Damaged as damaged:
        own = Damage(f"{damaged} at byte {source.at} of the archive; the members before it are good")
        yield from source.damages or [own]
        return
    for _ in source.rest():
        pass
    yield from source.damages


def _members(source: "_Bytes", keep: Callable[[str], int]) -> Iterator[Member | Passed]:
    long_name = ""
    pax: dict[str, str] = {}
    while header := _header(source):
        kind, size = header[156], _number(header[124:136])
        if kind in b"LKxg":
            extension = _extension(source, size)
            if kind == ord("L"):
                long_name = _text(extension.rstrip(b"\0"))
            elif kind == ord("x"):
                pax = _pax(extension)
            continue
        name = pax.get("GNU.sparse.name") or pax.get("path") or long_name or _name(header)
        size = int(pax["size"]) if pax.get("size", "").isdecimal() else size
        sparse = kind == ord("S") or any(key.startswith("GNU.sparse.") for key in pax)
        long_name, pax = "", {}
        yield from _member(source, header, name, size, sparse, keep)


def _member(
    source: "_Bytes", header: bytes, name: str, size: int, sparse: bool, keep: Callable[[str], int]
) -> Iterator[Member | Passed]:
    kind = header[156]
    if kind == ord("5") or (kind in _FILES and name.endswith("/")):
        return
    if why := _KINDS.get(kind):
        yield Passed(name, f"{why}: not followed")
        return
    unsafe = _unsafe(name)
    if kind == ord("S"):
        _skip_sparse_map(source, header)
    if unsafe or sparse or kind not in _FILES:
        _skip(source, size)
        yield Passed(name, unsafe or ("a sparse file: not read" if sparse else "of an unknown kind: not read"))
        return
    wanted = keep(name)
    content = source.read(min(size, max(wanted, 0)))
    _skip(source, size - len(content), of=size)
    if wanted >= 0:
        yield Member(name, size, content)


def _unsafe(name: str) -> str:
    if name.startswith("/"):
        return "an absolute path: not read"
    return "a path with ..: not read" if ".." in name.split("/") else ""


def _header(source: "_Bytes") -> bytes:
    """The next member's header, nothing at the end."""
    header = source.read(_RECORD)
    if len(header) < _RECORD:
        raise _Damaged("it ends early (torn tail)")
    if not header.strip(b"\0"):
        return b""
    spaced = header[:148] + b" " * 8 + header[156:]
    signed = sum(byte - 256 if byte > 127 else byte for byte in spaced)
    if _number(header[148:156]) not in (sum(spaced), signed):
        raise _Damaged("a member's header is damaged")
    return header


def _number(octets: bytes) -> int:
    if octets[0] == 0x80:
        return int.from_bytes(octets[1:], "big")
    try:
        return int(octets.replace(b"\0", b" ").strip() or b"0", 8)
    except ValueError:
        raise _Damaged("a member's header holds no number where one belongs") from None


def _name(header: bytes) -> str:
    name = _text(header[:100].split(b"\0", 1)[0])
    prefix = _text(header[345:500].split(b"\0", 1)[0]) if header[257:263] == b"ustar\0" else ""
    return f"{prefix}/{name}" if prefix else name


def _text(octets: bytes) -> str:
    return octets.decode("utf-8", "replace")


def _extension(source: "_Bytes", size: int) -> bytes:
    if size > _HEADER_BYTES:
        raise _Damaged(f"a header claims {size} bytes")
    content = source.read(size)
    _skip(source, size - len(content), of=size)
    return content


def _pax(content: bytes) -> dict[str, str]:
    """The records `<length> <key>=<value>\\n` of a pax header, up to the first that is none."""
    found: dict[str, str] = {}
    at = 0
    while at < len(content):
        digits, space, _ = content[at : at + 20].partition(b" ")
        if not space or not digits.isdigit() or int(digits) <= len(digits):
            break
        key, _, value = content[at + len(digits) + 1 : at + int(digits) - 1].partition(b"=")
        found[_text(key)] = _text(value)
        at += int(digits)
    return found


def _skip_sparse_map(source: "_Bytes", header: bytes) -> None:
    more = header[482]
    while more:
        extension = source.read(_RECORD)
        if len(extension) < _RECORD:
            raise _Damaged("it ends early (torn tail)")
        more = extension[504]


def _skip(source: "_Bytes", size: int, of: int | None = None) -> None:
    """Passes the rest of a member and its padding."""
    whole = size if of is None else of
    source.skip(size + -whole % _RECORD)


class _Bytes:
    """A stream of chunks as bytes to be taken in order. at is the place of the next one."""

    def __init__(self, stream: Iterator[bytes | Damage]) -> None:
        self.at = 0
        self.damages: list[Damage] = []
        self._stream = stream
        self._held = b""
        self._from = 0

    def read(self, size: int) -> bytes:
        """So many bytes, fewer at the stream's end."""
        pieces = list(self._take(size))
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def skip(self, size: int) -> None:
        """Passes so many bytes. Raises _Damaged when there are fewer."""
        if sum(map(len, self._take(size))) < size:
            raise _Damaged("it ends early (torn tail)")

    def rest(self) -> Iterator[bytes]:
        """What follows the archive's end: padding, and the damages that only the stream's end shows."""
        while self._next():
            yield self._held

    def _take(self, size: int) -> Iterator[bytes]:
        while size > 0:
            if self._from == len(self._held) and not self._next():
                return
            piece = self._held[self._from : self._from + size]
            self._from += len(piece)
            self.at += len(piece)
            size -= len(piece)
            yield piece

    def _next(self) -> bool:
        """Holds the stream's next chunk, if there is one."""
        self._held, self._from = b"", 0
        for chunk in self._stream:
            if isinstance(chunk, bytes):
                self._held = chunk
                break
            self.damages.append(chunk)
        return bool(self._held)
