"""Rows of jobs as a table for people: `status`, `status --watch` and the live view of `watch`. Colours go only to a
terminal, and not where `NO_COLOR` is set."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from rich.console import Console, Group
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from dataflow.job_rows import GATES, Line, Row, condition_said, step_said, verdict_said, within
from dataflow.outcome import plain
from state.wording import plural, span

HEADS = ("job", "verdict", *GATES, "stage", "step", "fresh", "age")
"""What `status` shows of a job."""
STATUS_WATCHED = (*HEADS, "changed")
WATCHED = (*HEADS[:-1], "lag", "changed")
"""What `watch` shows: its verdicts are as old as its records, its lag is news."""

_COLOURS = {"KILL": "bold red", "NO-KILL": "green", "ERROR": "yellow"}
_STATUS_COLOURS = {"FAIL": "bold red", "ERROR": "yellow"}
_DAY = 86_400.0
_GAP = 1
_DROPPED = ("age", "fresh", "stage", "step", "lag", "changed")
"""Heads that a narrow terminal does without, the first first. Four gates take much room: before a stage is left out,
they are told in one column, and only what is amiss with them."""
_CHANGED_LEAST = 16
"""Columns in which a change can be told."""
_BEHIND = 30.0
"""Seconds of lag from which a watcher is behind."""


class SteadyConsole(Console):
    """A console that never hides the cursor, so that whatever ends the process leaves the terminal sane."""

    def show_cursor(self, show: bool = True) -> bool:
        """Changes nothing."""
        return False


def table_of(lines: Sequence[Line], heads: Sequence[str], now: datetime) -> Table:
    """The lines as a table that gives each row the lines it needs."""
    table = Table(box=None, pad_edge=False)
    for head in heads:
        table.add_column(head, overflow="fold", no_wrap=head != "job")
    for line in lines:
        table.add_row(*(_cell(line, head, now) for head in heads))
    return table


def screenful(lines: Sequence[Line], heads: Sequence[str], now: datetime, console: Console, foot: str = "") -> Group:
    """The lines as a table that fits the terminal, one line a job: what there is no room for is summed up or left out.
    foot is said below it."""
    feet = [each for each in foot.split("\n") if each]
    shown, more = within(lines, console.height - 2 - len(feet))
    heads = _fitting(shown, heads, now, console)
    table = Table(box=None, pad_edge=False)
    for head in heads:
        table.add_column(head, overflow="ellipsis", no_wrap=True)
    room = console.width - _width(shown, [head for head in heads if head != "changed"], now, console) - _GAP
    for line in shown:
        cells = {head: _cell(line, head, now) for head in heads}
        if "changed" in cells:
            cells["changed"].truncate(max(1, room), overflow="ellipsis")
        table.add_row(*cells.values())
    below = [more, *feet] if more else feet
    return Group(table, *(Text(plain(each), style="dim", no_wrap=True, overflow="ellipsis") for each in below))


def _fitting(lines: Sequence[Line], heads: Sequence[str], now: datetime, console: Console) -> list[str]:
    """As many of the heads as the terminal has room for."""
    merged = ["gates" if head == "A" else head for head in heads if head not in GATES[1:]]
    kept: list[str] = []
    for whole, count in (*((heads, count) for count in range(3)), *((merged, count) for count in range(7))):
        kept = [head for head in whole if head not in _DROPPED[:count]]
        fixed = [head for head in kept if head != "changed"]
        if _width(lines, fixed, now, console) + (_CHANGED_LEAST if "changed" in kept else 0) <= console.width:
            return kept
    return kept


def _width(lines: Sequence[Line], heads: Sequence[str], now: datetime, console: Console) -> int:
    wide = console.options.update(width=10_000)
    return Measurement.get(console, wide, table_of(lines, heads, now)).maximum


def _cell(line: Line, head: str, now: datetime) -> Text:
    """What a line says under a head; what has changed since the look before is set off without colours too."""
    cell = _gate(line, head) if head in GATES else _CELLS[head](line, now)
    if head in line.marks or (head == "gates" and line.marks.intersection(GATES)):
        cell = Text.assemble("*", cell, style="bold reverse")
    return cell


def _gate(line: Line, letter: str) -> Text:
    """A gate's condition; what is not PASS in its colour."""
    status = line.row["gates"].get(letter, "").partition(" ")[0]
    return Text(condition_said(line.row, letter), style=_STATUS_COLOURS.get(status, ""))


