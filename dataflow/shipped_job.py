"""One job of which shippers send the lines and polls: live, by their ticks, or recorded, by its end."""

import pickle
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dataflow.journal import Journal
from dataflow.kafka import BrokerError
from dataflow.live import LiveFeed
from dataflow.shipped_feed import followed
from dataflow.shipped_files import ShippedFiles, anonymous
from dataflow.shipped_recording import facts_of
from dataflow.shipped_recordings import PATIENCE_SECONDS, Recordings
from dataflow.shipped_session import Session
from dataflow.spool import Spool
from dataflow.wire import Arrived, Part, PollLine
from dataflow.wire_words import Begun, Ended, Stopped, Tick
from extractors.clocks import write_iso
from extractors.record import Beat, Block, HeardAgain, Unheard
from state.trackers.facts import JobDeclared, JobFacts

SILENT_SECONDS = 15.0
"""Of nothing from a shipper, which says something every two seconds, after which that is evidence."""
NOBODY = ""
"""Who sent lines that no shipper of ours sent: they come without ticks."""


class ShippedJob:
    """What came of a job. Its notes gather what the user should hear; feed is there once it is live; recordings are
    apart from that. monotonic is the time in which the brokers are listened to."""

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
        self.feed: LiveFeed | None = None
        self._spool = Spool(folder)
        self.recordings = Recordings(job, self._spool, self.notes, monotonic)
        self._lateness_us = lateness_us
        self._monotonic = monotonic
        self._files: ShippedFiles | None = None
        self._sessions: dict[str, Session] = {}
        self._past: deque[str] = deque(maxlen=64)
        self._strays: set[str] = set()
        self._beats: list[Beat] = []
        self._unheard = ""
        self._now_us = self._life = 0

    def take(self, arrived: Arrived) -> list[Beat]:
        """Takes a message, and gives the beats that are over by it. Raises OSError where a file can't be kept for want
        of room: the message is to be given again, and nothing is lost by it."""
        if self.recordings.take(arrived):
            return []
        if arrived.session and arrived.session in self._past:
            self._stray(arrived)
            return []
        who, owner = (arrived.host, arrived.host) if arrived.session else (NOBODY, anonymous(arrived.host))
        session = self._sessions.get(who)
        if session is None or session.id != arrived.session:
            session = self._begun(who, arrived.session)
        session.heard = self._monotonic()
        self.recordings.done = False
        what = arrived.what
        if isinstance(what, Begun):
            self._declared(what, session)
        self._live(owner, session, what)
        return self._given()

    def turn(self, now_us: int, caught_up: bool) -> list[Beat]:
        """Goes on where time alone says so. now_us is this machine's clock, by which lines without ticks are judged;
        caught_up says that all was read that the brokers have of the job."""
        self.recordings.turn(caught_up)
        if self._files is None:
            return []
        for host, session in list(self._sessions.items()):
            if caught_up and session.waiting:
                self._waited(host, session)
        if NOBODY in self._sessions:
            self._back(f"the brokers answer at {write_iso(now_us)}")
            self._sessions[NOBODY].now_us = now_us
            self._files.read_polls()
            self._advance()
        return self._given()

    def silence(self, trouble: BrokerError | None) -> list[Beat]:
        """What it means that nothing is heard: of anybody (trouble says why), or of its shippers."""
        if self.feed is None or self._unheard:
            return []
        since = self._monotonic() - SILENT_SECONDS
        quiet = {host: each for host, each in self._sessions.items() if host != NOBODY and each.heard < since}
        if self.recordings.done and all(each.stopped_us for each in self._sessions.values()):
            return []
        if trouble is not None:
            self._told(str(trouble), ("wedgewatch", "watch", "--brokers", str(trouble.filename)), str(trouble))
        elif quiet and len(quiet) == len(self._sessions):
            self._told("; ".join(each.silence(host) for host, each in sorted(quiet.items())))
        elif quiet:
            for host, each in quiet.items():
                self._leave(host, each)
            self._advance()
        return self._given()

    def snapshot(self) -> bytes:
        """All that `restore` needs."""
        live = None if self.feed is None else (self.path, self.feed.snapshot())
        known = self._sessions, self._past, live, self._unheard, self._now_us, self._life, self._beats
        return pickle.dumps((known, self.recordings.snapshot()), pickle.HIGHEST_PROTOCOL)

    def sweep(self) -> None:
        """A snapshot was made of it, or is still what it was."""
        self._spool.sweep()

    def restore(self, snapshot: bytes) -> None:
        """Goes on where a snapshot was made. Raises whatever a broken one causes, and ShelfError where files are
        not as they were."""
        known, recordings = pickle.loads(snapshot)
        self._sessions, self._past, live, self._unheard, self._now_us, self._life, self._beats = known
        for session in self._sessions.values():
            session.heard, session.waited = self._monotonic(), None
        self.recordings.restore(recordings)
        self._spool.keep_only(self.recordings.shelves | {self._shelf})
        if live is not None:
            self.path, kept = live
            self._begin_live(JobDeclared(JobFacts(), captured=self.path))
            assert self.feed is not None
            self.feed.take_up(kept)

    def close(self) -> None:
        """Lets go of all files."""
        if self.feed is not None:
            self.feed.close()

    @property
    def _shelf(self) -> str:
        return f"live-{self._life}"

    def _given(self) -> list[Beat]:
        beats, self._beats = self._beats, []
        return beats

    def _begun(self, who: str, session: str) -> Session:
        """Another session. Where it is the only one it is the job anew; beside others, its files are."""
        known = self._sessions.pop(who, None)
        if known is not None:
            self._past.append(known.id)
        if known is not None and not self._sessions:
            self._anew()
        elif known is not None and self._files is not None:
            self._files.begin_again(who)
        self._sessions[who] = Session(session, deque())
        return self._sessions[who]

    def _stray(self, arrived: Arrived) -> None:
        """A session goes on though another one of its host began after it: they are two shippers."""
        now, session = self._sessions.get(arrived.host), arrived.session
        if isinstance(arrived.what, Tick) and now is not None and arrived.what.now_us > now.now_us > 0:
            if session not in self._strays:
                self.notes.append(
                    f"{self.job}: two shippers send it under the name {arrived.host}, and only what the newer one "
                    "sends is judged; name them apart with --host"
                )
            self._strays.add(session)

    def _anew(self) -> None:
        self._spool.retire(self._shelf)
        self._life += 1
        self.feed = self._files = None
        self._unheard, self._now_us = "", 0

    def _declared(self, begun: Begun, session: Session) -> None:
        self.path = begun.captured
        again, session.anew = begun.anew > session.anew, begun.anew
        if again and self._files is not None and self._files.missed and len(self._sessions) == 1:
            self._anew()
        declared = JobDeclared(facts_of(begun, self.job, self.notes), captured=begun.captured)
        self._lateness_us = max(self._lateness_us, begun.lateness_us)
        if self.feed is None:
            self._begin_live(declared)
        else:
            self.feed.redeclare(declared)

    def _begin_live(self, declared: JobDeclared) -> None:
        given: list[ShippedFiles] = []
        self.feed = LiveFeed(
            self.job,
            self.path,
            declared,
            lateness_us=self._lateness_us,
            journal=Journal(),
            clock=lambda: max((each.now_us for each in self._sessions.values()), default=0),
            follow=followed(self._spool.shelf(self._shelf), given),
        )
        (self._files,) = given

    def _live(self, host: str, session: Session, what: Any) -> None:
        if self.feed is None:
            self._begin_live(JobDeclared(JobFacts(), captured=self.path))
        assert self._files is not None
        if isinstance(what, PollLine):
            self._files.poll(host, what)
        elif session.waiting or isinstance(what, Tick):
            session.waiting.append(what)
        else:
            self._taken(host, session, what)
        try:
            self._ticked(host, session)
        except OSError:
            if session.waiting and session.waiting[-1] is what:
                session.waiting.pop()
            raise

    def _taken(self, host: str, session: Session, what: Any) -> None:
        """Takes what is no tick, in its order among the ticks: what comes after one must not be read at its time."""
        assert self._files is not None
        if isinstance(what, Block):
            self._files.block(host, what)
        elif isinstance(what, Part):
            self._files.part(host, what)
        elif isinstance(what, Stopped):
            session.stopped_us = what.now_us
        elif not isinstance(what, Begun | Ended):
            self._files.seen(host, what)

    def _ticked(self, host: str, session: Session) -> None:
        """Goes on by the ticks for which all polls have come."""
        assert self._files is not None
        while session.waiting:
            what = session.waiting[0]
            if isinstance(what, Tick):
                if not self._files.has(host, what.polls):
                    return
                self._back(f"its shipper on {host} sent all up to {write_iso(what.now_us)}")
                self._files.tick(host, what)
                session.ticked(what)
                self._advance()
            else:
                self._taken(host, session, what)
            session.waiting.popleft()
            session.waited = None

    def _waited(self, host: str, session: Session) -> None:
        """A tick waits for polls that the brokers don't have: after a while it is known that they never come."""
        assert self._files is not None
        now, tick = self._monotonic(), session.waiting[0]
        if session.waited is None:
            session.waited = now
        elif isinstance(tick, Tick) and now - session.waited >= PATIENCE_SECONDS:
            self._files.miss_polls(host, tick.polls)
        self._ticked(host, session)

    def _advance(self) -> None:
        """The beats that are over by now, which is what the shipper says that is furthest behind."""
        assert self.feed is not None
        now_us = min((each.now_us for each in self._sessions.values()), default=0)
        if now_us <= self._now_us:
            return
        self._now_us = now_us
        self._beats += self.feed.poll(now_us)
        self.notes += [f"{self.job}: {note}" for note in self.feed.notes]
        self.feed.notes.clear()

    def _told(self, why: str, command: tuple[str, ...] = (), output: str = "") -> None:
        assert self.feed is not None
        self._unheard = why
        self._beats += self.feed.aside(Unheard(why, command, output), "unheard")

    def _back(self, why: str) -> None:
        if self._unheard and self.feed is not None:
            self._unheard = ""
            self._beats += self.feed.aside(HeardAgain(why), "heard_again")

    def _leave(self, host: str, session: Session) -> None:
        """Others are heard: what this one sends is missing from now on, and not waited for."""
        assert self.feed is not None
        assert self._files is not None
        for what in session.waiting:
            if isinstance(what, Tick):
                self._files.miss_polls(host, what.polls)
        self._ticked(host, session)
        for source in self._files.sources(host):
            self.feed.missed(source, session.silence(host))
        self._files.leave(host)
        del self._sessions[host]
