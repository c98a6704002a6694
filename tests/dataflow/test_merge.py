"""One order for a job's files."""

import random
from collections.abc import Iterator
from itertools import chain
from operator import itemgetter

import pytest

from dataflow.merge import Merge, Stream
from extractors.record import Observation, SourceEnded, SourceKind
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


def whole(source: str, *seconds: float) -> list[Observation]:
    ended = SourceEnded(SourceKind.ACTOR, len(seconds), 100, 0, complete=True)
    return [*seen(source, *seconds), saw(seconds[-1], ended, source=source)]


@pytest.mark.parametrize("seed", range(20))
def test_files_that_are_known_to_their_ends_come_as_if_they_were_merged_line_by_line(seed: int) -> None:
    chance = random.Random(seed)

    def times() -> list[float]:
        return sorted(float(chance.randrange(12)) for _ in range(chance.randrange(1, 6)))

    streams = [
        (SourceKind.ACTOR, whole(f"w{number}", *times()))
        if chance.random() < 0.7
        else (chance.choice([SourceKind.ACTOR, SourceKind.AGGREGATED, SourceKind.POLL]), seen(f"f{number}", *times()))
        for number in range(8)
    ]
    lines = [(each.at_us, rank, each) for rank, (_, found) in enumerate(streams) for each in found]
    wanted = [each for _, _, each in sorted(lines, key=itemgetter(0, 1)) if type(each.signal) is not SourceEnded]
    merge = merged(*streams)
    assert list(chain.from_iterable(merge)) == wanted
    assert len(merge.ended) == sum(type(found[-1].signal) is SourceEnded for _, found in streams)
    assert merge.end_us == wanted[-1].at_us


def test_of_whole_files_too_what_runs_ahead_of_the_others_ends_with_the_job() -> None:
    actors = [(SourceKind.ACTOR, whole(f"w{number}", 15, 500 + number)) for number in range(3)]
    merge = merged((SourceKind.POLL, seen("poll", 10, 20)), *actors, polled=True)
    found = list(chain.from_iterable(merge))
    assert merge.end_us == us(20)
    assert [each.at_us for each in found] == [us(10), *[us(15)] * 3, us(20), *[us(20)] * 3]
