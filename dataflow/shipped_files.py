"""The files of one live job as its shippers send them: the same to the job's feed as a capture that is followed.

What arrives waits until a tick says that all up to a time has come, so that what the feed reads is a function of the
stream and not of the moments at which it was heard.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from dataflow.blocks import BLOCK_BYTES
from dataflow.capture import Source, TrialTar
from dataflow.feed import first_date
from dataflow.homes import home_of, writer_of
from dataflow.identity import Mark
from dataflow.live_source import LiveSource
from dataflow.node_clocks import NodeClocks
from dataflow.polls import recorded_at
from dataflow.reads import Compression, compression_of
from dataflow.repeats import Repeats
from dataflow.rescan import Found
from dataflow.shelf import Shelf, has_no_room
from dataflow.shipped_polls import LAST, Place, ShippedPolls
from dataflow.shipped_tail import ShippedTail
from dataflow.trial_watch import TrialSeen
from dataflow.turns import Continued, Held
from dataflow.wire import Part, PollLine
from dataflow.wire_words import ArchiveSeen, DumpSeen, Failed, FolderSeen, LinkSeen, Listed, Tick, Told
from dataflow.wire_words import TrialSeen as TrialSent
from extractors.record import Block, SourceKind

_ANONYMOUS = "/"
_STRANGE = re.compile(r"[/\0]")
_HOST = 60
"""Characters of a host's name that stand before the name of a file."""
Seen = Listed | Told | TrialSent | ArchiveSeen | DumpSeen | FolderSeen | LinkSeen | Failed


def anonymous(host: str) -> str:
    """Who owns the files of a sender that names no session: another one than a shipper on the same host."""
    return f"{host}{_ANONYMOUS}"


