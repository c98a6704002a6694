"""A scenario file as it is read: header, the job's setup, the input as a timeline, and what is expected of it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SECTIONS = ("job", "given", "says", "bounds", "quotes", "words", "missing")
PROOFS = ("fires", "quiet", "held back")
KEYS = (*PROOFS, "about", "tells", "without")
_ENTRY = re.compile(r"  (?P<when>\S.*?)\s{2,}(?P<speaker>\S.*?)(?:\s{2,}(?P<text>.*))?")
_WHEN = re.compile(r"(?P<at>\S+)(?: every (?P<every>\S+))?(?: until (?P<until>\S+))?")
_CLOCK = re.compile(r"(\d+):(\d\d)(?::(\d\d(?:\.\d+)?))?")
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(s|min|h)")
_SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0}


class ScenarioError(ValueError):
    """A scenario file that can't be read; says file and line."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the input. at and until are seconds since midnight; every is None where the line is said once.

    text holds its continuation lines (written with a leading `|`) too. number is the line of the scenario file.
    """

    number: int
    at: float
    until: float | None
    every: float | None
    speaker: str
    text: str

    def times(self) -> Iterator[float]:
        """When the line is said: once, or each `every` seconds of [at, until]."""
        at = self.at
        yield at
        while self.every is not None and self.until is not None and at + self.every <= self.until:
            at += self.every
            yield at


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario. title is the sentence at its head; header maps each key to its values (comma-separated in the file);
    sections hold their lines without indentation."""

    path: Path
    title: str
    header: dict[str, tuple[str, ...]]
    given: tuple[Entry, ...]
    sections: dict[str, tuple[str, ...]]

    def listed(self, key: str) -> tuple[str, ...]:
        """The values of a header key; none where the file does not have it."""
        return self.header.get(key, ())

    def lines(self, section: str) -> tuple[str, ...]:
        """The lines of a section; none where the file does not have it."""
        return self.sections.get(section, ())


def load(path: Path) -> Scenario:
    """Reads a scenario file. Raises ScenarioError."""
    title: list[str] = []
    header: dict[str, tuple[str, ...]] = {}
    bodies: dict[str, list[tuple[int, str]]] = {}
    body: list[tuple[int, str]] | None = None
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        key, colon, values = line.partition(":")
        if line in SECTIONS:
            body = bodies.setdefault(line, [])
        elif not line.strip():
            continue
        elif body is not None and line.startswith("  "):
            body.append((number, line))
        elif body is None and colon and key in KEYS:
            header[key] = (*header.get(key, ()), *(value.strip() for value in values.split(",")))
        elif body is None and not header:
            title.append(line.strip())
        else:
            raise ScenarioError(f"{path}:{number}: neither a header ({', '.join(KEYS)}) nor a section's line: {line}")
    if not title or "given" not in bodies:
        raise ScenarioError(f"{path}: a scenario has a title and the section `given`")
    sections = {name: tuple(line.strip() for _, line in rows) for name, rows in bodies.items() if name != "given"}
    return Scenario(path, " ".join(title), header, tuple(_entries(path, bodies["given"])), sections)


def _entries(path: Path, rows: list[tuple[int, str]]) -> Iterator[Entry]:
    newest: Entry | None = None
    for number, line in rows:
        if line.lstrip().startswith("|"):
            if newest is None:
                raise ScenarioError(f"{path}:{number}: a continuation of nothing")
            more = line.lstrip()[1:].removeprefix(" ")
            newest = _replaced(newest, f"{newest.text}\n{more}" if newest.text else more)
            continue
        if newest is not None:
            yield newest
        newest = _entry(path, number, line)
    if newest is not None:
        yield newest


def _replaced(entry: Entry, text: str) -> Entry:
    return Entry(entry.number, entry.at, entry.until, entry.every, entry.speaker, text)


def _entry(path: Path, number: int, line: str) -> Entry:
    found = _ENTRY.fullmatch(line)
    when = _WHEN.fullmatch(found["when"]) if found else None
    if found is None or when is None:
        raise ScenarioError(f"{path}:{number}: not `<time> [every <span>] [until <time>]  <speaker>  <text>`: {line}")
    try:
        until = clock(when["until"]) if when["until"] else None
        every = span(when["every"]) if when["every"] else None
        return Entry(number, clock(when["at"]), until, every, found["speaker"], found["text"] or "")
    except ValueError as error:
        raise ScenarioError(f"{path}:{number}: {error}") from error


def clock(text: str) -> float:
    """`08:21`, `08:21:10.5` as seconds since midnight; hours go on past 24. Raises ValueError."""
    found = _CLOCK.fullmatch(text)
    if found is None:
        raise ValueError(f"no time of day: {text}")
    return int(found[1]) * 3600.0 + int(found[2]) * 60.0 + float(found[3] or 0)


def span(text: str) -> float:
    """`10s`, `15min`, `2h` in seconds. Raises ValueError."""
    found = _SPAN.fullmatch(text)
    if found is None:
        raise ValueError(f"no duration: {text}")
    return float(found[1]) * _SECONDS[found[2]]


def rewritten(path: Path, says: list[str]) -> str:
    """The file's text with its `says` block replaced (put before the checks where it has none)."""
    lines = path.read_text().splitlines()
    block = ["says", *(f"  {line}" for line in says)]
    if "says" not in lines:
        place = next((n for n, line in enumerate(lines) if line in SECTIONS[3:]), len(lines))
        return "\n".join([*lines[:place], *block, *lines[place:]]) + "\n"
    begin = lines.index("says")
    end = begin + 1
    while end < len(lines) and lines[end].startswith("  "):
        end += 1
    return "\n".join([*lines[:begin], *block, *lines[end:]]) + "\n"
