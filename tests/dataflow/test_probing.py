"""What probes and syncs bring, and up to when that is known."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from dataflow.lag import Synced
from dataflow.probes import SYNC, Polled, ProbedJob, ProbePool
from dataflow.probing import HELD_US, Probing
from dataflow.settings import Settings, load_job

SECOND_US = 1_000_000
NOW_US = 1_000 * SECOND_US
JOB = "runs/rl"
PROBE = '[probes.state]\ncommand = ["state"]\nevery = "60s"\n'
PULL = '[sync]\ncommand = ["pull"]\nevery = "60s"\ntimeout = "30s"\n'


@dataclass
class Pool:
    """Runs nothing: says what runs, and what has ended, as a test has it."""

    started: list[ProbedJob] = field(default_factory=list)
    running: dict[str, int] = field(default_factory=dict)
    ended: list[Polled] = field(default_factory=list)

    def start(self, jobs: Iterable[ProbedJob]) -> None:
        self.started += jobs

    def began_us(self, job: str) -> int | None:
        return self.running.get(job)

    def poll(self) -> list[Polled]:
        ended, self.ended = self.ended, []
        return ended


@dataclass
class Asking:
    folder: Path
    pool: Pool = field(default_factory=Pool)
    told: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.probing = Probing(cast(ProbePool, self.pool), self.told.append)

    def ask(self, toml: str, folder: Path | None = None) -> None:
        self.probing.ask(JOB, folder or self.folder, self.settings(toml))

    def settings(self, toml: str) -> Settings:
        path = self.folder / "job.toml"
        path.write_text(toml)
        return load_job(path)

    def end(self, probe: str, began_us: int, exit: int | None = 0, error: str = "", unwritten: str = "") -> None:
        came_to = (exit, error, 1.0, 0, b"", unwritten, began_us, error.startswith("not found"))
        self.pool.ended.append(Polled(JOB, probe, "", *came_to))
        self.probing.hear()

    def held(self, now_us: int = NOW_US) -> int | None:
        return self.probing.holds(JOB, now_us)


@pytest.fixture
def asking(tmp_path: Path) -> Asking:
    return Asking(tmp_path)


def test_probes_begin_once_with_the_folder_in_which_they_run(asking: Asking) -> None:
    for _ in range(3):
        asking.ask(PROBE, asking.folder / "none")
    assert asking.pool.started == []
    for _ in range(3):
        asking.ask(PROBE)
    assert [(each.job, each.folder) for each in asking.pool.started] == [(JOB, asking.folder)]
    assert asking.told == []


def test_probes_that_come_with_a_later_job_toml_begin_then_and_others_need_a_new_start(asking: Asking) -> None:
    asking.ask("")
    asking.ask(PROBE)
    assert len(asking.pool.started) == 1
    asking.ask(PULL)
    assert len(asking.pool.started) == 1
    assert asking.told == [f"{JOB}: its job.toml names other probes now; they run from the next start of the watch on"]


def test_a_probe_that_runs_holds_its_job_back_to_its_beginning_for_a_while(asking: Asking) -> None:
    asking.ask(PROBE)
    assert asking.held() is None
    asking.pool.running[JOB] = NOW_US - 3 * SECOND_US
    assert asking.held() == NOW_US - 3 * SECOND_US - 1
    assert asking.probing.holds("another", NOW_US) is None
    assert asking.held(NOW_US + 100 * SECOND_US) == NOW_US + 100 * SECOND_US - HELD_US


def test_a_job_whose_logs_are_pulled_is_known_up_to_its_last_good_sync(asking: Asking) -> None:
    asking.ask(PULL)
    assert asking.held() == NOW_US - 90 * SECOND_US
    asking.end(SYNC, NOW_US - 40 * SECOND_US)
    assert asking.held() == NOW_US - 40 * SECOND_US
    asking.end(SYNC, NOW_US - 10 * SECOND_US, exit=1)
    asking.end(SYNC, NOW_US - 5 * SECOND_US, exit=None, error="timeout after 30 s")
    assert asking.held() == NOW_US - 40 * SECOND_US


def test_a_sync_that_takes_longer_than_it_may_is_waited_for_no_longer(asking: Asking) -> None:
    asking.ask(PULL)
    asking.end(SYNC, NOW_US)
    assert asking.held(NOW_US + 90 * SECOND_US) == NOW_US
    assert asking.held(NOW_US + 600 * SECOND_US) == NOW_US + 510 * SECOND_US


@pytest.mark.parametrize("error", ["", "timeout after 30 s"])
@pytest.mark.parametrize("once", [True, False])
def test_a_sync_that_fails_is_waited_for_while_what_it_may_bring_comes_in_time(
    asking: Asking, error: str, once: bool
) -> None:
    asking.ask(PULL)
    last_us = NOW_US
    assert asking.held() == NOW_US - 90 * SECOND_US
    if once:
        asking.end(SYNC, NOW_US + 20 * SECOND_US)
        last_us = NOW_US + 20 * SECOND_US
    for second in (60, 90):
        asking.end(SYNC, NOW_US + second * SECOND_US, None if error else 1, error)
    longest_us = last_us + 90 * SECOND_US
    assert asking.held(longest_us) == (last_us if once else NOW_US)
    assert asking.held(longest_us + 1) is None
    assert asking.held(NOW_US + 3_600 * SECOND_US) is None
    asking.end(SYNC, NOW_US + 3_601 * SECOND_US)
    assert asking.held(NOW_US + 3_602 * SECOND_US) == NOW_US + 3_601 * SECOND_US


def test_the_record_of_a_sync_that_failed_is_waited_for(asking: Asking) -> None:
    asking.probing = Probing(cast(ProbePool, asking.pool), asking.told.append, 5 * SECOND_US)
    asking.ask(PULL)
    asking.end(SYNC, NOW_US)
    asking.end(SYNC, NOW_US + 94 * SECOND_US, exit=1)
    assert asking.held(NOW_US + 100 * SECOND_US) == NOW_US + 5 * SECOND_US
    assert asking.held(NOW_US + 100 * SECOND_US + 1) is None


def test_a_sync_that_can_not_begin_holds_nothing_up(asking: Asking) -> None:
    asking.ask(PULL)
    asking.end(SYNC, NOW_US, None, "not found: pull")
    assert asking.held(NOW_US + SECOND_US + 1) is None
    asking.end(SYNC, NOW_US + 60 * SECOND_US, exit=1)
    assert asking.held(NOW_US + 62 * SECOND_US) == NOW_US - 28 * SECOND_US


def test_how_a_sync_fares_is_told(asking: Asking) -> None:
    assert asking.probing.synced(JOB) is None
    asking.ask(PULL)
    assert asking.probing.synced(JOB) == Synced(None, "")
    asking.end(SYNC, NOW_US)
    asking.end(SYNC, NOW_US + SECOND_US, exit=1)
    assert asking.probing.synced(JOB) == Synced(NOW_US, "exit 1")
    asking.end(SYNC, NOW_US + 2 * SECOND_US)
    assert asking.probing.synced(JOB) == Synced(NOW_US + 2 * SECOND_US, "")


def test_of_a_sync_and_a_probe_the_earlier_one_holds(asking: Asking) -> None:
    asking.ask(PULL + PROBE)
    asking.end(SYNC, NOW_US - 40 * SECOND_US)
    asking.pool.running[JOB] = NOW_US - 3 * SECOND_US
    assert asking.held() == NOW_US - 40 * SECOND_US


def test_polls_that_cannot_be_written_are_told_once_for_each_probe(asking: Asking) -> None:
    for probe in ("state", "state", "gpu"):
        asking.end(probe, NOW_US, unwritten="No space left on device")
    assert asking.told == [
        f"{JOB}: polls/{probe}.jsonl can't be written: No space left on device" for probe in ("state", "gpu")
    ]


def test_a_command_that_is_not_there_is_told_once(asking: Asking) -> None:
    for error in ("not found: kubectl", "not found: kubectl", "timeout after 20 s"):
        asking.end("pods", NOW_US, None, error)
    assert asking.told == [f"{JOB}: probe pods: not found: kubectl; that is recorded, and tried again"]
