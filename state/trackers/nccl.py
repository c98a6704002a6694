"""Which communicators were half-built, and which ranks the others wait for. Serves gate A's half-built communicators.

A communicator is known by its commId, which is the same on all ranks. Where NCCL prints none (2.17, splits from 2.23
on), ranks are gathered by colour and size: how many communicators are whole is right, and an absent rank is
told only where one communicator alone can be meant. Once each rank has completed, a communicator is folded to a count.
Lines of the aggregated log are de-duplicated across ranks, so only the ranks' own files prove an absence.

Bounds: 64 incomplete communicators with a commId and 64 without, 65,536 ranks each (two bits a rank); 256 pointers a
communicator, 512 commIds of complete ones; 256 cut lines; 4096 ranks' forward markers.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar
from zlib import crc32

import msgspec

from extractors.nccl import CommClosed, CommCut, CommInit, CommTorn
from extractors.record import Evidence, Observation, SourceKind, SourceSeen
from extractors.trainer import ForwardEntered
from state.progress import Echoes
from state.tracker import AttemptStarted, ShowingTracker
from state.trackers.rank_bits import RankBits

INCOMPLETE_KEPT = 64
FINISHED_KEPT = 512
CUT_KEPT = 256
RANKS_KEPT = 65_536
MEMBERS_KEPT = 256
MARKED_KEPT = 4096
SHOWN_RANKS = 64


class Communicator(msgspec.Struct, frozen=True):
    """An incomplete communicator. started, unfinished and absent hold at most 64 ranks each; group is "" where NCCL
    printed nothing that tells it from others of its size.

    unfinished are ranks that began and never completed, absent those that never began. Both are empty where that is
    unknown: only the aggregated log was read, lines of as many ranks are torn or cut (torn counts them), only rank 0
    speaks, or the head of the file is missing. at_us is its newest line.
    """

    group: str
    ranks: int
    started: tuple[int, ...]
    completed_count: int
    unfinished: tuple[int, ...]
    absent: tuple[int, ...]
    at_us: int
    evidence: Evidence
    torn: int = 0


class NcclView(msgspec.Struct, frozen=True):
    """communicators are the incomplete ones, oldest first; complete counts the others. behind are ranks whose forward
    marker is missing from the newest forward that most ranks entered, with forward as the evidence of its entry."""

    communicators: tuple[Communicator, ...] = ()
    complete: int = 0
    behind: tuple[int, ...] = ()
    forward: Evidence | None = None
    forward_us: int | None = None


class Group(msgspec.Struct):
    """What is known of an incomplete communicator. ranks is 0 until a whole line tells it; told counts completions in
    the aggregated log with their swallowed copies; exact says that a rank's own file told of it; members are checksums
    of process and pointer; torn counts the torn lines of its first home, begun and completed."""

    group: str
    ranks: int
    evidence: Evidence
    at_us: int
    begun: RankBits = msgspec.field(default_factory=RankBits)
    completed: RankBits = msgspec.field(default_factory=RankBits)
    members: set[int] = set()
    told: int = 0
    exact: bool = False
    torn: list[int] = msgspec.field(default_factory=lambda: [0, 0])
    torn_in_own: bool | None = None

    def add(self, init: CommInit, observation: Observation, member: int, own: bool) -> None:
        """Folds a whole line."""
        self.evidence, self.at_us, self.ranks = observation.evidence, observation.at_us, init.ranks
        if len(self.members) < MEMBERS_KEPT:
            self.members.add(member)
        self.exact = self.exact or own
        if not init.complete:
            self.begun.add(init.rank)
            return
        self.completed.add(init.rank)
        if not own:
            self.told += observation.repeated

    def is_complete(self) -> bool:
        """Whether each rank completed; a torn line stands for one of them."""
        return 0 < self.ranks <= max(self.completed.count + self.torn[1], self.told)


class NcclTracker(ShowingTracker):
    """groups are the incomplete ones by commId, finished the newest complete ones' (their lines come again from a
    second home); loose are those without, by home, colour and size, and loose_complete counts them by home. cut are
    the newest lines whose ends are lost."""

    VERSION: ClassVar[int] = 3

    groups: dict[str, Group] = {}
    finished: dict[str, int] = {}
    cut: list[CommCut] = []
    complete: int = 0
    loose: dict[str, list[Group]] = {}
    loose_complete: dict[bool, int] = {}
    aggregated: set[str] = set()
    forwards: dict[int, int] = {}
    forward: Evidence | None = None
    forward_us: int | None = None
    echoes: Echoes = msgspec.field(default_factory=Echoes)
    shown: NcclView | None = None

    def _init(self, observation: Observation) -> None:
        init: CommInit = observation.signal
        if init.rank >= init.ranks or init.ranks > RANKS_KEPT or init.group in self.finished:
            return
        self.shown = None
        own = observation.evidence.source not in self.aggregated
        member = crc32(f"{init.process} {init.comm}".encode())
        if not init.group.startswith("0x"):
            self._gather(init, observation, member, own)
            return
        group = self._group(init.group, observation)
        group.add(init, observation, member, own)
        self._settle(init.group, group)

    def _group(self, name: str, observation: Observation) -> Group:
        group = self.groups.get(name)
        if group is None:
            group = self.groups[name] = Group(name, 0, observation.evidence, observation.at_us)
            if len(self.groups) > INCOMPLETE_KEPT:
                del self.groups[next(iter(self.groups))]
        return group

    def _settle(self, name: str, group: Group) -> None:
        if group.is_complete():
            del self.groups[name]
            self.complete += 1
            self.finished[name] = group.ranks
            if len(self.finished) > FINISHED_KEPT:
                del self.finished[next(iter(self.finished))]

    def _gather(self, init: CommInit, observation: Observation, member: int, own: bool) -> None:
        """A line without a commId: the communicator of its pointer, else the first of its colour and size that lacks
        the rank."""
        name = f"{own:d} {init.group} of {init.ranks}"
        alike = self.loose.setdefault(name, [])
        group = next((one for one in alike if member in one.members and _lacks(one, init)), None)
        group = group or next((one for one in alike if _lacks(one, init)), None)
        if group is None:
            group = Group(init.group, init.ranks, observation.evidence, observation.at_us)
            alike.append(group)
            self._bound()
        group.add(init, observation, member, own)
        if group.is_complete():
            alike.remove(group)
            self.loose_complete[own] = self.loose_complete.get(own, 0) + 1
        if not alike:
            self.loose.pop(name, None)

    def _bound(self) -> None:
        if sum(map(len, self.loose.values())) > INCOMPLETE_KEPT:
            oldest = next(iter(self.loose))
            del self.loose[oldest][0]
            if not self.loose[oldest]:
                del self.loose[oldest]

    def _torn(self, observation: Observation) -> None:
        torn: CommTorn = observation.signal
        if torn.group in self.finished:
            return
        self.shown = None
        group = self._group(torn.group, observation)
        own = observation.evidence.source not in self.aggregated
        if group.torn_in_own is None:
            group.torn_in_own = own
        if group.torn_in_own is own:
            group.torn[torn.complete] += observation.repeated
        self._settle(torn.group, group)

    def _cut(self, observation: Observation) -> None:
        if observation.signal.rank < observation.signal.ranks:
            self.cut, self.shown = [*self.cut, observation.signal][-CUT_KEPT:], None

    def _closed(self, observation: Observation) -> None:
        closed: CommClosed = observation.signal
        if closed.how != "destroy":
            return
        member = crc32(f"{closed.process} {closed.comm}".encode())
        for name in [name for name, group in self.groups.items() if member in group.members]:
            del self.groups[name]
            self.shown = None
        for name, alike in list(self.loose.items()):
            rest = [group for group in alike if member not in group.members]
            if len(rest) == len(alike):
                continue
            self.shown = None
            if rest:
                self.loose[name] = rest
            else:
                del self.loose[name]

    def _forward(self, observation: Observation) -> None:
        rank = observation.signal.rank
        if self.echoes.repeats(f"forward {rank}", observation):
            return
        if rank in self.forwards or len(self.forwards) < MARKED_KEPT:
            self.forwards[rank] = self.forwards.get(rank, 0) + 1
            self.forward, self.forward_us, self.shown = observation.evidence, observation.at_us, None

    def _home(self, observation: Observation) -> None:
        if observation.signal.kind not in (SourceKind.ACTOR, SourceKind.DAEMON):
            self.aggregated.add(observation.evidence.source)

    def _attempt(self, observation: Observation) -> None:
        self.groups, self.finished, self.loose, self.loose_complete, self.forwards = {}, {}, {}, {}, {}
        self.complete, self.cut = 0, []
        self.forward = self.forward_us = self.shown = None

    def view(self) -> NcclView:
        """Incomplete communicators and ranks that are behind."""
        if self.shown is None:
            shown = tuple(_shown(group, True, self.cut) for group in self.groups.values() if group.ranks)
            loose, complete = self._gathered()
            self.shown = NcclView(
                (*shown, *loose), self.complete + complete, self._behind(), self.forward, self.forward_us
            )
        return self.shown

    def _gathered(self) -> tuple[tuple[Communicator, ...], int]:
        """The communicators without a commId, and how many are whole: of the ranks' own files where they tell any,
        since the aggregated log holds a sample of the same lines."""
        own = True in self.loose_complete or any(name.startswith("1") for name in self.loose)
        shown = tuple(
            _shown(group, len(alike) == 1, self.cut)
            for name, alike in self.loose.items()
            if name.startswith("1") is own
            for group in alike
        )
        return shown, self.loose_complete.get(own, 0)

    def _behind(self) -> tuple[int, ...]:
        newest = max(self.forwards.values(), default=0)
        late = tuple(rank for rank, count in sorted(self.forwards.items()) if count < newest)
        return late[:SHOWN_RANKS] if 2 * len(late) < len(self.forwards) else ()

    FOLDS: ClassVar[Mapping[type, Callable[[Any, Observation], None]]] = {
        CommInit: _init,
        CommTorn: _torn,
        CommCut: _cut,
        CommClosed: _closed,
        ForwardEntered: _forward,
        SourceSeen: _home,
        AttemptStarted: _attempt,
    }


def _lacks(group: Group, init: CommInit) -> bool:
    """Whether the line can be the next one of its rank in this communicator."""
    return init.rank not in group.completed and (init.complete or init.rank not in group.begun)


def _cut_of(group: Group, lines: Sequence[CommCut]) -> RankBits:
    """The ranks whose cut lines may be of this communicator."""
    found = RankBits()
    for line in lines:
        if line.ranks == group.ranks and group.group.startswith(line.group) and line.rank not in group.completed:
            found.add(line.rank)
    return found


def _shown(group: Group, alone: bool, lines: Sequence[CommCut]) -> Communicator:
    """What can be said of a communicator. Who completed without a START that is on file shows that heads are missing;
    where all that began have completed the others were not heard, since no rank completes without them. Of a rank whose
    line is cut it is known that it began, and no more."""
    cut_ranks = _cut_of(group, lines)
    started = group.begun.union(group.completed).union(cut_ranks)
    stuck = group.begun.without(group.completed).without(cut_ranks)
    unfinished = group.exact and group.torn[1] == 0
    cut = group.completed.without(group.begun).count > 0
    heard = stuck.count > 0 and not cut and group.torn[0] + cut_ranks.count == 0 and started.first(2) != (0,)
    return Communicator(
        group.group,
        group.ranks,
        started.first(SHOWN_RANKS),
        group.completed.count,
        stuck.first(SHOWN_RANKS) if unfinished else (),
        started.inverse(group.ranks).first(SHOWN_RANKS) if group.exact and alone and heard else (),
        group.at_us,
        group.evidence,
        sum(group.torn) + cut_ranks.count,
    )
