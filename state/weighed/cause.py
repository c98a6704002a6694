"""A cause of the catalogue in full: what it means, what to do, and which lines of which programs show it."""

import textwrap
from collections.abc import Iterator
from typing import Any

from extractors.catalogue import CATALOGUE
from extractors.pattern import Pattern
from extractors.signal import Fault
from state.causes import CAUSES, Cause
from state.report import SCHEMA, identified

_NAMED = 14
"""Columns of a field's name."""


def cause_record(code: str) -> dict[str, Any]:
    """The record of kind `cause`. Raises KeyError where there is no such cause."""
    cause = CAUSES[code]
    patterns = [_shown_by(pattern, line) for pattern, line in _samples(code)]
    roles = list(dict.fromkeys(pattern["role"] for pattern in patterns))
    return identified(
        {
            "schema": SCHEMA,
            "kind": "cause",
            "code": code,
            "title": cause.title,
            "roles": roles,
            "transient": str(cause.transient),
            "weighs": weighs_of(cause),
            "fix": cause.fix,
            "relaunch": cause.relaunch,
            "source": cause.source,
            "patterns": patterns,
        }
    )


def weighs_of(cause: Cause) -> list[str]:
    """What the gates make of it beyond a first cause."""
    signs = (
        ("a hang signature of gate A (WEDGED)", cause.hang),
        ("the line itself ends its process", cause.fatal),
        (f"an out-of-memory of gate B (OOM_{cause.oom.upper()})", bool(cause.oom)),
    )
    return [words for words, held in signs if held]


def _samples(code: str) -> Iterator[tuple[Pattern, str]]:
    """The patterns that can say this cause, each with a true line."""
    for pattern in CATALOGUE.whole.patterns:
        for line, signal in pattern.samples.items():
            if isinstance(signal, Fault) and signal.cause == code:
                yield pattern, line
                break


def _shown_by(pattern: Pattern, line: str) -> dict[str, Any]:
    return {
        "pattern": pattern.name,
        "speaker": pattern.speaker,
        "role": str(pattern.role),
        "says": " ".join(pattern.doc.split()),
        "sample": line,
    }


def cause_text(record: dict[str, Any], width: int) -> str:
    """The cause for a terminal of so many columns."""
    fields = {
        "role": ", ".join(record["roles"]) or "none: no line says it, gates and polls conclude it",
        "transient": record["transient"],
        "weighs as": "; ".join(record["weighs"]) or "a first cause",
        "fix": record["fix"],
        "then": record["relaunch"],
        "known from": record["source"],
    }
    lines = [*textwrap.wrap(f"CAUSE {record['code']}: {record['title']}", width, subsequent_indent="  "), ""]
    for name, said in fields.items():
        lines += textwrap.wrap(said, width, initial_indent=f"  {name:<{_NAMED}}", subsequent_indent=" " * (_NAMED + 2))
    for pattern in record["patterns"]:
        lines += ["", f"  {pattern['speaker']}: {pattern['pattern']} ({pattern['role']})"]
        lines += textwrap.wrap(pattern["says"], width, initial_indent="    ", subsequent_indent="    ")
        lines += [_cut(f"      | {line}", width) for line in pattern["sample"].splitlines()]
    return "\n".join(lines)


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else f"{line[: width - 1]}…"
