"""The heartbeat's tracker: fills of the buffer, their rates, and what is no fill of its own."""

from typing import Any

import pytest

from extractors.signal import Benign, Noted
from extractors.trainer import Marker, RankMarker, StaleGroups
from state.tracker import AttemptStarted
from state.trackers.heartbeat import Buffer, HeartbeatTracker
from tests.builders import saw, us
from tests.state.resources_cases import bar, bars, rising


def _after(*observations: Any, now: float) -> HeartbeatTracker:
    tracker = HeartbeatTracker()
    for seen in observations:
        tracker.FOLDS[type(seen.signal)](tracker, seen)
    tracker.tick(us(now))
    return HeartbeatTracker.restore(tracker.snapshot())


def _buffer(*observations: Any, now: float) -> Buffer:
    buffer = _after(*observations, now=now).view().buffer
    assert buffer is not None
    return buffer


def test_a_frozen_bar_stands_since_its_last_rise() -> None:
    buffer = _buffer(*rising(0, 20, 0, 10), *bars(215, 1200, 10), now=1200)
    assert (buffer.held, buffer.since_us, buffer.recent_rate) == (10, us(200), 0.0)
    assert buffer.newest_us > buffer.since_us


def test_frozen_time_does_not_lower_the_earlier_rate() -> None:
    buffer = _buffer(*rising(0, 20, 0, 10), *bars(215, 3000, 10), now=3000)
    assert buffer.earlier_rate == pytest.approx(1 / 20)


def test_a_slow_stretch_is_measured_by_the_best_pace_before_it() -> None:
    buffer = _buffer(*rising(0, 10, 0, 90), *rising(1000, 100, 91, 150), now=6900)
    assert buffer.earlier_rate == pytest.approx(1 / 10)
    assert buffer.recent_rate == pytest.approx(1 / 100)


def test_a_young_fill_has_no_recent_rate_yet() -> None:
    assert _buffer(*rising(0, 20, 0, 10), now=300).recent_rate is None


def test_a_fall_begins_a_new_fill_and_the_old_one_gives_the_earlier_rate() -> None:
    buffer = _buffer(*rising(0, 20, 0, 48), bar(1000, 0, elapsed=0), now=1010)
    assert (buffer.held, buffer.fill_us) == (0, us(1000))
    assert buffer.earlier_rate == pytest.approx(1 / 20)


def test_an_elapsed_time_that_falls_begins_a_new_fill() -> None:
    assert _buffer(bar(0, 0, elapsed=0), bar(90, 0, elapsed=90), bar(100, 0, elapsed=0), now=110).fill_us == us(100)


def test_a_late_echo_of_an_older_line_is_no_fall() -> None:
    echo = saw(31, bar(0, 4).signal, own_seconds=20)
    assert _buffer(bar(0, 0), bar(20, 4), bar(30, 5), echo, now=40).held == 5


def test_benign_lines_are_counted_with_their_copies() -> None:
    view = _after(saw(5, Benign("idle-ring"), repeated=6), saw(9, Benign("idle-ring")), now=10).view()
    assert view.benign["idle-ring"].count == 7


def test_groups_thrown_away_as_stale_are_summed_with_their_copies() -> None:
    seen = (saw(5, StaleGroups(4)), saw(9, StaleGroups(2), repeated=3))
    stale = _after(*seen, now=10).view().stale
    assert stale is not None
    assert (stale.count, stale.evidence) == (10, seen[1].evidence)
    assert _after(*seen, saw(20, AttemptStarted(1)), now=30).view().stale is None


def test_what_no_rule_weighs_is_counted_by_its_kind_and_forgotten_with_its_attempt() -> None:
    lines = [saw(1, Noted("tis-logprobs-missing", 12)), saw(2, Noted("tis-logprobs-missing", 3), repeated=2)]
    marker = saw(3, RankMarker(Marker.DRAIN_BARRIER, 5), repeated=31)
    noted = _after(*lines, marker, now=9).view().noted
    assert {kind: seen.count for kind, seen in noted.items()} == {"tis-logprobs-missing": 18, "drain_barrier": 31}
    assert _after(*lines, saw(5, AttemptStarted(1)), now=9).view().noted == {}
