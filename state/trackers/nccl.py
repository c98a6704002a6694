"""Which communicators were half-built, and which ranks the others wait for. Serves gate A's half-built communicators.

A communicator is known by its group (the same on all ranks) and size. Once each rank has completed, it is folded to a
count. Lines of the aggregated log are de-duplicated across ranks, so only the ranks' own files prove an absence.

Bounds: 64 incomplete communicators, 4096 ranks each; 4096 ranks' forward markers.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import msgspec

from extractors.nccl import CommClosed, CommInit
from extractors.record import Evidence, Observation, SourceKind, SourceSeen
from extractors.trainer import ForwardEntered
from state.progress import Echoes
from state.tracker import AttemptStarted, ShowingTracker

INCOMPLETE_KEPT = 64
RANKS_KEPT = 4096
SHOWN_RANKS = 64


class Communicator(msgspec.Struct, frozen=True):
    """An incomplete communicator. started, unfinished and absent hold at most 64 ranks each.

    unfinished are ranks that began and never completed, absent those that never began; both are empty where only the
    aggregated log was read, which proves no absence. at_us is its newest line.
    """

    group: str
    ranks: int
    started: tuple[int, ...]
    completed_count: int
    unfinished: tuple[int, ...]
    absent: tuple[int, ...]
    at_us: int
    evidence: Evidence


class NcclView(msgspec.Struct, frozen=True):
    """communicators are the incomplete ones, oldest first; complete counts the others. behind are ranks whose forward
    marker is missing from the newest forward that most ranks entered, with forward as the evidence of its entry."""

    communicators: tuple[Communicator, ...] = ()
    complete: int = 0
    behind: tuple[int, ...] = ()
    forward: Evidence | None = None
    forward_us: int | None = None


class Group(msgspec.Struct):
    """What is known of an incomplete communicator. exact says that a rank's own file told of it."""

    group: str
    ranks: int
    evidence: Evidence
    at_us: int
    started: dict[int, int] = {}
    completed: dict[int, int] = {}
    told: int = 0
    exact: bool = False


class NcclTracker(ShowingTracker):
    """Groups by name and size; `members` finds the group of a pointer that is closed."""

    groups: dict[str, Group] = {}
    members: dict[str, str] = {}
    complete: int = 0
    aggregated: list[str] = []
    forwards: dict[int, int] = {}
    forward: Evidence | None = None
    forward_us: int | None = None
    echoes: Echoes = msgspec.field(default_factory=Echoes)
    shown: NcclView | None = None

    def _init(self, observation: Observation) -> None:
        init: CommInit = observation.signal
        if not init.group:
            return
        self.shown = None
        key = f"{init.group} of {init.ranks}"
        group = self.groups.get(key)
        if group is None:
            if init.complete:
                return
            group = self.groups[key] = Group(init.group, init.ranks, observation.evidence, observation.at_us)
            self._bound()
        group.evidence, group.at_us = observation.evidence, observation.at_us
        group.started.setdefault(init.rank, observation.at_us)
        self.members[f"{init.process} {init.comm}"] = key
        if observation.evidence.source not in self.aggregated:
            group.exact = True
        elif init.complete:
            group.told += observation.repeated
        if init.complete:
            group.completed[init.rank] = observation.at_us
            if max(len(group.completed), group.told) >= group.ranks:
                self._drop(key)
                self.complete += 1

    def _bound(self) -> None:
        if len(self.groups) > INCOMPLETE_KEPT:
            self._drop(next(iter(self.groups)))

    def _drop(self, key: str) -> None:
        del self.groups[key]
        self.members = {member: group for member, group in self.members.items() if group != key}

    def _closed(self, observation: Observation) -> None:
        closed: CommClosed = observation.signal
        key = self.members.get(f"{closed.process} {closed.comm}")
        if key is not None and closed.how == "destroy":
            self._drop(key)
            self.shown = None

    def _forward(self, observation: Observation) -> None:
        rank = observation.signal.rank
        if self.echoes.repeats(f"forward {rank}", observation):
            return
        if rank in self.forwards or len(self.forwards) < RANKS_KEPT:
            self.forwards[rank] = self.forwards.get(rank, 0) + 1
            self.forward, self.forward_us, self.shown = observation.evidence, observation.at_us, None

    def _home(self, observation: Observation) -> None:
        if observation.signal.kind not in (SourceKind.ACTOR, SourceKind.DAEMON):
            self.aggregated.append(observation.evidence.source)

    def _attempt(self, observation: Observation) -> None:
        self.groups, self.members, self.forwards = {}, {}, {}
        self.complete = 0
        self.forward = self.forward_us = self.shown = None

    def view(self) -> NcclView:
        """Incomplete communicators and ranks that are behind."""
        if self.shown is None:
            shown = tuple(_shown(group) for group in self.groups.values())
            self.shown = NcclView(shown, self.complete, self._behind(), self.forward, self.forward_us)
        return self.shown

    def _behind(self) -> tuple[int, ...]:
        newest = max(self.forwards.values(), default=0)
        late = tuple(rank for rank, count in sorted(self.forwards.items()) if count < newest)
        return late[:SHOWN_RANKS] if 2 * len(late) < len(self.forwards) else ()

    FOLDS: ClassVar[Mapping[type, Callable[[Any, Observation], None]]] = {
        CommInit: _init,
        CommClosed: _closed,
        ForwardEntered: _forward,
        SourceSeen: _home,
        AttemptStarted: _attempt,
    }


def _shown(group: Group) -> Communicator:
    started = tuple(sorted(group.started))
    unfinished = tuple(rank for rank in started if rank not in group.completed) if group.exact else ()
    absent = tuple(rank for rank in range(group.ranks) if rank not in group.started) if group.exact else ()
    return Communicator(
        group.group,
        group.ranks,
        started[:SHOWN_RANKS],
        len(group.completed),
        unfinished[:SHOWN_RANKS],
        absent[:SHOWN_RANKS],
        group.at_us,
        group.evidence,
    )
