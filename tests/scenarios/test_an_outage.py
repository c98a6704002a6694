"""Scenarios in which nothing is heard of the job for a while: all that they say besides is what they say without it."""

import random
from pathlib import Path

import pytest

from dataflow.feed import open_feed
from dataflow.outcome import Outcome
from extractors.record import Beat
from state.judge import Judge
from state.policy import SECOND_US
from state.report import encode
from tests.captures import contract
from tests.scenarios.playing import play
from tests.scenarios.scenario import load
from tests.scenarios.test_scenarios import SCENARIOS
from tests.state.outages import is_part, newest, outage
from tests.state.streams import said

EVERY = 20
"""Of so many scenarios one is broken off."""
OUTAGES = 3


def broken(stream: list[Beat], seed: str) -> list[Beat]:
    """The stream with outages at any of its beats, in which some of their observations had come already."""
    chance = random.Random(seed)
    for place in sorted(chance.sample(range(1, len(stream) - 1), OUTAGES), reverse=True):
        stream = outage(stream, place, chance.randint(0, max(0, len(stream[place].observations) - 1)))
    return stream


@pytest.mark.parametrize("name", list(SCENARIOS)[::EVERY])
def test_an_outage_adds_records_and_changes_none(name: str, tmp_path: Path) -> None:
    play(load(SCENARIOS[name]), tmp_path)
    stream = list(open_feed(str(tmp_path)).beats(Outcome()))
    heartbeat_us = 600 * SECOND_US
    without, _ = said(Judge(heartbeat_us), stream)
    records, _ = said(Judge(heartbeat_us), broken(stream, name))
    assert is_part([encode(each) for each in without], [encode(each) for each in records])
    assert newest(records) == newest(without)
    assert [each["at"] for each in records] == sorted(each["at"] for each in records)
    assert not contract.faults(records)
