"""The tables of a verdict's text report."""

import re
from typing import Any

import msgspec

from state.report import text_report, verdict_record
from state.tables import SLOTS_SHOWN
from state.trackers.duty_cycle import DutyCycleTracker
from state.verdict import judge
from tests.builders import case_after
from tests.state.rollout_cases import SLOT, ended, in_time, many, running, timed

RACED = msgspec.structs.replace(timed(100, 12, 50, 20, 3, 10), release_race=True)


def record_of(*observations: Any) -> dict[str, Any]:
    """The verdict record after these trials."""
    case = case_after(*in_time((*running(), *observations)))
    return verdict_record(case, judge(case), final=True)


def table_of(record: dict[str, Any], head: str) -> list[str]:
    """The lines of a report's paragraph that begins with these words."""
    paragraphs = text_report(record).split("\n\n")
    return next((each.splitlines() for each in paragraphs if each.startswith(head)), [])


def test_the_duty_cycle_has_every_part_with_its_whole_spread() -> None:
    record = record_of(*many(9, 1800, 20, reward=1.0, timing=timed(100, 4, 60, 16, 2, 8)), *raced())
    duty = record["duty_cycle"]
    assert list(duty["shares"]) == ["llm", "tool", "lifecycle", "verifier", "idle"]
    assert all(
        set(spread) == {"median", "p10", "p90", "max"} for spread in (*duty["shares"].values(), duty["setup_seconds"])
    )
    assert (duty["trials"], duty["release_races"]) == (10, 1)
    table = table_of(record, "Duty cycle of the newest 10 trials")
    assert table[1].split() == ["median", "p10", "p90", "max"]
    assert re.fullmatch(r"  LLM +60% +59% +60% +60%", table[2])
    assert re.fullmatch(r"  setup, seconds +4\.0 +4\.0 +4\.8 +12\.0", table[7])
    assert table[8].endswith("(release race): 1")


def raced() -> tuple[Any, ...]:
    """One trial whose verifier outlived it."""
    return (ended(2100, "raced__1", reward=1.0, timing=RACED),)


def test_a_part_that_the_files_do_not_tell_is_said_to_be_unknown() -> None:
    blind = msgspec.structs.replace(timed(100, 4, 60, 16, 2, 8), llm=None, tool=None)
    table = table_of(record_of(ended(1800, "a__1", reward=1.0, timing=blind)), "Duty cycle of the newest 1 trial,")
    assert table[2] == "  LLM                 not told by the trials' files"


def test_slots_tell_their_ends_and_exceptions_commonest_first() -> None:
    record = record_of(
        *many(3, 1800, 20, reward=1.0),
        *many(2, 1900, 20, exception="DaytonaError"),
        *many(4, 2000, 20, exception="AgentTimeoutError"),
        *many(2, 1800 + SLOT, 20, reward=0.0),
    )
    assert [(slot["ended"], slot["exceptions"]) for slot in record["slots"]] == [
        (9, {"AgentTimeoutError": 4, "DaytonaError": 2}),
        (2, {}),
    ]
    table = table_of(record, "Trials that ended, by 10 minutes")
    assert table[1:] == [
        "  2026-07-20T08:30:00.000Z     9 ended  AgentTimeoutError 4, DaytonaError 2",
        "  2026-07-20T08:40:00.000Z     2 ended  no exception",
    ]


def test_earlier_slots_stand_in_the_record_alone() -> None:
    record = record_of(*(each for n in range(SLOTS_SHOWN + 3) for each in many(1, 1800 + n * SLOT, 1, reward=1.0)))
    table = table_of(record, "Trials that ended, by 10 minutes")
    assert len(record["slots"]) == SLOTS_SHOWN + 3
    assert table[1] == "  (3 earlier slots in the record)"
    assert len(table) == SLOTS_SHOWN + 2


def test_without_trials_there_is_no_table() -> None:
    record = record_of()
    assert (record["duty_cycle"], record["slots"]) == (None, None)
    assert not table_of(record, "Duty cycle")
    assert not table_of(record, "Trials that ended")


def test_the_newest_500_ends_are_counted_in_slots() -> None:
    record = record_of(*many(520, 1800, 5, reward=0.0))
    assert sum(slot["ended"] for slot in record["slots"]) == 500


def test_names_of_exceptions_cannot_write_on_the_terminal() -> None:
    record = record_of(ended(1800, "a__1", exception="Bad\x1b[2JError"))
    assert "\x1b" not in text_report(record)


def test_memory_of_the_duty_cycle_survives_a_snapshot() -> None:
    tracker = DutyCycleTracker()
    for seen in many(5, 1800, 20, reward=1.0, timing=RACED):
        tracker.trial_ended(seen)
    assert DutyCycleTracker.restore(tracker.snapshot()).view() == tracker.view()
