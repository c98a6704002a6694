"""The recorded captures of one job, as shippers send them: each put together apart from the others and from what is
shipped live, and replayed when all of it is there, one after the other."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from hashlib import blake2b
from itertools import islice
from typing import Any

from dataflow.shipped_recording import Recording
from dataflow.spool import Spool
from dataflow.wire import Arrived
from dataflow.wire_words import Begun
from extractors.record import Beat, Tick

PATIENCE_SECONDS = 30.0
"""How long what has not come is waited for when all that the brokers have was read."""
FORGOTTEN_SECONDS = 3_600.0
"""Of nothing from a shipper, after which the rest of its capture is not waited for any more."""
OBSERVATIONS = 8_192
"""Of so many a batch of beats is made at most, or of one beat; it bounds the memory."""


class Recordings:
    """See above. notes gets what the user should hear; monotonic is the time in which the brokers are listened to. done
    says that one was replayed since something else came of the job; it is the user's to take back."""

    def __init__(
        self, job: str, spool: Spool, notes: list[str], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.done = False
        self._job = job
        self._spool = spool
        self._notes = notes
        self._monotonic = monotonic
        self._open: dict[str, Recording] = {}
        self._heard: dict[str, float] = {}
        self._waited: dict[str, float] = {}
        self._past: deque[str] = deque(maxlen=256)
        self._replay: tuple[str, Iterator[Beat]] | None = None

    @property
    def replays(self) -> bool:
        """Whether one is being replayed: then `more` has beats."""
        return self._replay is not None

    def take(self, arrived: Arrived) -> bool:
        """Takes a message of a recorded capture; False where it is none. Raises OSError where there is no room."""
        session, what = arrived.session, arrived.what
        recording = self._open.get(session)
        begins = isinstance(what, Begun) and what.recorded
        if recording is None and not (session and (arrived.recorded or begins)):
            return session in self._past
        if session in self._past:
            return True
        if recording is None:
            begun = what if isinstance(what, Begun) else Begun(self._job, None, recorded=True)
            recording = Recording(self._job, begun, self._spool.empty(_name(session)), self._notes)
            self._open[session] = recording
        self._heard[session] = self._monotonic()
        recording.take(arrived)
        return True

    def turn(self, caught_up: bool) -> None:
        """Begins a replay where all of a capture is there, or has been waited for. caught_up says that all was read
        that the brokers have of the job."""
        now = self._monotonic()
        for session, recording in list(self._open.items()):
            if recording.ended is None:
                if now - self._heard[session] >= FORGOTTEN_SECONDS:
                    captured = recording.begun.captured
                    self._notes.append(f"{self._job}: the rest of {captured} never came from its shipper")
                    self._forget(session)
                continue
            if recording.missing and caught_up:
                self._waited.setdefault(session, now)
            waited = now - self._waited.get(session, now) >= PATIENCE_SECONDS
            if self._replay is None and (waited or not recording.missing):
                self._replay = session, recording.beats()

    def more(self, most: int) -> list[Beat]:
        """The next beats of the replay; the last one says that it is over. After an OSError it begins anew."""
        assert self._replay is not None
        session, replay = self._replay
        beats: list[Beat] = []
        held = 0
        try:
            for beat in islice(replay, most):
                beats.append(beat)
                held += len(beat.observations)
                if held >= OBSERVATIONS:
                    break
        except BaseException:
            self._replay = None
            raise
        if not beats:
            self._replay = None
            self.done = True
            self._past.append(session)
            self._forget(session)
            beats.append(Beat(self._job, Tick(0), recorded=True, forgotten=True))
        return beats

    @property
    def shelves(self) -> set[str]:
        """The names of those that are needed."""
        return {_name(session) for session in self._open}

    def snapshot(self) -> tuple[Any, ...]:
        """All that `restore` needs; a replay begins anew then."""
        return {session: each.snapshot() for session, each in self._open.items()}, self._past, self.done

    def restore(self, snapshot: tuple[Any, ...]) -> None:
        """Goes on where a snapshot was made. Raises whatever a broken one causes, and ShelfError where files are not as
        they were."""
        kept, self._past, self.done = snapshot
        for session, each in kept.items():
            shelf = self._spool.shelf(_name(session))
            self._open[session] = Recording.restored(self._job, shelf, self._notes, each)
            self._heard[session] = self._monotonic()

    def _forget(self, session: str) -> None:
        del self._open[session]
        self._heard.pop(session, None)
        self._waited.pop(session, None)
        self._spool.retire(_name(session))


def _name(session: str) -> str:
    return f"recorded-{blake2b(session.encode(), digest_size=8).hexdigest()}"
