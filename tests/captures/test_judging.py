"""Quiet beats are judged together, which changes no record of a recorded run and no time in one."""

import pytest

import state.judge
from dataflow.flow import replay_records
from tests.captures.test_captures import CASES, lines_of


@pytest.mark.parametrize("name", CASES)
def test_each_beat_judged_by_itself_gives_the_same_records(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    together = lines_of(name)
    monkeypatch.setattr(state.judge, "TOGETHER_US", 0)
    assert tuple(replay_records([str(CASES[name][0])], engine="plain")) == together
