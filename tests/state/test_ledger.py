"""The ledger of a configuration: what its earlier runs ended of, kept in the store, whatever the order of telling."""

from itertools import permutations
from pathlib import Path

import pytest

from state.ledger import configuration_of, earlier_line, ends_of
from state.store import Store, reading


def quoted(at: str, source: str = "finelog.log") -> dict:
    return {"signal": "cuda_oom", "source": source, "line": 7, "offset": 90, "at": at, "quote": "out of memory"}


def verdict(job: str, at: str, *, over: bool = False, burned: tuple[dict, ...] = (), cause: dict | None = None) -> dict:
    return {
        "kind": "verdict",
        "id": f"{job}{at}",
        "job": job,
        "at": at,
        "verdict": "KILL" if over else "NO-KILL",
        "terminal": over,
        "step": {"done": 7, "of": 80},
        "gates": {"A": {"status": "FAIL", "condition": "DEAD", "evidence": [quoted(at, "polls/state.jsonl")]}},
        "restarts": {"burned": len(burned), "fingerprint": "f1" if burned else None, "evidence": list(burned)},
        "cause": {"code": "cuda_oom", "evidence": [cause]} if cause else None,
        "coverage": {"finelog.log": {"from": at}},
    }


@pytest.mark.parametrize(
    ("job", "configuration"),
    [
        ("/alice/rl-demo-20260720", "/alice/rl-demo"),
        ("/alice/rl-demo-20260720-101400", "/alice/rl-demo"),
        ("/alice/rl-demo-2026-07-20", "/alice/rl-demo"),
        ("/alice/rl-demo-r2", "/alice/rl-demo"),
        ("/alice/rl-demo_3", "/alice/rl-demo"),
        ("/alice/rl-demo-20260720-r2", "/alice/rl-demo"),
        ("/alice/rl-demo-retry-2", "/alice/rl-demo"),
        ("/alice/rl-demo-1753006440", "/alice/rl-demo"),
        ("/alice/rl-demo", "/alice/rl-demo"),
        ("/alice/qwen3-30b", "/alice/qwen3-30b"),
        ("/alice/20260720", "/alice/20260720"),
        ("12345", "12345"),
    ],
)
def test_a_configuration_is_the_name_without_dates_and_counters(job: str, configuration: str) -> None:
    assert configuration_of(job) == configuration


def test_a_run_that_is_over_and_a_burned_attempt_of_it_are_two_ends() -> None:
    record = verdict("/a/rl-r1", "T5", over=True, burned=(quoted("T2"), quoted("T4")), cause=quoted("T4"))
    ends = dict(ends_of(record))
    assert [(end["at"], end["over"], end["how"], end["fingerprint"]) for end in ends.values()] == [
        ("T2", False, None, None),
        ("T4", True, "cuda_oom", "f1"),
    ]


def test_an_attempt_has_the_cause_that_a_verdict_rests_on() -> None:
    record = verdict("/a/rl-r1", "T5", burned=(quoted("T2"), quoted("T4")), cause=quoted("T4"))
    assert [(end["at"], end["how"]) for _, end in ends_of(record)] == [("T2", None), ("T4", "cuda_oom")]


def test_the_same_end_stands_once_whenever_and_in_whatever_order_it_is_told(tmp_path: Path) -> None:
    told = [
        verdict("/a/rl-r1", "T3", burned=(quoted("T2"),)),
        verdict("/a/rl-r1", "T5", over=True, burned=(quoted("T2"), quoted("T4")), cause=quoted("T4")),
        verdict("/a/rl-r1", "T6", over=True, burned=(quoted("T2"), quoted("T4")), cause=quoted("T4")),
    ]
    kept = []
    for number, order in enumerate(permutations(told)):
        store = Store(tmp_path / str(number))
        for record in (*order, *order):
            store.write(record)
        store.close()
        with reading(tmp_path / str(number)) as book:
            kept.append(book.ends("/a/rl-r9"))
    assert [(end["at"], end["over"], end["said"]) for end in kept[0]] == [("T2", False, "T3"), ("T4", True, "T5")]
    assert all(ends == kept[0] for ends in kept)


def test_a_relaunch_is_told_how_the_runs_before_it_ended(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write(verdict("/a/rl-20260719", "T1", over=True, cause=quoted("T1")))
    store.write(verdict("/a/rl-20260720", "T5", over=True, burned=(quoted("T3"),)))
    store.write(verdict("/a/other-20260720", "T6", over=True, cause=quoted("T6")))
    store.close()
    with reading(tmp_path) as book:
        ends = book.ends("/a/rl-20260721")
    line = earlier_line(verdict("/a/rl-20260721", "T9"), ends)
    assert line == (
        "Earlier runs of this configuration (/a/rl): 2, 1 burned attempt, "
        "last ended T5: DEAD at step 7 (/a/rl-20260720)"
    )


def test_a_run_is_no_earlier_run_of_itself_but_a_life_under_its_name_is(tmp_path: Path) -> None:
    now = verdict("/a/rl", "T5", over=True, cause=quoted("T5"))
    now["coverage"] = {"finelog.log": {"from": "T4"}, "empty.log": {"from": None}}
    ends = [end for _, end in ends_of(now)]
    assert earlier_line(now, ends) == ""
    past = [end for _, end in ends_of(verdict("/a/rl", "T2", over=True, cause=quoted("T2")))]
    assert "(/a/rl): 1, last ended T2: cuda_oom" in earlier_line(now, [*ends, *past])


def test_what_a_later_run_ended_of_is_no_past_of_an_earlier_one() -> None:
    later = [end for _, end in ends_of(verdict("/a/rl-r2", "T8", over=True, cause=quoted("T8")))]
    assert earlier_line(verdict("/a/rl-r1", "T5"), later) == ""
