"""Beats that depend on what was observed and when, not on how it was read."""

import random
from itertools import pairwise

from dataflow.beats import APART_US, BEAT_US, PART, BeatCutter, beats
from extractors.polls import JobState
from extractors.record import Beat, Observation
from extractors.signal import BringUp, Fault
from state.policy import SECOND_US
from tests.builders import T0, polled, saw, us


def seen(source: str, *seconds: float) -> list[Observation]:
    return [saw(at, BringUp(f"{source} {at}"), source=source) for at in seconds]


def cut(observations: list[Observation], as_of_us: int | None = None) -> list[Beat]:
    end = max((o.at_us for o in observations), default=T0)
    return list(beats("/kim/rl", [observations], lambda: end, as_of_us))


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


def times(found: list[Beat]) -> list[float]:
    return [(beat.tick.at_us - T0) / SECOND_US for beat in found]


def test_a_beat_ends_with_a_fault_and_holds_all_of_its_time() -> None:
    found = cut([*seen("a", 1), saw(3, Fault("cuda_oom")), *seen("b", 3), *seen("c", 4, 12)])
    assert times(found) == [3, 10, 12]
    assert [len(beat.observations) for beat in found] == [3, 1, 1]


def test_faults_in_a_row_are_judged_once_a_second() -> None:
    found = cut([saw(at / 10, Fault("cuda_oom")) for at in range(1, 50)])
    assert times(found) == [0.1, 1.1, 2.1, 3.1, 4.1, 4.9]
    assert all(later - earlier >= APART_US for earlier, later in pairwise(b.tick.at_us for b in found[:-1]))


def test_a_fault_at_the_very_end_is_judged_once() -> None:
    assert times(cut([*seen("a", 1), saw(3, Fault("cuda_oom"))])) == [3]


def _random(rng: random.Random) -> list[Observation]:
    at, out = 0.0, []
    for number in range(rng.randint(1, 400)):
        at += rng.choice((0, 0, 0.001, 0.3, 2, 9, 45, 4_000))
        out.append(saw(at, Fault("cuda_oom") if rng.random() < 0.2 else BringUp(str(number))))
    return out


def test_beats_do_not_depend_on_how_the_stream_comes_or_when_its_time_is_known() -> None:
    for seed in range(200):
        rng = random.Random(seed)
        stream = _random(rng)
        whole = cut(stream)
        cutter, found, place = BeatCutter("/kim/rl"), [], 0
        while place < len(stream):
            size = rng.randint(1, 30)
            run, place = stream[place : place + size], place + size
            found += cutter.take(run)
            if place < len(stream) and rng.random() < 0.5 and stream[place].at_us > run[-1].at_us:
                found += cutter.reach(rng.randint(run[-1].at_us, stream[place].at_us - 1))
        found += cutter.finish(stream[-1].at_us, [])
        assert found == whole, seed


def test_parts_of_a_beat_do_not_depend_on_how_the_stream_comes() -> None:
    stream = [saw(1, BringUp(str(number))) for number in range(3 * PART)]
    cutter, found = BeatCutter("/kim/rl"), []
    for place in range(0, len(stream), 1_000):
        found += cutter.take(stream[place : place + 1_000])
    assert [*found, *cutter.finish(us(1), [])] == cut(stream)


def test_a_state_poll_ends_a_beat_where_the_state_is_another_one() -> None:
    states = (JobState.RUNNING, JobState.RUNNING, JobState.FAILED, JobState.FAILED)
    found = cut([polled(at, state) for at, state in zip((1, 12, 23, 34), states, strict=True)])
    assert times(found) == [10, 20, 23, 30, 34]
