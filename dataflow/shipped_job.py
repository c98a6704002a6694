"""One job of which shippers send the lines and polls: live, by their ticks, or recorded, by its end."""

import pickle
import time
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from dataflow.kafka import BrokerError
from dataflow.live import LiveFeed
from dataflow.shelf import Shelf
from dataflow.shipped_live import ShippedLive
from dataflow.shipped_recording import Recording, facts_of
from dataflow.shipped_session import NOBODY, Session
from dataflow.wire import Arrived
from dataflow.wire_words import Begun
from extractors.record import Beat, Tick
from state.trackers.facts import JobDeclared, JobFacts

PATIENCE_SECONDS = 30.0
"""How long the rest of a recorded capture is waited for when its end was told."""
FORGET_SECONDS = 86_400.0
"""Of silence, after which a job is forgotten."""


class ShippedJob:
    """What came of a job. Its notes gather what the user should hear; path is its capture as its shipper names it."""

    def __init__(
        self,
        job: str,
        folder: Path,
        lateness_us: int,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.job = job
        self.path = ""
        self.notes: list[str] = []
        self._folder = folder
        self._lateness_us = lateness_us
        self._monotonic = monotonic
        self._sessions: dict[str, Session] = {}
        self._past: deque[str] = deque(maxlen=64)
        self._live: ShippedLive | None = None
        self._recording: Recording | None = None
        self._replay: Iterator[Beat] | None = None
        self._ended_at: float | None = None

    @property
    def feed(self) -> LiveFeed | None:
        """Its live stream, where it is live."""
        return None if self._live is None else self._live.feed

    @property
    def replays(self) -> bool:
        """Whether it is being replayed: then `more` has beats."""
        return self._replay is not None

    def take(self, arrived: Arrived) -> list[Beat]:
        """Takes a message, and gives the beats that are over by it. Raises OSError where a file can't be kept."""
        if arrived.session in self._past:
            return []
        by = arrived.host if arrived.session else NOBODY
        session = self._sessions.get(by)
        if session is None or session.id != arrived.session:
            session = self._begun(arrived, by)
        session.heard = self._monotonic()
        if isinstance(arrived.what, Begun):
            self._declared(arrived.what, session)
        if self._recording is not None:
            self._recording.take(arrived)
            return []
        live = self._live or self._begin_live(JobDeclared(JobFacts(), captured=self.path))
        return live.take(arrived.host, session, arrived.what)

    def turn(self, now_us: int) -> list[Beat]:
        """Goes on where time alone says so. now_us is this machine's clock, by which lines without ticks are judged."""
        if self._recording is not None:
            self._begin_replay()
        return [] if self._live is None else self._live.turn(now_us)

    def more(self, most: int) -> list[Beat]:
        """The next beats of its replay; the last one says that it is over. Raises OSError."""
        assert self._replay is not None
        beats = list(islice(self._replay, most))
        if beats:
            return beats
        self._end()
        return [self._forgotten()]

    def silence(self, trouble: BrokerError | None) -> list[Beat]:
        """What it means that nothing is heard: of anybody (trouble says why), or of its shippers. After a day of it the
        job is forgotten, and what comes of it later is as of a new one."""
        if self._live is None:
            return []
        since = self._monotonic() - FORGET_SECONDS
        if any(each.heard >= since for each in self._sessions.values()):
            return self._live.silence(trouble)
        self.notes.append(f"{self.job}: nothing was heard of it for a day; it is forgotten")
        beat = self._forgotten()
        self._sessions.clear()
        self._anew()
        return [beat]

    def snapshot(self) -> bytes:
        """All that `restore` needs."""
        live = None if self._live is None else (self._lateness_us, self._live.snapshot())
        recording = None if self._recording is None else self._recording.snapshot()
        known = self._sessions, self._past, self.path, live, recording
        return pickle.dumps(known, pickle.HIGHEST_PROTOCOL)

    def restore(self, snapshot: bytes) -> None:
        """Goes on where a snapshot was made. Raises whatever a broken one causes."""
        self._sessions, self._past, self.path, live, recording = pickle.loads(snapshot)
        for session in self._sessions.values():
            session.heard = self._monotonic()
        if recording is not None:
            self._recording = Recording.restored(self.job, self._shelf(), self.notes, recording)
        if live is not None:
            self._lateness_us, kept = live
            self._begin_live(JobDeclared(JobFacts(), captured=self.path)).restore(kept)

    def close(self) -> None:
        """Lets go of all files."""
        if self._live is not None:
            self._live.close()

    def _begun(self, arrived: Arrived, host: str) -> Session:
        """Another session. Where it is the only one it is the job anew; beside others, its files are."""
        known = self._sessions.pop(host, None)
        if known is not None:
            self._past.append(known.id)
        session = self._sessions[host] = Session(arrived.session, deque())
        if isinstance(arrived.what, Begun) and arrived.what.recorded:
            self._alone(host)
            self._recording = Recording(self.job, arrived.what, self._shelf(), self.notes)
        elif self._recording is not None or (known is not None and len(self._sessions) == 1):
            self._alone(host)
        elif known is not None and self._live is not None:
            self._live.begin_again(host)
        return session

    def _alone(self, host: str) -> None:
        """The job begins anew, with this session; those beside it count no more."""
        self._past += [each.id for name, each in self._sessions.items() if name != host]
        session = self._sessions[host]
        self._sessions.clear()
        self._sessions[host] = session
        self._anew()

    def _anew(self) -> None:
        self.close()
        self._shelf().remove()
        self._live = self._recording = self._replay = self._ended_at = None

    def _declared(self, begun: Begun, session: Session) -> None:
        self.path = begun.captured
        again, session.anew = begun.anew > session.anew, begun.anew
        if again and self._live is not None and self._live.missed and len(self._sessions) == 1:
            self._anew()
        if begun.recorded:
            return
        declared = JobDeclared(facts_of(begun, self.job, self.notes), captured=begun.captured)
        self._lateness_us = max(self._lateness_us, begun.lateness_us)
        if self._live is None:
            self._begin_live(declared)
        else:
            self._live.feed.redeclare(declared)

    def _begin_live(self, declared: JobDeclared) -> ShippedLive:
        places = (self._shelf(), self._lateness_us, self._sessions, self._monotonic, self.notes)
        self._live = ShippedLive(self.job, declared, *places)
        return self._live

    def _begin_replay(self) -> None:
        """Replays the recording once all of it is there, or has been waited for."""
        recording = self._recording
        if recording is None or recording.ended is None or self._replay is not None:
            return
        if self._ended_at is None:
            self._ended_at = self._monotonic()
        if not recording.missing or self._monotonic() - self._ended_at >= PATIENCE_SECONDS:
            self._replay = recording.beats()

    def _end(self) -> None:
        """The recording was replayed: what comes of it again is not news."""
        assert self._recording is not None
        self._recording.remove()
        self._past += [session.id for session in self._sessions.values()]
        self._sessions.clear()
        self._recording = self._replay = self._ended_at = None

    def _forgotten(self) -> Beat:
        return Beat(self.job, Tick(0 if self._live is None else self._live.now_us), forgotten=True)

    def _shelf(self) -> Shelf:
        return Shelf(self._folder)
