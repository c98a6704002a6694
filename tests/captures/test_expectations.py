"""The checker of expectations finds what is wrong, and nothing else."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.captures import expectations
from tests.captures.writing.all import CAPTURES

Json = dict[str, Any]
BARK = {"signal": "fault", "source": "finelog.log", "line": 12, "offset": 900, "at": None, "quote": "Watchdog caught"}
POLL = {"signal": "state", "source": "polls/state.jsonl", "line": 3, "offset": 80, "at": None, "quote": "running"}


def gate(letter: str, status: str, condition: str, **more: Any) -> Json:
    """One gate as a verdict holds it."""
    plain = {"gate": letter, "status": status, "condition": condition, "reason": "r", "evidence": [POLL], "missing": []}
    return {**plain, "fix": "", **more}


def verdict(at: str, word: str, final: bool = False, **more: Any) -> Json:
    """One verdict record of a running job."""
    gates = {
        "A": gate("A", "FAIL", "WEDGED", reason="policy ranks stand still", evidence=[POLL, BARK]),
        "B": gate("B", "PASS", "TRAINING"),
        "C": gate("C", "ERROR", "UNREAD", missing=[{"evidence": "the trials", "why": "torn", "command": ["tar", "x"]}]),
        "D": gate("D", "PASS", "INSUFFICIENT"),
    }
    plain = {
        "kind": "verdict",
        "job": "/mira/rl-x",
        "at": f"2026-03-14T{at}:00.000Z",
        "final": final,
        "verdict": word,
        "terminal": False,
        "confidence": "high",
        "stage": "training",
        "step": {"done": 3, "of": 60},
        "gates": gates,
        "cause": {"code": "collective_abort", "evidence": [BARK], "cascade": 4},
        "restarts": {"burned": 0, "max": 1, "pattern": "none"},
        "reasoning": "the mesh hangs",
        "next_steps": ["relaunch"],
        "flip_signal": None,
    }
    return deepcopy({**plain, **more})


RUN = [verdict("10:00", "NO-KILL"), verdict("10:30", "KILL"), verdict("11:00", "KILL", final=True)]

HOLDING: list[Json] = [
    {"verdict": "KILL", "terminal": False, "stage": ["training", "over"], "step": {"done": 3, "of": 60}},
    {"gates": {"A": [["FAIL", "WEDGED"]], "B": [["PASS", "FED"], ["PASS", "TRAINING"]]}},
    {"cause": {"any_of": [{"source": "finelog.log", "line": 12}], "cascade_min": 4}},
    {"cause": {"any_of": [{"source": "*.log", "re": "^Watchdog"}], "none_of": [{"source": "finelog.log", "line": 13}]}},
    {"must_cite": [{"gate": "A", "source": "polls/*", "contains": "running"}, {"lines": [BARK]}]},
    {"must_say": [{"where": "A", "re": "polic"}, {"where": "next", "re": "relaunch"}, {"where": "all", "re": "mesh"}]},
    {"missing": [{"gate": "C", "re": "trial", "command": "tar"}]},
    {"restarts": {"burned": 0, "max": 1, "pattern": ["none", "unknown"]}},
    {"timeline": {"end": "2026-03-14T11:00:00Z", "no_kill_before": "2026-03-14T10:30:00Z"}},
    {"timeline": {"no_kill_before": "2026-03-14T10:00:00Z", "settled_by": "2026-03-14T10:30:00Z"}},
    {"never": {"A": ["DEAD"]}},
]

BROKEN: list[Json] = [
    {"verdict": ["NO-KILL", "ERROR"]},
    {"terminal": True},
    {"step": {"done": 4}},
    {"gates": {"A": [["PASS", "ALIVE"]]}},
    {"cause": None},
    {"cause": {"any_of": [{"source": "finelog.log", "line": 13}]}},
    {"cause": {"none_of": [{"source": "finelog.log", "line": 12}]}},
    {"cause": {"cascade_min": 5}},
    {"must_cite": [{"gate": "B", "source": "finelog.log"}]},
    {"must_not_cite": [{"source": "polls/state.jsonl"}]},
    {"must_say": [{"where": "A.reason", "re": "engine"}]},
    {"must_not_say": [{"where": "all", "re": "mesh"}]},
    {"missing": [{"gate": "C", "re": "trial", "output": "refused"}]},
    {"missing": [{"gate": "A", "re": "."}]},
    {"restarts": {"pattern": ["same-failure"]}},
    {"timeline": {"settled_by": "2026-03-14T11:00:00Z"}},
    {"timeline": {"no_kill_before": "2026-03-14T10:31:00Z"}},
    {"timeline": {"no_kill_before": "2026-03-14T10:30:00Z", "settled_by": "2026-03-14T10:29:00Z"}},
    {"timeline": {"no_kill_before": "2026-03-14T10:30:00Z", "end": "2026-03-14T12:00:00Z"}},
    {"never": {"B": ["TRAINING"]}},
]


@pytest.mark.parametrize("asked", HOLDING)
def test_expectation_that_holds_gives_no_failure(asked: Json) -> None:
    assert expectations.failures(asked, RUN) == []


@pytest.mark.parametrize("asked", BROKEN)
def test_expectation_that_is_broken_is_named_once(asked: Json) -> None:
    assert len(expectations.failures(asked, RUN)) == 1


def test_no_kill_need_only_have_been_given_once_by_the_time() -> None:
    run = [verdict("10:00", "NO-KILL"), verdict("10:30", "ERROR"), verdict("11:00", "NO-KILL", final=True)]
    assert expectations.failures({"timeline": {"settled_by": "2026-03-14T10:05:00Z"}}, run) == []


def test_condition_that_only_a_gate_record_on_the_way_shows_is_found() -> None:
    passing = {"kind": "gate", "at": "2026-03-14T10:10:00.000Z", **gate("A", "ERROR", "STALE")}
    assert len(expectations.failures({"never": {"A": ["STALE"]}}, [passing, *RUN])) == 1


def test_replay_without_a_final_verdict_is_a_failure() -> None:
    assert expectations.failures({}, RUN[:2]) == ["0 final verdicts, one is right"]


@pytest.mark.parametrize("name", CAPTURES)
def test_each_capture_has_an_expectation_with_a_truth_and_a_timeline(name: str) -> None:
    asked = expectations.load(Path(__file__).parent / f"{name}.expect.toml")
    assert asked["truth"]
    assert {"verdict", "terminal", "gates", "timeline", "never", "must_cite", "cause"} & asked.keys()
    assert {"end", "settled_by"} <= asked["timeline"].keys()
