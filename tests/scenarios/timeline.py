"""What a replay said, as the lines of a scenario's `says` block; and the checks of its other blocks."""

import difflib
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

from tests.scenarios.scenario import Scenario, clock

Json = dict[str, Any]

_BOUND = re.compile(r"(?P<what>\S.*?) (?P<how>not before|not after) (?P<time>\S+)")
_SAYING = re.compile(r'(?P<gate>[ABCD]|verdict)(?: (?P<condition>[A-Z_-]+))?(?P<negative> not)? "(?P<text>.*)"')


def timeline(records: Sequence[Json], scenario: Scenario) -> list[str]:
    """The records as lines, those of the gates that the scenario is not about left out."""
    about = scenario.listed("about") or tuple("ABCD")
    tells = scenario.listed("tells")
    return [line(record, tells) for record in records if record["kind"] == "verdict" or record["gate"] in about]


def line(record: Json, tells: tuple[str, ...] = ()) -> str:
    """`08:21:10  A FAIL WEDGED` or `08:21:10  KILL high by A cause=collective_timeout`, and what `tells` asks for."""
    words = [_time(record["at"])]
    if record["kind"] == "gate":
        words.append(f" {record['gate']} {record['status']} {record['condition']}")
    else:
        words.append(f" {record['verdict']} {record['confidence']}{_decider(record)}")
        words += [f"cause={record['cause']['code']}"] if record["cause"] else []
        words += ["over"] if record["terminal"] else []
    words += [word for name in tells if (word := _TOLD[name](record))]
    if record["kind"] == "verdict" and record["final"]:
        words.append("final")
    return " ".join(words)


def _time(at: str) -> str:
    """`08:21:10`, with milliseconds where there are any."""
    return at[11:23].removesuffix(".000")


def _decider(verdict: Json) -> str:
    """Which gate decided, by the five rules of GATES, The verdict."""
    status = {letter: gate["status"] for letter, gate in verdict["gates"].items()}
    if verdict["verdict"] == "NO-KILL":
        return ""
    if verdict["verdict"] == "ERROR":
        return f" by {next((letter for letter in 'ABC' if status[letter] == 'ERROR'), '?')}"
    if verdict["restarts"]["pattern"] == "same-failure":
        return " by restarts"
    return f" by {next((letter for letter in 'ABCD' if status[letter] == 'FAIL'), '?')}"


def _restarts(record: Json) -> str:
    if "restarts" not in record:
        return ""
    ledger = record["restarts"]
    most = "?" if ledger["max"] is None else ledger["max"]
    return f"burned={ledger['burned']}/{most} {ledger['pattern']}"


def _flip(record: Json) -> str:
    flip = record.get("flip_signal")
    if not flip:
        return ""
    return f"flip={flip['signal']}" + (f" before {_time(flip['before'])}" if flip["before"] else "")


def _missing(record: Json) -> str:
    return "; ".join(f"missing: {gap['evidence']}" for gap in record.get("missing", ()))


def _step(record: Json) -> str:
    step = record.get("step")
    return f"step={step['done']}/{step['of']}" if step else ""


def _cascade(record: Json) -> str:
    return f"cascade={record['cause']['cascade']}" if record.get("cause") else ""


def _duty(record: Json) -> str:
    duty = record.get("duty_cycle")
    if not duty:
        return ""
    shares = " ".join(f"{name}={share['median']:.2f}" for name, share in duty["shares"].items() if share)
    return f"trials={duty['trials']} {shares} races={duty['release_races']}"


_TOLD: dict[str, Callable[[Json], str]] = {
    "restarts": _restarts,
    "flip": _flip,
    "missing": _missing,
    "step": _step,
    "cascade": _cascade,
    "duty": _duty,
    "stage": lambda record: f"stage={record['stage']}",
}
"""What a header line `tells:` adds to the lines."""


def difference(expected: Sequence[str], said: Sequence[str], name: str) -> str:
    """The two timelines side by side as a diff; empty where they agree."""
    want, got = [" ".join(each.split()) for each in expected], [" ".join(each.split()) for each in said]
    if want == got:
        return ""
    rows = difflib.unified_diff(want, got, f"{name} says", "the flow said", lineterm="", n=30)
    return "\n".join(["", *rows])


