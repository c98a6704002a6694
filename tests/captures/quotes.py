"""The quote law: each quote of each record is found in the named file, at its line and byte offset."""

import gzip
import json
import re
import tarfile
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import zstandard

from tests.captures.expectations import evidence_in

Json = dict[str, Any]

ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]")
WILD = re.compile("…|\\[masked\\]")


class Opened:
    """A file of a capture, uncompressed, with the byte offset of each line."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    @cached_property
    def offsets(self) -> list[int]:
        """The offset of the first byte of each line."""
        return [0, *(found.end() for found in re.finditer(b"\n", self.data))]

    def line(self, number: int) -> tuple[int, str] | None:
        """Where a 1-based line begins, and its text; None when the file is shorter."""
        if not 1 <= number <= len(self.offsets):
            return None
        start = self.offsets[number - 1]
        end = self.data.find(b"\n", start)
        return start, self.data[start : len(self.data) if end < 0 else end].decode("utf-8", "replace")


class Library:
    """The files of one capture by the names that evidence uses."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.opened: dict[str, Opened | None] = {}

    def open(self, source: str) -> Opened | None:
        """The file, or None where there is none of that name."""
        if source not in self.opened:
            archive, inside, member = source.partition("!/")
            data = self._member(archive, member) if inside else _read(self.folder / source)
            self.opened[source] = None if data is None else Opened(data)
        return self.opened[source]

    def _member(self, archive: str, member: str) -> bytes | None:
        data = self.open(archive)
        if data is None:
            return None
        with tarfile.open(self.folder / archive) as tar:
            names = {entry.name.removeprefix("./"): entry for entry in tar if entry.isfile()}
            found = tar.extractfile(names[member]) if member in names else None
            return None if found is None else found.read()


def _read(path: Path) -> bytes | None:
    if path.is_file():
        return _unpacked(path)
    packed = [each for suffix in (".gz", ".zst") if (each := Path(f"{path}{suffix}")).is_file()]
    return _unpacked(packed[0]) if packed else None


def _unpacked(path: Path) -> bytes:
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes())
    if path.suffix == ".zst":
        return zstandard.ZstdDecompressor().decompressobj().decompress(path.read_bytes())
    return path.read_bytes()


def misquotes(folder: Path, records: list[Json]) -> list[str]:
    """Quotes that do not stand where they are said to."""
    library, seen, found = Library(folder), set(), []
    for evidence in evidence_in(records):
        key = (evidence["source"], evidence["line"], evidence["offset"], evidence["quote"])
        if key not in seen:
            seen.add(key)
            found += [f"{evidence['source']}:{evidence['line']}: {why}" for why in _faults(library, evidence)]
    return found


def _faults(library: Library, evidence: Json) -> Iterator[str]:
    opened = library.open(evidence["source"])
    if opened is None:
        yield "no such file"
        return
    place = opened.line(evidence["line"])
    if place is None:
        yield f"the file has only {len(opened.offsets)} lines"
        return
    start, text = place
    if start != evidence["offset"]:
        yield f"offset {evidence['offset']}, the line begins at {start}"
    if not any(is_quoted(evidence["quote"], each, whole) for each, whole in _readings(evidence["source"], text)):
        yield f"the line does not say {evidence['quote']!r} but {text[:300]!r}"


def _readings(source: str, text: str) -> Iterator[tuple[str, bool]]:
    """What may be quoted of a line: the line itself; of a poll record also any part of its decoded output."""
    yield text, True
    if not source.startswith("polls/"):
        return
    try:
        record = json.loads(text)
    except ValueError:
        return
    for key in ("stdout", "stderr", "error"):
        if isinstance(record.get(key), str):
            yield record[key], False


def is_quoted(quote: str, text: str, whole: bool) -> bool:
    """Whether a text holds a quote once both are plain; `…` and `[masked]` stand for anything. whole: nothing else may
    stand before or after it."""
    parts = (re.escape(_plain(part)) for part in WILD.split(quote))
    pattern = re.compile(".*?".join(parts), re.DOTALL)
    plain = _plain(text)
    return (pattern.fullmatch(plain) if whole else pattern.search(plain)) is not None


def _plain(text: str) -> str:
    """Without colours, control characters and spacing (a removed tab may have become a blank)."""
    return "".join(character for character in ANSI.sub("", text) if character.isprintable() and character != " ")
