"""A gate's trace as a record of kind `explanation`, and that record as one screen of text."""

import textwrap
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from extractors.clocks import write_iso
from extractors.quoting import masked
from state.case import Case
from state.clause_facts import conditions_of, sentence_of, thresholds, thresholds_of
from state.decision import GATES
from state.over import job_over
from state.policy import Stage
from state.report import SCHEMA, evidence_record, gap_lines, identified, printable, ruling_record
from state.skipped import skipped
from state.weighed.measured import Measured
from state.weighed.trace import Came, Step, Trace, trace

LETTERS = tuple(gate.letter for gate in GATES)
PLACES_SHOWN = 2
"""Lines that the text shows of a rule that said nothing; the record holds all."""
GAPS_SHOWN = 2
_CAME = 12
_INDENT = " " * 14
_LONG_PLACE = 60
"""A longer name of a place has a line of its own, so that it can be read whole."""
_HEAD = 24
"""Columns of a cut quote's begin, where its time stands; its end says what happened."""


def explanations(case: Case, letters: tuple[str, ...] = LETTERS) -> Iterator[dict[str, Any]]:
    """A record for each of these gates: how it came to its answer on the case."""
    for gate in GATES:
        if gate.letter in letters:
            yield explanation(case, trace(gate, case))


def explanation(case: Case, weighed: Trace) -> dict[str, Any]:
    """The record of one gate's trace."""
    gaps = skipped(case, weighed.gate.letter)
    ruling = replace(weighed.ruling, missing=weighed.ruling.missing + gaps)
    stage = str(Stage.OVER if job_over(case) is not None else case.phases.stage)
    return identified(
        {
            "schema": SCHEMA,
            "kind": "explanation",
            "job": case.job,
            "at": write_iso(case.now_us),
            "gate": weighed.gate.letter,
            "title": weighed.gate.title,
            **ruling_record(ruling, stage),
            "fired": weighed.fired.clause.__name__,
            "rules": [_rule(step) for step in weighed.steps],
            "excuses": [
                {
                    "excuse": excuse.name,
                    "mutes": list(excuse.mutes),
                    "shown": shown is not None,
                    **_why(shown, excuse.why),
                }
                for excuse, shown in weighed.excuses
            ],
        }
    )


def _rule(step: Step) -> dict[str, Any]:
    values = {name: shown for name, shown, _ in thresholds()}
    ruling = step.ruling
    said = None if ruling is None else {"status": str(ruling.status), "condition": ruling.condition}
    return {
        "rule": step.clause.__name__,
        "kind": str(step.kind),
        "sentence": sentence_of(step.clause),
        "came": str(step.came),
        "reached": step.reached,
        "says": said,
        "can_say": [f"{status} {condition}" for status, condition in conditions_of(step.clause)],
        "thresholds": {name: values[name] for name in thresholds_of(step.clause)},
        **_why(step.why),
        "missing": [] if ruling is None else ruling_record(ruling, "")["missing"],
        "excuse": None if step.excuse is None else {"excuse": step.excuse[0].name, **_why(step.excuse[1])},
    }


def _why(measured: Measured | None, why: str = "") -> dict[str, Any]:
    if measured is None:
        return {"why": why, "evidence": []}
    return {"why": masked(measured.says), "evidence": [evidence_record(place) for place in measured.evidence]}


def explanation_text(record: dict[str, Any], width: int) -> str:
    """One screen for a terminal of so many columns: the answer, then each rule in its order with why and where."""
    record = printable(record)
    answer = f"{record['status']} — {record['condition']}: {record['reason']}"
    lines = [
        f"GATE {record['gate']} ({record['title']}) — {record['job']}, stage {record['stage']}, at {record['at']}",
        *textwrap.wrap(answer, width, subsequent_indent="  "),
        "",
    ]
    shown: set[str] = set()
    named = max(len(rule["rule"]) for rule in record["rules"])
    for rule in record["rules"]:
        lines += _rule_lines(rule, named, width, shown)
    lines += _excuse_lines(record["excuses"], width)
    return "\n".join(lines)


def _rule_lines(rule: dict[str, Any], named: int, width: int, shown: set[str]) -> list[str]:
    """What a rule came to; below it the lines that it looked at, and what could not be had."""
    came, said, excuse = rule["came"], rule["says"], rule["excuse"]
    fired = came == Came.FIRED
    says = _sentence(rule) if fired else rule["why"]
    says = f"{said['status']} {said['condition']}: {says}" if said else says
    head = f"{'>' if fired else ' '} {came:<{_CAME}}{rule['rule']:<{named}}  "
    lines = textwrap.wrap(says, width, initial_indent=head, subsequent_indent=" " * len(head))
    if excuse:
        held = f"held back by {excuse['excuse']}: {excuse['why']}"
        lines += textwrap.wrap(held, width, initial_indent=_INDENT, subsequent_indent=_INDENT)
        lines += _places(excuse["evidence"], width, shown)
    if came != Came.WOULD_FIRE:
        lines += _places(rule["evidence"] if fired else rule["evidence"][:PLACES_SHOWN], width, shown)
    return lines + (_gaps(rule["missing"], width) if fired else [])


def _sentence(rule: dict[str, Any]) -> str:
    sentence = str(rule["sentence"])
    return f"rule {sentence}" if sentence[:1].isdigit() else sentence


def _places(evidence: list[dict[str, Any]], width: int, shown: set[str]) -> list[str]:
    """The places that the screen does not show yet, with their quotes."""
    lines: list[str] = []
    for item in evidence:
        place = f"{_INDENT}{item['source']}:{item['line']}  "
        if place in shown:
            continue
        shown.add(place)
        if len(place) > _LONG_PLACE:
            lines.append(place.rstrip())
            place = f"{_INDENT}  "
        lines.append(place + _cut(item["quote"], width - len(place)))
    return lines


def _cut(quote: str, room: int) -> str:
    return quote if len(quote) <= room else f"{quote[:_HEAD]}…{quote[_HEAD + 1 - room :]}"


def _gaps(gaps: list[dict[str, Any]], width: int) -> list[str]:
    lines = []
    for gap in gaps[:GAPS_SHOWN]:
        first, *rest = gap_lines(gap)
        for said in (f"missing: {first}", *(f"  {line}" for line in rest)):
            lines += textwrap.wrap(said, width, initial_indent=_INDENT, subsequent_indent=f"{_INDENT}    ")
    more = len(gaps) - GAPS_SHOWN
    return [*lines, f"{_INDENT}and {more} more"] if more > 0 else lines


def _excuse_lines(excuses: list[dict[str, Any]], width: int) -> list[str]:
    lines = []
    for excuse in excuses:
        state = "shows itself" if excuse["shown"] else "shows nowhere"
        said = f"excuse {excuse['excuse']} (holds back {', '.join(excuse['mutes'])}) {state}: {excuse['why']}"
        lines += textwrap.wrap(said, width, initial_indent="  ", subsequent_indent="    ")
    return ["", *lines] if lines else []
