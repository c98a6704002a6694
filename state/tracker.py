"""What a tracker is: a struct of plain data that folds observations and shows an immutable view."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import msgspec

from extractors.record import Observation


class AttemptStarted(msgspec.Struct, frozen=True):
    """A new life of the job began (GATES, Attempt). Made where the stream is cut into beats, so that every tracker
    sees it before the first observation of the new attempt. number counts from 0."""

    number: int


class Tracker(msgspec.Struct):
    """Memory of one matter.

    All fields are plain data (numbers, strings, lists, dicts, structs of these), so that a snapshot is the struct
    itself. `FOLDS` maps a signal's type to the function that folds an observation of it; a type that is not there is
    not of this tracker's matter. `EVERY`, where given, takes all observations of a beat, before their folds. `view`
    must not share mutable state with the tracker. Memory is bounded: every tracker says by what.
    """

    VERSION: ClassVar[int] = 1
    FOLDS: ClassVar[Mapping[type, Callable[[Any, Observation], None]]] = {}
    EVERY: ClassVar[Callable[[Any, Sequence[Observation]], None] | None] = None

    def tick(self, now_us: int) -> bool:
        """Time passed: let what is older than its window go. Called once a beat, after its observations. Gives whether
        the view may be another one for it."""
        return False

    def view(self) -> Any:
        """What the gates read: immutable, and equal where nothing has changed."""
        raise NotImplementedError

    def parts(self) -> "Mapping[str, Tracker]":
        """The trackers within this one, which it folds, by the names of their views."""
        return {}

    def snapshot(self) -> bytes:
        """This memory as msgpack bytes."""
        return msgspec.msgpack.encode((self.VERSION, self))

    @classmethod
    def restore(cls, snapshot: bytes) -> Self:
        """The memory that a snapshot of this version holds. Raises msgspec.ValidationError on another version."""
        version, memory = msgspec.msgpack.decode(snapshot, type=tuple[int, cls])  # type: ignore[valid-type]
        if version != cls.VERSION:
            raise msgspec.ValidationError(f"snapshot of version {version}, this is {cls.VERSION}")
        restored: Self = memory
        return restored


class ShowingTracker(Tracker):
    """A tracker that keeps the view it last made until something changes. The view is no part of a snapshot."""

    def snapshot(self) -> bytes:
        """This memory as msgpack bytes, without the view."""
        return msgspec.msgpack.encode((self.VERSION, msgspec.structs.replace(self, shown=None)))
