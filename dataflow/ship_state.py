"""How far each capture was shipped, in `<store>/ship/`, a file for each; written anew in one step, at most once a
second. Beside it, in `<name>.contents`, which contents of its files were begun.

What stands there has arrived at the brokers: after a kill the shipping goes on from it, and what was under way comes
again. A file that can't be used is no loss but of time: all is sent anew, in a new session.
"""

import os
import time
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from secrets import token_hex

import msgspec

from dataflow.capture import Source, shown
from dataflow.homes import Writer
from dataflow.identity import Mark
from dataflow.reads import Compression
from dataflow.ship_contents import Noted, noted
from dataflow.tailing import Content
from extractors.extract import Skew
from extractors.record import SourceKind

SAVE_SECONDS = 1.0
_VERSION = 1


class KeptFile(msgspec.Struct, frozen=True):
    """A file, and how far it was sent."""

    path: str
    kind: SourceKind
    compression: Compression
    writer: Writer
    mark: Mark

    def source(self, relative: str) -> Source:
        """The file as it was known."""
        return Source(relative, self.path, self.kind, self.compression, writer=self.writer)


class Kept(msgspec.Struct, frozen=True):
    """How far a capture was shipped. topics are the identities of the topics that have it, by their names; rescan,
    clocks and past what its following must know; polls how far each poll file was sent, as (generation,
    offset); dumps and archives what was sent whole, archives with size and time."""

    captured: str
    job: str
    session: str
    anew: int = 0
    topics: dict[str, str] = {}
    files: dict[str, KeptFile] = {}
    rescan: bytes = b""
    clocks: tuple[int, dict[str, Skew]] = (0, {})
    past: dict[str, list[Content]] = {}
    polls: dict[str, tuple[int, int]] = {}
    dumps: list[str] = []
    archives: dict[str, tuple[int, int]] = {}
    now_us: int = 0
    version: int = _VERSION

    def contents(self, begun: dict[str, Noted]) -> dict[str, Noted]:
        """The newest contents of which something may have been sent, by the names of their files: of those that were
        begun, and those that arrived."""
        known = {name: noted(each.source(name), each.mark) for name, each in self.files.items() if each.mark.offset}
        return known | {name: each for name, each in begun.items() if name not in known or each[0] > known[name][0]}

    def begun_anew(self, topics: dict[str, str]) -> "Kept":
        """The same session before its first byte was sent, to topics that have nothing of it. A file that was replaced
        keeps the number of the replacement."""
        files = {
            name: msgspec.structs.replace(each, mark=Mark(generation=each.mark.generation))
            for name, each in self.files.items()
        }
        return Kept(self.captured, self.job, self.session, self.anew + 1, topics, files)


def new_session(captured: str, job: str, topics: dict[str, str]) -> Kept:
    """A session of which nothing was sent."""
    return Kept(captured, job, token_hex(8), topics=topics)


class Places:
    """The files in one folder, which this process alone uses. notes gets what people should hear."""

    def __init__(self, folder: Path, notes: list[str], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._folder = folder
        self._notes = notes
        self._monotonic = monotonic
        self._waiting: dict[str, Kept] = {}
        self._saved_at = float("-inf")
        self._told = ""

    def read(self, path: str) -> Kept | None:
        """How far the capture at a path was shipped; None where nothing of it is known that can be used."""
        place = self._place(path)
        try:
            kept = msgspec.msgpack.decode(place.read_bytes(), type=Kept)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError, ValueError) as error:
            self._notes.append(f"{place}: can't be used ({error}); {shown(path)} is sent anew")
            return None
        return kept if kept.version == _VERSION else None

    def contents(self, path: str) -> dict[str, Noted]:
        """The contents of a capture's files of which something may have been sent, by the files' names."""
        try:
            return msgspec.msgpack.decode(self._contents(path).read_bytes(), type=dict[str, Noted])
        except (OSError, msgspec.MsgspecError, ValueError):
            return {}

    def note(self, path: str, contents: dict[str, Noted]) -> None:
        """Writes them at once: something of them is about to be sent."""
        self._write(self._contents(path), msgspec.msgpack.encode(contents))

    def keep(self, path: str, kept: Kept) -> None:
        """Takes what has arrived; `save` writes it."""
        self._waiting[path] = kept

    def save(self, at_once: bool = False) -> None:
        """Writes what is new, unless it did so within the last second."""
        if not self._waiting or (not at_once and self._monotonic() - self._saved_at < SAVE_SECONDS):
            return
        self._saved_at = self._monotonic()
        for path, kept in list(self._waiting.items()):
            if not self._write(self._place(path), msgspec.msgpack.encode(kept)):
                return
            del self._waiting[path]

    def _write(self, place: Path, content: bytes) -> bool:
        """Replaces a file; whether it could."""
        new = place.with_name(f"{place.name}.new")
        try:
            new.write_bytes(content)
            new.replace(place)
        except OSError as error:
            self._tell(f"{self._folder}: can't be written: {error.strerror or error}; it is tried again")
            return False
        self._tell("")
        return True

    def _tell(self, words: str) -> None:
        if words != self._told and (words or self._told):
            self._notes.append(words or f"{self._folder}: can be written again")
        self._told = words

    def _contents(self, path: str) -> Path:
        place = self._place(path)
        return place.with_name(f"{place.name}.contents")

    def _place(self, path: str) -> Path:
        real = os.path.realpath(path)
        name = "".join(
            each if each.isascii() and (each.isalnum() or each in "-_") else "_"
            for each in shown(os.path.basename(real))
        )
        return self._folder / f"{name[:80]}-{blake2b(os.fsencode(real), digest_size=8).hexdigest()}"
