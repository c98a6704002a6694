"""What `ps` and `top -b` say of a target's processes. Serves gate B, STARVED: is a coordinator at the end of its core?

ps shows an average over a process's life, top a current rate: the difference is kept with every row.
"""

import re
from collections.abc import Sequence

from extractors.polls import PollRecord, Process, ProcessesPolled, Said, unusable

_COLUMNS = {
    "PID": "pid",
    "%CPU": "cpu",
    "CPU": "cpu",
    "PCPU": "cpu",
    "RSS": "rss",
    "RES": "rss",
    "ELAPSED": "elapsed",
    "ETIME": "elapsed",
    "COMMAND": "command",
    "CMD": "command",
    "ARGS": "command",
}
_ELAPSED = re.compile(r"^(?:(?:(?P<days>\d{1,6})-)?(?P<hours>\d{1,6}):)?(?P<minutes>\d{1,6}):(?P<seconds>\d{1,6})$")
_PID = re.compile(r"^\d{1,10}$")
_SIZE = re.compile(r"^(?P<size>\d+(?:[.,]\d+)?)(?P<unit>[kmgtp]?)$", re.IGNORECASE)
_ASKED = re.compile(r"\bps\b.*?(?:-\w*o|--format)[ =]*[\"']?(?P<fields>[\w%,=]+)")
_KIB = {"": 1.0, "k": 1.0, "m": 1024.0, "g": 1024.0**2, "t": 1024.0**3, "p": 1024.0**4}


def read_processes(record: PollRecord) -> tuple[Said, ...]:
    """The processes of one target; a table without one readable row is a failure."""
    if record.error:
        return (unusable(record, "a process table"),)
    lines = record.stdout.splitlines()
    headers = [number for number, line in enumerate(lines) if _is_header(line)]
    # Of top with several frames only the last is a rate over the frame's own interval.
    columns = _columns(lines[headers[-1]].split()) if headers else _asked_columns(record)
    lifetime = not any(line.startswith("top - ") for line in lines) and not re.search(
        r"\btop\b", " ".join(record.command)
    )
    rows = lines[headers[-1] + 1 :] if headers else lines
    found = [(process, line) for line in rows if (process := _process(line, columns, lifetime)) is not None]
    if not found:
        return (unusable(record, "a process table"),)
    # The coordinator is whom gate B asks after, so its row is the one to quote.
    _, line = max(found, key=lambda row: ("Coordinator" in row[0].command, row[0].cpu_percent))
    return (Said(ProcessesPolled(record.target, tuple(process for process, _ in found), tuple(record.command)), line),)


def _is_header(line: str) -> bool:
    words = line.split()
    return "PID" in words and bool({"%CPU", "PCPU", "CPU"} & set(words))


def _columns(words: Sequence[str]) -> list[str]:
    return [_COLUMNS.get(word.upper(), "") for word in words]


def _asked_columns(record: PollRecord) -> list[str]:
    """The columns that the recorded command asked for, where headers were switched off."""
    asked = _ASKED.search(" ".join(record.command))
    return _columns([name.strip("=") for name in asked["fields"].split(",")]) if asked else []


def _process(line: str, columns: list[str], lifetime: bool) -> Process | None:
    """One row; None where it has no pid or rate. The last column takes the rest of the line."""
    if not columns:
        return None
    cells = line.split(None, len(columns) - 1)
    cell = {name: value for name, value in zip(columns, cells, strict=False) if name}
    cpu = _number(cell.get("cpu", ""))
    if not _PID.match(cell.get("pid", "")) or cpu is None:
        return None
    return Process(
        pid=int(cell["pid"]),
        cpu_percent=cpu,
        rss_kib=_size_kib(cell.get("rss", "")),
        elapsed_seconds=elapsed_seconds(cell.get("elapsed", "")),
        command=cell.get("command", "").rstrip(),
        lifetime=lifetime,
    )


def elapsed_seconds(text: str) -> float | None:
    """ps's `[[days-]hours:]minutes:seconds`."""
    found = _ELAPSED.match(text)
    if found is None:
        return None
    days, hours, minutes, seconds = (int(found[part] or 0) for part in ("days", "hours", "minutes", "seconds"))
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def _number(text: str) -> float | None:
    """A rate; some locales write a decimal comma."""
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return None


def _size_kib(text: str) -> float:
    """A size in KiB, with top's suffixes (`2.1g`); 0 where the table has no such column."""
    found = _SIZE.match(text)
    return float(found["size"].replace(",", ".")) * _KIB[found["unit"].lower()] if found else 0.0
