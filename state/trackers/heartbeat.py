"""What proves a living process and nothing more: the buffer's bar, host memory, benign waits. Serves gate B rules 2,
5, 6 and 7, and the notes of all gates.

The buffer's bar is read as fills: a fill begins where the bar falls back and ends with the next fall. Bounds: 256
rises of the open fill, memory of 512 nodes, 128 kinds of benign lines.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import msgspec

from extractors.harbor import BatchCompleted
from extractors.host import HostMemory
from extractors.record import Evidence, Observation, SourceKind, SourceSeen
from extractors.signal import Benign, Noted
from extractors.trainer import BufferProgress, RankMarker, RolloutBatch, StaleGroups
from state.policy import GENERATION_WINDOW, SECOND_US
from state.tracker import AttemptStarted, Tracker
from state.trackers.supply import Batches, GroupPace, Groups, OpenBatch

_RISES = 256
_NODES = 512
_KINDS = 128
_SAMPLED_HOMES = (SourceKind.AGGREGATED, SourceKind.POD, SourceKind.SLURM)
_SHORTEST_BASIS = 60.0
"""Seconds of filling below which no rate is taken from it."""


class Buffer(msgspec.Struct, frozen=True):
    """The generation buffer. held stands since since_us, first said by `first`; evidence is the newest line, read at
    newest_us; the fill began at fill_us. Rates are groups per second: earlier of the attempt's fills (of the open one
    its part before the last 10 min), recent of the last 10 min; None where there is too little to say."""

    held: int
    needed: int
    since_us: int
    first: Evidence
    newest_us: int
    evidence: Evidence
    fill_us: int
    earlier_rate: float | None = None
    recent_rate: float | None = None

    @property
    def full(self) -> bool:
        """Whether the trainer has all that it waits for."""
        return self.needed > 0 and self.held >= self.needed


class HostRam(msgspec.Struct, frozen=True):
    """Memory of one node, GiB. limit_gib is the cgroup's cap where there is one, else the node's size."""

    scope: str
    used_gib: float
    limit_gib: float | None
    at_us: int
    evidence: Evidence


class BenignSeen(msgspec.Struct, frozen=True):
    """How often a benign situation was printed (of stale groups, how many there were), and its newest line."""

    count: int
    evidence: Evidence


class HeartbeatView(msgspec.Struct, frozen=True):
    """buffer is None until a bar was read in this attempt; groups (by home) and batch tell of its filling without one;
    host_memory is by node, benign by kind. stale counts the
    groups that were thrown away as too stale in this attempt. noted counts what no rule weighs: setup and dynamics by
    their kind, the markers of ranks by their name."""

    buffer: Buffer | None = None
    groups: tuple[GroupPace, ...] = ()
    batch: OpenBatch | None = None
    stale: BenignSeen | None = None
    host_memory: dict[str, HostRam] = {}
    benign: dict[str, BenignSeen] = {}
    noted: dict[str, BenignSeen] = {}


class _Fill(msgspec.Struct):
    """The open fill: its rises as (time, held), and its newest line."""

    needed: int
    started_us: int
    rises: list[tuple[int, int]]
    first: Evidence
    evidence: Evidence
    newest_us: int
    own_us: int
    elapsed: float | None


class HeartbeatTracker(Tracker):
    """Keeps the open fill whole and the closed ones as two sums."""

    VERSION: ClassVar[int] = 2

    fill: _Fill | None = None
    closed_groups: int = 0
    closed_seconds: float = 0.0
    best_rate: float = 0.0
    sampled: list[str] = []
    groups: dict[str, Groups] = {}
    batches: Batches = msgspec.field(default_factory=Batches)
    now_us: int = 0
    memory: dict[str, HostRam] = {}
    benign: dict[str, BenignSeen] = {}
    noted: dict[str, BenignSeen] = {}
    stale: BenignSeen | None = None

    def on_attempt(self, seen: Observation) -> None:
        """Forgets the life before."""
        self.fill, self.closed_groups, self.closed_seconds, self.best_rate = None, 0, 0.0, 0.0
        self.memory, self.benign, self.noted, self.stale = {}, {}, {}, None
        self.groups, self.batches = {}, Batches()

    def on_buffer(self, seen: Observation) -> None:
        """Folds a line of the bar; a line older than the newest (an echo of it) is passed over."""
        bar: BufferProgress = seen.signal
        own_us = seen.evidence.at_us or seen.at_us
        fill = self.fill
        if fill is not None and own_us < fill.own_us:
            return
        if fill is None or bar.held < fill.rises[-1][1] or _restarted(bar, fill):
            self._close()
            rises = [(seen.at_us, bar.held)]
            at_us, line = seen.at_us, seen.evidence
            self.fill = _Fill(bar.needed, at_us, rises, line, line, at_us, own_us, bar.elapsed)
            return
        if bar.held > fill.rises[-1][1]:
            fill.rises = _thinned([*fill.rises, (seen.at_us, bar.held)])
            fill.first = seen.evidence
            self._remember_pace(fill)
        fill.needed, fill.evidence, fill.newest_us = bar.needed, seen.evidence, seen.at_us
        fill.own_us, fill.elapsed = own_us, bar.elapsed

    def _close(self) -> None:
        if self.fill is None:
            return
        self.closed_groups += self.fill.rises[-1][1] - self.fill.rises[0][1]
        self.closed_seconds += (self.fill.rises[-1][0] - self.fill.started_us) / SECOND_US

    def _remember_pace(self, fill: _Fill) -> None:
        """Keeps the best mean over all filling so far: a slow stretch must not become what it is measured by."""
        groups = self.closed_groups + fill.rises[-1][1] - fill.rises[0][1]
        seconds = self.closed_seconds + (fill.rises[-1][0] - fill.started_us) / SECOND_US
        if seconds >= GENERATION_WINDOW:
            self.best_rate = max(self.best_rate, groups / seconds)

    def on_source(self, seen: Observation) -> None:
        """Notes the sources in which Ray's de-duplication folds lines."""
        if seen.signal.kind in _SAMPLED_HOMES and seen.evidence.source not in self.sampled:
            self.sampled = [*self.sampled, seen.evidence.source][-_NODES:]

    def on_group(self, seen: Observation) -> None:
        """Counts a group that ended, in the home that says so."""
        home = "sampled" if seen.evidence.source in self.sampled else "whole"
        if home not in self.groups:
            self.groups[home] = Groups(seen.at_us, seen.evidence)
        self.groups[home].add(seen)

    def on_batch(self, seen: Observation) -> None:
        """Keeps the step's rollout batch."""
        self.batches.fold(seen)

    def on_memory(self, seen: Observation) -> None:
        """Keeps the newest memory of a node; a cgroup's cap binds before the node's size does."""
        said: HostMemory = seen.signal
        node = said.node or seen.origin.host or seen.origin.task or "unknown node"
        known = self.memory.get(node)
        if known is not None and known.scope == "cgroup" and said.scope != "cgroup" and known.limit_gib is not None:
            return
        self.memory.pop(node, None)
        self.memory[node] = HostRam(said.scope, said.used_gib, said.limit_gib, seen.at_us, seen.evidence)
        while len(self.memory) > _NODES:
            del self.memory[next(iter(self.memory))]

    def on_benign(self, seen: Observation) -> None:
        """Counts a benign line by its kind."""
        said: Benign = seen.signal
        _count(self.benign, said.kind, said.count * seen.repeated, seen.evidence)

    def on_noted(self, seen: Observation) -> None:
        """Counts what no rule weighs."""
        said: Noted = seen.signal
        _count(self.noted, said.kind, said.count * seen.repeated, seen.evidence)

    def on_marker(self, seen: Observation) -> None:
        """Counts a marker of a rank. Ray swallows copies of it, so that a rank's absence proves nothing."""
        said: RankMarker = seen.signal
        _count(self.noted, said.marker.value, seen.repeated, seen.evidence)

    def on_stale(self, seen: Observation) -> None:
        """Counts groups that were thrown away."""
        said: StaleGroups = seen.signal
        before = self.stale.count if self.stale is not None else 0
        self.stale = BenignSeen(before + said.count * seen.repeated, seen.evidence)

    def tick(self, now_us: int) -> bool:
        """Moves the end of the 10 minutes that the recent rate looks back on."""
        self.now_us = max(self.now_us, now_us)
        for groups in self.groups.values():
            groups.forget(self.now_us)
        return self.fill is not None or bool(self.groups)

    def view(self) -> HeartbeatView:
        """The heartbeat as it stands."""
        groups = tuple(groups.shown(self.now_us) for groups in self.groups.values())
        kept = (dict(self.memory), dict(self.benign), dict(self.noted))
        return HeartbeatView(self._buffer(), groups, self.batches.shown(), self.stale, *kept)

    def _buffer(self) -> Buffer | None:
        fill = self.fill
        if fill is None:
            return None
        now_us = max(self.now_us, fill.newest_us)
        recent, earlier_groups, earlier_seconds = _rates(fill, now_us)
        groups, seconds = self.closed_groups + earlier_groups, self.closed_seconds + earlier_seconds
        earlier = max(groups / seconds, self.best_rate) if seconds >= _SHORTEST_BASIS else None
        return Buffer(
            held=fill.rises[-1][1],
            needed=fill.needed,
            since_us=fill.rises[-1][0],
            first=fill.first,
            newest_us=fill.newest_us,
            evidence=fill.evidence,
            fill_us=fill.started_us,
            earlier_rate=earlier,
            recent_rate=recent,
        )

    FOLDS: ClassVar[Mapping[type, Callable[[Any, Observation], None]]] = {
        AttemptStarted: on_attempt,
        SourceSeen: on_source,
        BufferProgress: on_buffer,
        BatchCompleted: on_group,
        RolloutBatch: on_batch,
        HostMemory: on_memory,
        Benign: on_benign,
        Noted: on_noted,
        RankMarker: on_marker,
        StaleGroups: on_stale,
    }


