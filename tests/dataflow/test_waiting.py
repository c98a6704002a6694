"""What waits for its time: its order, what came too late, which lines are taken to be from the future."""

from pathlib import Path

from dataflow.beats import Run
from dataflow.journal import Journal
from dataflow.log_reading import observed
from dataflow.waiting import AHEAD_US, Waiting
from extractors.harbor_trials import TrialStarted
from extractors.record import SourceFailed, SourceKind, SourceResumed
from tests.builders import saw, us

NOW_US = saw(0, None).at_us


def said(at_us: int) -> Run:
    each = saw((at_us - NOW_US) / 1_000_000, None, source="finelog.log")
    return [each]


def times(waiting: Waiting) -> list[int]:
    return [each.at_us for each in waiting.release(1 << 62, lambda name: (0, name))]


def test_a_line_from_far_in_the_future_stands_near_the_present() -> None:
    waiting = Waiting(Journal(), clock=lambda: NOW_US)
    waiting.line("finelog.log", 0, said(NOW_US + 2 * AHEAD_US), NOW_US)
    assert times(waiting) == [NOW_US + AHEAD_US]


def test_a_line_that_was_written_while_other_files_were_read_is_not_from_the_future(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    waiting = Waiting(Journal(journal), clock=lambda: NOW_US + 2 * AHEAD_US)
    waiting.line("finelog.log", 0, said(NOW_US + 2 * AHEAD_US), NOW_US)
    assert times(waiting) == [NOW_US + 2 * AHEAD_US]
    assert not journal.exists()


def lines(source: str, *seconds: float) -> Run:
    return [saw(second, None, source=source) for second in seconds]


def given(waiting: Waiting, upto_seconds: float) -> list[tuple[str, float]]:
    """Sources and times of what is released, in order. Files of a home that is named first come first."""
    run = waiting.release(us(upto_seconds), lambda name: (0 if name.startswith("finelog") else 1, name))
    return [(each.evidence.source, (each.at_us - us(0)) / 1_000_000) for each in run]


def begun(path: Path | None = None) -> Waiting:
    """One that has released up to second 10."""
    waiting = Waiting(Journal(path), clock=lambda: us(10))
    waiting.line("finelog.log", 0, lines("finelog.log", 1), us(1))
    assert given(waiting, 10) == [("finelog.log", 1)]
    return waiting


def failed(second: float, source: str = "b.log") -> Run:
    """A file that cannot be read, at a time that was before."""
    return [observed(SourceFailed(SourceKind.POD, "Permission denied"), "source_failed", source, us(second))]


def test_what_has_the_same_time_comes_by_the_order_of_the_files_and_of_their_lines() -> None:
    waiting = Waiting(Journal())
    waiting.line("b.log", 0, lines("b.log", 1, 1, 2), us(2))
    waiting.line("finelog.log", 0, lines("finelog.log", 1, 3), us(3))
    waiting.line("a.log", 0, lines("a.log", 1, 2), us(3))
    assert given(waiting, 2) == [
        ("finelog.log", 1),
        ("a.log", 1),
        ("b.log", 1),
        ("b.log", 1),
        ("a.log", 2),
        ("b.log", 2),
    ]
    assert given(waiting, 9) == [("finelog.log", 3)]


def test_the_order_does_not_depend_on_which_file_was_read_first_nor_in_how_many_runs() -> None:
    every = [("a.log", (1, 2, 2, 3)), ("finelog.log", (2, 2, 4)), ("c.log", (1, 4))]
    one, other = Waiting(Journal()), Waiting(Journal())
    for name, seconds in every:
        one.line(name, 0, lines(name, *seconds), us(5))
    for name, seconds in reversed(every):
        for second in seconds:
            other.line(name, 0, lines(name, second), us(5))
    assert given(one, 9) == given(other, 9)


def test_what_comes_too_late_stands_behind_what_was_released_and_is_counted_and_noted(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    waiting = begun(path)
    waiting.line("b.log", 0, lines("b.log", 3, 4, 11), us(12))
    assert waiting.late == 2
    assert given(waiting, 20) == [("b.log", 10.000001), ("b.log", 10.000001), ("b.log", 11)]
    assert path.read_bytes().count(b"\n") == 1
    again = Waiting(Journal(path))
    again.line("b.log", 0, lines("b.log", 3, 4, 11), us(99))
    assert again.late == 0
    assert given(again, 20) == [("b.log", 10.000001), ("b.log", 10.000001), ("b.log", 11)]


def test_a_line_from_the_future_has_its_time_again_when_all_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    for now_s in (0, 5_000):
        waiting = Waiting(Journal(path), clock=lambda now_s=now_s: us(now_s))
        waiting.line("finelog.log", 0, lines("finelog.log", 1, 600), us(now_s))
        assert given(waiting, 9_000) == [("finelog.log", 1), ("finelog.log", 60)]


def test_a_log_whose_lines_are_hours_old_when_it_comes_begins_the_job_at_its_own_time() -> None:
    """The watch began before the first copy of the logs came."""
    waiting = Waiting(Journal())
    assert given(waiting, 7_200) == []
    waiting.line("finelog.log", 0, lines("finelog.log", 1, 2), us(7_205))
    assert given(waiting, 7_205) == [("finelog.log", 1), ("finelog.log", 2)]
    assert waiting.late == 0


def test_a_file_that_cannot_be_read_does_not_begin_a_job_and_is_told_with_its_first_line() -> None:
    waiting = Waiting(Journal())
    waiting.line("b.log", 0, failed(0), us(0))
    assert given(waiting, 100) == []
    waiting.line("finelog.log", 0, lines("finelog.log", 90, 91), us(101))
    assert given(waiting, 101) == [("finelog.log", 90), ("b.log", 90), ("finelog.log", 91)]


def test_a_failure_of_the_reading_is_of_now_and_moves_no_line_of_another_reading(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    waiting = begun(path)
    waiting.line("finelog.log", 0, failed(1, "finelog.log"), us(12))
    resumed = observed(SourceResumed(SourceKind.POD, "Permission denied"), "source_resumed", "finelog.log", us(1))
    waiting.line("finelog.log", 0, [resumed], us(12))
    assert given(waiting, 12) == [("finelog.log", 10.000001)] * 2
    assert waiting.late == 0
    assert not path.exists()


def test_a_trial_that_is_read_late_has_its_time_again(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    source = "trace_jobs/sort-a-list__0000001/result.json"
    run = [saw(4, TrialStarted("sort-a-list__0000001"), source=source)]
    waiting = begun(path)
    waiting.whole("trace_jobs/sort-a-list__0000001", run)
    again = Waiting(Journal(path))
    again.whole("trace_jobs/sort-a-list__0000001", run)
    assert given(waiting, 20) == given(again, 20) == [(source, 10.000001)]


def test_what_is_held_goes_into_a_snapshot_and_comes_out_of_it() -> None:
    waiting = begun()
    waiting.line("b.log", 0, lines("b.log", 3, 11, 12), us(12))
    other = Waiting(Journal())
    other.restore(waiting.snapshot())
    assert (other.released_us, other.late, other.begun) == (us(10), 1, True)
    assert given(other, 11) == [("b.log", 10.000001), ("b.log", 11)]
    assert given(other, 13) == [("b.log", 12)]


def test_a_folder_of_trials_begins_with_the_first_of_them_whichever_was_found_first() -> None:
    waiting = Waiting(Journal())
    for after_s in (600, 60, 300):
        (beginning,) = said(NOW_US + after_s * 1_000_000)
        waiting.begin(beginning)
    assert times(waiting) == [NOW_US + 60_000_000]


def test_a_folder_of_trials_whose_beginning_was_released_begins_no_more() -> None:
    waiting = Waiting(Journal())
    (late,), (early,) = said(NOW_US + 600_000_000), said(NOW_US)
    waiting.begin(late)
    assert times(waiting) == [late.at_us]
    waiting.begin(early)
    assert times(waiting) == []
