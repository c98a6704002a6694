"""One order for a job's files."""

from collections.abc import Iterator
from itertools import chain

import pytest

from dataflow.merge import Merge, Stream
from extractors.record import Observation, SourceKind
from extractors.signal import BringUp
from tests.builders import saw, us


def seen(source: str, *seconds: float) -> list[Observation]:
    return [saw(at, BringUp(f"{source} {at}"), source=source) for at in seconds]


def merged(*streams: tuple[SourceKind, list[Observation]], polled: bool = False) -> Merge:
    return Merge([Stream(rank, kind, [found]) for rank, (kind, found) in enumerate(streams)], polled)


def what(observations: Iterator[Observation]) -> list[str]:
    return [observation.signal.what for observation in observations]


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


def test_a_run_is_cut_where_another_files_line_comes_between(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dataflow.merge.SHORT", 1)
    streams = merged((SourceKind.AGGREGATED, seen("a", 1, 2, 2, 5)), (SourceKind.POLL, seen("b", 2, 3)))
    assert [what(iter(run)) for run in streams] == [["a 1", "a 2", "a 2"], ["b 2", "b 3"], ["a 5"]]


def test_short_runs_of_files_that_speak_in_turn_are_put_together() -> None:
    streams = merged((SourceKind.AGGREGATED, seen("a", 1, 2, 2, 5)), (SourceKind.POLL, seen("b", 2, 3)))
    assert [what(iter(run)) for run in streams] == [["a 1", "a 2", "a 2", "b 2", "b 3", "a 5"]]
