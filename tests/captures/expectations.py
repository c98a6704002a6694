"""Whether a capture's records are right: what an expectation asks, checked over the JSON lines of a replay.

One checker for two homes of expectations: `<name>.expect.toml` beside the capture, and `expect/<name>.json` of a
further folder of captures. A key that is absent asks for nothing.

`verdict`, `terminal`, `confidence`, `stage`, `step`: of the final verdict; a list gives the acceptable values.
`gates`: per gate the acceptable `[status, condition]` pairs of the final verdict.
`cause`: null when none may be named (TOML: `no_cause = true`). Else `any_of` holds the places that may stand first in
    `cause.evidence`, `none_of` those that may not, `cascade_min` the least number of later errors that it explains.
`must_cite`, `must_not_cite`: evidence that must (not) be quoted, by `lines` (places), or by `source` (a glob) and a
    piece of the line (`contains`); `gate` narrows it to one gate.
`must_say`, `must_not_say`: a regular expression `re` over words; `where` is a gate (its reason and fix), `A.reason`,
    `next` (next steps and fixes) or `all`.
`missing`: an entry that the gate's `missing[]` must hold: `re` of what is missing, pieces of its `command`, `output`.
`restarts`: `burned`, `max`, and the acceptable patterns.
`timeline`: `end` of the capture; `no_kill_before`: a KILL before it is false (where it is absent, any KILL is);
    `settled_by`: when the final verdict must have begun to stand (for NO-KILL: must have been given once).
`never`: conditions that a gate may not show even on the way.

A place is `{source, line}`, or `{source, re}`: a glob of the file and a pattern of the quoted line.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

Json = dict[str, Any]
END_TOLERANCE = timedelta(minutes=5)
"""How far the final verdict's time may lie from the capture's end: files of a node whose clock runs ahead."""


def load(path: Path) -> Json:
    """The expectation in a TOML or JSON file."""
    if path.suffix == ".json":
        return dict(json.loads(path.read_text()))
    asked = tomllib.loads(path.read_text())
    return asked | {"cause": None} if asked.get("no_cause") else asked


def failures(asked: Json, records: list[Json]) -> list[str]:
    """What is wrong, in words; nothing when all that is asked holds."""
    verdicts = [r for r in records if r["kind"] == "verdict"]
    finals = [v for v in verdicts if v["final"]]
    if len(finals) != 1:
        return [f"{len(finals)} final verdicts, one is right"]
    final = finals[0]
    return [
        *_final(asked, final),
        *_gates(asked, final),
        *_cause(asked, final),
        *_cited(asked, final),
        *_words(asked, final),
        *_missing(asked, final),
        *_restarts(asked, final),
        *_timeline(asked, verdicts, final),
        *_never(asked, records),
    ]


def evidence_in(part: Any) -> Iterator[Json]:
    """Every piece of evidence in a record or a part of one."""
    if isinstance(part, dict):
        if {"source", "line", "offset", "quote"} <= part.keys():
            yield part
        for value in part.values():
            yield from evidence_in(value)
    elif isinstance(part, list):
        for value in part:
            yield from evidence_in(value)


def _final(asked: Json, final: Json) -> Iterator[str]:
    for key in ("job", "verdict", "terminal", "confidence", "stage"):
        if key in asked:
            right = asked[key] if isinstance(asked[key], list) else [asked[key]]
            if final[key] not in right:
                yield f"{key} is {final[key]!r}, right is {' or '.join(map(repr, right))}: {final['reasoning']}"
    for key, value in asked.get("step", {}).items():
        if (final["step"] or {}).get(key) != value:
            yield f"step is {final['step']}, right is {asked['step']}"


def _gates(asked: Json, final: Json) -> Iterator[str]:
    for letter, pairs in asked.get("gates", {}).items():
        gate = final["gates"][letter]
        if [gate["status"], gate["condition"]] not in pairs:
            yield f"gate {letter} is {gate['status']} {gate['condition']}, right is {pairs}: {gate['reason']}"


def _cause(asked: Json, final: Json) -> Iterator[str]:
    if "cause" not in asked:
        return
    right, cause = asked["cause"], final["cause"]
    if right is None:
        if cause is not None:
            yield f"a cause is named where there is none: {cause}"
        return
    if cause is None:
        yield "no cause is named"
        return
    first = cause["evidence"][0]
    where = f"{first['source']}:{first['line']} {first['quote'][:200]!r}"
    if "any_of" in right and not _stands_in(first, right["any_of"]):
        yield f"the first cause is {cause['code']} at {where}, which is not it"
    if _stands_in(first, right.get("none_of", [])):
        yield f"the first cause {cause['code']} is a later error: {where}"
    if cause["cascade"] < right.get("cascade_min", 0):
        yield f"the cascade is {cause['cascade']}, at least {right['cascade_min']} later errors are on file"


def _stands_in(evidence: Json, places: Iterable[Json]) -> bool:
    return any(_is_at(evidence, place) for place in places)


def _is_at(evidence: Json, place: Json) -> bool:
    if "line" in place and evidence["line"] != place["line"]:
        return False
    if "re" in place and not re.search(place["re"], evidence["quote"]):
        return False
    return fnmatchcase(evidence["source"], place["source"])


def _cited(asked: Json, final: Json) -> Iterator[str]:
    for key, wanted in (("must_cite", True), ("must_not_cite", False)):
        for ask in asked.get(key, []):
            pool = final["gates"][ask["gate"]] if "gate" in ask else final
            found = any(_is_asked(evidence, ask) for evidence in evidence_in(pool))
            if found is not wanted:
                named = {k: v for k, v in ask.items() if k != "lines"}
                places = [(p["source"], p.get("line")) for p in ask.get("lines", [])[:3]]
                yield f"{'not ' if wanted else ''}cited: {named} {places}"


def _is_asked(evidence: Json, ask: Json) -> bool:
    if "lines" in ask:
        return _stands_in(evidence, ask["lines"])
    return fnmatchcase(evidence["source"], ask["source"]) and ask.get("contains", "") in evidence["quote"]


def words_of(final: Json, where: str) -> str:
    """The words that `where` names: a gate, `A.reason`, `next` or `all`."""
    gates = final["gates"]
    if where == "next":
        return "\n".join([*final["next_steps"], *(gate.get("fix") or "" for gate in gates.values())])
    if where == "all":
        cause, flip = final["cause"] or {}, final["flip_signal"] or {}
        said = [final["reasoning"], str(cause.get("code", "")), str(flip.get("says", ""))]
        return "\n".join([*said, words_of(final, "next"), *(str(gate["reason"]) for gate in gates.values())])
    letter, _, part = where.partition(".")
    if part:
        return str(gates[letter][part] or "")
    return f"{gates[letter]['reason']}\n{gates[letter].get('fix') or ''}"


def _words(asked: Json, final: Json) -> Iterator[str]:
    for key, wanted in (("must_say", True), ("must_not_say", False)):
        for ask in asked.get(key, []):
            said = words_of(final, ask["where"])
            if bool(re.search(ask["re"], said)) is not wanted:
                yield f"{ask['where']} must {'' if wanted else 'not '}say {ask['re']!r}: {said!r}"


def _missing(asked: Json, final: Json) -> Iterator[str]:
    for ask in asked.get("missing", []):
        entries = final["gates"][ask["gate"]]["missing"]
        if not any(_lacks(entry, ask) for entry in entries):
            yield f"gate {ask['gate']} does not name as missing {ask}: {entries}"


def _lacks(entry: Json, ask: Json) -> bool:
    command = " ".join(entry.get("command") or [])
    return (
        re.search(ask["re"], entry["evidence"]) is not None
        and ask.get("command", "") in command
        and ask.get("output", "") in (entry.get("output") or "")
    )


def _restarts(asked: Json, final: Json) -> Iterator[str]:
    restarts = final["restarts"]
    for key, value in asked.get("restarts", {}).items():
        right = value if isinstance(value, list) else [value]
        if restarts[key] not in right:
            yield f"restarts.{key} is {restarts[key]!r}, right is {value!r}"


def _timeline(asked: Json, verdicts: list[Json], final: Json) -> Iterator[str]:
    line = asked.get("timeline")
    if line is None:
        return
    given = [(_at(v["at"]), v["verdict"]) for v in verdicts]
    if "end" in line and abs(_at(final["at"]) - _at(line["end"])) > END_TOLERANCE:
        yield f"the final verdict is of {final['at']}, the capture ends at {line['end']}"
    limit = _at(line["no_kill_before"]) if "no_kill_before" in line else None
    for at, verdict in given:
        if verdict == "KILL" and (limit is None or at < limit):
            yield f"KILL at {at} is false; none is right before {line.get('no_kill_before', 'the end')}"
            break
    if "settled_by" in line:
        yield from _settled(given, final["verdict"], _at(line["settled_by"]))


def _settled(given: list[tuple[datetime, str]], verdict: str, by: datetime) -> Iterator[str]:
    if verdict == "NO-KILL":
        if not any(each == verdict and at <= by for at, each in given):
            yield f"NO-KILL was never given by {by}: {_shown(given)}"
        return
    standing_since = given[-1][0]
    for at, each in reversed(given):
        if each != verdict:
            break
        standing_since = at
    if standing_since > by:
        yield f"{verdict} stands only since {standing_since}, right is {by} at the latest: {_shown(given)}"


def _shown(given: list[tuple[datetime, str]]) -> str:
    return ", ".join(f"{at:%H:%M:%S} {verdict}" for at, verdict in given)


def _never(asked: Json, records: list[Json]) -> Iterator[str]:
    for letter, conditions in asked.get("never", {}).items():
        for record in records:
            gate = record["gates"][letter] if record["kind"] == "verdict" else record
            if gate["gate"] == letter and gate["condition"] in conditions:
                yield f"gate {letter} shows {gate['condition']} at {record['at']}: {gate['reason']}"
                break


def _at(text: str) -> datetime:
    return datetime.fromisoformat(text)
