"""Trials, archives and dumps that are sent twice are read once."""

from pathlib import Path

from dataflow.repeats import Repeats
from dataflow.wire_words import TrialSeen
from extractors.harbor_trials import TrialStarted
from tests.dataflow.live_feeds import START_US, bars
from tests.dataflow.shipped_streams import Sender, Taken
from tests.dataflow.test_shipped_job import NAME, told


def test_the_same_files_are_a_repeat_and_others_are_none() -> None:
    repeats, found = Repeats(), []
    for parts in (("a",), ("a", "b"), ("b", "b"), ("a", "b"), ("a", "b"), ()):
        for offset, part in enumerate(parts):
            repeats.part("node-1", "trials/x/config.json", offset, part.encode())
        repeats.part("node-2", "trials/x/config.json", 0, b"c")
        found.append(repeats.has("node-1", "trials/x", False))
    assert found == [False, False, False, False, True, True]
    assert not repeats.has("node-1", "trials/x", True)


def test_a_part_that_came_twice_on_the_way_makes_no_other_file() -> None:
    repeats = Repeats()
    repeats.part("node-1", "trials.tar", 0, b"a")
    assert not repeats.has("node-1", "trials.tar", False)
    for _ in range(2):
        repeats.part("node-1", "trials.tar", 0, b"a")
    repeats.part("node-1", "trials.tar.old", 0, b"a")
    assert repeats.has("node-1", "trials.tar", False)


def test_a_trial_that_is_sent_again_after_a_kill_is_read_once(tmp_path: Path) -> None:
    sender, taken = Sender(), Taken(tmp_path)
    trial = "trace_jobs/task__abcdefg"
    part = sender.part(f"{trial}/config.json", 0, b'{"trial_name": "task__abcdefg"}', 32, START_US * 1000)
    seen = sender.word(TrialSeen("task__abcdefg", trial, False))
    taken.take(sender.begun(), sender.lines(NAME, bars(0, 40)), part, seen, sender.tick(10))
    taken.restart()
    taken.take(part, seen, sender.tick(60))
    assert len(told(taken.observations, TrialStarted)) == 1
