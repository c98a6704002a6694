"""Shards: the flow's input, recorded or live. Each job is read by one shard, so that its stream has one order."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zlib import crc32

from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition

from dataflow.feed import ReplayFeed
from dataflow.outcome import Halted, Outcome
from extractors.record import Beat

if TYPE_CHECKING:
    from dataflow.live_clock import AnyClock
    from dataflow.live_job import Kept, LiveJob
    from dataflow.shipped_jobs import ShippedJobs, Snapshot

SHARDS = 16
PARTS = tuple(f"shard-{number:02d}" for number in range(SHARDS))
BATCH = 64
OBSERVATIONS = 8192
"""Of so many beats, or of one that brings the observations over this number, a batch is made; it bounds the memory."""
EACH = timedelta(seconds=0.25)
"""From one look to the next; the end of a job's line is seen so much later at most."""
IDLE_ROUNDS = 2
"""A job of which no file grew lately is looked at in one of so many rounds."""
AT_ONCE = timedelta(0)


def shard_of(job: str) -> str:
    """The shard that reads a job: the same on every machine."""
    return f"shard-{crc32(job.encode('utf-8', 'surrogateescape')) % SHARDS:02d}"


def watched(feed: ReplayFeed, outcome: Outcome) -> Iterator[Beat]:
    """The beats of a job. An error of our own, or the run's halt, ends them without a final beat."""
    if outcome.halted:
        return
    try:
        yield from feed.beats(outcome)
    except Halted:
        return
    except Exception as error:
        outcome.failed(feed.job, error)


class _Shard(StatefulSourcePartition[Beat, None]):
    """The beats of a shard's jobs, one job after the other."""

    def __init__(self, feeds: list[ReplayFeed], outcome: Outcome) -> None:
        self._beats: Iterator[Beat] = (beat for feed in feeds for beat in watched(feed, outcome))

    def next_batch(self) -> list[Beat]:
        batch: list[Beat] = []
        held = 0
        while len(batch) < BATCH and held < OBSERVATIONS and (beat := next(self._beats, None)) is not None:
            batch.append(beat)
            held += len(beat.observations)
        if not batch:
            raise StopIteration
        return batch

    def snapshot(self) -> None:
        return None


class JobShards(FixedPartitionedSource[Beat, None]):
    """Sixteen fixed shards, whatever jobs there are: partition names outlive files and jobs."""

    def __init__(self, feeds: list[ReplayFeed], outcome: Outcome) -> None:
        self._feeds = feeds
        self._outcome = outcome

    def list_parts(self) -> list[str]:
        return list(PARTS)

    def build_part(self, step_id: str, for_part: str, resume_state: None) -> _Shard:
        return _Shard([feed for feed in self._feeds if shard_of(feed.job) == for_part], self._outcome)


class _LiveShard(StatefulSourcePartition[Beat, dict[str, "Kept"]]):
    """The beats of a shard's jobs, as they come."""

    def __init__(
        self,
        jobs: dict[str, "LiveJob"],
        kept: dict[str, "Kept"] | None,
        clock: "AnyClock",
        outcome: Outcome,
        tell: Callable[[str], None],
    ) -> None:
        self._jobs = jobs
        self._kept = {place: each for place, each in (kept or {}).items() if place in jobs}
        for place, each in self._kept.items():
            jobs[place].restore(each)
            clock.not_before(each.now_us)
        self._clock = clock
        self._outcome = outcome
        self._tell = tell
        self._wait = AT_ONCE
        self._broken: set[str] = set()
        self._round = 0

    def next_batch(self) -> list[Beat]:
        if self._outcome.halted or not self._jobs:
            raise StopIteration
        batch: list[Beat] = []
        self._round += 1
        for number, (place, job) in enumerate(self._jobs.items()):
            rests = not job.brisk and (self._round + number) % IDLE_ROUNDS
            if place not in self._broken and not self._outcome.halted and not rests:
                batch += self._polled(place, job)
        self._wait = AT_ONCE if batch else EACH
        return batch

    def next_awake(self) -> datetime | None:
        return datetime.now(UTC) + self._wait

    def snapshot(self) -> dict[str, "Kept"]:
        for place, job in self._jobs.items():
            if place not in self._broken and (kept := job.snapshot()) is not None:
                self._kept[place] = kept
        return dict(self._kept)

    def close(self) -> None:
        for job in self._jobs.values():
            job.close()

    def _polled(self, place: str, job: "LiveJob") -> list[Beat]:
        """One job's turn. An error of our own ends this job alone."""
        now_us = self._clock()
        try:
            return job.poll(now_us) if now_us else []
        except Exception as error:
            self._broken.add(place)
            self._tell(f"{job.job}: internal error: {self._outcome.failed(job.job, error)}; it is not watched further")
            return []
        finally:
            for note in job.notes:
                self._tell(note)
            job.notes.clear()


class LiveShards(FixedPartitionedSource[Beat, dict[str, "Kept"]]):
    """The same for watched captures, by the places where they lie; a place says in which shard a capture is."""

    def __init__(
        self, jobs: dict[str, "LiveJob"], clock: "AnyClock", outcome: Outcome, tell: Callable[[str], None]
    ) -> None:
        self._jobs = jobs
        self._clock = clock
        self._outcome = outcome
        self._tell = tell

    def list_parts(self) -> list[str]:
        return list(PARTS)

    def build_part(self, step_id: str, for_part: str, resume_state: dict[str, "Kept"] | None) -> _LiveShard:
        jobs = {place: job for place, job in self._jobs.items() if shard_of(place) == for_part}
        return _LiveShard(jobs, resume_state, self._clock, self._outcome, self._tell)


class _ShippedPart(StatefulSourcePartition[Beat, "Snapshot"]):
    """The beats of the jobs that arrive through Kafka, as they come."""

    def __init__(self, jobs: "ShippedJobs", outcome: Outcome, again: Callable[[], bool]) -> None:
        self._jobs = jobs
        self._outcome = outcome
        self._again = again

    def next_batch(self) -> list[Beat]:
        if self._outcome.halted or self._again():
            raise StopIteration
        return self._jobs.next()

    def snapshot(self) -> "Snapshot":
        return self._jobs.snapshot()

    def close(self) -> None:
        self._jobs.close()


class ShippedShard(FixedPartitionedSource[Beat, "Snapshot"]):
    """One part for all partitions that a process owns: it is heard by one connection. again says that the flow is to
    be ended, and begun anew."""

    PART = "kafka"

    def __init__(
        self,
        jobs: Callable[["Snapshot | None"], "ShippedJobs"],
        outcome: Outcome,
        again: Callable[[], bool] = lambda: False,
    ) -> None:
        self._jobs = jobs
        self._outcome = outcome
        self._again = again

    def list_parts(self) -> list[str]:
        return [self.PART]

    def build_part(self, step_id: str, for_part: str, resume_state: "Snapshot | None") -> _ShippedPart:
        return _ShippedPart(self._jobs(resume_state), self._outcome, self._again)
