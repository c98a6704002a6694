"""One live capture that is shipped: what its files say is sent as it comes, and with each round how far all is sent."""

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO

import msgspec

from dataflow.blocks import LINE_BYTES
from dataflow.bundles import bundled
from dataflow.capture import Source, shown
from dataflow.families import PAST, GoesOn
from dataflow.following import TURN_SECONDS, Following
from dataflow.identity import Mark
from dataflow.kafka import Topic
from dataflow.outbox import Outbox
from dataflow.poll_files import RECORD_BYTES
from dataflow.rescan import Found
from dataflow.rounds import AnyTail
from dataflow.ship_contents import Noted, gone_on, noted, stands
from dataflow.ship_state import Kept, KeptFile, Places
from dataflow.ship_whole import Whole
from dataflow.tailing import tail_of
from dataflow.turns import Continued, Gap, Piece, Rotated
from dataflow.wire import Carried, Part, PollLine, Wire
from dataflow.wire_words import Begun, Failed, Listed, Stopped, Tick, Told, Word
from extractors.record import Block, SourceKind

LOOK_US = 1_000_000
"""How often a capture is looked at for what came and went."""
LATENESS_US = 1_600_000
"""Quiet files are polled within three fifths of this."""
AGAIN_US = 600_000_000
"""How often it is said again what the capture is and which files it has, for those who come late."""
TICK_SECONDS = 2.0
"""Within which each capture is heard of, though nothing is new. A clock for drills may run faster."""
KEEP_SECONDS = 0.5
"""From one note of how far all was sent to the next."""


Ready = tuple[Topic, Carried, tuple[str, Kept] | None]
"""A message that is to be sent, and what is known to be kept when it has arrived."""


class ShippedFile:
    """A file that is tailed, from a mark on. newest_us orders the files that are behind: who was read last is read on
    last. begun is the content that was begun last before a kill; continued are contents that turned out to go on
    others, until that is said."""

    def __init__(self, source: Source, block_bytes: int, mark: Mark, begun: Noted | None) -> None:
        self.source = source
        self.newest_us = 0
        self.begun = begun
        self.continued: list[Continued] = []
        self.restore(mark, block_bytes)

    def snapshot(self) -> Mark:
        """How far it was read."""
        return self.tail.mark

    def restore(self, snapshot: Mark, block_bytes: int) -> None:
        """Goes on at a mark."""
        longest = RECORD_BYTES if self.source.kind is SourceKind.POLL else LINE_BYTES
        self.tail: AnyTail = tail_of(self.source, snapshot, block_bytes, longest)


@dataclass(frozen=True, slots=True)
class Means:
    """What shipments have in common: the name of the host, where messages go, what is kept, what people should hear,
    and whether what a round says is sent as one message."""

    host: str
    outbox: Outbox
    places: Places
    notes: list[str]
    monotonic: Callable[[], float] = time.monotonic
    bundles: bool = False


