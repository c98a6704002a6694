"""The errors that a tracker holds, by their own time, found again by what happened and to which process."""

from bisect import bisect_right

import msgspec

from extractors.pattern import Role
from extractors.record import Evidence, Origin
from extractors.signal import Fault


class FaultEvent(msgspec.Struct, frozen=True):
    """One error of one process, seen in one or more homes. own_us is the time the line itself gives.

    count adds de-duplicated copies; sources are the places it was read in (the first is the one to quote);
    handled says that the same component moved on afterwards, handled_by shows it.
    """

    fault: Fault
    role: Role
    own_us: int
    origin: Origin
    sources: tuple[Evidence, ...]
    count: int = 1
    handled: bool = False
    handled_by: Evidence | None = None


class FaultList(msgspec.Struct):
    """keys say of each event what happened and to which process, count how many events say the same: a storm of errors
    finds its like without comparing them all."""

    events: list[FaultEvent] = []
    keys: list[str] = []
    count: dict[str, int] = {}

    def put(self, event: FaultEvent, place: int | None = None) -> None:
        """Adds an event by its time, or where it replaces another."""
        if place is None:
            newest = not self.events or self.events[-1].own_us <= event.own_us
            place = len(self.events) if newest else bisect_right(self.events, event.own_us, key=_own_us)
        key = f"{_what(event)}{event.origin.pid}"
        self.events.insert(place, event)
        self.keys.insert(place, key)
        self.count[key] = self.count.get(key, 0) + 1

    def take(self, place: int) -> FaultEvent:
        """Takes an event out."""
        key = self.keys.pop(place)
        self.count[key] -= 1
        if not self.count[key]:
            del self.count[key]
        return self.events.pop(place)

    def alike(self, event: FaultEvent) -> list[int]:
        """The places of the events that may say the same of the same process: those of its pid and of none."""
        what, pid = _what(event), event.origin.pid
        if not pid:
            return [place for place, key in enumerate(self.keys) if key.startswith(what)]
        places: list[int] = []
        for key in (f"{what}{pid}", f"{what}0"):
            place = -1
            for _ in range(self.count.get(key, 0)):
                place = self.keys.index(key, place + 1)
                places.append(place)
        return sorted(places)


def _own_us(event: FaultEvent) -> int:
    return event.own_us


def _what(event: FaultEvent) -> str:
    """The key of an event without its process."""
    fault = event.fault
    return f"{fault.cause}\n{fault.exception}\n{fault.site}\n{fault.entity}\n"
