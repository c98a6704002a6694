"""What a watch says of its jobs (`health.json`), for the commands that answer beside it or after it."""

import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from extractors.clocks import SECOND_US, parse_iso

Entry = dict[str, Any]
"""What `health.json` says of a job."""

SILENT_SECONDS = 120.0
"""After which a watch that does not say how it fares is taken for none."""


def watched_jobs(store: Path, running: bool = False) -> dict[str, Entry]:
    """What the newest watch of a store said of its jobs, by their names; nothing where it says nothing, or where it is
    asked for one that runs and it has fallen silent. Raises nothing."""
    with suppress(OSError, ValueError):
        if not running or silent_since(store) is None:
            said = orjson.loads(_health(store).read_bytes())
            jobs = said.get("jobs") if isinstance(said, dict) else None
            return {job: entry for job, entry in jobs.items() if _is_entry(entry)} if isinstance(jobs, dict) else {}
    return {}


def silent_since(store: Path) -> int | None:
    """When the newest watch of a store last said how it fares, in microseconds, where it has fallen silent since; None
    where one runs, or none ever did."""
    try:
        said = _health(store).stat().st_mtime
    except OSError:
        return None
    return int(said * SECOND_US) if time.time() - said > SILENT_SECONDS else None


def _health(store: Path) -> Path:
    return store / "watch" / "health.json"


def _is_entry(said: Any) -> bool:
    """Whether a watch may have said this of a job; the file may be of another version, or of somebody else."""
    if not isinstance(said, dict):
        return False
    captured, lag, sync, newest = said.get("captured", ""), said.get("lag"), said.get("sync"), said.get("newest")
    timed = newest is None or (isinstance(newest, str) and parse_iso(newest) is not None)
    return isinstance(captured, str) and timed and isinstance(lag, float | int | None) and isinstance(sync, dict | None)
