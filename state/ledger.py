"""The ledger of a configuration: how its earlier runs and attempts ended, for people to read.

A run that is launched again gets a new job name, and its logs begin anew; the store keeps what the earlier ones ended
of. No gate reads it: another run's end is no evidence of this one.
"""

import re
from collections.abc import Iterable
from typing import Any

from state.wording import plural

Record = dict[str, Any]

EVIDENCE_KEPT = 2
"""Of each end."""

_SUFFIX = re.compile(
    r"[-_.](?:20\d{6}(?:[-_T]?\d{4,6}Z?)?|20\d\d-\d\d-\d\d|1\d{9}|(?:r|run|try|retry|attempt|rerun|relaunch)[-_]?\d{1,3}"
    r"|retry|rerun|relaunch|\d{1,3})\Z"
)


def configuration_of(job: str) -> str:
    """A job's name without what tells one launch from another at its end: dates, counters (`-20260720`, `-r2`, `_3`).

    It is a guess by the name alone, so that a size there (`-tp2-16`) counts as a counter too.
    """
    name = job
    while True:
        shorter = _SUFFIX.sub("", name)
        if shorter == name or not shorter.rpartition("/")[2]:
            return name
        name = shorter


def ends_of(record: Record) -> list[tuple[str, Record]]:
    """The ends that a verdict tells of, each with a key that is the same in every verdict that tells of it: the burned
    attempts that it quotes, and the job's own where it is over."""
    restarts = record["restarts"]
    quoted = [item for item in restarts["evidence"] if not item["source"].startswith("polls/")]
    ends = {_place(item): _end(record, item["at"], [item]) for item in quoted}
    if quoted:
        ends[_place(quoted[-1])]["fingerprint"] = restarts["fingerprint"]
    cause = record["cause"]
    for item in cause["evidence"][:1] if cause else ():
        ends.get(_place(item), {})["how"] = cause["code"]
    if record["terminal"]:
        evidence = (cause["evidence"] if cause else record["gates"]["A"]["evidence"])[:EVIDENCE_KEPT]
        over = _end(record, evidence[0]["at"] if cause and evidence else None, evidence)
        over |= {"over": True, "how": cause["code"] if cause else record["gates"]["A"]["condition"]}
        over |= {"step": record["step"], "fingerprint": restarts["fingerprint"] if cause else None}
        ends[_place(evidence[0]) if cause and evidence else f"over at step {record['step']['done']}"] = over
    return list(ends.items())


def merged(one: Record, other: Record) -> Record:
    """What is kept of two tellings of one end, in whatever order they come: a job's end before an attempt's, one with a
    cause before one without, then what was said first."""
    return min(one, other, key=lambda end: (not end["over"], end["how"] is None, end["said"], end["how"] or ""))


def earlier(record: Record, ends: Iterable[Record]) -> list[Record]:
    """The ends of other runs of a job's configuration, oldest first: of other jobs, and of this name's earlier lives,
    which ended before the first line that this verdict has read."""
    begun = min((source["from"] for source in (record["coverage"] or {}).values() if source["from"]), default="")
    found = [end for end in ends if end["at"] < (record["at"] if end["job"] != record["job"] else begun)]
    return sorted(found, key=lambda end: (end["at"], end["job"]))


def earlier_line(record: Record, ends: Iterable[Record]) -> str:
    """The ledger in a line; "" where there is no earlier run."""
    found = earlier(record, ends)
    if not found:
        return ""
    last = found[-1]
    runs = {end["job"] for end in found}
    step = f" at step {last['step']['done']}" if last["step"] and last["step"]["done"] else ""
    how = f": {last['how']}" if last["how"] else ""
    attempts = sum(not end["over"] for end in found)
    burned = f", {plural(attempts, 'burned attempt')}" if attempts else ""
    return (
        f"Earlier runs of this configuration ({configuration_of(record['job'])}): {len(runs)}{burned}, "
        f"last ended {last['at']}{how}{step} ({last['job']})"
    )


def _place(item: Record) -> str:
    """Where an end is quoted, without its line: a re-synced log may begin elsewhere."""
    return f"{item['at']} {item['source']}" if item["at"] else f"{item['source']}:{item['line']}"


def _end(record: Record, at: str | None, evidence: list[Record]) -> Record:
    return {
        "job": record["job"],
        "configuration": configuration_of(record["job"]),
        "at": at or record["at"],
        "over": False,
        "how": None,
        "fingerprint": None,
        "step": None,
        "evidence": evidence,
        "said": record["at"],
    }
