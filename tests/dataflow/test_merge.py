"""One order for a job's files, and beats that don't depend on how they were read."""

from collections.abc import Iterator
from itertools import chain, pairwise

import pytest

from dataflow.merge import BEAT_US, PART, Merge, Stream, beats
from extractors.record import Beat, Observation, SourceKind
from extractors.signal import BringUp
from state.policy import SECOND_US
from tests.builders import T0, saw, us


def seen(source: str, *seconds: float) -> list[Observation]:
    return [saw(at, BringUp(f"{source} {at}"), source=source) for at in seconds]


def merged(*streams: tuple[SourceKind, list[Observation]], polled: bool = False) -> Merge:
    return Merge([Stream(rank, kind, [found]) for rank, (kind, found) in enumerate(streams)], polled)


def what(observations: Iterator[Observation]) -> list[str]:
    return [observation.signal.what for observation in observations]


def cut(observations: list[Observation], as_of_us: int | None = None) -> list[Beat]:
    end = max((o.at_us for o in observations), default=T0)
    return list(beats("/kim/rl", [observations], lambda: end, as_of_us))


def test_lines_of_the_same_time_come_in_the_order_of_their_files() -> None:
    first, second = seen("a", 1, 2, 3), seen("b", 1, 2, 3)
    wanted = ["a 1", "b 1", "a 2", "b 2", "a 3", "b 3"]
    streams = merged((SourceKind.AGGREGATED, first), (SourceKind.POLL, second))
    assert what(chain.from_iterable(streams)) == wanted


def test_a_node_whose_clock_runs_ahead_does_not_move_the_end() -> None:
    streams = merged((SourceKind.POLL, seen("poll", 10, 20)), (SourceKind.ACTOR, seen("actor", 15, 500)), polled=True)
    observations = list(chain.from_iterable(streams))
    assert streams.end_us == us(20)
    assert max(o.at_us for o in observations) == us(20)
    assert what(iter(observations)) == ["poll 10", "actor 15", "poll 20", "actor 500"]


def test_without_polls_the_newest_line_of_any_file_is_the_end() -> None:
    streams = merged((SourceKind.AGGREGATED, seen("log", 10)), (SourceKind.ACTOR, seen("actor", 500)))
    list(streams)
    assert streams.end_us == us(500)


def test_beats_end_at_multiples_of_ten_seconds_and_hold_what_came_before() -> None:
    found = cut(seen("a", 1, 9.9, 10, 25))
    assert [(beat.tick.at_us - T0) / SECOND_US for beat in found] == [10, 20, 25]
    assert [len(beat.observations) for beat in found] == [2, 1, 1]
    assert [beat.tick.final for beat in found] == [False, False, True]


def test_a_silence_is_crossed_by_ever_rarer_empty_beats() -> None:
    found = cut(seen("a", 0, 3 * 86_400))
    empty = [beat for beat in found if not beat.observations]
    assert len(empty) < 1_500
    gaps = [(b.tick.at_us - a.tick.at_us) / SECOND_US for a, b in pairwise(found)]
    assert max(gaps[: 29 * 6]) == 10
    assert all(beat.tick.at_us % BEAT_US == 0 for beat in found[:-1])


def test_a_century_of_silence_is_crossed_in_bounded_steps() -> None:
    assert len(cut(seen("a", 0, 100 * 365 * 86_400))) < 50_000


def test_what_comes_after_the_asked_time_is_not_seen() -> None:
    found = cut(seen("a", 1, 12, 40), as_of_us=us(15))
    assert found[-1].tick.at_us == us(15)
    assert sum(len(beat.observations) for beat in found) == 2


def test_an_asked_time_after_the_last_line_is_reached_by_ticks() -> None:
    found = cut(seen("a", 1), as_of_us=us(65))
    assert [beat.tick.at_us - T0 for beat in found[-2:]] == [60 * SECOND_US, 65 * SECOND_US]


def test_a_beat_of_very_many_lines_goes_in_parts_and_is_judged_once() -> None:
    found = cut([saw(1, BringUp(str(number))) for number in range(2 * PART + 1)])
    assert [(beat.partial, len(beat.observations)) for beat in found] == [(True, PART), (True, PART), (False, 1)]


def test_a_run_is_cut_where_another_files_line_comes_between(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dataflow.merge.SHORT", 1)
    streams = merged((SourceKind.AGGREGATED, seen("a", 1, 2, 2, 5)), (SourceKind.POLL, seen("b", 2, 3)))
    assert [what(iter(run)) for run in streams] == [["a 1", "a 2", "a 2"], ["b 2", "b 3"], ["a 5"]]


def test_short_runs_of_files_that_speak_in_turn_are_put_together() -> None:
    streams = merged((SourceKind.AGGREGATED, seen("a", 1, 2, 2, 5)), (SourceKind.POLL, seen("b", 2, 3)))
    assert [what(iter(run)) for run in streams] == [["a 1", "a 2", "a 2", "b 2", "b 3", "a 5"]]
