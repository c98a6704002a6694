"""The text report, and the words of a verdict: each thing is said once, and can be understood without the code."""

from pathlib import Path
from typing import Any

import pytest

from extractors.polls import PollFailed
from extractors.record import Observation
from extractors.signal import Fault
from extractors.supervisor import DriverExited
from state.report import text_report, verdict_record
from state.verdict import judge
from tests.builders import ACTOR_LOG, both_homes, case_after, finished, in_time, polled, polls, reading, saw, started

WORDS = "[rank3] Watchdog caught collective operation timeout"
PREFIX = "[08:01:40] task=/alice/rl-demo/0 | (FSDPPolicyWorkerBase pid=9) "


def record_of(*observations: Observation, now: float | None = None) -> dict[str, Any]:
    case = case_after(*in_time(*observations), now=now)
    return verdict_record(case, judge(case), final=True)


def report_of(*observations: Observation, now: float | None = None) -> list[str]:
    return text_report(record_of(*observations, now=now)).splitlines()


def line_of(report: list[str], head: str) -> str:
    return next(line for line in report if line.startswith(head))


def died(at: float = 100, own: float = 100, quote: str = WORDS) -> list[Observation]:
    """One error in both homes, as Ray forwards it: with prefixes in the aggregated log, bare in the actor's file."""
    where: dict[str, Any] = {"actor": "AsyncVLLMInferenceEngine", "pid": 9, "own_seconds": own}
    fault = Fault("engine_meta_tensors", "no kernel for meta")
    return [
        saw(at, fault, quote=PREFIX + quote, line=40, **where),
        saw(at, fault, quote=quote, line=7, source=ACTOR_LOG, **where),
    ]


DEAD = [*both_homes(), started(10, "generate"), *polls("running", until=120), *died(), polled(180, "failed")]


def test_line_that_stands_in_two_homes_names_the_other() -> None:
    report = report_of(*DEAD)
    assert any(line.startswith("  finelog.log:40  ") and line.endswith(WORDS) for line in report)
    assert line_of(report, f"  {ACTOR_LOG}:7  ").endswith(f"{WORDS}  [the line of finelog.log:40, in its other home]")


def test_cut_quotes_of_one_line_are_known_for_the_same() -> None:
    long = "Watchdog caught " + "x" * 480
    report = report_of(*DEAD[:-3], *died(quote=long[:440] + "…"), DEAD[-1])
    assert line_of(report, f"  {ACTOR_LOG}:7  ").endswith("[the line of finelog.log:40, in its other home]")


@pytest.mark.parametrize("other", [{"own": 101}, {"quote": "[rank2] Watchdog caught collective operation timeout"}])
def test_another_time_or_other_words_are_another_line(other: dict[str, Any]) -> None:
    first, second = died()[0], died(**other)[1]
    report = report_of(*DEAD[:-3], first, second, DEAD[-1])
    assert not any("in its other home" in line for line in report)


def test_each_place_is_quoted_once() -> None:
    places = [line.split("  ")[1] for line in report_of(*DEAD) if line.startswith("  finelog.log:")]
    assert len(places) == len(set(places))


def test_next_steps_do_not_repeat_what_a_fix_already_holds() -> None:
    steps = record_of(*DEAD)["next_steps"]
    told = " ".join(steps).lower()
    assert told.count("fix the weight reload bracket") == 1
    assert told.count("hold:") == 1


def test_how_many_errors_the_cause_explains_is_said_once() -> None:
    later = [saw(110 + place, Fault("engine_dead", "gone"), pid=9) for place in range(3)]
    reasoning = record_of(*DEAD[:-1], *later, DEAD[-1])["reasoning"]
    assert reasoning.count("later errors") == 1
    assert "The first cause explains 3 later errors. The first cause stands in finelog.log:40." in reasoning


def test_probe_that_failed_at_several_targets_is_asked_for_once() -> None:
    said = [
        saw(at, PollFailed("gpu", f"pod-{at}", ("smi", f"pod-{at}"), 1, "no", "exit 1"), source="polls/gpu.jsonl")
        for at in (21, 22)
    ]
    steps = record_of(*both_homes(), started(10, "generate"), polled(20, "running"), *said, now=60)["next_steps"]
    (step,) = [step for step in steps if "gate B" in step]
    assert step.count("gpu poll of the policy and engine ranks") == 1
    assert all(f"ran: smi pod-{at}" in step for at in (21, 22))


