"""The jobs that arrive through Kafka: each message given to its job in the order of its partition, silence looked into.

A snapshot holds the places in the partitions and the jobs as they stood there, so that a restart goes on without a gap
or a repeat.
"""

import time
from collections import deque
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

from dataflow.bundles import opened
from dataflow.envelope import Poison, poison
from dataflow.kafka import BrokerError, Topic, partition_of
from dataflow.kafka_follower import Follower, Message, Position
from dataflow.kafka_settings import Brokers
from dataflow.outcome import Outcome
from dataflow.shelf import Shelf, has_no_room
from dataflow.shipped_job import ShippedJob
from dataflow.wire import Arrived, read
from extractors.record import Beat
from state.wording import plural

TURN_SECONDS = 0.1
"""How long messages are waited for."""
LOOK_SECONDS = 0.25
"""From one look at what time alone brings to the next."""
GRACE_SECONDS = 10.0
"""How long the brokers may be away before that is evidence."""
RETRY_SECONDS = 1.0
"""From a full disk to the next try."""
MOST_BEATS = 64
"""Of a replay at once, while other jobs wait."""
LISTENS_SECONDS = 1.0
"""What a turn counts for at most where silence is measured: what took longer was not spent listening."""

Owns = Callable[[int, int], bool]
Snapshot = tuple[tuple[Position, ...], dict[str, Any]]


