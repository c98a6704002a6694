"""Exceptions per 10-minute slot."""

import random

from msgspec.structs import replace

from extractors.harbor import BatchCompleted, TrajectoryFailed
from extractors.harbor_trials import TrialStarted
from extractors.record import Observation
from state.exceptions import TROUBLES, Trouble, is_infrastructure, trouble_of
from state.gates.slots import burst_of
from state.trackers.bursts import BurstsTracker, CountedFrom, Slot
from tests.builders import case_after, saw, us
from tests.state.rollout_cases import ended, in_time, many, running, started

MIXED = (*many(30, 1800, 60, reward=0.0), *many(12, 2000, 20, exception="DaytonaError"))


def test_late_files_give_the_same_slots() -> None:
    late = [saw(9000 + i, seen.signal, own_seconds=(seen.at_us - us(0)) / 1e6) for i, seen in enumerate(MIXED)]
    random.Random(7).shuffle(late)
    assert case_after(*running(), *late).bursts.attempt == case_after(*running(), *in_time(MIXED)).bursts.attempt


def test_log_lines_are_a_second_source_and_never_added() -> None:
    lines = [saw(2000 + i, TrajectoryFailed("DaytonaError", True)) for i in range(12)]
    done = saw(2100, BatchCompleted(successful=6, total=8, failed=2, masked=0))
    logged = case_after(*running(), *lines, done).bursts
    assert logged.source is CountedFrom.LOG
    assert logged.slots == (Slot(us(1800), 18, {"DaytonaError": 12}),)
    both = case_after(*in_time((*running(), *lines, done, *MIXED))).bursts
    assert both.source is CountedFrom.TRIALS
    assert sum(slot.exceptions.get("DaytonaError", 0) for slot in both.slots) == 12


def test_a_deduplicated_line_counts_its_copies() -> None:
    seen = case_after(*running(), saw(2000, TrajectoryFailed("DaytonaError", True), repeated=31)).bursts
    assert seen.slots[0].exceptions == {"DaytonaError": 31}


def test_a_trial_counts_once_and_its_retry_again() -> None:
    first = (started(1700, "a__1"), ended(1800, "a__1", exception="DaytonaError"))
    copy = (started(1700, "a__1"), ended(1800, "a__1", exception="DaytonaError"))
    retry = (started(1900, "a__1"), ended(2500, "a__1", reward=1.0))
    assert sum(slot.ended for slot in case_after(*running(), *first, *copy).bursts.slots) == 1
    case = case_after(*running(), *first, *copy, *retry)
    assert sum(slot.ended for slot in case.bursts.slots) == 2
    assert (case.rollouts.started, case.rollouts.ended) == (2, 2)


def test_a_trial_without_times_that_lies_in_two_homes_counts_once() -> None:
    def undated(at: float) -> list[Observation]:
        begun = replace(started(at, "a__1"), signal=TrialStarted("a__1"))
        pair = (begun, ended(at, "a__1", exception="DaytonaError", file="exception.txt"))
        return [replace(seen, evidence=replace(seen.evidence, at_us=None)) for seen in pair]

    case = case_after(*running(), *undated(1800), *undated(2500))
    assert sum(slot.ended for slot in case.bursts.slots) == 1
    assert (case.rollouts.started, case.rollouts.ended) == (1, 1)


def test_reported_slots_count_the_newest_500_and_the_rules_see_all() -> None:
    seen = case_after(*running(), *many(600, 1800, 10, reward=0.0)).bursts
    assert sum(slot.ended for slot in seen.slots) == 500
    assert sum(slot.ended for slot in seen.attempt) == 600


def test_a_burst_needs_clean_attempts_beside_it() -> None:
    full = (Slot(0, 30, {"X": 30}), Slot(600_000_000, 4, {"X": 4}))
    assert burst_of(full, "X") is None
    assert burst_of((*full[:1], Slot(600_000_000, 4, {})), "X") is not None


def test_memory_survives_a_snapshot() -> None:
    tracker = BurstsTracker()
    for seen in MIXED:
        tracker.trial_ended(seen)
    assert BurstsTracker.restore(tracker.snapshot()) == tracker
    assert len(tracker.snapshot()) < 64 * 1024


def test_exception_names_know_whose_trouble_they_are() -> None:
    assert trouble_of("litellm.exceptions.RateLimitError") is Trouble.ENDPOINT
    assert trouble_of("DaytonaSomethingNewError") is Trouble.INFRA
    assert trouble_of("OrchestratorFailure_RuntimeError") is Trouble.INFRA
    assert trouble_of("WhoKnowsError") is Trouble.UNKNOWN
    assert not is_infrastructure("VerificationNotCompletedError")
    assert not is_infrastructure("ContextLengthExceededError")
    assert len(TROUBLES) > 60
