"""The probes and syncs of all jobs that are watched, and up to when what they bring is known."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dataflow.lag import Synced
from dataflow.probes import SYNC, Polled, ProbedJob, ProbePool
from dataflow.settings import Settings, Sync

HELD_US = 30_000_000
"""How long a poll that runs holds its job's stream: its record bears the time at which it began."""
_SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True)
class _Unsynced:
    """A sync that fails: why, and since_us when it first ended so. vain says that it can't even begin."""

    why: str
    since_us: int
    vain: bool


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
        self._unsynced: dict[str, _Unsynced] = {}
        self._first_us: dict[str, int] = {}

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
        if settings.sync is not None and (synced_us := self._pulled(job, settings.sync, now_us)) is not None:
            limits.append(synced_us - self._lateness_us)
        return min(limits, default=None)

    def synced(self, job: str) -> Synced | None:
        """How a job's sync fares; None where it has none."""
        settings = self._asked.get(job)
        if settings is None or settings.sync is None:
            return None
        failing = self._unsynced.get(job)
        return Synced(self._synced_us.get(job), "" if failing is None else failing.why)

    def _pulled(self, job: str, sync: Sync, now_us: int) -> int | None:
        """The time up to which all of a job was pulled. None where that is not waited for any more: a sync has failed
        for so long that what the next one brings is late in any case, or it can't begin."""
        longest_us = int((sync.every + sync.timeout) * _SECOND_US)
        first_us, synced_us = self._first_us.setdefault(job, now_us), self._synced_us.get(job)
        failing = self._unsynced.get(job)
        if failing is not None and now_us - failing.since_us > self._lateness_us:
            last_us = first_us if synced_us is None else synced_us
            if failing.vain or now_us - last_us > longest_us:
                return None
        return max(synced_us or 0, now_us - longest_us)

    def _heard_sync(self, polled: Polled) -> None:
        """A sync's failure is told once, and when it is over: all of the job waits for it."""
        why = polled.error or (f"exit {polled.exit}" if polled.exit else "")
        failing = self._unsynced.get(polled.job)
        before = "" if failing is None else failing.why
        if why:
            ended_us = polled.began_us + int(polled.elapsed * _SECOND_US)
            since_us = ended_us if failing is None else failing.since_us
            self._unsynced[polled.job] = _Unsynced(why, since_us, polled.unbegun)
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