class ShippedFiles:
    """See `Files`. Where two hosts send a file of the same name, that of the second is called `<host>:<name>`.

    shelf is where files lie that are read whole.
    """

    def __init__(
        self,
        shelf: Shelf,
        make: Callable[[Source, int], LiveSource],
        take: Callable[[LiveSource], None],
    ) -> None:
        self.entries: dict[str, LiveSource] = {}
        self.stands = True
        self.clocks = NodeClocks()
        self._shelf = shelf
        self._make, self._take = make, take
        self._tails: dict[str, ShippedTail] = {}
        self._fresh: dict[str, Source] = {}
        self._due: dict[str, None] = {}
        self._polls = ShippedPolls(self._tails)
        self._repeats = Repeats()
        self._owners: dict[str, str] = {}
        self._behind: dict[str, tuple[str, ...]] = {}
        self._trials: list[TrialSeen] = []
        self._archives: list[TrialTar] = []
        self._dumps: list[Source] = []
        self._failures: list[tuple[str, str]] = []

    @property
    def brisk(self) -> bool:
        """Whether something waits to be read."""
        return bool(self._due)

    @property
    def missed(self) -> bool:
        """Whether bytes of a file never came."""
        return any(tail.missed for tail in self._tails.values())

    @property
    def behind_us(self) -> int | None:
        """The time from which on not all was sent that is there; None where all was."""
        names = [name for each in self._behind.values() for name in each]
        return min((self.entries[n].newest_us if n in self.entries else 0 for n in names), default=None)

    def tail_of(self, source: Source, mark: Mark | None, block_bytes: int, line_bytes: int) -> ShippedTail:
        """The tail that takes what comes of a source."""
        tail = self._tails.get(source.relative)
        if tail is None:
            tail = self._tails[source.relative] = ShippedTail(source, mark, block_bytes, line_bytes)
        return tail

    def look(self, now_us: int) -> Found:
        """What came since the last look."""
        del now_us
        found = Found(
            tuple(self._dumps), (), tuple(self._archives), tuple(self._trials), tuple(sorted(set(self._failures)))
        )
        for each in (self._dumps, self._archives, self._trials, self._failures):
            each.clear()
        return found

    def held(self, now_us: int) -> Iterator[Held]:
        """What lines without end say now."""
        del now_us
        for name in self.entries:
            if self._tails[name].says:
                yield self._tails[name].says.pop()

    def read(self, now_us: int) -> None:
        """Reads what has come."""
        del now_us
        fresh, self._fresh = self._fresh, {}
        if fresh and not self.clocks.anchor_us:
            self.clocks = NodeClocks((self._first_date(fresh.values()), {}))
        for name, source in fresh.items():
            self.entries[name] = self._make(source, BLOCK_BYTES)
        due, self._due = self._due, {}
        for name in due:
            self._take(self.entries[name])

    def tick(self, host: str, tick: Tick) -> None:
        """A shipper says how far it is: polls up to there may be read."""
        for name, place in tick.polls.items():
            self._read_polls(self._own(host, name), place)
        self._behind[host] = tuple(self._own(host, name) for name in tick.behind)
        self.stands = tick.stands
        if tick.anchor_us:
            self.clocks = NodeClocks((tick.anchor_us, tick.skews))

    def has(self, host: str, polls: dict[str, Place]) -> bool:
        """Whether the polls before these places have come: they travel on another topic."""
        return all(self._polls.newest(self._own(host, name)) >= place for name, place in polls.items())

    def block(self, host: str, block: Block) -> None:
        """Takes lines."""
        tail = self._tail(host, block.source, None)
        tail.take(block)
        self._is_due(tail)

    def poll(self, host: str, poll: PollLine) -> None:
        """Takes a line of a poll file, to be read at the tick that counts it: it may be far ahead of the lines."""
        tail = self._tail(host, poll.source, SourceKind.POLL)
        self._polls.line(tail.source.relative, poll)

    def read_polls(self) -> None:
        """All polls may be read that came of senders that say no ticks."""
        for name in list(self._polls.lines):
            if self._owners.get(name, "").endswith(_ANONYMOUS):
                self._read_polls(name, LAST)

    def miss_polls(self, host: str, polls: dict[str, Place]) -> None:
        """What has not come of the polls before these places never will."""
        for name, place in polls.items():
            tail = self._tail(host, name, SourceKind.POLL)
            if self._polls.newest(tail.source.relative) < place:
                self._read_polls(tail.source.relative, place)
                tail.lacks(*place)
                self._is_due(tail)

    def part(self, host: str, part: Part) -> None:
        """Takes a piece of a file that is read whole; its first begins it anew. Raises OSError for want of room."""
        name = self._own(host, part.source)
        self._repeats.part(host, name, part.offset, part.data)
        try:
            if not part.offset:
                self._shelf.begin(name)
            self._shelf.put(name, part.offset, part.data, part.mtime_ns)
        except OSError as error:
            self._unkept(name, error)

    def seen(self, host: str, word: Seen) -> None:
        """Takes a word. Raises OSError for want of room."""
        try:
            self._seen(host, word)
        except OSError as error:
            self._unkept(word.piece.source if isinstance(word, Told) else word.relative, error)

    def _unkept(self, name: str, error: OSError) -> None:
        if has_no_room(error):
            raise error
        self._failures.append((name, f"what came of it can't be kept: {error.strerror}"))

    def _seen(self, host: str, word: Seen) -> None:
        if isinstance(word, Failed):
            self._failures.append((word.relative, word.why))
            return
        name = self._own(host, word.piece.source if isinstance(word, Told) else word.relative)
        path = str(self._shelf.path_of(name))
        if isinstance(word, Listed):
            self._list(Source(name, path, word.kind, word.compression, writer=word.writer))
        elif isinstance(word, Told):
            tail = self._tail(host, word.piece.source, None)
            if tail.source.kind is SourceKind.POLL:
                self._polls.word(name, word.piece)
                return
            piece, other = word.piece, None
            if isinstance(piece, Continued):
                other = self._tails.get(self._own(host, piece.from_source))
            if isinstance(piece, Continued) and other is not None:
                tail.goes_on(piece, other)
            else:
                tail.told(piece)
            self._is_due(tail)
        elif isinstance(word, TrialSent | ArchiveSeen | DumpSeen) and self._repeats.has(
            host, name, getattr(word, "ended", False)
        ):
            return
        elif isinstance(word, TrialSent):
            self._trials.append(TrialSeen(word.name, name, path, word.ended))
        elif isinstance(word, ArchiveSeen):
            self._archives.append(TrialTar(name, path, word.compression))
        elif isinstance(word, DumpSeen):
            self._dumps.append(Source(name, path, SourceKind.FLIGHT, compression_of(name), writer=writer_of(name)))
        elif isinstance(word, FolderSeen):
            self._shelf.folder_of(name)
        else:
            self._shelf.link(name)

    def begin_again(self, host: str) -> None:
        """A shipper counts from nothing: what it sends is new as far as is known."""
        for name, tail in self._tails.items():
            if self._owners.get(name) == host:
                tail.begin_again()
                self._due[name] = None

    def leave(self, host: str) -> None:
        """Nothing is waited for that this shipper has not sent."""
        self._behind.pop(host, None)

    def sources(self, host: str) -> Sequence[LiveSource]:
        """Those of one shipper."""
        return [entry for name, entry in self.entries.items() if self._owners.get(name) == host]

    def snapshot(self) -> tuple[Any, ...]:
        """All that `restore` needs."""
        entries = {name: (each.source, each.snapshot()) for name, each in self.entries.items()}
        tails = {name: tail.rest for name, tail in self._tails.items()}
        found = self._trials, self._archives, self._dumps, self._failures
        known = self._owners, self._behind, self.clocks.known, self.stands, self._repeats
        return entries, tails, self._fresh, self._due, (self._polls.lines, self._polls.words), known, found

    def restore(self, snapshot: tuple[Any, ...]) -> None:
        """Goes on where a snapshot was made. Raises whatever a broken one causes."""
        entries, tails, self._fresh, self._due, polls, known, found = snapshot
        self._polls.lines, self._polls.words = polls
        self._owners, self._behind, clocks, self.stands, self._repeats = known
        self.clocks = NodeClocks(clocks)
        self._trials, self._archives, self._dumps, self._failures = found
        for name, (source, kept) in entries.items():
            self.entries[name] = entry = self._make(source, BLOCK_BYTES)
            entry.restore(kept, BLOCK_BYTES)
        for name, source in self._fresh.items():
            self._tails[name] = ShippedTail(source)
        for name, rest in tails.items():
            self._tails[name].go_on(rest)

    def close(self) -> None:
        """Nothing is open."""

    def _first_date(self, sources: Iterable[Source]) -> int:
        """A moment near the beginning of what came, where no shipper of ours says one: that of the first poll, or the
        first in a log; 0 where there is none."""
        heads = [(each.kind, self._tails[each.relative].head) for each in sources]
        polls = [at_us for kind, head in heads if kind is SourceKind.POLL and (at_us := recorded_at(head))]
        return min(polls, default=0) or next((at for _, head in heads if (at := first_date(head))), 0)

    def _own(self, host: str, name: str) -> str:
        """The name of a host's file."""
        if self._owners.setdefault(name, host) == host:
            return name
        own = f"{_STRANGE.sub('_', host.removesuffix(_ANONYMOUS))[:_HOST]}:{name}"
        while self._owners.setdefault(own, host) != host:
            own = f"_{own}"
        return own

    def _tail(self, host: str, relative: str, kind: SourceKind | None) -> ShippedTail:
        """The tail of a file, which may never have been listed: by its name, then."""
        name = self._own(host, relative)
        if name not in self._tails:
            home = home_of(relative)
            found = kind or (home if isinstance(home, SourceKind) else SourceKind.AGGREGATED)
            self._list(Source(name, str(self._shelf.path_of(name)), found, Compression.NONE, writer=writer_of(name)))
        return self._tails[name]

    def _is_due(self, tail: ShippedTail) -> None:
        if tail.due:
            self._due[tail.source.relative] = None

    def _read_polls(self, name: str, upto: Place) -> None:
        self._polls.read(name, upto)
        self._is_due(self._tails[name])

    def _list(self, source: Source) -> None:
        if source.relative not in self._tails:
            self._tails[source.relative] = ShippedTail(source)
            self._fresh[source.relative] = source
