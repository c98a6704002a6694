"""A capture's files, followed: found as they come, tailed as they grow, told from each other when they are renamed."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import heappop, heappush
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from dataflow.blocks import block_bytes_of
from dataflow.capture import Source
from dataflow.families import Families, GoesOn
from dataflow.identity import Mark
from dataflow.node_clocks import NodeClocks
from dataflow.rescan import Found, Rescan
from dataflow.rounds import AnyTail, Rounds
from dataflow.tail import Tail
from dataflow.tailing import tail_of
from dataflow.turns import Held
from extractors.record import SourceKind

LEAST_QUIET_US, MOST_QUIET_US = 250_000, 3_000_000
"""Between these, a quiet file is polled within three fifths of the lateness."""
TURN_SECONDS = 0.2
"""How long one job may be read at a time, while others wait."""
PEEK_US = 10_000_000
"""How often a line that only grows is looked into."""
ENDLESS = 3
"""Looks at a line that still had no end before it is looked into."""
UNPEEKED = frozenset({SourceKind.POLL, SourceKind.FLIGHT, SourceKind.TRIAL})


class Followed(Protocol):
    """A file that is followed. newest_us is the time before which nothing more comes of it: who is behind is read in
    that order."""

    source: Source
    tail: AnyTail
    newest_us: int

    def snapshot(self) -> Any:
        """All that `restore` needs."""
        ...

    def restore(self, snapshot: Any, block_bytes: int) -> None:
        """Goes on where a snapshot was made."""
        ...


Entry = TypeVar("Entry", bound=Followed)
EntryOut = TypeVar("EntryOut", bound=Followed, covariant=True)


class Files(Protocol[EntryOut]):
    """The files of one job, wherever they come from: a capture on this machine, or a shipper."""

    @property
    def entries(self) -> Mapping[str, EntryOut]:
        """Those that are tailed, by name."""
        ...

    @property
    def clocks(self) -> NodeClocks:
        """By which clocks they are read."""
        ...

    @property
    def behind_us(self) -> int | None:
        """The time from which on not all was read that is there; None where all was."""
        ...

    @property
    def brisk(self) -> bool:
        """Whether something is being read, or grew lately."""
        ...

    @property
    def stands(self) -> bool:
        """Whether they can be asked for at all."""
        ...

    def tail_of(self, source: Source, mark: Mark | None, block_bytes: int, line_bytes: int) -> AnyTail:
        """A source's tail."""
        ...

    def look(self, now_us: int) -> Found:
        """What came and went since the last look."""
        ...

    def held(self, now_us: int) -> Iterable[Held]:
        """What lines say now that have no end."""
        ...

    def read(self, now_us: int) -> None:
        """Polls what is due, for a fraction of a second."""
        ...

    def snapshot(self) -> Any:
        """All that `restore` needs."""
        ...

    def restore(self, snapshot: Any) -> None:
        """Goes on where a snapshot was made."""
        ...

    def close(self) -> None:
        """Lets go of all."""
        ...


