"""Which sources were read, to where, and which could not be."""

from extractors.record import SourceEnded, SourceFailed, SourceKind
from extractors.signal import BringUp
from state.trackers.coverage import Reading
from tests.builders import ACTOR_LOG, case_after, reading, saw, started, us

AGGREGATED = SourceKind.AGGREGATED


def coverage(*observations):
    return case_after(*observations).coverage


def test_home_that_nobody_showed_is_unseen_not_empty():
    seen = coverage()
    assert not seen.was_read(AGGREGATED)
    assert seen.absence(AGGREGATED, "an error") is None


def test_file_that_is_being_read_counts_as_read_up_to_its_newest_place():
    seen = coverage(reading(), started(10, "step"), started(70, "generate"))
    source = seen.sources["finelog.log"]
    assert seen.was_read(AGGREGATED)
    assert (source.reading, source.to_us, source.newest.line) == (Reading.READING, us(70), 701)


def test_end_of_a_file_tells_its_lines_and_its_gap():
    ended = SourceEnded(AGGREGATED, 900, 64_000, unparsed=2, complete=False, gap="head missing")
    source = coverage(reading(), saw(9, ended)).sources["finelog.log"]
    assert (source.reading, source.lines, source.unparsed) == (Reading.READ, 900, 2)
    assert (source.complete, source.gaps) == (False, ("head missing",))


def test_unreadable_file_does_not_count_as_read():
    seen = coverage(saw(0, SourceFailed(SourceKind.ACTOR, "permission denied"), source=ACTOR_LOG))
    assert not seen.was_read(SourceKind.ACTOR)
    assert seen.failures == ((ACTOR_LOG, "permission denied"),)


def test_file_without_a_line_does_not_count_as_read():
    empty = saw(1, SourceEnded(AGGREGATED, 0, 0, unparsed=0, complete=True))
    assert not coverage(reading(), empty).was_read(AGGREGATED)


def test_best_reading_of_a_home_counts():
    failed = saw(0, SourceFailed(SourceKind.ACTOR, "permission denied"), source="ray_session_logs/other.err")
    assert coverage(failed, reading(SourceKind.ACTOR, ACTOR_LOG)).was_read(SourceKind.ACTOR)


def test_torn_tail_is_a_gap_of_a_file_that_was_read():
    torn = saw(5, SourceFailed(AGGREGATED, "damaged gzip tail", whole=False))
    seen = coverage(reading(), torn)
    assert seen.was_read(AGGREGATED)
    assert seen.sources["finelog.log"].gaps == ("damaged gzip tail",)


def test_absence_says_what_was_searched_and_how_far():
    absence = coverage(reading(), started(70, "generate")).absence(AGGREGATED, "an abort")
    assert (absence.signal, absence.line) == ("absence", 701)
    assert absence.searched.startswith("an abort: none in 1 file(s)")


def test_trials_are_one_entry_however_many_there_are():
    seen = coverage(*(reading(SourceKind.TRIAL, f"trace_jobs/task-{number}/result.json") for number in range(50)))
    assert list(seen.sources) == ["trace_jobs"]


def test_line_that_comes_long_after_its_own_time_is_late():
    late = started(90, "step", own_seconds=20)
    assert coverage(reading(), started(10, "step"), late).sources["finelog.log"].late == 1


def test_actor_classes_are_remembered_with_their_first_line():
    seen = coverage(
        saw(5, BringUp("up"), actor="FSDPPolicyWorkerBase"), saw(9, BringUp("up"), actor="FSDPPolicyWorkerBase")
    )
    assert seen.actors["FSDPPolicyWorkerBase"].line == 51
