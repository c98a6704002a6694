"""The pages written from the code are current, and the code says of itself what they need."""

from pathlib import Path

import pytest

from state import clause_facts, explain
from state.decision import GATES
from state.gate import Clause, Status
from tests.captures.contract import CONDITIONS

DOCS = Path(__file__).parents[2] / "docs"
CLAUSES = [(gate.letter, clause) for gate in GATES for clause in gate.clauses]


@pytest.mark.parametrize("name", explain.PAGES)
def test_page_is_what_the_code_says_now(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == explain.PAGES[name](), "run python -m state.explain"


def test_writing_writes_every_page(tmp_path: Path) -> None:
    explain.write(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == set(explain.PAGES)


@pytest.mark.parametrize("letter", CONDITIONS)
def test_clauses_of_a_gate_come_to_every_condition_of_the_contract_and_no_other(letter: str) -> None:
    promised = {(Status(status), word) for status, words in CONDITIONS[letter].items() for word in words}
    assert {pair for own, clause in CLAUSES if own == letter for pair in clause_facts.conditions_of(clause)} == promised


@pytest.mark.parametrize(("letter", "clause"), CLAUSES, ids=lambda one: getattr(one, "__name__", one))
def test_every_clause_says_its_rule_and_can_rule(letter: str, clause: Clause) -> None:
    assert len(clause_facts.sentence_of(clause)) > 15, f"gate {letter}, {clause.__name__}: no sentence"
    assert clause_facts.conditions_of(clause), f"gate {letter}, {clause.__name__}: no condition"


def test_condition_kept_in_a_variable_is_found() -> None:
    settles = next(clause for _, clause in CLAUSES if clause.__name__ == "generation_settles")
    assert clause_facts.conditions_of(settles) == ((Status.PASS, "TRAINING"), (Status.PASS, "BRINGING_UP"))


def test_clause_that_asks_another_does_not_claim_what_the_other_says() -> None:
    hard_tasks = next(clause for _, clause in CLAUSES if clause.__name__ == "hard_tasks")
    assert clause_facts.conditions_of(hard_tasks) == ((Status.PASS, "HARD_TASKS"),)


def test_every_threshold_says_what_it_is_for() -> None:
    assert not [name for name, _, doc in clause_facts.thresholds() if not doc]


def test_durations_are_shown_as_reasons_say_them() -> None:
    shown = {name: value for name, value, _ in clause_facts.thresholds()}
    assert shown["GPU_POLL_MAX_AGE"] == "15 min"
    assert shown["STAGE_FLOORS"].startswith("bring_up 60 min, generation 30 min")
    assert shown["ENDED_FEWEST"] == "20"
    assert shown["DENSE_FLOORS"] == "up to 10: 500, up to 20: 400, up to 40: 200"