class Following(Generic[Entry]):
    """Follows the files of one capture. make gives the entry of a source that is new, with the size of its blocks;
    take polls an entry; asked hears how far a new content was read under another name (or None, that it wasn't).

    entries are the files by name; those that are read whole (flight recorders' dumps) are only listed in what a look
    finds.
    """

    def __init__(
        self,
        path: str,
        lateness_us: int,
        make: Callable[[Source, int], Entry],
        take: Callable[[Entry], None],
        asked: Callable[[Entry, GoesOn | None], None],
    ) -> None:
        self.path = path
        self.entries: dict[str, Entry] = {}
        self.tail_of = tail_of
        self._make, self._take, self._asked = make, take, asked
        self._rescan = Rescan(path)
        self._rounds = Rounds(min(max(LEAST_QUIET_US, lateness_us * 3 // 5), MOST_QUIET_US))
        self._families = Families()
        self._clocks = NodeClocks()
        self._reading_out: set[str] = set()
        self._kept: dict[str, tuple[Source, Any]] = {}
        self._behind: list[tuple[int, str]] = []
        self._looks_at: dict[str, tuple[int, int, int]] = {}
        self._peeked_us = 0

    @property
    def behind_us(self) -> int | None:
        """The time from which on not all was read that is there; None where all was."""
        return self._behind[0][0] if self._behind else None

    @property
    def behind(self) -> list[str]:
        """The files of which not all was read that is there."""
        return [name for _, name in self._behind]

    @property
    def brisk(self) -> bool:
        """Whether something is being read, or grew lately."""
        return bool(self._behind or self._rounds.is_brisk)

    @property
    def stands(self) -> bool:
        """Whether the capture is there."""
        return os.path.exists(self.path)

    @property
    def clocks(self) -> NodeClocks:
        """By which clocks its files are read."""
        return self._clocks

    def look(self, now_us: int) -> Found:
        """What came and went since the last look. Never raises OSError."""
        found = self._rescan.look(now_us)
        for name in [name for name in self._kept if name not in self._rescan.sources]:
            # It went while nobody watched: its content may stand under another name.
            self._add(self._kept[name][0])
        if found.new:
            self._clocks.look(self._rescan.sources.values(), now_us)
        for source in found.new:
            self._add(source)
        return found

    def read(self, now_us: int) -> None:
        """Polls what is due, then reads on in the file that is furthest behind, for a fraction of a second."""
        for tail in self._rounds.due(now_us):
            if not tail.more:
                self._poll(tail)
        until = time.monotonic() + TURN_SECONDS
        while self._behind and time.monotonic() < until:
            _, name = heappop(self._behind)
            entry = self.entries.get(name)
            if entry is not None:
                self._poll(entry.tail)

    def held(self, now_us: int) -> Iterator[Held]:
        """What lines without end say now, every ten seconds: a tqdm prints no newline for hours. Only a line that was
        looked at several times before has no end."""
        if now_us - self._peeked_us < PEEK_US:
            return
        self._peeked_us = now_us
        for tail in self._rounds.brisk():
            mark, name = tail.mark, tail.source.relative
            if mark.size <= mark.offset or not isinstance(tail, Tail) or tail.source.kind in UNPEEKED:
                continue
            offset, looks, size = self._looks_at.get(name, (-1, 0, 0))
            looks = looks + 1 if offset == mark.offset else 0
            self._looks_at[name] = (mark.offset, looks, mark.size)
            if looks >= ENDLESS and mark.size != size and b"\r" in (data := tail.held()):
                yield Held(name, mark.offset, mark.line, data.rstrip(b"\r") + b"\n")

    def snapshot(self) -> tuple[Any, ...]:
        """All that `restore` needs to go on from here."""
        sources = {name: (each.source, each.snapshot()) for name, each in self.entries.items()} | self._kept
        return sources, self._rescan.snapshot(), self._clocks.known, self._families.past

    def restore(self, snapshot: tuple[Any, ...]) -> None:
        """Goes on where a snapshot was made. Raises whatever a broken one causes."""
        kept, told, clocks, past = snapshot
        self._kept = {name: (self._here(source), each) for name, (source, each) in kept.items()}
        self._rescan = Rescan(self.path, told)
        self._clocks, self._families = NodeClocks(clocks), Families(past)

    def close(self) -> None:
        """Lets go of all files."""
        self._rounds.close()

    def _here(self, source: Source) -> Source:
        """A source as this path leads to it: that of a bare log may have been relative to another folder."""
        return source if os.path.isabs(source.path) else msgspec.structs.replace(source, path=self.path)

    def _add(self, source: Source) -> None:
        name, known = source.relative, self.entries.get(source.relative)
        if source.kind is SourceKind.FLIGHT or (known is not None and known.source.path == source.path):
            return
        if known is not None:
            self._read_out(name)
            self._kept[name] = (source, known.snapshot())
        block_bytes = block_bytes_of(len(self._rescan.sources))
        added = self._make(source, block_bytes)
        if name in self._kept:
            added.restore(self._kept.pop(name)[1], block_bytes)
        added.tail.elsewhere = lambda: self._elsewhere(added)
        self.entries[name] = added
        self._families.add(name)
        self._rounds.add(added.tail)

    def _elsewhere(self, entry: Entry) -> Mark | None:
        """How far a content was read under another name of its log, which is read to its end first."""
        name = entry.source.relative
        self._reading_out.add(name)
        found = self._families.goes_on(entry.source, self._rounds.tails, self._read_out)
        self._reading_out.discard(name)
        if found is not None and found.current:
            self.entries[found.content.name].tail.close()
        self._asked(entry, found)
        return None if found is None else found.mark

    def _read_out(self, name: str) -> None:
        """Reads what is left of a file."""
        entry = self.entries[name]
        if name in self._reading_out:
            return
        self._reading_out.add(name)
        self._take(entry)
        while entry.tail.more:
            self._take(entry)
        self._reading_out.discard(name)

    def _poll(self, tail: AnyTail) -> None:
        entry = self.entries[tail.source.relative]
        self._take(entry)
        if tail.more:
            heappush(self._behind, (entry.newest_us, tail.source.relative))
