"""Output records (CONTRACT §3) and the supervisor's text layout (§4), from verdicts."""

import hashlib
from typing import Any

import orjson

from extractors.clocks import write_iso
from extractors.quoting import masked, masked_words, without_controls
from extractors.record import Evidence
from state.case import Case
from state.causes import CAUSES, Transient
from state.coverage_words import coverage_line, coverage_record
from state.decision import NamedCause
from state.gate import Gap, Ruling
from state.tables import duty_lines, slot_lines
from state.verdict import Verdict

SCHEMA = "wedgewatch/1"
GATE_TITLES = {"A": "liveness", "B": "resources", "C": "rollouts", "D": "dynamics"}
OUTPUT_LIMIT = 4_000
"""Characters of a failed command's output that a record carries; its poll record holds all of it."""
COMPARED = 200
"""Characters by which two quotes of one line are known for the same where they are cut."""
LEDGER_WORDS = {
    "same-failure": "the two newest ended attempts died of the same failure",
    "different-failures": "the ended attempts died of different failures",
    "transient-recovered": "it died of a transient failure and progresses again",
    "unknown": "what ended an attempt is not known",
}
NOTHING_IN_COMMON = ("no attempt has failed", "one attempt has failed", "the attempts' failures are transient")
"""What the pattern `none` means with no, one and more burned attempts."""


def gate_record(case: Case, letter: str, ruling: Ruling, stage: str) -> dict[str, Any]:
    """A record of kind `gate`."""
    head = {"schema": SCHEMA, "kind": "gate", "job": case.job, "at": write_iso(case.now_us)}
    return identified({**head, "gate": letter, **ruling_record(ruling, stage)})


def verdict_record(case: Case, verdict: Verdict, final: bool) -> dict[str, Any]:
    """A record of kind `verdict`. `captured`, where the evidence lies, does not count for its id."""
    facts = case.facts.facts
    stage = str(verdict.stage)
    record = {
        "schema": SCHEMA,
        "kind": "verdict",
        "job": case.job,
        "at": write_iso(case.now_us),
        "captured": case.facts.captured,
        "cluster": facts.cluster,
        "model": facts.model,
        "geometry": facts.geometry,
        "stage": stage,
        "step": {"done": case.freshness.step_done, "of": case.freshness.step_of},
        "verdict": str(verdict.decision),
        "confidence": str(verdict.confidence),
        "terminal": verdict.terminal,
        "final": final,
        "restarts": _restarts(case),
        "gates": {letter: {"gate": letter, **ruling_record(r, stage)} for letter, r in verdict.rulings.items()},
        "cause": _cause(verdict.cause),
        "reasoning": masked(verdict.reasoning),
        "next_steps": [masked(step) for step in verdict.next_steps],
        "flip_signal": _flip(verdict),
        "duty_cycle": case.duty_cycle.record(),
        "slots": case.bursts.record(),
        "coverage": coverage_record(case.coverage.sources),
    }
    return identified(record)


def encode(record: dict[str, Any]) -> bytes:
    """One JSON line, without its newline."""
    return orjson.dumps(record)


def identified(record: dict[str, Any]) -> dict[str, Any]:
    """The record with the id that its content gives it."""
    content = {key: value for key, value in record.items() if key != "captured"}
    digest = hashlib.blake2b(orjson.dumps(content, option=orjson.OPT_SORT_KEYS), digest_size=16).hexdigest()
    return {**record, "id": digest}


def ruling_record(ruling: Ruling, stage: str) -> dict[str, Any]:
    """What a gate says, without saying which."""
    return {
        "status": str(ruling.status),
        "condition": ruling.condition,
        "stage": stage,
        "reason": masked("; ".join((ruling.reason, *ruling.notes))),
        "evidence": [evidence_record(item) for item in ruling.evidence],
        "missing": [_gap(gap) for gap in ruling.missing],
        "fix": masked(ruling.fix) or None,
    }


def evidence_record(evidence: Evidence) -> dict[str, Any]:
    """One piece of evidence, secrets masked."""
    record = {
        "signal": evidence.signal,
        "source": evidence.source,
        "line": evidence.line,
        "offset": evidence.offset,
        "at": None if evidence.at_us is None else write_iso(evidence.at_us),
        "quote": masked(evidence.quote),
    }
    if evidence.searched:
        record["searched"] = evidence.searched
    return record


def _gap(gap: Gap) -> dict[str, Any]:
    return {
        "evidence": gap.what,
        "why": masked(gap.why),
        "command": masked_words(gap.command) if gap.command else None,
        "exit": gap.exit,
        "output": masked(gap.output[: 2 * OUTPUT_LIMIT])[:OUTPUT_LIMIT],
    }


def _cause(cause: NamedCause | None) -> dict[str, Any] | None:
    if cause is None:
        return None
    known = CAUSES.get(cause.code)
    transient = {Transient.YES: True, Transient.NO: False}.get(known.transient) if known else None
    return {
        "code": cause.code,
        "transient": transient,
        "evidence": [evidence_record(item) for item in cause.evidence],
        "cascade": cause.cascade,
    }


