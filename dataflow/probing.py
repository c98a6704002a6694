"""The probes and syncs of all jobs that are watched, and up to when what they bring is known."""

from collections.abc import Callable
from pathlib import Path

from dataflow.probes import SYNC, Polled, ProbedJob, ProbePool
from dataflow.settings import Settings

HELD_US = 30_000_000
"""How long a poll that runs holds its job's stream: its record bears the time at which it began."""
_SECOND_US = 1_000_000


class Probing:
    """Asks what job.toml files say. tell takes a line for the user; lateness_us is how long a line may be on its way to
    where a sync takes it from. A job is anything by which to know it again: it may have no name before its first sync.
    May be used from any thread."""

    def __init__(self, pool: ProbePool, tell: Callable[[str], None], lateness_us: int = 0) -> None:
        self._pool = pool
        self._tell = tell
        self._lateness_us = lateness_us
        self._asked: dict[str, Settings] = {}
        self._synced_us: dict[str, int] = {}
        self._lost: set[tuple[str, str]] = set()
        self._unbegun: set[tuple[str, str, str]] = set()
        self._unsynced: dict[str, str] = {}

    def ask(self, job: str, folder: Path, settings: Settings) -> None:
        """Begins with a job's probes, once its folder is there: call it again until then. Of those of a job that was
        asked before, changes need a new start."""
        known = self._asked.get(job)
        if known is None:
            if (settings.probes or settings.sync) and folder.is_dir():
                self._asked[job] = settings
                self._pool.start([ProbedJob(job, folder, settings)])
        elif (known.probes, known.sync) != (settings.probes, settings.sync):
            self._tell(f"{job}: its job.toml names other probes now; they run from the next start of the watch on")

    def hear(self) -> list[Polled]:
        """What has ended since the last call."""
        polls = self._pool.poll()
        for polled in polls:
            if polled.probe == SYNC:
                self._heard_sync(polled)
            elif polled.unbegun and (why := (polled.job, polled.probe, polled.error)) not in self._unbegun:
                self._unbegun.add(why)
                self._tell(f"{polled.job}: probe {polled.probe}: {polled.error}; that is recorded, and tried again")
            place = (polled.job, polled.probe)
            if polled.unwritten and place not in self._lost:
                self._lost.add(place)
                self._tell(f"{polled.job}: polls/{polled.probe}.jsonl can't be written: {polled.unwritten}")
        return polls

    def holds(self, job: str, now_us: int) -> int | None:
        """The time up to which nothing more of a job's polls and syncs is to be expected; None where none run."""
        settings = self._asked.get(job)
        if settings is None:
            return None
        limits = []
        began_us = self._pool.began_us(job)
        if began_us is not None:
            limits.append(max(began_us - 1, now_us - HELD_US))
        if settings.sync is not None:
            longest_us = int((settings.sync.every + settings.sync.timeout) * _SECOND_US)
            limits.append(max(self._synced_us.get(job, 0), now_us - longest_us) - self._lateness_us)
        return min(limits, default=None)

    def _heard_sync(self, polled: Polled) -> None:
        """A sync's failure is told once, and when it is over: all of the job waits for it."""
        why = polled.error or (f"exit {polled.exit}" if polled.exit else "")
        before = self._unsynced.get(polled.job, "")
        if why:
            self._unsynced[polled.job] = why
        else:
            self._synced_us[polled.job] = polled.began_us
            self._unsynced.pop(polled.job, None)
        if why and why != before:
            self._tell(f"{polled.job}: its sync fails ({why}); what it says is in polls/{SYNC}.jsonl")
        elif before and not why:
            self._tell(f"{polled.job}: its sync works again")

    def stop(self, timeout: float) -> None:
        """Ends what runs."""
        self._pool.stop(timeout)
