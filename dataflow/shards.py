"""Shards: the flow's input. Each job is read by one shard, so that its stream has one order."""

from collections.abc import Iterator
from zlib import crc32

from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition

from dataflow.feed import ReplayFeed
from dataflow.outcome import Halted, Outcome
from extractors.record import Beat

SHARDS = 16
BATCH = 64
OBSERVATIONS = 8192
"""Of so many beats, or of one that brings the observations over this number, a batch is made; it bounds the memory."""


def shard_of(job: str) -> str:
    """The shard that reads a job: the same on every machine."""
    return f"shard-{crc32(job.encode()) % SHARDS:02d}"


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
        return [f"shard-{number:02d}" for number in range(SHARDS)]

    def build_part(self, step_id: str, for_part: str, resume_state: None) -> _Shard:
        return _Shard([feed for feed in self._feeds if shard_of(feed.job) == for_part], self._outcome)
