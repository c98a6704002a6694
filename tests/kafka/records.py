"""Records as the topic carries them: whole ones."""

from typing import Any

from state.report import identified
from tests.dataflow import said_records
from tests.dataflow.said_records import stamp

Record = dict[str, Any]


def gate(job: str, second: int, letter: str = "A", condition: str = "ALIVE") -> Record:
    head = {"schema": "wedgewatch/1", "kind": "gate", "job": job, "at": stamp(second)}
    return identified({**head, **_ruling(letter, "PASS", condition)})


def verdict(job: str, second: int, says: str = "NO-KILL", reason: str = "it steps") -> Record:
    a = _ruling("A", "FAIL" if says == "KILL" else "PASS", "WEDGED" if says == "KILL" else "ALIVE")
    facts = dict.fromkeys(("cluster", "model", "geometry", "slots", "coverage"))
    bare = said_records.verdict(job, second, says=says, reason=reason)
    del bare["id"]
    return identified({**bare, **facts, "gates": {"A": a}})


def _ruling(letter: str, status: str, condition: str) -> Record:
    quote = "Policy update finished in 41 s"
    evidence = {
        "signal": "phase_finished",
        "source": "finelog.log",
        "line": 7,
        "offset": 512,
        "at": None,
        "quote": quote,
    }
    return {
        "gate": letter,
        "status": status,
        "condition": condition,
        "stage": "generation",
        "reason": "it steps",
        "evidence": [evidence],
        "missing": [],
        "fix": None,
    }
