"""The wire form of records (CONTRACT §3): what every one of them must hold, whatever it says."""

import re
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

CONDITIONS: dict[str, dict[str, set[str]]] = {
    "A": {
        "PASS": {"ALIVE", "BRINGING_UP", "COMPLETED"},
        "FAIL": {"WEDGED", "DEAD"},
        "ERROR": {"STALE", "UNRECONCILED", "UNEXPLAINED", "INCOMPLETE"},
        "N/A": set(),
    },
    "B": {
        "PASS": {"FED", "BACKPRESSURE", "TRAINING", "BRINGING_UP"},
        "FAIL": {"STARVED", "ENGINE_LOST", "THRASHING", "FLOORED", "OOM_GPU", "OOM_HOST", "IDLE_TRAINING"},
        "ERROR": {"UNSEPARATED", "UNMEASURED", "INCOMPLETE"},
        "N/A": {"OVER"},
    },
    "C": {
        "PASS": {"LEARNING", "EARLY", "HARD_TASKS"},
        "FAIL": {
            "INCOHERENT",
            "CONTAINER_FAULT",
            "INFRA_FAULT",
            "VERIFIER_FAULT",
            "DEAD_LOOP",
            "NO_SIGNAL",
        },
        "ERROR": {"UNREAD", "INCOMPLETE"},
        "N/A": {"OVER"},
    },
    "D": {"PASS": {"STEADY", "INSUFFICIENT"}, "FAIL": {"COLLAPSED"}, "ERROR": {"INCOMPLETE"}, "N/A": {"OVER"}},
}
VERDICTS = {"KILL", "NO-KILL", "ERROR"}
CONFIDENCES = {"high", "medium", "low"}
PATTERNS = {"none", "same-failure", "different-failures", "transient-recovered", "unknown"}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
QUOTE_LIMIT = 520


def faults(records: list[Json]) -> list[str]:
    """What is wrong with the form of these records."""
    found = [fault for record in records for fault in _record(record)]
    if len({record["id"] for record in records}) != len(records):
        found.append("two records share an id")
    return found


def _record(record: Json) -> Iterator[str]:
    if record.get("schema") != "wedgewatch/1" or record.get("kind") not in ("gate", "verdict"):
        yield f"schema or kind: {record.get('schema')} {record.get('kind')}"
        return
    for key in ("job", "id"):
        if not record.get(key):
            yield f"{key} is empty"
    if not TIME.fullmatch(record["at"]):
        yield f"at is no time: {record['at']}"
    yield from _gate(record) if record["kind"] == "gate" else _verdict(record)


def _gate(gate: Json) -> Iterator[str]:
    name = f"gate {gate['gate']} {gate['status']} {gate['condition']}"
    conditions = CONDITIONS[gate["gate"]].get(gate["status"], set())
    if gate["condition"] not in conditions and not (gate["status"] == "N/A" and not conditions):
        yield f"{name} is no pair of the contract"
    if not gate["reason"]:
        yield f"{name} gives no reason"
    if gate["status"] in ("PASS", "FAIL") and not gate["evidence"]:
        yield f"{name} has no evidence"
    if gate["status"] == "ERROR" and not gate["missing"]:
        yield f"{name} says not what is missing"
    for evidence in gate["evidence"]:
        yield from _evidence(name, evidence)
    for entry in gate["missing"]:
        if not entry.get("evidence") or not entry.get("why"):
            yield f"{name}: an empty entry in missing: {entry}"


def _evidence(name: str, evidence: Json) -> Iterator[str]:
    if evidence["line"] < 1 or evidence["offset"] < 0 or len(evidence["quote"]) > QUOTE_LIMIT:
        yield f"{name}: evidence out of bounds: {evidence}"
    if evidence["at"] is not None and not TIME.fullmatch(evidence["at"]):
        yield f"{name}: evidence with no time: {evidence['at']}"
    if any(ord(character) < 32 or ord(character) == 127 for character in evidence["quote"]):
        yield f"{name}: a control character in a quote: {evidence['quote']!r}"


def _verdict(verdict: Json) -> Iterator[str]:
    for key, closed in (("verdict", VERDICTS), ("confidence", CONFIDENCES)):
        if verdict[key] not in closed:
            yield f"{key} is {verdict[key]!r}"
    if verdict["restarts"]["pattern"] not in PATTERNS:
        yield f"restarts.pattern is {verdict['restarts']['pattern']!r}"
    if set(verdict["gates"]) != set("ABCD"):
        yield f"gates are {sorted(verdict['gates'])}"
    for gate in verdict["gates"].values():
        yield from _gate(gate)
    if verdict["terminal"] is not False and verdict["flip_signal"] is not None:
        yield "a job that is over has a flip signal"
    if not verdict["terminal"] and verdict["verdict"] == "NO-KILL" and not verdict["flip_signal"]:
        yield "a NO-KILL without a flip signal"
    if not verdict["reasoning"] or not verdict["next_steps"]:
        yield "no reasoning or no next step"
    if (cause := verdict["cause"]) is not None and not cause["evidence"]:
        yield f"the cause {cause['code']} has no evidence"
