"""Which lines and times were read of each source, as the verdict's record and its one line in the report tell it.

Bounded: a bundle of a few hundred nodes has thousands of files, and their entries would crowd out everything else.
"""

from collections.abc import Mapping
from typing import Any

from extractors.clocks import write_iso
from extractors.quoting import masked
from extractors.record import SourceKind
from state.trackers.coverage import Reading, SourceCoverage
from state.wording import plural

SOURCES_TOLD = 64
"""Sources with an entry of their own; the rest are summed up by folder, those with nothing amiss first."""
GAPS_TOLD = 4
GAP_CHARACTERS = 200
WORST_SAID = 3
"""Sources that were not read whole which the report's line names."""

Entry = dict[str, Any]


def coverage_record(sources: Mapping[str, SourceCoverage]) -> dict[str, Entry] | None:
    """An entry for each source, `<folder>/… (n more files)` for what is summed up; None where there is no source."""
    entries = {name: _entry(seen) for name, seen in sorted(sources.items())}
    by_need = sorted(entries, key=lambda name: (not _amiss(entries[name]), "/" in name, name))
    own = set(by_need if len(by_need) <= SOURCES_TOLD else by_need[:SOURCES_TOLD])
    told = {name: entry for name, entry in entries.items() if name in own}
    rest: dict[str, list[Entry]] = {}
    for name in entries.keys() - own:
        rest.setdefault(name.split("/", 1)[0], []).append(entries[name])
    for folder, summed in sorted(rest.items()):
        told[f"{folder}/… ({len(summed)} more {'file' if len(summed) == 1 else 'files'})"] = _sum(summed)
    return {name: _dated(entry) for name, entry in told.items()} or None


def _entry(seen: SourceCoverage) -> Entry:
    return {
        "lines": _lines(seen),
        "from": seen.from_us,
        "to": seen.to_us,
        "complete": seen.complete,
        "gaps": _some([masked(gap)[:GAP_CHARACTERS] for gap in seen.gaps]),
        "late": seen.late,
        "unparsed": seen.unparsed,
    }


def _dated(entry: Entry) -> Entry:
    """An entry with its times written, which costs more than all else of it."""
    return {**entry, **{at: None if entry[at] is None else write_iso(entry[at]) for at in ("from", "to")}}


def _lines(seen: SourceCoverage) -> int:
    """The lines of a source that has ended; of one that is still being read, up to its newest place."""
    if seen.reading is Reading.READING and seen.newest is not None and seen.kind is not SourceKind.TRIAL:
        return max(seen.lines, seen.newest.line)
    return seen.lines


def _some(gaps: list[str]) -> list[str]:
    more = len(gaps) - GAPS_TOLD
    return [*gaps[:GAPS_TOLD], f"and {plural(more, 'more gap')}"] if more > 0 else gaps


def _amiss(entry: Entry) -> bool:
    return bool(entry["gaps"] or entry["late"] or entry["unparsed"] or not entry["complete"])


def _sum(entries: list[Entry]) -> Entry:
    begins = [entry["from"] for entry in entries if entry["from"] is not None]
    ends = [entry["to"] for entry in entries if entry["to"] is not None]
    return {
        "lines": sum(entry["lines"] for entry in entries),
        "from": min(begins, default=None),
        "to": max(ends, default=None),
        "complete": all(entry["complete"] for entry in entries),
        "gaps": _some(sorted({gap for entry in entries for gap in entry["gaps"]})),
        "late": sum(entry["late"] for entry in entries),
        "unparsed": sum(entry["unparsed"] for entry in entries),
    }


def coverage_line(coverage: dict[str, Entry] | None) -> str:
    """`Read: 1,204 lines of 31 sources, 2026-03-19T09:00:05Z to 09:39:00Z; not whole: finelog.log (head missing)`."""
    if not coverage:
        return "Read: nothing"
    whole = _sum(list(coverage.values()))
    count = sum(_files(name) for name in coverage)
    times = _times(whole["from"], whole["to"]) if whole["from"] and whole["to"] else ""
    torn = [name for name, entry in coverage.items() if entry["gaps"] or not entry["complete"]]
    told = [f"{name} ({'; '.join(coverage[name]['gaps']) or 'not read to its end'})" for name in torn[:WORST_SAID]]
    more = f" and {len(torn) - WORST_SAID} more" if len(torn) > WORST_SAID else ""
    gaps = f"not whole: {', '.join(told)}{more}" if torn else "each of them whole"
    late = f"{plural(whole['late'], 'late line')}, {whole['unparsed']} unparsed"
    return f"Read: {whole['lines']:,} lines of {plural(count, 'source')}{times}; {gaps}; {late}"


def _times(begin: str, end: str) -> str:
    same_day = begin[:10] == end[:10]
    return f", {begin[:19]}Z to {end[11:19] if same_day else end[:19]}Z"


def _files(name: str) -> int:
    """How many files an entry stands for."""
    summed = name.partition("/… (")[2]
    return int(summed.split(" ")[0]) if summed else 1