class ShippedJobs:
    """Follows the topics of lines and polls. owns says which partitions are this process's; spool is the folder of the
    files that are read whole; clock is this machine's; tell gets what the user should hear. jobs are by name."""

    def __init__(
        self,
        brokers: Brokers,
        spool: Path,
        lateness_us: int,
        outcome: Outcome,
        tell: Callable[[str], None],
        *,
        owns: Owns,
        clock: Callable[[], int],
        kept: Snapshot | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.jobs: dict[str, ShippedJob] = {}
        self.trouble: BrokerError | None = None
        self._brokers = brokers
        self._spool = spool
        self._lateness_us = lateness_us
        self._outcome = outcome
        self._tell = tell
        self._clock = clock
        self._monotonic = monotonic
        self._listened, self._turned_at = 0.0, monotonic()
        topics = (Topic.LINES.under(brokers.prefix), Topic.POLLS.under(brokers.prefix))
        self._pending: deque[Message] = deque()
        self._taken_of = 0
        self._broken: set[str] = set()
        self._snapshots: dict[str, Any] = {}
        self._changed: set[str] = set()
        self._said = self._greeted = ""
        self._troubled_at: float | None = None
        self._looked_at = self._full_at = float("-inf")
        if kept is None:
            Shelf(spool).remove()
        self._follower = Follower(brokers, topics, self._restored(kept), owns=owns)

    def next(self) -> list[Beat]:
        """What comes within a moment, as beats. Never raises."""
        beats: list[Beat] = []
        self._listen()
        if not self._pending:
            heard = self._follower.poll(0.0 if self._replaying else TURN_SECONDS)
            self._hear(heard.notes, heard.trouble)
            if heard.trouble is None:
                self._greet()
            self._pending.extend(heard.messages)
        if self._monotonic() - self._full_at >= RETRY_SECONDS:
            self._take(beats)
        if self._monotonic() - self._looked_at >= LOOK_SECONDS:
            self._looked_at = self._monotonic()
            for job in list(self.jobs.values()):
                self._turn(job, beats)
        for job in self._replaying:
            self._do(job, lambda job=job: job.recordings.more(MOST_BEATS), beats, takes=True)  # type: ignore[misc]
        return beats

    def _greet(self) -> None:
        """Says what is listened to, once."""
        own = len({each.partition for each in self._follower.positions})
        words = f"{self._brokers.name}: listens to {plural(own, 'partition')} of the topics {self._brokers.prefix}.*"
        if not own:
            words = "this share has no partition of the topics, which are fewer than the processes; it is idle"
        if words != self._greeted:
            self._greeted = words
            self._tell(words)

    @property
    def _replaying(self) -> list[ShippedJob]:
        return [job for name, job in self.jobs.items() if job.recordings.replays and name not in self._broken]

    def _listen(self) -> None:
        """Silence is measured in the time in which somebody listens: not while the brokers are away, nor while a replay
        or a slow disk holds all up."""
        now = self._monotonic()
        if self.trouble is None:
            self._listened += min(now - self._turned_at, LISTENS_SECONDS)
        self._turned_at = now

    def snapshot(self) -> Snapshot:
        """Where it stands: all messages before these places were taken. Never raises."""
        for name in self._changed - self._broken:
            try:
                self._snapshots[name] = self.jobs[name].snapshot()
            except Exception as error:
                self._break(self.jobs[name], error)
        for job in self.jobs.values():
            job.sweep()
        self._changed.clear()
        positions = {(each.topic, each.partition): each for each in self._follower.positions}
        for message in reversed(self._pending):
            place = message.topic, message.partition
            positions[place] = positions[place]._replace(offset=message.offset)
        return tuple(positions.values()), dict(self._snapshots)

    def close(self) -> None:
        """Lets go of the brokers and of all files."""
        self._follower.close()
        for job in self.jobs.values():
            job.close()

    def _take(self, beats: list[Beat]) -> None:
        """Gives messages to their jobs. Where the disk takes no more of them, they wait."""
        while self._pending and not self._outcome.halted:
            message = self._pending[0]
            inner = opened(message)
            if isinstance(inner, Poison):
                self._poisoned(message, inner)
            else:
                for each in inner[self._taken_of :]:
                    if not self._taken(each, beats):
                        return
                    self._taken_of += 1
            self._taken_of = 0
            self._pending.popleft()

    def _taken(self, message: Message, beats: list[Beat]) -> bool:
        """Gives a message to its job; False where it must wait."""
        arrived = read(message)
        if isinstance(arrived, Arrived) and (why := self._misplaced(arrived.job, message)):
            arrived = poison(message.value, why)
        if isinstance(arrived, Poison):
            self._poisoned(message, arrived)
            return True
        if arrived.job in self._broken:
            return True
        job, what = self._job(arrived.job), arrived
        return self._do(job, lambda: job.take(what), beats, takes=True)

    def _misplaced(self, job: str, message: Message) -> str:
        """Why a message can't be its job's: those share a partition, which one process reads."""
        own = partition_of(job, self._follower.partitions(message.topic))
        return "" if own == message.partition else f"its job's messages belong in partition {own}"

    def _job(self, name: str) -> ShippedJob:
        job = self.jobs.get(name)
        if job is None:
            job = self.jobs[name] = ShippedJob(
                name, self._spool / _folder(name), self._lateness_us, lambda: self._listened
            )
        return job

    def _turn(self, job: ShippedJob, beats: list[Beat]) -> None:
        """What time alone brings."""
        since = self._troubled_at
        trouble = self.trouble if since is not None and self._monotonic() - since >= GRACE_SECONDS else None
        caught_up = self.trouble is None and not self._pending and self._follower.is_caught_up(job.job)
        if self.trouble is None:
            self._do(job, lambda: job.turn(self._clock(), caught_up), beats)
        if caught_up or trouble is not None:
            self._do(job, lambda: job.silence(trouble), beats)

    def _do(self, job: ShippedJob, what: Callable[[], list[Beat]], beats: list[Beat], takes: bool = False) -> bool:
        """Lets a job do something; False where its disk is full. An error of our own ends this job alone."""
        if job.job in self._broken:
            return True
        before, standing = len(beats), job.standing
        try:
            beats += what()
            if takes or len(beats) > before or job.standing != standing:
                self._changed.add(job.job)
            if takes:
                self._full_at = float("-inf")
        except OSError as error:
            place = f"{error.filename or self._spool}: cannot be written: {error.strerror}"
            if has_no_room(error):
                self._full_at = self._monotonic()
                self._say(f"{place}; it is tried again")
                return False
            self._tell(f"{job.job}: {place}; it is passed over")
        except Exception as error:
            self._break(job, error)
        for note in job.notes:
            self._tell(note)
        job.notes.clear()
        return True

    def _break(self, job: ShippedJob, error: Exception) -> None:
        self._broken.add(job.job)
        self._snapshots.pop(job.job, None)
        why = self._outcome.failed(job.job, error)
        self._tell(f"{job.job}: internal error: {why}; it is not judged further")

    def _hear(self, notes: list[str], trouble: BrokerError | None) -> None:
        for note in notes:
            self._tell(note)
        if trouble is not None and self._troubled_at is None:
            self._troubled_at = self._monotonic()
        if trouble is None:
            self._troubled_at = None
            if self.trouble is not None:
                self._say("")
                self._tell(f"{self._brokers.name}: heard again")
        elif str(trouble) != str(self.trouble or ""):
            self._say(f"{trouble}; it is tried again, and nothing is heard until then")
        self.trouble = trouble

    def _say(self, words: str) -> None:
        """Tells something once, until something else is told."""
        if words and words != self._said:
            self._tell(words)
        self._said = words

    def _poisoned(self, message: Message, found: Poison) -> None:
        self._tell(f"{message.place}: {found.why}; it is passed over: {found.quote}")
        name = (message.key or b"").decode("utf-8", "replace")
        if name in self.jobs and (feed := self.jobs[name].feed) is not None:
            feed.poisoned(message.place, f"{found.why}: {found.quote}")

    def _restored(self, kept: Snapshot | None) -> tuple[Position, ...]:
        """Takes the jobs as they stood, and gives the places that belong to them; none where they can't be used, so
        that everything is read again."""
        positions, jobs = kept or ((), {})
        for name, snapshot in jobs.items():
            try:
                self._job(name).restore(snapshot)
            except Exception as error:
                self._tell(f"{name}: what was kept of it can't be used ({error}); all topics are read again")
                self.jobs.clear()
                Shelf(self._spool).remove()
                return ()
        self._snapshots = dict(jobs)
        for path in self._spool.glob("*"):
            if path.name not in {_folder(name) for name in jobs}:
                Shelf(path).remove()
        return positions


def _folder(job: str) -> str:
    return blake2b(job.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
