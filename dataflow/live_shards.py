"""The flow's input when it is live: the watched captures, each in one shard, looked at four times a second."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition

from dataflow.live_clock import AnyClock
from dataflow.live_job import Kept, LiveJob
from dataflow.outcome import Outcome
from dataflow.shards import SHARDS, shard_of
from extractors.record import Beat

EACH = timedelta(seconds=0.25)
"""From one look to the next; the end of a job's line is seen so much later at most."""
AT_ONCE = timedelta(0)

Watched = dict[str, LiveJob]
"""The jobs of a watch, by the paths of their captures."""


class _LiveShard(StatefulSourcePartition[Beat, dict[str, Kept]]):
    """The beats of a shard's jobs, as they come."""

    def __init__(
        self,
        jobs: Watched,
        kept: dict[str, Kept] | None,
        clock: AnyClock,
        outcome: Outcome,
        tell: Callable[[str], None],
    ) -> None:
        self._jobs = jobs
        self._kept = {path: each for path, each in (kept or {}).items() if path in jobs}
        for path, each in self._kept.items():
            jobs[path].restore(each)
        self._clock = clock
        self._outcome = outcome
        self._tell = tell
        self._wait = AT_ONCE
        self._broken: set[str] = set()

    def next_batch(self) -> list[Beat]:
        if self._outcome.halted or not self._jobs:
            raise StopIteration
        batch: list[Beat] = []
        for path, job in self._jobs.items():
            if path not in self._broken and not self._outcome.halted:
                batch += self._polled(path, job)
        self._wait = AT_ONCE if batch else EACH
        return batch

    def next_awake(self) -> datetime | None:
        return datetime.now(UTC) + self._wait

    def snapshot(self) -> dict[str, Kept]:
        for path, job in self._jobs.items():
            if path not in self._broken and (kept := job.snapshot()) is not None:
                self._kept[path] = kept
        return dict(self._kept)

    def close(self) -> None:
        for job in self._jobs.values():
            job.close()

    def _polled(self, path: str, job: LiveJob) -> list[Beat]:
        """One job's turn. An error of our own ends this job alone."""
        now_us = self._clock()
        try:
            return job.poll(now_us) if now_us else []
        except Exception as error:
            self._broken.add(path)
            self._tell(f"{job.job}: internal error: {self._outcome.failed(job.job, error)}; it is not watched further")
            return []
        finally:
            for note in job.notes:
                self._tell(note)
            job.notes.clear()


class LiveShards(FixedPartitionedSource[Beat, dict[str, Kept]]):
    """Sixteen fixed shards; a capture's path says in which it is."""

    def __init__(self, jobs: Watched, clock: AnyClock, outcome: Outcome, tell: Callable[[str], None]) -> None:
        self._jobs = jobs
        self._clock = clock
        self._outcome = outcome
        self._tell = tell

    def list_parts(self) -> list[str]:
        return [f"shard-{number:02d}" for number in range(SHARDS)]

    def build_part(self, step_id: str, for_part: str, resume_state: dict[str, Kept] | None) -> _LiveShard:
        jobs = {path: job for path, job in self._jobs.items() if shard_of(path) == for_part}
        return _LiveShard(jobs, resume_state, self._clock, self._outcome, self._tell)
