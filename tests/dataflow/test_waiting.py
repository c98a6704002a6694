"""What waits for its time: which lines are taken to be from the future."""

from pathlib import Path

from dataflow.beats import Run
from dataflow.journal import Journal
from dataflow.waiting import AHEAD_US, Waiting
from tests.builders import saw

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