def _count(seen: dict[str, BenignSeen], kind: str, count: int, line: Evidence) -> None:
    """Adds to a kind, which becomes the newest; the oldest go beyond 128."""
    known = seen.pop(kind, None)
    seen[kind] = BenignSeen((0 if known is None else known.count) + count, line)
    while len(seen) > _KINDS:
        del seen[next(iter(seen))]


def _restarted(bar: BufferProgress, fill: _Fill) -> bool:
    return bar.elapsed is not None and fill.elapsed is not None and bar.elapsed < fill.elapsed


def _rates(fill: _Fill, now_us: int) -> tuple[float | None, int, float]:
    """The rate of the last 10 min, and the groups and filling seconds of the open fill before them."""
    from_us = now_us - int(GENERATION_WINDOW * SECOND_US)
    before = [rise for rise in fill.rises if rise[0] <= from_us]
    if not before:
        return None, 0, 0.0
    recent = (fill.rises[-1][1] - before[-1][1]) / GENERATION_WINDOW
    return recent, before[-1][1] - before[0][1], (before[-1][0] - fill.started_us) / SECOND_US


def _thinned(rises: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """At most 256 rises: of the older half every second one goes, ends stay."""
    if len(rises) <= _RISES:
        return rises
    half = len(rises) // 2
    return rises[:half:2] + rises[half:]
