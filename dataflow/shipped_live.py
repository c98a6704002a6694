"""The live stream of a job that is shipped: its time is that of its shippers' ticks, and their silence is evidence."""

import pickle
from collections.abc import Callable, Mapping
from typing import Any

from dataflow.journal import Journal
from dataflow.kafka import BrokerError
from dataflow.live import LiveFeed
from dataflow.shelf import Shelf
from dataflow.shipped_feed import followed
from dataflow.shipped_files import ShippedFiles
from dataflow.shipped_session import NOBODY, Session
from dataflow.wire import Part, PollLine
from dataflow.wire_words import Begun, Ended, Stopped, Tick
from extractors.clocks import write_iso
from extractors.record import Beat, Block, HeardAgain, Unheard
from state.trackers.facts import JobDeclared

PATIENCE_SECONDS = 30.0
"""How long polls that a tick counts are waited for when all that the brokers have was read."""
APART_US = 300_000_000
"""Shippers whose times are further apart than that have clocks that differ."""
SILENT_SECONDS = 15.0
"""Of nothing from a shipper, which says something every two seconds, after which that is evidence."""


class ShippedLive:
    """sessions are those of the job's shippers by their hosts; notes gets what the user should hear. now_us is up to
    when all has come; missed says that bytes of a file never came; monotonic is the time in which the brokers are
    listened to."""

    def __init__(
        self,
        job: str,
        declared: JobDeclared,
        shelf: Shelf,
        lateness_us: int,
        sessions: dict[str, Session],
        monotonic: Callable[[], float],
        notes: list[str],
    ) -> None:
        self.now_us = 0
        self._job = job
        self._sessions = sessions
        self._monotonic = monotonic
        self._notes = notes
        self._unheard = ""
        self._left: dict[str, str] = {}
        self._beats: list[Beat] = []
        given: list[ShippedFiles] = []
        self.feed = LiveFeed(
            job,
            declared.captured,
            declared,
            lateness_us=lateness_us,
            journal=Journal(),
            clock=self._newest_us,
            follow=followed(shelf, given),
        )
        (self._files,) = given

    @property
    def missed(self) -> bool:
        """Whether bytes of a file never came."""
        return self._files.missed

    def take(self, host: str, session: Session, what: Any) -> list[Beat]:
        """Takes what a message says, and gives the beats that are over by it. Raises OSError where a file can't be kept
        for want of room: the message is to be given again, and nothing is lost by it."""
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
        return self._given()

    def turn(self, now_us: int, caught_up: bool) -> list[Beat]:
        """Goes on with what no shipper of ours sent, by this machine's clock, and without what never comes. caught_up
        says that all was read that the brokers have of the job."""
        for host, each in list(self._sessions.items()):
            if caught_up and each.waiting:
                self._waited(host, each)
        session = self._sessions.get(NOBODY)
        if session is not None:
            self._back(f"the brokers answer at {write_iso(now_us)}")
            session.now_us = now_us
            self._files.read_polls()
            self._advance()
        return self._given()

    def silence(self, trouble: BrokerError | None) -> list[Beat]:
        """What it means that nothing is heard: of anybody (trouble says why), or of its shippers."""
        if self._unheard:
            return []
        since = self._monotonic() - SILENT_SECONDS
        quiet = {host: each for host, each in self._sessions.items() if host != NOBODY and each.heard < since}
        if trouble is not None:
            self._told(str(trouble), ("wedgewatch", "watch", "--brokers", str(trouble.filename)), str(trouble))
        elif quiet and len(quiet) == len(self._sessions):
            self._told("; ".join(each.silence(host) for host, each in sorted(quiet.items())))
        elif quiet:
            self._leave(quiet)
            self._advance()
        return self._given()

    def begin_again(self, host: str) -> None:
        """A shipper counts from nothing: what it sends is new as far as is known."""
        self._files.begin_again(host)

    def snapshot(self) -> bytes:
        """All that `restore` needs."""
        known = self.feed.snapshot(), self._unheard, self._left, self.now_us, self._beats
        return pickle.dumps(known, pickle.HIGHEST_PROTOCOL)

    def restore(self, snapshot: bytes) -> None:
        """Goes on where a snapshot was made. Raises whatever a broken one causes."""
        kept, self._unheard, self._left, self.now_us, self._beats = pickle.loads(snapshot)
        self.feed.take_up(kept)

    def close(self) -> None:
        """Lets go of all files."""
        self.feed.close()

    def _taken(self, host: str, session: Session, what: Any) -> None:
        """Takes what is no tick, in its order among the ticks: what comes after one must not be read at its time."""
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
        while session.waiting:
            what = session.waiting[0]
            if not isinstance(what, Tick):
                self._taken(host, session, what)
            elif not self._files.has(host, what.polls):
                return
            else:
                self._back(f"its shipper on {host} sent all up to {write_iso(what.now_us)}")
                self._return(host)
                self._files.tick(host, what)
                session.ticked(what)
                self._advance()
            session.waiting.popleft()
            session.waited = None

    def _waited(self, host: str, session: Session) -> None:
        """A tick waits for polls that the brokers don't have: after a while it is known that they never come."""
        now = self._monotonic()
        if session.waited is None:
            session.waited = now
        elif now - session.waited >= PATIENCE_SECONDS:
            self._miss_polls(host, session)

    def _miss_polls(self, host: str, session: Session) -> None:
        """Goes on without the polls that ticks wait for."""
        for what in session.waiting:
            if isinstance(what, Tick):
                self._files.miss_polls(host, what.polls)
        self._ticked(host, session)

    def _advance(self) -> None:
        """The beats that are over by now, which is what the shipper says that is furthest behind."""
        now_us = min((each.now_us for each in self._sessions.values()), default=0)
        if now_us <= self.now_us:
            return
        self.now_us = now_us
        self._beats += self.feed.poll(now_us)
        self._notes += [f"{self._job}: {note}" for note in self.feed.notes]
        self.feed.notes.clear()

    def _newest_us(self) -> int:
        """What time it is at the shipper that is furthest ahead: what it sent is not of the future, unless its clock
        runs ahead."""
        newest_us = max((each.now_us for each in self._sessions.values()), default=self.now_us)
        return newest_us if newest_us - self.now_us <= APART_US else self.now_us

    def _given(self) -> list[Beat]:
        beats, self._beats = self._beats, []
        return beats

    def _told(self, why: str, command: tuple[str, ...] = (), output: str = "") -> None:
        self._unheard = why
        self._beats += self.feed.aside(Unheard(why, command, output), "unheard")

    def _back(self, why: str) -> None:
        if self._unheard:
            self._unheard = ""
            self._beats += self.feed.aside(HeardAgain(why), "heard_again")

    def _leave(self, quiet: Mapping[str, Session]) -> None:
        """Others are heard: what these send is missing from now on, and not waited for."""
        for host, session in quiet.items():
            self._miss_polls(host, session)
            why = self._left[host] = session.silence(host)
            self._notes.append(f"{self._job}: {why}; it is judged without what that one sends")
            for source in self._files.sources(host):
                self.feed.missed(source, why)
            self._files.leave(host)
            del self._sessions[host]

    def _return(self, host: str) -> None:
        """One that had left is heard again."""
        why = self._left.pop(host, None)
        if why is not None:
            self._notes.append(f"{self._job}: its shipper on {host} is heard again")
            for source in self._files.sources(host):
                self.feed.regained(source, why)
