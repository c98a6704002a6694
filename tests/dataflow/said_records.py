"""Records as sinks get them, made whole enough to be written as lines and as reports."""

from typing import Any

from state.report import identified

Record = dict[str, Any]


def stamp(second: int) -> str:
    return f"2026-07-20T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.000Z"


def gate(job: str, second: int, letter: str = "B", condition: str = "FED") -> Record:
    head = {"schema": "wedgewatch/1", "kind": "gate", "job": job, "at": stamp(second)}
    return identified({**head, "gate": letter, "condition": condition, "status": "PASS"})


def verdict(job: str, second: int, condition: str = "ALIVE", says: str = "NO-KILL", reason: str = "it steps") -> Record:
    head = {"schema": "wedgewatch/1", "kind": "verdict", "job": job, "at": stamp(second)}
    status = "PASS" if says == "NO-KILL" else "FAIL"
    a = {"gate": "A", "status": status, "condition": condition, "stage": "generation", "reason": reason}
    return identified(
        {
            **head,
            "captured": "captures/demo",
            "model": "",
            "geometry": "",
            "stage": "generation",
            "step": {"done": 1, "of": 8},
            "verdict": says,
            "confidence": "high",
            "terminal": False,
            "final": False,
            "restarts": {"burned": 0, "max": 1, "remaining": 1, "pattern": "none", "fingerprint": None, "evidence": []},
            "gates": {"A": {**a, "evidence": [], "missing": [], "fix": None}},
            "cause": None,
            "reasoning": reason,
            "next_steps": ["Keep it."],
            "flip_signal": None,
            "duty_cycle": None,
            "slots": [],
            "coverage": {},
        }
    )
