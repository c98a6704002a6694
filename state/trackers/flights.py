"""Which rank did not enter a collective that others wait in, by the dumps of PyTorch's flight recorder or an analyser.

Serves the words of gate A. Bounds: 4,096 ranks' dumps of 64 groups; 16 reports of an analyser.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import msgspec

from extractors.flight_recorder import FlightAnalysed, FlightGroup, FlightRecorded
from extractors.record import Evidence, Observation
from state.policy import SECOND_US
from state.tracker import AttemptStarted, ShowingTracker

DUMPS_KEPT = 4_096
REPORTS_KEPT = 16
SHOWN = 8
Key = tuple[str, int]
"""A process group: its name and its ranks' checksum."""
OLDER_US = 1800 * SECOND_US
"""A dump whose newest operation is so much older than what others wait in was written in an earlier trouble."""


class Absence(msgspec.Struct, frozen=True):
    """Ranks that did not enter a collective of a group, in which the waiting ones stand. sequence is None where it is
    not said."""

    missing: tuple[int, ...]
    group: str
    operation: str
    sequence: int | None
    waiting: tuple[int, ...]
    evidence: Evidence


class FlightsView(msgspec.Struct, frozen=True):
    """absences are the collectives that the job waits in, the first one that was entered first; dumps counts the ranks
    whose dump was read."""

    absences: tuple[Absence, ...] = ()
    dumps: int = 0


class Flight(msgspec.Struct):
    """One rank's dump and where it stands."""

    recorded: FlightRecorded
    evidence: Evidence


class Behind(msgspec.Struct, frozen=True):
    """A rank that did not enter what others of its group wait in since since_us."""

    rank: int
    group: FlightGroup
    waiting: tuple[int, ...]
    since_us: int
    evidence: Evidence


class FlightsTracker(ShowingTracker):
    """flights are the newest dump of each rank; reports are what an analyser said, the last of them not yet whole."""

    VERSION: ClassVar[int] = 1

    flights: dict[int, Flight] = {}
    reports: list[Absence] = []
    begun: FlightAnalysed | None = None
    shown: FlightsView | None = None

    def _recorded(self, observation: Observation) -> None:
        recorded: FlightRecorded = observation.signal
        if recorded.rank in self.flights or len(self.flights) < DUMPS_KEPT:
            self.flights[recorded.rank] = Flight(recorded, observation.evidence)
            self.shown = None

    def _analysed(self, observation: Observation) -> None:
        said: FlightAnalysed = observation.signal
        known = FlightAnalysed() if said.begins or self.begun is None else self.begun
        self.begun = whole = FlightAnalysed(
            said.sequence if said.sequence is not None else known.sequence,
            said.group or known.group,
            said.operation or known.operation,
            said.missing,
        )
        if said.missing:
            told = Absence(whole.missing, whole.group, whole.operation, whole.sequence, (), observation.evidence)
            self.reports, self.shown = [*self.reports, told][-REPORTS_KEPT:], None

    def _attempt(self, observation: Observation) -> None:
        self.flights, self.reports, self.begun, self.shown = {}, [], None, None

    def view(self) -> FlightsView:
        """Who is missing where."""
        if self.shown is None:
            found = _absences(_unexcused(list(self._behind())))
            seen = {absence.missing for absence in found}
            said = (report for report in self.reports if report.missing not in seen)
            self.shown = FlightsView((*found, *said)[:SHOWN], len(self.flights))
        return self.shown

    def _behind(self) -> Iterable[Behind]:
        """Every rank of every group that has not entered what another rank of it waits in."""
        groups: dict[Key, list[tuple[int, FlightGroup]]] = {}
        for rank, flight in self.flights.items():
            for group in flight.recorded.groups:
                groups.setdefault((group.name, group.members), []).append((rank, group))
        for members in groups.values():
            yield from self._behind_in(members)

    def _behind_in(self, members: list[tuple[int, FlightGroup]]) -> Iterable[Behind]:
        local = {group.local for _, group in members if group.local}
        ahead = sorted(
            ((group.sequence, rank, group) for rank, group in members if group.sequence), key=lambda each: each[:2]
        )
        sequences, waiting = [each[0] for each in ahead], tuple(sorted(each[1] for each in ahead))
        for rank, group in members:
            entered = self._entered(rank, group, local)
            place = len(ahead) if entered is None else bisect_right(sequences, entered)
            if place == len(ahead):
                continue
            _, first_rank, first = ahead[place]
            if not self._is_older(rank, first.since_us):
                yield Behind(rank, first, waiting, first.since_us or 0, self.flights[first_rank].evidence)

    def _is_older(self, rank: int, since_us: int | None) -> bool:
        newest_us = self.flights[rank].recorded.newest_us
        return newest_us is not None and since_us is not None and since_us - newest_us > OLDER_US

    def _entered(self, rank: int, group: FlightGroup, local: set[str]) -> int | None:
        """The newest collective that a rank entered. Where it waits in none of the group, its own number of the group
        is not on file; processes that make their groups in one order number them alike."""
        if group.enqueued is not None or len(local) != 1:
            return group.enqueued
        return self.flights[rank].recorded.status.get(next(iter(local)))

    FOLDS: ClassVar[Mapping[type, Callable[[Any, Observation], None]]] = {
        FlightRecorded: _recorded,
        FlightAnalysed: _analysed,
        AttemptStarted: _attempt,
    }


def _unexcused(behind: list[Behind]) -> list[Behind]:
    """Those that don't themselves wait for another rank elsewhere; all of them where each does."""
    culprits: dict[Key, set[int]] = {}
    waiting: dict[Key, tuple[int, ...]] = {}
    for each in behind:
        key = (each.group.name, each.group.members)
        culprits.setdefault(key, set()).add(each.rank)
        waiting[key] = each.waiting
    held: dict[int, list[Key]] = {}
    for key, waiters in waiting.items():
        for rank in waiters:
            held.setdefault(rank, []).append(key)
    free = [each for each in behind if all(culprits[key] <= {each.rank} for key in held.get(each.rank, ()))]
    return free or behind


def _absences(behind: list[Behind]) -> tuple[Absence, ...]:
    """One for each rank: the collective that others entered first, ranks of the same one together."""
    first: dict[int, Behind] = {}
    for each in sorted(behind, key=lambda each: (each.since_us, each.rank)):
        first.setdefault(each.rank, each)
    joined: dict[tuple[str, int], list[Behind]] = {}
    for each in first.values():
        joined.setdefault((each.group.name, each.group.sequence), []).append(each)
    return tuple(
        Absence(
            tuple(each.rank for each in alike),
            alike[0].group.description or alike[0].group.name,
            alike[0].group.operation,
            alike[0].group.sequence,
            tuple(rank for rank in alike[0].waiting if rank not in {each.rank for each in alike}),
            alike[0].evidence,
        )
        for alike in joined.values()
    )
