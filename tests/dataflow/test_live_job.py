"""A capture that is watched before it is there, or before it says whose it is."""

import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dataflow.lag import Synced
from dataflow.live_job import LiveJob, place_of
from dataflow.naming import NAMED_BY_PATH_US, SETTINGS_US
from dataflow.probing import Probing
from dataflow.settings import Settings
from extractors.record import Beat
from tests.dataflow.live_feeds import LATENESS_US, SECOND_US, START_US, bars, said


class Asked(Probing):
    """Remembers what was asked for."""

    def __init__(self) -> None:
        self.folders: list[Path] = []
        self.fares: Synced | None = None

    def ask(self, job: str, folder: Path, settings: Settings) -> None:
        if settings.probes or settings.sync:
            self.folders.append(folder)

    def holds(self, job: str, now_us: int) -> int | None:
        return None

    def synced(self, job: str) -> Synced | None:
        return self.fares


@dataclass
class Job:
    path: Path
    job_toml: Path | None = None
    names: dict[str, str] = field(default_factory=dict)
    now_us: int = START_US + 60 * SECOND_US
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.probing = Asked()
        self.job = self._job()

    def _job(self) -> LiveJob:
        journals = self.path.parent / "journals"
        journals.mkdir(exist_ok=True)
        return LiveJob(str(self.path), self.job_toml, journals, LATENESS_US, self.probing, names=self.names)

    def poll(self, seconds: float) -> list[Beat]:
        beats: list[Beat] = []
        for _ in range(int(seconds)):
            self.now_us += SECOND_US
            beats += self.job.poll(self.now_us)
            self.notes += self.job.notes
            self.job.notes.clear()
        return beats


def toml(path: Path, content: str) -> None:
    """Writes it with a time of its own: file systems count time in steps."""
    before = path.stat().st_mtime_ns if path.exists() else 0
    path.write_text(content)
    os.utime(path, ns=(0, max(path.stat().st_mtime_ns, before + 1)))


@pytest.fixture
def job(tmp_path: Path) -> Job:
    (tmp_path / "run").mkdir()
    return Job(tmp_path / "run")


def test_a_folder_that_is_not_there_yet_is_waited_for_and_told_once(tmp_path: Path) -> None:
    job = Job(tmp_path / "run")
    assert job.poll(30) == []
    assert [note.endswith("No such file or directory; it is waited for") for note in job.notes] == [True]
    job.path.mkdir()
    (job.path / "finelog.log").write_bytes(b"I20260504 08:00:01 1 a.py:1] task=/kim/rl/0 | hello\n" + bars(1, 20))
    assert len(said(job.poll(20), "BufferProgress")) == 20
    assert job.job.job == "/kim/rl"