def failures(scenario: Scenario, records: Sequence[Json]) -> list[str]:
    """Which bounds, quotes, words and missing pieces of the scenario do not hold."""
    found = [fault for text in scenario.lines("bounds") for fault in _unbound(text, records)]
    for section, holds in (("quotes", _quotes), ("words", _says), ("missing", _lacks)):
        found += [fault for text in scenario.lines(section) for fault in _unsaid(section, text, records, holds)]
    return found


def _unbound(text: str, records: Sequence[Json]) -> Iterator[str]:
    """`never KILL`, `A FAIL not before 08:19`, `KILL not after 08:21:20`."""
    if text.startswith("never "):
        times = _times(text.removeprefix("never "), records)
        yield from (f"bounds: {text}: it was said at {times[0]:.0f} s" for _ in times[:1])
        return
    found = _BOUND.fullmatch(text)
    if found is None:
        yield f"bounds: neither `never X` nor `X not before|after T`: {text}"
        return
    times, limit = _times(found["what"], records), clock(found["time"])
    if not times:
        yield f"bounds: {text}: it was never said"
    elif times[0] < limit and found["how"] == "not before":
        yield f"bounds: {text}: it was said {limit - times[0]:.0f} s earlier"
    elif times[0] > limit and found["how"] == "not after":
        yield f"bounds: {text}: it was said {times[0] - limit:.0f} s later"


def _times(what: str, records: Sequence[Json]) -> list[float]:
    """When something was said: a decision, or a gate's letter with status, condition or both; in seconds since the
    midnight before the first record."""
    wanted = set(what.split())
    midnight = datetime.fromisoformat(records[0]["at"]).replace(hour=0, minute=0, second=0, microsecond=0)
    return [
        (datetime.fromisoformat(record["at"]) - midnight).total_seconds()
        for record in records
        if wanted <= {record.get("verdict"), record.get("gate"), record.get("status"), record.get("condition")}
    ]


def _unsaid(section: str, text: str, records: Sequence[Json], holds: Callable[[Json, str], bool]) -> Iterator[str]:
    """`A WEDGED "…"`: a record of that gate (and condition) holds it. `A not "…"`: none does."""
    found = _SAYING.fullmatch(text)
    if found is None:
        yield f'{section}: not `GATE [CONDITION] [not] "text"`: {text}'
        return
    kin = [record for record in _told_by(records, found["gate"]) if found["condition"] in (None, _condition(record))]
    holding = any(holds(record, found["text"]) for record in kin)
    if holding == bool(found["negative"]):
        yield f"{section}: {text}: {'it is there' if holding else 'it is not there'}\n" + "\n".join(
            f"    {_condition(record)}: {_shown(section, record)}" for record in kin[-3:]
        )


def _told_by(records: Sequence[Json], speaker: str) -> list[Json]:
    """The verdicts; or all that a gate said, in its own records and within the verdicts."""
    verdicts = [record for record in records if record["kind"] == "verdict"]
    if speaker == "verdict":
        return verdicts
    own = [record for record in records if record.get("gate") == speaker]
    return own + [record["gates"][speaker] for record in verdicts]


def _condition(record: Json) -> str:
    return str(record.get("verdict") or record["condition"])


def _evidence(record: Json) -> list[Json]:
    told = list(record.get("evidence", ()))
    told += record["cause"]["evidence"] if record.get("cause") else []
    return told + (record["restarts"]["evidence"] if "restarts" in record else [])


def _quotes(record: Json, text: str) -> bool:
    return any(text in item["quote"] for item in _evidence(record))


def _said(record: Json) -> str:
    if "reason" in record:
        return f"{record['reason']} {record.get('fix') or ''}"
    flip = record["flip_signal"]["says"] if record["flip_signal"] else ""
    return " ".join((record["reasoning"], *record["next_steps"], flip))


def _says(record: Json, text: str) -> bool:
    return re.search(text, _said(record)) is not None


def _lacks(record: Json, text: str) -> bool:
    """The text stands in what is missing, why, or in the command or output of the try."""
    return any(
        text in f"{gap['evidence']} {gap['why']} {' '.join(gap.get('command') or ())} {gap.get('output') or ''}"
        for gap in record.get("missing", ())
    )


def _shown(section: str, record: Json) -> str:
    if section == "quotes":
        return " / ".join(item["quote"][:120] for item in _evidence(record))
    return _said(record) if section == "words" else str(record.get("missing"))
