"""What the watcher says of itself: `<store>/watch/health.json`, replaced once a second while it sees something.

{"now": "…Z", "pid": 4711, "jobs": {"/kim/rl": {"released": "…Z", "newest": "…Z", "lag": 5.2, "late": 0, "sources": 41,
"unreadable": {"finelog.log": "Permission denied"}, "blind": false, "captured": "runs/rl",
"sync": {"good": "…Z", "fails": "exit 1"}}}}
now is the watcher's clock; released is up to when a job was judged and lag how far that is behind now (seconds), newest
the time of its newest line until then;
sync is null where no sync pulls the job, good when the last good one began. Where every job is blind, the file is left
as it is: who waits for its time sees that the watcher no longer watches.
"""

from collections.abc import Iterable
from pathlib import Path

import orjson

from dataflow.capture import shown
from dataflow.job_rows import JobLag
from dataflow.lag import Synced, Watched
from extractors.clocks import SECOND_US, write_iso


def lag_of(job: Watched, now_us: int) -> JobLag:
    """How the watcher stands with a job."""
    if job.feed is None:
        return JobLag(job.job, 0.0)
    lag = job.feed.lag
    behind = max(0.0, (now_us - lag.released_us) / SECOND_US) if lag.released_us else 0.0
    return JobLag(job.job, behind, lag.late, tuple(sorted(lag.unreadable)), lag.newest_us or None)


class Health:
    """Writes the file. Raises OSError where it can't."""

    def __init__(self, folder: Path, pid: int) -> None:
        self._path = folder / "health.json"
        self._pid = pid

    def write(self, jobs: Iterable[Watched], now_us: int) -> None:
        """Replaces it, unless the watcher is blind."""
        known = list(jobs)
        feeds = [job.feed for job in known if job.feed is not None]
        if feeds and all(feed.lag.blind for feed in feeds):
            return
        said = {"now": write_iso(now_us), "pid": self._pid, "jobs": {job.job: _said(job, now_us) for job in known}}
        new = self._path.with_name(f"{self._path.name}.new")
        new.write_bytes(orjson.dumps(said))
        new.replace(self._path)


def _said(job: Watched, now_us: int) -> dict[str, object]:
    if job.feed is None:
        return {"captured": shown(job.path), "waits": job.stands}
    lag = job.feed.lag
    return {
        "captured": shown(job.path),
        "released": write_iso(lag.released_us) if lag.released_us else None,
        "newest": write_iso(lag.newest_us) if lag.newest_us else None,
        "lag": round(lag_of(job, now_us).lag_seconds, 3),
        "late": lag.late,
        "sources": lag.sources,
        "unreadable": dict(sorted(lag.unreadable.items())),
        "blind": lag.blind,
        "sync": None if lag.synced is None else _synced(lag.synced),
    }


def _synced(synced: Synced) -> dict[str, object]:
    return {"good": None if synced.good_us is None else write_iso(synced.good_us), "fails": synced.fails}
