"""One job of which shippers send the lines and polls: live, by their ticks, or recorded, by its end."""

import pickle
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from dataflow.kafka import BrokerError
from dataflow.live import LiveFeed
from dataflow.shipped_files import anonymous
from dataflow.shipped_live import ShippedLive
from dataflow.shipped_recording import facts_of
from dataflow.shipped_recordings import Recordings
from dataflow.shipped_session import NOBODY, Session
from dataflow.spool import Spool
from dataflow.wire import Arrived
from dataflow.wire_words import Begun
from dataflow.wire_words import Tick as TickWord
from extractors.record import Beat, Tick
from state.trackers.facts import JobDeclared, JobFacts

MOST_LATENESS_US = 600_000_000
"""More than that no shipper's lines are waited for."""
FORGET_SECONDS = 86_400.0
"""Of silence, after which a job is forgotten."""


class ShippedJob:
    """What came of a job. Its notes gather what the user should hear; path is its capture as its shipper names it;
    recordings are apart from what is live. monotonic is the time in which the brokers are listened to."""

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
        self._spool = Spool(folder)
        self.recordings = Recordings(job, self._spool, self.notes, monotonic)
        self._lateness_us = lateness_us
        self._monotonic = monotonic
        self._sessions: dict[str, Session] = {}
        self._past: deque[str] = deque(maxlen=64)
        self._strays: set[str] = set()
        self._live: ShippedLive | None = None
        self._life = 0

    @property
    def stands(self) -> str:
        """What is waited for while nothing of it is read live."""
        if self.recordings.shelves:
            return "for the rest of a recorded capture, or its replay"
        return "for nothing: it was recorded, and is judged" if self.recordings.done else "for its first line"

    @property
    def feed(self) -> LiveFeed | None:
        """Its live stream, where it is live."""
        return None if self._live is None else self._live.feed

    @property
    def standing(self) -> tuple[int, ...]:
        """Differs where time alone changed something that a snapshot holds, though no beat came of it."""
        waiting = sum(len(each.waiting) for each in self._sessions.values())
        return len(self._sessions), waiting, len(self.recordings.shelves), self.recordings.done

    def take(self, arrived: Arrived) -> list[Beat]:
        """Takes a message, and gives the beats that are over by it. Raises OSError where a file can't be kept for want
        of room: the message is to be given again, and nothing is lost by it."""
        if self.recordings.take(arrived):
            return []
        if arrived.session and arrived.session in self._past:
            self._stray(arrived)
            return []
        by, owner = (arrived.host, arrived.host) if arrived.session else (NOBODY, anonymous(arrived.host))
        session = self._sessions.get(by)
        if session is None or session.id != arrived.session:
            session = self._begun(by, arrived.session)
        session.heard = self._monotonic()
        self.recordings.done = False
        if isinstance(arrived.what, Begun):
            self._declared(arrived.what, session)
        live = self._live or self._begin_live(JobDeclared(JobFacts(), captured=self.path))
        return live.take(owner, session, arrived.what)

    def turn(self, now_us: int, caught_up: bool) -> list[Beat]:
        """Goes on where time alone says so. now_us is this machine's clock, by which lines without ticks are judged;
        caught_up says that all was read that the brokers have of the job."""
        self.recordings.turn(caught_up)
        return [] if self._live is None else self._live.turn(now_us, caught_up)

    def silence(self, trouble: BrokerError | None) -> list[Beat]:
        """What it means that nothing is heard: of anybody (trouble says why), or of its shippers. After a day of it the
        job is forgotten, and what comes of it later is as of a new one. Nothing where its shippers were stopped and it
        was judged as recorded since: it is over."""
        if self._live is None:
            return []
        since = self._monotonic() - FORGET_SECONDS
        if any(each.heard >= since for each in self._sessions.values()):
            is_over = self.recordings.done and all(each.stopped_us for each in self._sessions.values())
            return [] if is_over else self._live.silence(trouble)
        self.notes.append(f"{self.job}: nothing was heard of it for a day; it is forgotten")
        beat = Beat(self.job, Tick(self._live.now_us), forgotten=True)
        self._sessions.clear()
        self._anew()
        return [beat]

    def snapshot(self) -> bytes:
        """All that `restore` needs."""
        live = None if self._live is None else (self._lateness_us, self._live.snapshot())
        known = self._sessions, self._past, self.path, self._life, live, self.recordings.snapshot()
        return pickle.dumps(known, pickle.HIGHEST_PROTOCOL)

    def sweep(self) -> None:
        """A snapshot was made of it, or is still what it was."""
        self._spool.sweep()

    def restore(self, snapshot: bytes) -> None:
        """Goes on where a snapshot was made. Raises whatever a broken one causes, and ShelfError where files are
        not as they were."""
        self._sessions, self._past, self.path, self._life, live, recordings = pickle.loads(snapshot)
        for session in self._sessions.values():
            session.heard, session.waited = self._monotonic(), None
        self.recordings.restore(recordings)
        self._spool.keep_only(self.recordings.shelves | {self._shelf})
        if live is not None:
            self._lateness_us, kept = live
            self._begin_live(JobDeclared(JobFacts(), captured=self.path)).restore(kept)

    def close(self) -> None:
        """Lets go of all files."""
        if self._live is not None:
            self._live.close()

    @property
    def _shelf(self) -> str:
        return f"live-{self._life}"

    def _begun(self, by: str, session: str) -> Session:
        """Another session. Where it is the only one it is the job anew; beside others, its files are."""
        known = self._sessions.pop(by, None)
        if known is not None:
            self._past.append(known.id)
            if not self._sessions:
                self._anew()
            elif self._live is not None:
                self._live.begin_again(by)
        self._sessions[by] = Session(session, deque())
        return self._sessions[by]

    def _stray(self, arrived: Arrived) -> None:
        """A session goes on though another one of its host began after it: they are two shippers."""
        now, what = self._sessions.get(arrived.host), arrived.what
        if now is None or not isinstance(what, TickWord) or not what.now_us > now.now_us > 0:
            return
        if arrived.session not in self._strays:
            self._strays.add(arrived.session)
            self.notes.append(
                f"{self.job}: two shippers send it under the name {arrived.host}, and only what the newer one sends "
                "is judged; name them apart with --host"
            )

    def _anew(self) -> None:
        self.close()
        self._spool.retire(self._shelf)
        self._life += 1
        self._live = None

    def _declared(self, begun: Begun, session: Session) -> None:
        self.path = begun.captured
        again, session.anew = begun.anew > session.anew, begun.anew
        if again and self._live is not None and self._live.missed and len(self._sessions) == 1:
            self._anew()
        declared = JobDeclared(facts_of(begun, self.job, self.notes), captured=begun.captured)
        self._lateness_us = max(self._lateness_us, min(begun.lateness_us, MOST_LATENESS_US))
        if self._live is None:
            self._begin_live(declared)
        else:
            self._live.feed.redeclare(declared)

    def _begin_live(self, declared: JobDeclared) -> ShippedLive:
        shelf = self._spool.shelf(self._shelf)
        places = (shelf, self._lateness_us, self._sessions, self._monotonic, self.notes)
        self._live = ShippedLive(self.job, declared, *places)
        return self._live
