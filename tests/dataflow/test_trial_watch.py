"""New trials of a live job: each is told when it began and when it ended, and never looked at again."""

import os
from pathlib import Path

import pytest

from dataflow import trial_watch
from dataflow.capture import TrialTree
from dataflow.trial_files import TrialFiles, one_trial
from dataflow.trial_watch import LISTING_US_PER_NAME, NEWEST, TrialSeen, TrialWatch

SECOND_US = 1_000_000


class Watching:
    def __init__(self, path: Path, snapshot: bytes = b"") -> None:
        path.mkdir(exist_ok=True)
        self.path = path
        self.watch = TrialWatch(TrialTree("trace_jobs", str(path)), snapshot)
        self.now_us = 0

    def look(self, times: int = 1) -> list[tuple[str, bool]]:
        """(trial, ended) of all these looks."""
        return [(seen.name, seen.ended) for _ in range(times) for seen in self._look()]

    def _look(self) -> list[TrialSeen]:
        self.now_us += SECOND_US
        return self.watch.look(self.now_us)


@pytest.fixture
def watching(tmp_path: Path) -> Watching:
    return Watching(tmp_path / "trace_jobs")


def trial(root: Path, number: int, *files: str) -> str:
    name = f"sort-a-list__{number:07d}"
    for file in files:
        (root / name).mkdir(parents=True, exist_ok=True)
        (root / name / file).write_text("{}")
    return name


def test_a_trial_is_told_when_it_begins_and_when_it_ends(watching: Watching) -> None:
    name = trial(watching.path, 1, "config.json")
    assert watching.look(3) == [(name, False)]
    trial(watching.path, 1, "result.json")
    assert watching.look(5) == [(name, True)]


def test_a_result_that_is_still_written_is_waited_for(watching: Watching) -> None:
    name = trial(watching.path, 1, "result.json")
    result = watching.path / name / "result.json"
    for size in range(1, 5):
        result.write_text("{" * size)
        assert watching.look() == []
    assert watching.look() == [(name, True)]


def test_an_old_result_is_told_at_once(watching: Watching) -> None:
    name = trial(watching.path, 1, "result.json")
    watching.now_us = os.stat(watching.path).st_mtime_ns // 1_000 + 10 * SECOND_US
    assert watching.look() == [(name, True)]


def test_the_trials_of_a_job_folder_are_told_with_the_jobs_own_result(watching: Watching) -> None:
    job = watching.path / "job-7"
    trial(job, 1, "config.json", "result.json")
    (job / "result.json").write_text("{}")
    told = [(seen.relative, seen.ended) for _ in range(5) for seen in watching._look()]
    assert sorted(told) == [
        ("trace_jobs/job-7/result.json", True),
        ("trace_jobs/job-7/sort-a-list__0000001", True),
    ]


def test_a_config_that_is_still_written_tells_of_no_start_yet(watching: Watching) -> None:
    name = trial(watching.path, 1, "config.json")
    assert watching.look() == []
    (watching.path / name / "config.json").write_text('{"trial_name": "longer now"}')
    assert watching.look() == []
    assert watching.look() == [(name, False)]


def test_an_empty_job_folder_is_no_trial_before_it_holds_any(watching: Watching) -> None:
    job = watching.path / "job-7"
    job.mkdir()
    (job / "config.json").write_text("{}")
    assert watching.look(3) == []
    name = trial(job, 1, "result.json")
    assert watching.look(5) == [(name, True)]


def test_what_was_told_is_not_told_again_after_a_restart(watching: Watching) -> None:
    trial(watching.path, 1, "config.json", "result.json")
    trial(watching.path, 2, "config.json")
    watching.look(3)
    again = Watching(watching.path, watching.watch.snapshot())
    assert Watching(watching.path, again.watch.snapshot()).look(3) == []
    assert again.look(3) == []
    name = trial(watching.path, 2, "result.json")
    assert again.look(3) == [(name, True)]


def test_a_link_is_no_trial(watching: Watching, tmp_path: Path) -> None:
    trial(tmp_path / "elsewhere", 1, "result.json")
    (watching.path / "sort-a-list__0000001").symlink_to(tmp_path / "elsewhere" / "sort-a-list__0000001")
    assert watching.look(3) == []


def test_of_very_many_open_trials_the_newest_are_looked_at_each_time(
    watching: Watching, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial_watch, "OLDER", 100)
    for number in range(NEWEST * 4):
        (watching.path / f"old__{number:07d}").mkdir()
    watching.look(2)
    watching.now_us += LISTING_US_PER_NAME * NEWEST * 4
    name = trial(watching.path, 1, "config.json")
    assert watching.look(2) == [(name, False)]
    asked: list[str] = []
    monkeypatch.setattr(trial_watch, "_stamp_of", lambda folder, file: asked.append(folder))
    watching.look()
    assert len(set(asked)) <= NEWEST + 100 + 1
    watching.look(40)
    assert len(set(asked)) == NEWEST * 4 + 2


def test_a_folder_of_very_many_trials_is_listed_the_more_seldom(
    watching: Watching, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial_watch, "LISTING_US_PER_NAME", SECOND_US)
    for number in range(10):
        trial(watching.path, number, "config.json")
    watching.look(2)
    trial(watching.path, 10, "config.json")
    assert watching.look(9) == []
    assert watching.look(2) == [(trial(watching.path, 10), False)]


def test_a_folder_that_cannot_be_listed_is_a_trouble_until_it_can(watching: Watching) -> None:
    watching.path.rmdir()
    assert watching.look() == []
    assert watching.watch.troubles == {"trace_jobs": "cannot be listed: No such file or directory"}
    watching.path.mkdir()
    watching.look()
    assert watching.watch.troubles == {}


def test_what_was_seen_of_a_trial_is_what_is_read_of_it(watching: Watching) -> None:
    trial(watching.path, 1, "config.json", "result.json")
    seen = [seen for _ in range(3) for seen in watching._look()][-1]
    (read,) = one_trial(seen.path, seen.relative)
    assert isinstance(read, TrialFiles)
    assert (read.name, sorted(read.files)) == ("sort-a-list__0000001", ["config.json", "result.json"])
