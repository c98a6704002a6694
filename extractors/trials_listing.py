"""What a listing of trial artifacts says: how many trials started and ended. Serves gate C rules 0 and 2.

Understood are `aws s3 ls --recursive` and JSON lines `{"key": …, "size": …, "last_modified": …}`. Counts alone prove
nothing about rewards: nobody opened the files.
"""

import re

import orjson

from extractors.clocks import parse_iso
from extractors.polls import PollRecord, Said, TrialsListed, unusable

_AWS = re.compile(r"^(?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s+(?P<size>\d+)\s+(?P<key>\S.*)$")
_TRIAL_FILE = re.compile(r"(?:^|/)(?P<trial>[^/]+__[A-Za-z0-9]+)/(?P<file>config\.json|result\.json)$")
"""A job has files of the same names one folder up; only a trial's folder ends in `__` and its random letters."""

AHEAD_US = 120_000_000
"""aws prints local times: a newest file this far after the poll itself shows another time zone, so no time is known."""


def read_trials(record: PollRecord) -> tuple[Said, ...]:
    """The counts. An empty listing with exit 0 is an answer; an empty one with another exit is not."""
    if record.error or record.exit not in (0, None):
        return (unusable(record, "a listing"),)
    started: set[str] = set()
    ended: set[str] = set()
    newest: tuple[int, str] | None = None
    read = 0
    for line in record.stdout.splitlines():
        entry = _entry(line)
        if entry is None:
            continue
        read += 1
        key, at_us = entry
        found = _TRIAL_FILE.search(key)
        if found is None:
            continue
        started.add(found["trial"])
        if found["file"] == "result.json":
            ended.add(found["trial"])
        if at_us is not None and (newest is None or at_us >= newest[0]):
            newest = (at_us, line)
    if record.stdout.strip() and not read:
        return (unusable(record, "a listing"),)
    newest_us, line = newest or (None, "")
    polled_us = parse_iso(record.at)
    if newest_us is not None and polled_us is not None and newest_us > polled_us + AHEAD_US:
        newest_us = None
    return (Said(TrialsListed(len(started), len(ended), newest_us), line),)


def _entry(line: str) -> tuple[str, int | None] | None:
    """One listed file: its key and when it was last modified."""
    if line.startswith("{"):
        try:
            found = orjson.loads(line)
        except orjson.JSONDecodeError:
            return None
        key = found.get("key") if isinstance(found, dict) else None
        return (key, parse_iso(str(found.get("last_modified", "")))) if isinstance(key, str) else None
    row = _AWS.match(line)
    return (row["key"], parse_iso(row["at"])) if row else None
