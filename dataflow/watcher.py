"""What a watch says of its jobs (`health.json`), for the commands that answer beside it or after it."""

import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

Entry = dict[str, Any]
"""What `health.json` says of a job."""

SILENT_SECONDS = 120.0
"""After which a watch that does not say how it fares is taken for none."""


def watched_jobs(store: Path, within: float | None = None) -> dict[str, Entry]:
    """What the newest watch of a store said of its jobs, by their names; nothing where it says nothing, or did not
    within so many seconds. Raises nothing."""
    path = store / "watch" / "health.json"
    with suppress(OSError, ValueError):
        if within is None or time.time() - path.stat().st_mtime <= within:
            jobs = orjson.loads(path.read_bytes())["jobs"]
            return {job: entry for job, entry in jobs.items() if isinstance(entry, dict)}
    return {}
