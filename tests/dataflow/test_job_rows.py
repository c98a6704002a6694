"""What is said of a job in one line, what of it has changed, and what a terminal has room for."""

import io
from datetime import timedelta

import pytest
from rich.console import Console

from dataflow.job_rows import JobLag, Line, Looks, row_of, unjudged_row, within
from dataflow.job_table import STATUS_WATCHED, WATCHED, behind_said, screenful, unread_said
from tests.dataflow.job_lines import NOON, gate, verdict


def shown(
    lines: list[Line], heads: tuple[str, ...] = WATCHED, width: int = 160, height: int = 30, foot: str = ""
) -> str:
    console = Console(file=io.StringIO(), width=width, height=height)
    console.print(screenful(lines, heads, NOON, console, foot))
    said: str = console.file.getvalue()  # type: ignore[attr-defined]
    assert all(len(line) <= width for line in said.splitlines())
    assert "\x1b" not in said
    return said


def looked(*looks: list[dict[str, object]]) -> list[Line]:
    memory = Looks()
    lines: list[Line] = []
    for number, rows in enumerate(looks):
        lines = memory.look(rows, NOON - timedelta(seconds=2 * (len(looks) - 1 - number)))
    return lines


def test_a_gate_that_is_newer_than_the_verdict_stands_in_the_row() -> None:
    older, newer = gate("B", "FAIL THRASHING", at="2026-07-20T11:50:00.000Z"), gate("C", "FAIL NO_SIGNAL")
    row = row_of(verdict(), {"B": older, "C": newer})
    assert row["gates"] == {"A": "PASS ALIVE", "B": "PASS FED", "C": "FAIL NO_SIGNAL", "D": "PASS STEADY"}
    assert row["newest_line"] == "2026-07-20T11:59:50.000Z"


def test_at_the_first_look_nothing_has_changed() -> None:
    (line,) = looked([row_of(verdict(), {})])
    assert (line.marks, line.change) == (frozenset(), None)


def test_change_is_marked_for_one_look_and_told_until_the_next() -> None:
    before, after = row_of(verdict(), {}), row_of(verdict(says="KILL", A="FAIL WEDGED"), {})
    (line,) = looked([before], [after])
    assert line.marks == {"verdict", "A"}
    assert line.change is not None
    assert line.change.says == "NO-KILL → KILL, A ALIVE → WEDGED"
    (line,) = looked([before], [after], [after])
    assert line.marks == frozenset()
    assert line.change is not None
    assert line.change.at == NOON - timedelta(seconds=2)


def test_change_can_be_marked_for_longer_than_one_look() -> None:
    memory = Looks(marked=10.0)
    memory.look([row_of(verdict(), {})], NOON)
    for seconds, marks in ((2, {"B"}), (4, {"B"}), (11.9, {"B"}), (12, set())):
        (line,) = memory.look([row_of(verdict(B="FAIL STARVED"), {})], NOON + timedelta(seconds=seconds))
        assert line.marks == marks


def test_a_step_does_not_push_out_the_change_of_a_gate() -> None:
    first, starved = row_of(verdict(), {}), row_of(verdict(B="FAIL STARVED"), {})
    (line,) = looked([first], [starved], [row_of(verdict(B="FAIL STARVED", step=8, stage="training"), {})])
    assert line.marks == {"stage", "step"}
    assert line.change is not None
    assert line.change.says == "B FED → STARVED"
    (line,) = looked([first], [row_of(verdict(step=8), {})])
    assert line.change is not None
    assert line.change.says == "step 8/80"


def test_a_gate_that_fails_under_the_same_condition_as_it_passed_has_changed() -> None:
    (line,) = looked([row_of(verdict(B="ERROR INCOMPLETE"), {})], [row_of(verdict(B="PASS INCOMPLETE"), {})])
    assert line.marks == {"B"}


def test_a_job_that_comes_later_is_new_and_one_that_goes_is_forgotten() -> None:
    one, two = row_of(verdict("/kim/one"), {}), row_of(verdict("/kim/two"), {})
    lines = looked([one], [one, two])
    assert [(line.row["job"], line.change and line.change.says) for line in lines] == [
        ("/kim/one", None),
        ("/kim/two", "new"),
    ]
    assert [line.row["job"] for line in looked([one, two], [two])] == ["/kim/two"]


def test_end_of_a_job_is_a_change_of_its_verdict() -> None:
    (line,) = looked([row_of(verdict(), {})], [row_of(verdict(over=True), {})])
    assert line.change is not None
    assert line.change.says == "NO-KILL → NO-KILL (over)"


def test_job_without_a_verdict_shows_what_is_known_and_no_more() -> None:
    said = shown([Line(unjudged_row("/kim/rl", {"B": gate("B", "ERROR UNMEASURED")}))])
    assert said.splitlines()[1].split() == ["/kim/rl", "-", "-", "UNMEASURED", "-", "-", "generation", "-", "-", "-"]