def _restarts(case: Case) -> dict[str, Any]:
    view = case.restarts
    return {
        "burned": view.burned,
        "max": view.max,
        "remaining": view.remaining,
        "pattern": str(view.pattern),
        "fingerprint": view.fingerprint or None,
        "evidence": [evidence_record(item) for item in view.evidence],
    }


def _flip(verdict: Verdict) -> dict[str, Any] | None:
    flip = verdict.flip
    if flip is None:
        return None
    before = None if flip.before_us is None else write_iso(flip.before_us)
    return {"says": masked(flip.says), "signal": str(flip.signal), "before": before}


def text_report(record: dict[str, Any]) -> str:
    """The text layout of a verdict record, fit for a terminal whatever the names and words in it."""
    record = printable(record)
    named = ", ".join(str(record[key]) for key in ("model", "geometry", "stage") if record[key])
    lines = [
        f"RL-JOB-HEALTH — {record['job']}  ({named})   captured: {record['captured']}",
        "",
        f"VERDICT: {record['verdict']:<10} confidence: {record['confidence']}",
        "Evidence I actually read:",
        *_evidence_lines(record),
        _restart_line(record["restarts"]),
        coverage_line(record["coverage"]),
        "",
    ]
    for letter, gate in record["gates"].items():
        label = f"Gate {letter} ({GATE_TITLES[letter]}):"
        lines.append(f"{label:<20} {gate['status']} — {gate['condition']}: {gate['reason']}")
    lines += [*_missing_lines(record), *duty_lines(record), *slot_lines(record)]
    flip = record["flip_signal"]
    lines += [
        "",
        f"REASONING: {record['reasoning']}",
        f"NEXT STEPS: {' '.join(record['next_steps'])}",
        f"FLIP SIGNAL: {'none: the job is over' if flip is None else _flip_line(flip)}",
    ]
    return "\n".join(lines)


def printable(told: Any) -> Any:
    """The record with every text in one line and without control characters; an output keeps its lines."""
    if isinstance(told, str):
        return without_controls(told.replace("\n", "\\n"))
    if isinstance(told, list):
        return [printable(each) for each in told]
    if not isinstance(told, dict):
        return told
    return {
        printable(key): "\n".join(map(printable, value.splitlines()))
        if key == "output" and isinstance(value, str)
        else printable(value)
        for key, value in told.items()
    }


def _evidence_lines(record: dict[str, Any]) -> list[str]:
    """One line for each place. A line that stands in two homes names the other, so that it counts as one event."""
    groups = [gate["evidence"] for gate in record["gates"].values()]
    groups.append(record["cause"]["evidence"] if record["cause"] else [])
    groups.append(record["restarts"]["evidence"])
    seen: dict[tuple[str, int, str], dict[str, Any]] = {}
    lines: list[str] = []
    for item in (item for group in groups for item in group):
        searched = f"  [{item['searched']}]" if "searched" in item else ""
        key = (item["source"], item["line"], searched)
        if key in seen:
            continue
        twin = next((other for other in seen.values() if _same_line(item, other)), None)
        told = f"  [the line of {twin['source']}:{twin['line']}, in its other home]" if twin else ""
        lines.append(f"  {item['source']}:{item['line']}  {item['at'] or '-'}  {item['quote']}{searched}{told}")
        seen[key] = item
    return lines or ["  none"]


def _same_line(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two places hold one printed line: the same signal at the same time in two files, and the words of the
    one end the other's, which has prefixes before them (a cut quote is compared by what both show)."""
    if one["source"] == other["source"] or one["at"] is None or not one["quote"]:
        return False
    if (one["signal"], one["at"]) != (other["signal"], other["at"]):
        return False
    short, long = sorted((str(one["quote"]), str(other["quote"])), key=len)
    return short[:COMPARED] in long if long.endswith("…") else long.endswith(short)


def _restart_line(restarts: dict[str, Any]) -> str:
    most = "?" if restarts["max"] is None else restarts["max"]
    remaining = "?" if restarts["remaining"] is None else restarts["remaining"]
    burned, pattern = restarts["burned"], restarts["pattern"]
    told = LEDGER_WORDS.get(pattern) or NOTHING_IN_COMMON[min(burned, 2)]
    return f"Restarts: {burned}/{most} burned, {remaining} remaining — {pattern} ({told})"


def _missing_lines(record: dict[str, Any]) -> list[str]:
    lines: list[str] = []
    for letter, gate in record["gates"].items():
        for gap in gate["missing"]:
            first, *rest = gap_lines(gap)
            lines += [f"  missing for {letter}: {first}", *(f"    {line}" for line in rest)]
    return ["", "What could not be had:", *lines] if lines else []


def gap_lines(gap: dict[str, Any]) -> list[str]:
    """A gap in lines: what is missing and why, the command that was tried, what it printed."""
    lines = [f"{gap['evidence']} — {gap['why']}"]
    if gap["command"]:
        code = "none" if gap["exit"] is None else gap["exit"]
        lines.append(f"command: {' '.join(gap['command'])}   exit: {code}")
    if gap["output"]:
        lines += [f"output: {line}" for line in gap["output"].splitlines()[:20]]
    return lines


def _flip_line(flip: dict[str, Any]) -> str:
    before = f" before {flip['before']}" if flip["before"] else ""
    return f"{flip['says']} (signal {flip['signal']}{before})"
