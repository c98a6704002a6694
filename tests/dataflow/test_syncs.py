"""Up to when a job is known whose logs a sync brings, and what is told of syncs. The pool here runs nothing."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from dataflow.probes import SYNC, Polled, ProbePool
from dataflow.probing import Probing
from dataflow.settings import Settings, Sync

JOB = "/kim/rl-demo"
SECOND_US = 1_000_000
NOON_US = 1_784_548_800 * SECOND_US
LATENESS_US = 5 * SECOND_US


class Ended(ProbePool):
    """A pool that runs nothing, and gives the runs that it was made with."""

    def __init__(self, *runs: Polled) -> None:
        super().__init__()
        self.runs: list[Polled] = [*runs]

    def start(self, jobs: Iterable[object]) -> None:
        """Begins with none."""

    def poll(self) -> list[Polled]:
        """The next run."""
        return [self.runs.pop(0)] if self.runs else []


def sync(exit: int | None, error: str = "", began_us: int = NOON_US) -> Polled:
    return Polled(JOB, SYNC, "", exit, error, 0.1, 0, b"{}\n", began_us=began_us)


@pytest.fixture
def told() -> list[str]:
    return []


def probing(told: list[str], tmp_path: Path, *runs: Polled) -> Probing:
    made = Probing(Ended(*runs), told.append, LATENESS_US)
    made.ask(JOB, tmp_path, Settings(sync=Sync(("true",), every=60.0, timeout=300.0)))
    return made


def test_lines_that_were_on_their_way_when_a_sync_began_are_waited_for(told: list[str], tmp_path: Path) -> None:
    made = probing(told, tmp_path, sync(0))
    made.hear()
    assert made.holds(JOB, NOON_US + SECOND_US) == NOON_US - LATENESS_US


def test_a_sync_that_fails_holds_its_job_for_no_longer_than_one_may_take(told: list[str], tmp_path: Path) -> None:
    made = probing(told, tmp_path, sync(1))
    made.hear()
    assert made.holds(JOB, NOON_US) == NOON_US - 360 * SECOND_US - LATENESS_US


def test_a_sync_that_fails_is_told_once_and_when_it_works_again(told: list[str], tmp_path: Path) -> None:
    made = probing(
        told, tmp_path, sync(0), sync(None, "not found: fetch"), sync(None, "not found: fetch"), sync(0), sync(0)
    )
    for _ in range(5):
        made.hear()
    assert told == [
        f"{JOB}: its sync fails (not found: fetch); what it says is in polls/sync.jsonl",
        f"{JOB}: its sync works again",
    ]