def test_first_verdict_is_a_change_and_what_comes_with_it_is_none() -> None:
    (line,) = looked([unjudged_row("/kim/rl", {"B": gate("B", "PASS FED")})], [row_of(verdict(B="FAIL STARVED"), {})])
    assert line.marks == {"verdict", "B"}
    assert line.change is not None
    assert line.change.says == "- → NO-KILL, B FED → STARVED"


def test_what_has_changed_is_seen_without_colours() -> None:
    said = shown(looked([row_of(verdict(), {})], [row_of(verdict(B="FAIL STARVED", step=8), {})]), STATUS_WATCHED)
    assert "*STARVED" in said
    assert "*8/80" in said
    assert "0 s ago: B FED → STARVED" in said
    assert said.count("*") == 2


def test_lag_tells_how_far_behind_and_what_is_not_taken_in() -> None:
    row = row_of(verdict(), {})
    newest_us = int((NOON - timedelta(seconds=3)).timestamp() * 1_000_000)
    lag = JobLag("/kim/rl", 95.0, late_lines=12, unreadable=("finelog.log", "polls/gpu.jsonl"), newest_us=newest_us)
    (line,) = Looks().look([row], NOON, [lag])
    said = shown([line])
    assert "95 s, 12 late, 2 unread" in said
    assert "3 s" in said
    assert "10 s" not in said
    assert unread_said([line], most=1) == "/kim/rl: finelog.log can't be read\nand 1 more source"


def test_jobs_that_do_not_fit_are_counted_and_those_that_need_somebody_come_first() -> None:
    jobs = [verdict("/a"), verdict("/b", "ERROR"), verdict("/c", "KILL", over=True), verdict("/d", "KILL")]
    lines = [Line(row_of(each, {})) for each in jobs]
    assert within(lines, 4) == (lines, "")
    some, rest = within(lines, 3)
    assert ([line.row["job"] for line in some], rest) == (["/d", "/b"], "and 2 more: 1 NO-KILL, 1 KILL (over)")
    said = shown(lines, height=6, foot="noted").splitlines()
    assert len(said) == 5
    assert said[-2:] == ["and 2 more: 1 NO-KILL, 1 KILL (over)", "noted"]


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 120, 160, 300])
@pytest.mark.parametrize("heads", [STATUS_WATCHED, WATCHED])
def test_each_job_has_one_line_however_narrow_the_terminal(width: int, heads: tuple[str, ...]) -> None:
    before = [row_of(verdict(f"/kim/rl-heron-{number}"), {}) for number in range(3)]
    after = [row_of(verdict(f"/kim/rl-heron-{number}", "KILL", A="FAIL WEDGED"), {}) for number in range(3)]
    said = shown(looked(before, after), heads, width).splitlines()
    assert len(said) == 4
    if width >= 60:
        assert all("/kim/rl-heron-" in line and "*KILL" in line and "WEDGED" in line for line in said[1:])


def test_narrow_terminal_is_told_only_the_gates_that_do_not_pass() -> None:
    lines = [
        Line(row_of(verdict(C="FAIL DEAD_LOOP", D="ERROR INCOMPLETE"), {})),
        Line(row_of(verdict("/kim/well"), {})),
    ]
    said = shown(lines, STATUS_WATCHED, 80).splitlines()
    assert "C DEAD_LOOP D INCOMPLETE" in said[1]
    assert "ALIVE" not in said[1]
    assert " pass " in said[2]


def test_name_of_a_job_brings_no_control_sequence_onto_the_terminal() -> None:
    shown([Line(row_of(verdict("/kim/\x1b[31mrl"), {}))])


GOOD = {"good": "2026-07-20T11:50:00.000Z", "fails": ""}


@pytest.mark.parametrize(
    ("lag", "sync", "says"),
    [
        (None, None, []),
        (30.0, None, []),
        (65.0, GOOD, ["is judged 65 s behind the clock"]),
        (
            5.0,
            {**GOOD, "fails": "exit 1"},
            ["its sync fails (exit 1), the last good one began at 2026-07-20T11:50:00.000Z"],
        ),
        (
            400.0,
            {"good": None, "fails": "exit 1"},
            ["is judged 6 min behind the clock; its sync fails (exit 1), none was good yet"],
        ),
    ],
)
def test_what_a_watch_is_behind_with_is_told(
    lag: float | None, sync: dict[str, object] | None, says: list[str]
) -> None:
    rows = [{**row_of(verdict(), {}), "lag": lag, "sync": sync}, row_of(verdict("/kim/two"), {})]
    assert behind_said(rows) == [f"/kim/rl: {each}" for each in says]