class Shipment:
    """A capture's shipping, from where kept says. contents are those of its files of which something may have been
    sent; facts is the text of job.toml, or None. The notes of messages that arrived are (path, Kept)."""

    def __init__(self, path: str, kept: Kept, contents: dict[str, Noted], facts: str | None, means: Means) -> None:
        self.path = path
        self.kept = kept
        self._contents, self._begun_before = contents, dict(contents)
        self._facts = facts
        self._means = means
        self._wire = Wire(means.host, kept.session)
        self._polls = dict(kept.polls)
        self._whole = Whole(set(kept.dumps), dict(kept.archives))
        self._rescan = kept.rescan
        self._ready: list[Ready] = []
        self._now_us = self._reads = 0
        self._said_us: int | None = None
        self._looked_us: int | None = None
        self._is_new = self._is_unkept = self._is_unnoted = False
        self._ticked = (float("-inf"), 0)
        self._kept_at = float("-inf")
        self._following = Following(path, LATENESS_US, self._make, self._take, self._asked)
        self._restore(kept)

    def _restore(self, kept: Kept) -> None:
        files = {}
        for name, each in kept.files.items():
            source = each.source(name)
            mark = gone_on(source, each.mark, self._begun_before.get(name))
            files[name] = source, mark
        past = {name: deque(each, maxlen=PAST) for name, each in kept.past.items()}
        self._following.restore((files, kept.rescan, kept.clocks, past))

    @property
    def brisk(self) -> bool:
        """Whether there is more to be read at once."""
        return bool(self._following.behind or self._whole.waiting)

    def declare(self, facts: str | None) -> None:
        """job.toml says something else."""
        if facts != self._facts:
            self._facts = facts
            self._begun()

    def round(self, now_us: int) -> None:
        """Sends what is new, for a fraction of a second at most, unless too much is on its way. Never raises
        OSError."""
        self._now_us = now_us
        if self._means.outbox.is_full:
            return
        if self._said_us is None or now_us - self._said_us >= AGAIN_US:
            self._said_us = now_us
            self._begun()
            for entry in self._following.entries.values():
                self._word(_listed(entry.source))
        if self._looked_us is None or now_us - self._looked_us >= LOOK_US:
            self._looked_us = now_us
            self._found(self._following.look(now_us))
            for held in self._following.held(now_us):
                self._word(Told(held))
        until = self._means.monotonic() + TURN_SECONDS
        for piece in self._whole.pieces(lambda: self._means.monotonic() < until and not self._means.outbox.is_full):
            self._send(Topic.LINES, self._wire.part(piece) if isinstance(piece, Part) else self._wire.word(piece))
        self._following.read(now_us)
        self._tick(now_us)
        self._go()

    def stop(self, now_us: int) -> None:
        """Says that the shipping ends, and from where it will go on."""
        self._send(Topic.LINES, self._wire.word(Stopped(now_us)), (self.path, self.how_far(now_us)))
        self._go()

    def close(self) -> None:
        """Lets go of all files."""
        self._following.close()

    def _begun(self) -> None:
        captured = shown(self.path)
        self._word(Begun(captured, self._facts, False, os.path.isfile(self.path), LATENESS_US, self.kept.anew))

    def _found(self, found: Found) -> None:
        for source in found.new:
            self._word(_listed(source))
        for relative, why in found.failures:
            self._means.notes.append(f"{relative}: {why}")
            self._word(Failed(relative, why))
        self._whole.found(found)

    def _make(self, source: Source, block_bytes: int) -> ShippedFile:
        begun = self._begun_before.get(source.relative)
        return ShippedFile(source, block_bytes, gone_on(source, None, begun), begun)

    def _take(self, file: ShippedFile) -> None:
        """Sends what is new of a file."""
        self._reads += 1
        file.newest_us = self._reads
        before = file.tail.mark
        pieces = file.tail.poll(self._now_us)
        now = file.tail.mark
        if now.offset and (not before.offset or now.generation != before.generation):
            self._contents[file.source.relative], self._is_unnoted = noted(file.source, now), True
        continued, file.continued = file.continued, []
        for piece in _in_order(pieces, continued):
            if isinstance(piece, Block):
                self._block(file, piece)
            elif not isinstance(piece, Gap):
                self._word(Told(piece))
                if isinstance(piece, Rotated):
                    self._kept_at = float("-inf")

    def _asked(self, file: ShippedFile, found: GoesOn | None) -> None:
        """A content turned out to be new, or to go on what was read under another name. Where it is not the one that
        had its number before a kill, it gets the next."""
        mark, begun = file.tail.mark, file.begun
        if begun is not None and mark.generation == begun[0] and not stands(file.source, begun[1]):
            file.tail.mark = msgspec.structs.replace(mark, generation=begun[0] + 1)
        if found is not None:
            before = found.content
            here = file.source.relative, file.tail.mark.generation
            file.continued.append(Continued(here[0], before.name, before.mark.generation, here[1]))

    def _block(self, file: ShippedFile, block: Block) -> None:
        """Sends lines, or polls one by one."""
        if file.source.kind is not SourceKind.POLL:
            self._send(Topic.LINES, self._wire.block(block))
            return
        begins = block.offset
        for number, line in enumerate(BytesIO(block.data), block.line):
            if line.strip():
                poll = PollLine(block.source, begins, number, line.removesuffix(b"\n"), block.generation)
                self._send(Topic.POLLS, self._wire.poll(poll))
                self._polls[block.source] = (block.generation, begins + len(line))
            begins += len(line)

    def _tick(self, now_us: int) -> None:
        """Says how far all was sent, where something was, or it is time to be heard of. Nothing is piled up for brokers
        that are away."""
        at, (ticked_at, ticked_us) = self._means.monotonic(), self._ticked
        is_time = at - ticked_at >= TICK_SECONDS or now_us - ticked_us >= 1_000_000 * TICK_SECONDS
        if not self._is_new and (not is_time or self._means.outbox.trouble):
            return
        anchor_us, skews = self._following.clocks.known
        behind = [*self._following.behind, *self._whole.waiting]
        word = Tick(now_us, behind, self._polls, anchor_us, skews, self._following.stands)
        self._is_unkept = self._is_unkept or self._is_new
        note = None
        if self._is_unkept and at - self._kept_at >= KEEP_SECONDS:
            note, self._kept_at, self._is_unkept = (self.path, self.how_far(now_us)), at, False
        self._send(Topic.LINES, self._wire.word(word), note)
        self._ticked, self._is_new = (at, now_us), False

    def how_far(self, now_us: int) -> Kept:
        """How far all was sent. What a look found counts when all of it was sent."""
        sources, rescan, clocks, past = self._following.snapshot()
        if not self._whole.waiting:
            self._rescan = rescan
        files = {
            name: KeptFile(source.path, source.kind, source.compression, source.writer, mark)
            for name, (source, mark) in sources.items()
        }
        return msgspec.structs.replace(
            self.kept,
            files=files,
            rescan=self._rescan,
            clocks=clocks,
            past={name: list(each) for name, each in past.items()},
            polls=dict(self._polls),
            dumps=sorted(self._whole.dumps),
            archives=dict(self._whole.archives),
            now_us=now_us,
        )

    def _word(self, word: Word) -> None:
        self._send(Topic.LINES, self._wire.word(word))

    def _send(self, topic: Topic, carried: Carried, note: tuple[str, Kept] | None = None) -> None:
        self._ready.append((topic, carried, note))
        self._is_new = True

    def _go(self) -> None:
        """Sends what is ready; which contents it is of is noted before."""
        if self._is_unnoted:
            self._means.places.note(self.path, self._contents)
            self._is_unnoted = False
        ready, self._ready = self._ready, []
        for topic, carried, note in self._bundled(ready) if self._means.bundles else ready:
            self._means.outbox.send(topic, self.kept.job, carried, note)

    def _bundled(self, ready: list[Ready]) -> Iterator[Ready]:
        """The polls, then the lines and words in bundles; the last one has the note of the tick at their end."""
        yield from (each for each in ready if each[0] is Topic.POLLS)
        lines = [each for each in ready if each[0] is Topic.LINES]
        note = next((each[2] for each in reversed(lines) if each[2] is not None), None)
        bundles = bundled([each[1] for each in lines])
        for number, carried in enumerate(bundles, 1):
            yield Topic.LINES, carried, note if number == len(bundles) else None


def _listed(source: Source) -> Listed:
    return Listed(source.relative, source.kind, source.compression, source.writer)


def _in_order(pieces: Sequence[Piece], continued: list[Continued]) -> Iterator[Piece | Continued]:
    """The pieces of a file, and before the first byte of a content that it goes on another one."""
    turns = {piece.generation for piece in pieces if isinstance(piece, Rotated)}
    yield from (each for each in continued if each.generation not in turns)
    for piece in pieces:
        yield piece
        if isinstance(piece, Rotated):
            yield from (each for each in continued if each.generation == piece.generation)
