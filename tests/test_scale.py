"""docs/scale.md and the model that it is computed by say the same."""

from pathlib import Path

import msgspec

from benchmarks.fleet_model import Costs, Fleet, needed, page

DOC = Path(__file__).resolve().parent.parent / "docs" / "scale.md"


def test_tables_of_the_page_are_those_of_the_model() -> None:
    text = DOC.read_text()
    for table in page().strip().split("\n\n"):
        assert table in text, "python -m benchmarks.fleet model writes the tables"


def test_twice_the_jobs_need_twice_of_all_but_a_process() -> None:
    one, two = (needed(Fleet(jobs=jobs), Costs()) for jobs in (5_000, 10_000))
    assert two.messages == 2 * one.messages
    assert two.disk == 2 * one.disk
    assert abs(two.processes - 2 * one.processes) <= 1
    assert abs(two.memory - one.memory) < 0.02 * one.memory


def test_what_costs_more_needs_more_processes() -> None:
    usual = needed(Fleet(), Costs()).processes
    for name in ("heard", "read", "taken", "tick", "block", "line", "snapshot_of_source"):
        dear = msgspec.structs.replace(Costs(), **{name: 3 * getattr(Costs(), name)})
        assert needed(Fleet(), dear).processes > usual, name


def test_fewer_rounds_are_fewer_messages_of_the_same_lines() -> None:
    often, seldom = (needed(Fleet(round=seconds), Costs()) for seconds in (0.25, 5.0))
    assert seldom.messages < often.messages
    assert seldom.job.lines == often.job.lines


def test_bundles_are_fewer_messages_and_fewer_processes() -> None:
    apart, together = (needed(Fleet(round=5.0, tick_every=5.0, bundles=bundles), Costs()) for bundles in (False, True))
    assert together.messages < apart.messages / 3
    assert together.processes < apart.processes
    assert together.kept == apart.kept
