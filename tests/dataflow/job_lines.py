"""Builders of rows and records of jobs, for tests of what is shown of them."""

from datetime import UTC, datetime
from typing import Any

NOON = datetime(2026, 7, 20, 12, tzinfo=UTC)
Record = dict[str, Any]


def gate(letter: str, said: str, job: str = "/kim/rl", at: str = "2026-07-20T11:58:00.000Z") -> Record:
    status, condition = said.split()
    return {
        "kind": "gate",
        "job": job,
        "at": at,
        "gate": letter,
        "status": status,
        "condition": condition,
        "stage": "generation",
        "evidence": [],
    }


def verdict(
    job: str = "/kim/rl",
    says: str = "NO-KILL",
    step: int = 7,
    of: int | None = 80,
    stage: str = "generation",
    over: bool = False,
    at: str = "2026-07-20T11:55:00.000Z",
    **gates: str,
) -> Record:
    said = {"A": "PASS ALIVE", "B": "PASS FED", "C": "PASS LEARNING", "D": "PASS STEADY", **gates}
    return {
        "kind": "verdict",
        "job": job,
        "at": at,
        "captured": "run",
        "verdict": says,
        "confidence": "high",
        "terminal": over,
        "gates": {letter: gate(letter, each, job, at) for letter, each in said.items()},
        "stage": stage,
        "step": {"done": step, "of": of},
        "coverage": {
            "finelog.log": {"from": "2026-07-20T09:00:00.000Z", "to": "2026-07-20T11:59:50.000Z"},
            "polls/gpu.jsonl": {"from": None, "to": None},
        },
        "restarts": {"burned": 0, "evidence": [], "fingerprint": None},
        "cause": None,
    }