def _gates(line: Line, _now: datetime) -> Text:
    """The gates that don't pass, with their conditions."""
    said = line.row["gates"]
    amiss = [letter for letter, each in said.items() if each.partition(" ")[0] in _STATUS_COLOURS]
    if not amiss:
        return Text("pass" if said else "-")
    return Text(" ").join(Text.assemble(f"{letter} ", _gate(line, letter)) for letter in amiss)


def _verdict(line: Line, _now: datetime) -> Text:
    return Text(verdict_said(line.row), style=_COLOURS.get(line.row["verdict"], ""))


def _fresh(line: Line, now: datetime) -> Text:
    newest = _moment(line.row["newest_line"])
    if line.lag is not None and line.lag.newest_us is not None:
        watched = datetime.fromtimestamp(line.lag.newest_us / 1_000_000, UTC)
        newest = max(newest or watched, watched)
    return Text(_ago(newest, now))


def _lag(line: Line, _now: datetime) -> Text:
    """The watcher's lag, and what it could not take in."""
    lag = line.lag
    if lag is None:
        return Text("-")
    says = [span(max(0.0, lag.lag_seconds))]
    says += [f"{lag.late_lines} late"] if lag.late_lines else []
    says += [f"{len(lag.unreadable)} unread"] if lag.unreadable else []
    return Text(", ".join(says), style="yellow" if lag.unreadable or lag.lag_seconds > _BEHIND else "")


def _changed(line: Line, now: datetime) -> Text:
    change = line.change
    return Text("" if change is None else f"{_ago(change.at, now)} ago: {change.says}")


_CELLS: dict[str, Callable[[Line, datetime], Text]] = {
    "job": lambda line, now: Text(plain(line.row["job"])),
    "verdict": _verdict,
    "gates": _gates,
    "stage": lambda line, now: Text(line.row["stage"] or "-"),
    "step": lambda line, now: Text(step_said(line.row)),
    "fresh": _fresh,
    "age": lambda line, now: Text(_ago(_moment(line.row["at"]), now)),
    "lag": _lag,
    "changed": _changed,
}


def _moment(at: str | None) -> datetime | None:
    return None if at is None else datetime.fromisoformat(at)


def _ago(at: datetime | None, now: datetime) -> str:
    if at is None:
        return "-"
    seconds = max(0.0, (now - at).total_seconds())
    return f"{seconds / _DAY:.0f} d" if seconds > 2 * _DAY else span(seconds)


def unread_said(lines: Sequence[Line], most: int = 3) -> str:
    """Which sources can't be read, a line each, the rest counted."""
    unread = [(line.row["job"], source) for line in lines if line.lag for source in line.lag.unreadable]
    said = [f"{job}: {source} can't be read" for job, source in unread[:most]]
    return "\n".join([*said, *([f"and {plural(len(unread) - most, 'more source')}"] if len(unread) > most else [])])


def behind_said(rows: Sequence[Row]) -> list[str]:
    """Of which jobs a watch is behind, or the sync fails: a line each."""
    said = []
    for row in rows:
        lag, sync = row.get("lag") or 0.0, row.get("sync") or {}
        words = [f"is judged {span(lag)} behind the clock"] if lag > _BEHIND else []
        if fails := sync.get("fails"):
            good = f"the last good one began at {sync['good']}" if sync.get("good") else "none was good yet"
            words.append(f"its sync fails ({fails}), {good}")
        if words:
            said.append(plain(f"{row['job']}: {'; '.join(words)}"))
    return said
