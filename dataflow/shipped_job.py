"""One job of which shippers send the lines and polls: live, by their ticks, or recorded, by its end."""

import pickle
import time
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from dataflow.journal import Journal
from dataflow.kafka import BrokerError
from dataflow.live import LiveFeed
from dataflow.shelf import Shelf
from dataflow.shipped_files import ShippedFiles, followed
from dataflow.shipped_recording import Recording, facts_of
from dataflow.shipped_session import Session
from dataflow.wire import Arrived, Part, PollLine
from dataflow.wire_words import Begun, Ended, Stopped, Tick
from extractors.clocks import write_iso
from extractors.record import Beat, Block, HeardAgain, Unheard
from state.trackers.facts import JobDeclared, JobFacts

SILENT_SECONDS = 15.0
"""Of nothing from a shipper, which says something every two seconds, after which that is evidence."""
PATIENCE_SECONDS = 30.0
"""How long the rest of a recorded capture is waited for when its end was told."""
NOBODY = ""
"""The host of lines that no shipper of ours sent: they come without ticks."""


class ShippedJob:
    """What came of a job. Its notes gather what the user should hear; feed is there once it is live."""

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
        self._folder = folder
        self._lateness_us = lateness_us
        self._monotonic = monotonic
        self._files: ShippedFiles | None = None
        self._sessions: dict[str, Session] = {}
        self._past: deque[str] = deque(maxlen=64)
        self._recording: Recording | None = None
        self._replay: Iterator[Beat] | None = None
        self._ended_at: float | None = None
        self._unheard = ""
        self._now_us = 0

    @property
    def replays(self) -> bool:
        """Whether it is being replayed: then `more` has beats."""
        return self._replay is not None

    def take(self, arrived: Arrived) -> list[Beat]:
        """Takes a message, and gives the beats that are over by it. Raises OSError where a file can't be kept."""
        if arrived.session in self._past:
            return []
        session = self._sessions.get(arrived.host)
        if session is None or session.id != arrived.session:
            session = self._begun(arrived)
        session.heard = self._monotonic()
        what = arrived.what
        if isinstance(what, Begun):
            self._declared(what, session)
        if self._recording is not None:
            self._recording.take(arrived)
            return []
        return self._live(arrived.host, session, what)

    def turn(self, now_us: int) -> list[Beat]:
        """Goes on where time alone says so. now_us is this machine's clock, by which lines without ticks are judged."""
        if self._recording is not None:
            self._begin_replay()
        elif NOBODY in self._sessions and self._files is not None:
            back = self._back(f"the brokers answer at {write_iso(now_us)}")
            self._sessions[NOBODY].now_us = now_us
            self._files.read_polls()
            return back + self._advance()
        return []

    def more(self, most: int) -> list[Beat]:
        """The next beats of its replay. Raises OSError."""
        assert self._replay is not None
        beats = list(islice(self._replay, most))
        if not beats:
            self._replay = None
            self._end()
        return beats

    def silence(self, trouble: BrokerError | None) -> list[Beat]:
        """What it means that nothing is heard: of anybody (trouble says why), or of its shippers."""
        if self.feed is None or self._unheard:
            return []
        since = self._monotonic() - SILENT_SECONDS
        quiet = {host: each for host, each in self._sessions.items() if host != NOBODY and each.heard < since}
        if trouble is not None:
            return self._told(str(trouble), ("wedgewatch", "watch", "--brokers", str(trouble.filename)), str(trouble))
        if quiet and len(quiet) == len(self._sessions):
            return self._told("; ".join(each.silence(host) for host, each in sorted(quiet.items())))
        for host, each in quiet.items():
            self._leave(host, each)
        return self._advance() if quiet else []

    def snapshot(self) -> bytes:
        """All that `restore` needs."""
        live = None if self.feed is None else (self.path, self.feed.snapshot())
        recording = None if self._recording is None else self._recording.snapshot()
        known = self._sessions, self._past, live, recording, self._unheard, self._now_us
        return pickle.dumps(known, pickle.HIGHEST_PROTOCOL)

    def restore(self, snapshot: bytes) -> None:
        """Goes on where a snapshot was made. Raises whatever a broken one causes."""
        self._sessions, self._past, live, recording, self._unheard, self._now_us = pickle.loads(snapshot)
        for session in self._sessions.values():
            session.heard = self._monotonic()
        if recording is not None:
            self._recording = Recording.restored(self.job, self._shelf(), self.notes, recording)
        if live is not None:
            self.path, kept = live
            self._begin_live(JobDeclared(JobFacts(), captured=self.path))
            assert self.feed is not None
            self.feed.take_up(kept)

    def close(self) -> None:
        """Lets go of all files."""
        if self.feed is not None:
            self.feed.close()

    def _begun(self, arrived: Arrived) -> Session:
        """Another session. Where it is the only one it is the job anew; beside others, its files are."""
        host, known = arrived.host, self._sessions.pop(arrived.host, None)
        if known is not None:
            self._past.append(known.id)
        session = self._sessions[host] = Session(arrived.session, deque())
        if isinstance(arrived.what, Begun) and arrived.what.recorded:
            self._sessions = {host: session}
            self._anew()
            self._recording = Recording(self.job, arrived.what, self._shelf(), self.notes)
        elif self._recording is not None or (known is not None and len(self._sessions) == 1):
            self._past += [each.id for name, each in self._sessions.items() if name != host]
            self._sessions = {host: session}
            self._anew()
        elif known is not None and self._files is not None:
            self._files.begin_again(host)
        return session

    def _anew(self) -> None:
        self._shelf().remove()
        self.feed = self._files = self._recording = self._replay = self._ended_at = None
        self._unheard, self._now_us = "", 0

    def _declared(self, begun: Begun, session: Session) -> None:
        self.path = begun.captured
        again, session.anew = begun.anew > session.anew, begun.anew
        if again and self._files is not None and self._files.missed and len(self._sessions) == 1:
            self._anew()
        if begun.recorded:
            return
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
            clock=lambda: self._now_us,
            follow=followed(self._shelf(), given),
        )
        (self._files,) = given

    def _live(self, host: str, session: Session, what: Any) -> list[Beat]:
        if self.feed is None:
            self._begin_live(JobDeclared(JobFacts(), captured=self.path))
        assert self._files is not None
        if isinstance(what, PollLine):
            self._files.poll(host, what)
        elif session.waiting or isinstance(what, Tick):
            session.waiting.append(what)
        else:
            self._taken(host, session, what)
        return self._ticked(host, session) if session.waiting else []

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

    def _ticked(self, host: str, session: Session) -> list[Beat]:
        """Goes on by the ticks for which all polls have come."""
        assert self._files is not None
        beats: list[Beat] = []
        while session.waiting:
            what = session.waiting[0]
            if isinstance(what, Tick):
                if not self._files.has(host, what.polls):
                    break
                beats += self._back(f"its shipper on {host} sent all up to {write_iso(what.now_us)}")
                self._files.tick(host, what)
                session.ticked(what)
                beats += self._advance()
            else:
                self._taken(host, session, what)
            session.waiting.popleft()
        return beats

    def _advance(self) -> list[Beat]:
        """The beats that are over by now, which is what the shipper says that is furthest behind."""
        assert self.feed is not None
        now_us = min((each.now_us for each in self._sessions.values()), default=0)
        if now_us <= self._now_us:
            return []
        self._now_us = now_us
        beats = self.feed.poll(now_us)
        self.notes += [f"{self.job}: {note}" for note in self.feed.notes]
        self.feed.notes.clear()
        return beats

    def _told(self, why: str, command: tuple[str, ...] = (), output: str = "") -> list[Beat]:
        assert self.feed is not None
        self._unheard = why
        return self.feed.aside(Unheard(why, command, output), "unheard")

    def _back(self, why: str) -> list[Beat]:
        if not self._unheard or self.feed is None:
            return []
        self._unheard = ""
        return self.feed.aside(HeardAgain(why), "heard_again")

    def _leave(self, host: str, session: Session) -> None:
        """Others are heard: what this one sends is missing from now on, and not waited for."""
        assert self.feed is not None
        assert self._files is not None
        for source in self._files.sources(host):
            self.feed.missed(source, session.silence(host))
        self._files.leave(host)
        del self._sessions[host]

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
        self._recording = self._ended_at = None

    def _shelf(self) -> Shelf:
        return Shelf(self._folder)
