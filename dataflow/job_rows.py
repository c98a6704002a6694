"""What is said of a job in one line, and what of it has changed: the rows of `status` and of the live views, in plain
values."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from state.ledger import earlier

Record = dict[str, Any]
Row = dict[str, Any]

GATES = "ABCD"
_RANKS = {"KILL": 0, "ERROR": 1}
_GREAT = ("verdict", *GATES)
"""Heads whose change stays told until the next of them: stages and steps change all day."""


@dataclass(frozen=True, slots=True)
class JobLag:
    """How a watcher stands with a job.

    lag_seconds is how far that which is judged lies behind the clock; late_lines how many came after their time;
    unreadable names the sources that can't be read now. newest_us is the time of the job's newest line in microseconds,
    which is newer than what the newest verdict knows; None where none is known.
    """

    job: str
    lag_seconds: float
    late_lines: int = 0
    unreadable: tuple[str, ...] = ()
    newest_us: int | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """What became different, in words, and when that was seen. great where a verdict or a gate did."""

    says: str
    at: datetime
    great: bool


@dataclass(frozen=True, slots=True)
class Line:
    """A job's row as a look shows it: marks are the heads that changed just now, change what changed last since the
    first look."""

    row: Row
    marks: frozenset[str] = frozenset()
    change: Change | None = None
    lag: JobLag | None = None


def row_of(verdict: Record, gates: dict[str, Record], ends: Sequence[Record] = ()) -> Row:
    """A job's newest verdict in a row, its gates as they stand now: they may be newer than the verdict. ends are the
    attempts of its configuration whose ends are known; earlier tells of those of other jobs."""
    past = earlier(verdict, ends)
    newer = {letter: gate for letter, gate in gates.items() if gate["at"] >= verdict["at"]}
    lines = [source["to"] for source in (verdict["coverage"] or {}).values() if source["to"]]
    return {
        "job": verdict["job"],
        "verdict": verdict["verdict"],
        "confidence": verdict["confidence"],
        "terminal": verdict["terminal"],
        "gates": _said({**verdict["gates"], **newer}),
        "stage": verdict["stage"],
        "step": verdict["step"],
        "newest_line": max(lines, default=None),
        "at": verdict["at"],
        "captured": verdict["captured"],
        "earlier": {"runs": len({end["job"] for end in past}), "last_ended": past[-1]["at"], "how": past[-1]["how"]}
        if past
        else None,
    }


def unjudged_row(job: str, gates: dict[str, Record]) -> Row:
    """The row of a job of which no verdict was said yet."""
    stages = [gate["stage"] for _, gate in sorted(gates.items())]
    return {
        "job": job,
        "verdict": None,
        "confidence": None,
        "terminal": False,
        "gates": _said(gates),
        "stage": stages[-1] if stages else None,
        "step": None,
        "newest_line": None,
        "at": None,
        "captured": None,
        "earlier": None,
    }


def _said(gates: dict[str, Record]) -> dict[str, str]:
    return {letter: f"{gate['status']} {gate['condition']}" for letter, gate in sorted(gates.items())}


def step_said(row: Row) -> str:
    """`7/80`; `7` where the end is not known."""
    step = row["step"]
    if step is None:
        return "-"
    return f"{step['done']}/{step['of']}" if step["of"] else str(step["done"])


def verdict_said(row: Row) -> str:
    """`KILL`; `KILL (over)` of a job that has ended; `-` where none was said."""
    return f"{row['verdict'] or '-'}{' (over)' if row['terminal'] else ''}"


def condition_said(row: Row, letter: str) -> str:
    """A gate's condition, `-` where it has not answered."""
    said: str = row["gates"].get(letter, "-")
    return said.partition(" ")[2] or said


def differences(before: Row, after: Row) -> dict[str, str]:
    """What became different between two rows of a job, in words, by the heads of the table, the greatest first.

    A gate's first answer and the first stage and step are none: they come with the first verdict."""
    found: dict[str, str] = {}
    if (was := verdict_said(before)) != (now := verdict_said(after)):
        found["verdict"] = f"{was} → {now}"
    for letter in GATES:
        if before["gates"].get(letter) not in (None, after["gates"].get(letter)):
            found[letter] = f"{letter} {condition_said(before, letter)} → {condition_said(after, letter)}"
    if before["stage"] not in (None, after["stage"]):
        found["stage"] = f"{before['stage']} → {after['stage'] or '-'}"
    if before["step"] not in (None, after["step"]):
        found["step"] = f"step {step_said(after)}"
    return found


class Looks:
    """Looks at the rows of all jobs, one after another. Remembers the look before, and each job's last change.

    A head stays marked for so many seconds: 0 for the one look that sees it.
    """

    def __init__(self, marked: float = 0.0) -> None:
        self._marked = marked
        self._before: dict[str, Row] | None = None
        self._changes: dict[str, Change] = {}
        self._seen: dict[str, dict[str, datetime]] = {}

    def look(self, rows: Iterable[Row], now: datetime, lags: Iterable[JobLag] = ()) -> list[Line]:
        """The rows in their order, with what has changed. A job that was not there at the first look is new."""
        by_job, lag_of = {row["job"]: row for row in rows}, {lag.job: lag for lag in lags}
        marks = {job: self._fresh(job, self._compared(job, row, now), now) for job, row in by_job.items()}
        self._before = by_job
        self._seen = {job: seen for job, seen in self._seen.items() if job in by_job}
        self._changes = {job: change for job, change in self._changes.items() if job in by_job}
        return [Line(row, marks[job], self._changes.get(job), lag_of.get(job)) for job, row in by_job.items()]

    def _fresh(self, job: str, found: frozenset[str], now: datetime) -> frozenset[str]:
        """The heads that changed now or so shortly before that they are still marked."""
        seen = self._seen.setdefault(job, {})
        seen |= dict.fromkeys(found, now)
        return found | {head for head, at in seen.items() if (now - at).total_seconds() < self._marked}

    def _compared(self, job: str, row: Row, now: datetime) -> frozenset[str]:
        if self._before is None:
            return frozenset()
        if job not in self._before:
            self._changes[job] = Change("new", now, great=True)
            return frozenset(("job",))
        found = differences(self._before[job], row)
        great = [says for head, says in found.items() if head in _GREAT]
        old = self._changes.get(job)
        if great or (found and (old is None or not old.great)):
            self._changes[job] = Change(", ".join(great or found.values()), now, great=bool(great))
        return frozenset(found)


def within(lines: Sequence[Line], most: int) -> tuple[list[Line], str]:
    """What of the lines is shown where there is room for so many, and what is said of the others. All in their order
    where they fit; else those that need somebody first."""
    if len(lines) <= most:
        return list(lines), ""
    ordered = sorted(lines, key=lambda line: (line.row["terminal"], _RANKS.get(line.row["verdict"], 2)))
    shown, rest = ordered[: max(0, most - 1)], ordered[max(0, most - 1) :]
    counts: dict[str, int] = {}
    for line in rest:
        said = verdict_said(line.row)
        counts[said] = counts.get(said, 0) + 1
    told = ", ".join(f"{count} {said}" for said, count in counts.items())
    return shown, f"and {len(rest)} more: {told}"
