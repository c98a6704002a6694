"""The law of the scenarios: each rule of GATES has one that fires it, one that stays quiet, one that is held back."""

from collections import defaultdict

import pytest

from tests.scenarios.rules import RULES
from tests.scenarios.scenario import PROOFS, load
from tests.scenarios.test_scenarios import SCENARIOS

LONGEST = 45
"""Lines of a scenario file: one screen."""

LOADED = {name: load(path) for name, path in SCENARIOS.items()}
PROVEN: dict[tuple[str, str], list[str]] = defaultdict(list)
for each, scenario in LOADED.items():
    for proof in PROOFS:
        for rule in scenario.listed(proof):
            PROVEN[rule, proof].append(each)


@pytest.mark.parametrize("proof", PROOFS)
@pytest.mark.parametrize("rule", RULES)
def test_each_rule_is_proven(rule: str, proof: str) -> None:
    assert PROVEN[rule, proof], f"no scenario says `{proof}: {rule}` ({RULES[rule]})"


@pytest.mark.parametrize("name", LOADED)
def test_a_scenario_proves_rules_that_there_are(name: str) -> None:
    named = [rule for proof in PROOFS for rule in LOADED[name].listed(proof)]
    assert named, "a scenario says what it proves: fires, quiet or held back"
    assert not [rule for rule in named if rule not in RULES]


@pytest.mark.parametrize("name", LOADED)
def test_a_scenario_is_one_screen(name: str) -> None:
    lines = SCENARIOS[name].read_text().splitlines()
    assert len(lines) <= LONGEST, f"{len(lines)} lines are two ideas"
    assert LOADED[name].title.endswith("."), "its title is a sentence"
