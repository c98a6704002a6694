"""Records as the topic carries them: whole ones."""

from typing import Any

from state.report import identified

Record = dict[str, Any]


def stamp(second: int) -> str:
    return f"2026-07-20T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.000Z"


def gate(job: str, second: int, letter: str = "A", condition: str = "ALIVE") -> Record:
    head = {"schema": "wedgewatch/1", "kind": "gate", "job": job, "at": stamp(second)}
    return identified({**head, **_ruling(letter, "PASS", condition)})


def verdict(job: str, second: int, says: str = "NO-KILL", reason: str = "it steps") -> Record:
    head = {"schema": "wedgewatch/1", "kind": "verdict", "job": job, "at": stamp(second)}
    a = _ruling("A", "FAIL" if says == "KILL" else "PASS", "WEDGED" if says == "KILL" else "ALIVE")
    return identified(
        {
            **head,
            "captured": "captures/demo",
            "cluster": None,
            "model": None,
            "geometry": None,
            "stage": "generation",
            "step": {"done": 1, "of": 8},
            "verdict": says,
            "confidence": "high",
            "terminal": False,
            "final": False,
            "restarts": {"burned": 0, "max": 1, "remaining": 1, "pattern": "none", "fingerprint": None, "evidence": []},
            "gates": {"A": a},
            "cause": None,
            "reasoning": reason,
            "next_steps": ["Keep it."],
            "flip_signal": None,
            "duty_cycle": None,
            "slots": None,
            "coverage": None,
        }
    )


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
