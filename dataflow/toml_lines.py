"""At which line of a TOML text a key stands: tomllib keeps no places, and an error must name one."""

import re
from collections.abc import Iterator, Sequence

_TABLE = re.compile(r"^\s*\[\[?(?P<path>[^\]]+)\]\]?\s*(?:#.*)?$")
_PART = re.compile(r"\s*(?:\"(?P<quoted>(?:[^\"\\]|\\.)*)\"|'(?P<literal>[^']*)'|(?P<bare>[A-Za-z0-9_-]+))\s*")
_STRING = re.compile(r"\"\"\"|'''|\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'|#.*")
_FENCES = ('"' * 3, "'" * 3)


def key_lines(text: str) -> dict[tuple[str, ...], int]:
    """The 1-based line of every table and key, by its path. The keys of an inline table stand on its line."""
    lines: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    for number, line in _statements(text):
        header = _TABLE.match(line)
        if header is not None:
            table = _path(header["path"])[0]
            _note(lines, table, number)
            continue
        path, rest = _path(line)
        if path and rest.startswith("="):
            _note(lines, table + path, number)
            for inner in re.findall(r"[{,]\s*([A-Za-z0-9_-]+|\"[^\"]*\")\s*=", rest):
                _note(lines, (*table, *path, inner.strip('"')), number)
    return lines


def line_of(text: str, path: Sequence[str | int]) -> int:
    """The line of a key; of one that is not there the line of what would hold it; 1 where nothing does.

    An index in the path is that of an entry in a list: the list's line.
    """
    lines = key_lines(text)
    keys = tuple(part for part in path if isinstance(part, str))
    for length in range(len(keys), 0, -1):
        if keys[:length] in lines:
            return lines[keys[:length]]
    return 1


def line_of_entry(text: str, path: Sequence[str | int], entry: object) -> int:
    """The line of one entry of a list that may span lines: where its text stands at or below the key."""
    start = line_of(text, path)
    if not isinstance(entry, str):
        return start
    for number, line in enumerate(text.split("\n")[start - 1 :], start=start):
        if f'"{entry}"' in line or f"'{entry}'" in line:
            return number
    return start


def _note(lines: dict[tuple[str, ...], int], path: tuple[str, ...], number: int) -> None:
    for length in range(1, len(path) + 1):
        lines.setdefault(path[:length], number)


def _path(text: str) -> tuple[tuple[str, ...], str]:
    """The dotted key that the text begins with, and what follows it."""
    parts: list[str] = []
    at = 0
    while found := _PART.match(text, at):
        parts.append(next(part for part in found.group("quoted", "literal", "bare") if part is not None))
        at = found.end()
        if not text.startswith(".", at):
            break
        at += 1
    return tuple(parts), text[at:]


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """The lines that begin a statement: not those inside a list or a string that spans lines."""
    depth, fence = 0, ""
    for number, line in enumerate(text.split("\n"), start=1):
        if not depth and not fence:
            yield number, line
        depth, fence = _after(line, depth, fence)


def _after(line: str, depth: int, fence: str) -> tuple[int, str]:
    """How deep in lists, and in which open string, the next line begins."""
    at = 0
    if not depth and not fence and _TABLE.match(line):
        return 0, ""
    while at < len(line):
        if fence:
            end = line.find(fence, at)
            if end < 0:
                return depth, fence
            at, fence = end + 3, ""
            continue
        found = _STRING.match(line, at)
        if found is not None:
            fence = found[0] if found[0] in _FENCES else ""
            at = found.end()
            continue
        depth = max(0, depth + (line[at] in "[{") - (line[at] in "]}"))
        at += 1
    return depth, fence