def test_a_capture_that_names_no_job_gets_its_folders_name_after_some_time(job: Job) -> None:
    (job.path / "finelog.log").write_bytes(bars(0, 20))
    assert job.poll(NAMED_BY_PATH_US // SECOND_US) == []
    assert job.job.job == str(job.path)
    assert job.poll(10)
    assert job.job.job == "run"


def test_an_empty_folder_gets_no_name_however_long_it_is_empty(job: Job) -> None:
    assert job.poll(600) == []
    toml(job.path / "job.toml", '[job]\nid = "/kim/rl"\n')
    (job.path / "finelog.log").write_bytes(bars(0, 20))
    beats = job.poll(20)
    assert {beat.job for beat in beats} == {"/kim/rl"}
    assert [each.signal.facts.id for each in said(beats, "JobDeclared")] == ["/kim/rl"]


def test_facts_that_come_or_change_later_are_declared_then(job: Job) -> None:
    (job.path / "finelog.log").write_bytes(bars(0, 20))
    beats = job.poll(30)
    for model in ("Qwen3-8B", "Qwen3-80B"):
        toml(job.path / "job.toml", f'[job]\nmodel = "{model}"\n')
        beats += job.poll(20)
    assert [each.signal.facts.model for each in said(beats, "JobDeclared")] == [None, "Qwen3-8B", "Qwen3-80B"]


@pytest.mark.parametrize("model", ["Qwen3-8B", "Qwen3-80B"])
def test_facts_that_changed_while_nobody_watched_are_declared_at_the_restart_and_the_same_ones_are_not(
    job: Job, model: str
) -> None:
    (job.path / "finelog.log").write_bytes(bars(0, 40))
    toml(job.path / "job.toml", '[job]\nmodel = "Qwen3-8B"\n')
    beats = job.poll(30)
    kept = job.job.snapshot()
    toml(job.path / "job.toml", f'[job]\nmodel = "{model}"\n')
    job.names.clear()
    job.job = job._job()
    job.job.restore(kept)
    beats += job.poll(30)
    declared = [each.signal.facts.model for each in said(beats, "JobDeclared")]
    assert declared == list(dict.fromkeys(["Qwen3-8B", model]))


def test_a_job_toml_that_cannot_be_used_is_told_once_and_waited_for(job: Job) -> None:
    (job.path / "finelog.log").write_bytes(bars(0, 20))
    toml(job.path / "job.toml", "[job]\nidd = 7\n")
    assert job.poll(60) == []
    assert len(job.notes) == 1
    assert "job.toml" in job.notes[0]
    toml(job.path / "job.toml", '[job]\nid = "/kim/rl"\n')
    assert job.poll(30)
    toml(job.path / "job.toml", "[job\n")
    job.poll(60)
    assert len(job.notes) == 2
    assert job.job.job == "/kim/rl"


def test_what_pulls_the_logs_is_asked_for_before_the_job_has_a_name(job: Job) -> None:
    toml(job.path / "job.toml", '[sync]\ncommand = ["pull"]\nevery = "60s"\ntimeout = "20s"\n')
    job.poll(1)
    assert job.probing.folders == [job.path]
    assert job.job.feed is None


def test_probes_are_asked_for_until_the_folder_is_there(tmp_path: Path) -> None:
    toml(tmp_path / "given.toml", '[job]\nid = "/kim/rl"\n[probes.state]\ncommand = ["state"]\n')
    job = Job(tmp_path / "run", tmp_path / "given.toml")
    job.poll(2 * SETTINGS_US // SECOND_US + 1)
    assert len(job.probing.folders) == 3


def test_a_job_toml_that_was_named_and_is_not_there_is_told_once_and_waited_for(tmp_path: Path) -> None:
    job = Job(tmp_path / "run", tmp_path / "given.toml")
    job.poll(60)
    missed = f"{tmp_path}/given.toml: is not there or can't be read; it is waited for"
    assert (job.notes.count(missed), len(job.notes)) == (1, 2)
    job.path.mkdir()
    toml(tmp_path / "given.toml", '[job]\nid = "/kim/rl"\n')
    (job.path / "finelog.log").write_bytes(bars(0, 20))
    assert {beat.job for beat in job.poll(20)} == {"/kim/rl"}


def test_a_second_capture_of_a_job_is_not_mixed_into_the_first_one(tmp_path: Path) -> None:
    names: dict[str, str] = {}
    jobs = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        jobs.append(Job(tmp_path / name, names=names))
    assert [each.poll(3) for each in jobs] == [[], []]
    for each in jobs:
        (each.path / "finelog.log").write_bytes(bars(0, 20))
        toml(each.path / "job.toml", '[job]\nid = "/kim/rl"\n')
    assert jobs[0].poll(20)
    assert jobs[1].poll(20) == []
    assert jobs[1].notes == [f"{tmp_path}/two: is of the job /kim/rl, as {tmp_path}/one is; it is not watched"]


def test_a_snapshot_keeps_the_name_and_goes_on(job: Job) -> None:
    (job.path / "finelog.log").write_bytes(bars(0, 40))
    whole = Job(job.path)
    expected = whole.poll(60)
    beats = job.poll(30)
    kept = job.job.snapshot()
    (job.path / "job.toml").write_text('[job]\nid = "/kim/another"\n')
    assert kept is not None
    job.names.clear()
    job.job = job._job()
    job.job.restore(kept)
    assert job.job.snapshot() == kept
    assert kept.now_us == job.now_us
    beats += job.poll(30)
    assert {beat.job for beat in beats} == {"run"}
    own = [each for beat in beats for each in beat.observations if each.pattern != "job_declared"]
    assert own == [each for beat in expected for each in beat.observations if each.pattern != "job_declared"]


def test_a_snapshot_that_cannot_be_used_is_told_and_all_is_read_anew(job: Job) -> None:
    (job.path / "finelog.log").write_bytes(bars(0, 20))
    job.poll(30)
    kept = job.job.snapshot()
    assert kept is not None
    kept.feed = kept.feed[:-20]
    job.names.clear()
    job.job = job._job()
    job.job.restore(kept)
    beats = job.poll(10)
    assert beats[0].fresh
    assert len(said(beats, "BufferProgress")) == 20
    assert len(job.notes) == 1
    assert "what was kept of it can't be used" in job.notes[0]


@pytest.mark.parametrize("exists", [True, False])
def test_a_capture_lies_in_one_place_however_it_is_spelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exists: bool
) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "linked").symlink_to("runs")
    if exists:
        (tmp_path / "runs" / "rl").mkdir()
    monkeypatch.chdir(tmp_path / "runs")
    here = str(tmp_path.resolve() / "runs" / "rl")
    spelled = ["rl", "./rl", "rl/", "../runs/rl//", "../linked/rl", f"{tmp_path}/linked/rl", here]
    assert {place_of(path) for path in spelled} == {here}


def test_a_link_to_a_log_is_a_capture_of_its_own_and_one_to_a_folder_is_not(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "current").symlink_to("run")
    (tmp_path / "run" / "today.log").symlink_to("finelog.log")
    (tmp_path / "run" / "finelog.log").touch()
    run = f"{tmp_path.resolve()}/run"
    assert place_of(f"{tmp_path}/current") == place_of(f"{tmp_path}/current/") == run
    assert place_of(f"{tmp_path}/current/today.log") == f"{run}/today.log"