@pytest.mark.parametrize(
    ("polled_as", "words"),
    [
        ({}, "0/? burned, ? remaining — none (no attempt has failed)"),
        ({"failures": 1}, "1/? burned, ? remaining — none (one attempt has failed)"),
    ],
)
def test_ledger_is_told_in_words(polled_as: dict[str, Any], words: str) -> None:
    report = report_of(*both_homes(), started(10, "generate"), polled(20, "running", **polled_as), now=60)
    assert line_of(report, "Restarts:") == f"Restarts: {words}"


def test_no_line_of_a_report_is_wrapped() -> None:
    heads = ("Gate A", "Gate B", "Gate C", "Gate D", "REASONING:", "NEXT STEPS:", "FLIP SIGNAL:", "Restarts:", "Read:")
    report = report_of(*DEAD)
    assert all(sum(line.startswith(head) for line in report) == 1 for head in heads)
    allowed = (*heads, "  ", "RL-JOB-HEALTH", "VERDICT:", "Evidence I actually read:", "What could not be had:")
    assert all(not line or line.startswith(allowed) for line in report)


# --- what reasons say


def reason_of(*observations: Observation, gate: str = "A", now: float | None = None) -> str:
    return str(record_of(*observations, now=now)["gates"][gate]["reason"])


def test_bare_log_tells_what_it_shows_though_the_state_is_not_known() -> None:
    record = record_of(reading(), started(10, "generate"), finished(70, "generate", 60), died()[0], now=700)
    gate = record["gates"]["A"]
    assert gate["reason"].startswith("The job's state is not known: no state poll is on file. By the logs the newest")
    assert "the first cause among the errors is an engine that died on meta tensors" in gate["reason"]
    assert {40, 701} == {item["line"] for item in gate["evidence"]}


def test_log_without_a_word_of_the_trainer_claims_nothing() -> None:
    assert reason_of(reading()) == "The job's state is not known: no state poll is on file"


def test_unread_home_of_an_ended_job_is_told_in_a_sentence() -> None:
    over = [started(10, "generate"), *polls("running", until=60), polled(120, "failed")]
    assert reason_of(reading(), *over).endswith("but nothing was read of the per-actor Ray logs")
    assert reason_of(*over).endswith("but nothing was read of the aggregated log or the per-actor Ray logs")


def test_drivers_own_exit_is_told_and_quoted_beside_the_state_record() -> None:
    exited = saw(170, DriverExited(1), line=90, quote="[driver exit_code=1 (head)]")
    record = record_of(*DEAD[:-1], exited, polled(180, "failed", exit_code=0))
    assert "failed since 08:03:00Z, exit 0; its driver exited with 1)" in record["gates"]["A"]["reason"]
    assert 90 in {item["line"] for item in record["gates"]["A"]["evidence"]}


def test_driver_that_exited_as_its_task_did_is_not_worth_a_word() -> None:
    exited = saw(170, DriverExited(1), line=90)
    assert "driver" not in reason_of(*DEAD[:-1], exited, polled(180, "failed", exit_code=1))


def test_driver_exit_of_an_earlier_attempt_is_not_this_ones() -> None:
    exited = saw(60, DriverExited(1), attempt=0)
    again = [started(100, "generate", attempt=1), polled(200, "failed", exit_code=0)]
    assert "driver exited" not in reason_of(*both_homes(), started(10, "generate"), exited, *again)


def test_allowance_of_a_fresh_job_is_told_as_a_bound() -> None:
    reason = reason_of(*both_homes(), started(10, "generate"), *polls("running", until=60))
    assert "its newest progress 50 s old, within the allowance of 60 min (twice the generation floor" in reason


def test_page_of_records_names_every_field() -> None:
    page = (Path(__file__).parents[2] / "docs/records.md").read_text(encoding="utf-8")
    record = record_of(*DEAD)
    gate = record["gates"]["A"]
    nested = [record["restarts"], record["step"], record["cause"], gate, gate["evidence"][0]]
    fields = {*record, *(field for part in nested for field in part)}
    assert not [field for field in sorted(fields) if f"`{field}`" not in page]
