"""Every gate of every recorded run can be explained, and the explanation says what the verdict said."""

import re
from functools import cache
from typing import Any

import orjson
import pytest

from dataflow.explaining import case_at_end, explained
from dataflow.feed import open_feed
from dataflow.outcome import Outcome
from state.report import encode
from state.weighed.report import LETTERS, explanation_text
from tests.captures import quotes
from tests.captures.test_captures import CASES, records_of

CODE = re.compile(r"case\.|\bNone\b|\w\(\w+\)|\[\w+\]\.|_us\b|none of its conditions")
"""What a reason would show that was put together from source text."""
LONGEST_SCREEN = 75


@cache
def explanations_of(name: str) -> tuple[dict[str, Any], ...]:
    outcome = Outcome()
    case = case_at_end(open_feed(str(CASES[name][0])), outcome)
    assert case is not None
    assert not outcome.errors
    return tuple(orjson.loads(encode(record)) for record in explained(case, None))


@pytest.mark.parametrize("name", CASES)
def test_each_gate_is_explained_as_the_final_verdict_has_it(name: str) -> None:
    final = next(record for record in records_of(name) if record.get("final"))
    told = explanations_of(name)
    assert [record["gate"] for record in told] == list(LETTERS)
    for record in told:
        gate = final["gates"][record["gate"]]
        assert {key: record[key] for key in gate} == gate
        assert record["at"] == final["at"]


@pytest.mark.parametrize("name", CASES)
def test_rule_that_fired_said_the_condition_of_the_record(name: str) -> None:
    for record in explanations_of(name):
        fired = [rule for rule in record["rules"] if rule["came"] == "fired"]
        assert [rule["rule"] for rule in fired] == [record["fired"]]
        assert fired[0]["says"] == {"status": record["status"], "condition": record["condition"]}
        assert f"{record['status']} {record['condition']}" in fired[0]["can_say"]


@pytest.mark.parametrize("name", CASES)
def test_each_rule_says_why_in_words_and_never_in_code(name: str) -> None:
    for record in explanations_of(name):
        for rule in record["rules"]:
            assert len(rule["why"]) > 8, rule
            assert rule["came"] == "fired" or not CODE.search(rule["why"]), rule["why"]


@pytest.mark.parametrize("name", CASES)
def test_quotes_of_an_explanation_stand_where_they_are_said_to(name: str) -> None:
    wrong = quotes.misquotes(CASES[name][0], [dict(record) for record in explanations_of(name)])
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", CASES)
def test_a_gate_takes_one_screen_as_wide_as_it_was_asked_for(name: str) -> None:
    for record in explanations_of(name):
        lines = explanation_text(record, 140).splitlines()
        assert len(lines) <= LONGEST_SCREEN
        names_of_files = re.compile(r" {14}\S+:\d+$")
        assert not [line for line in lines if len(line) > 140 and not names_of_files.fullmatch(line)]
