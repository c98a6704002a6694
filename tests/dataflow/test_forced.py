"""What is on the disk before the state says that it was said: a machine that crashes loses no record."""

import os
import random
import signal
from pathlib import Path
from typing import Any

import pytest

import dataflow.appended
from dataflow.appended import Appended, Pages
from dataflow.dated import DatedReports
from dataflow.journal import Journal
from dataflow.patient import Patient
from dataflow.resumed import ResumedLines, Told
from dataflow.sinks import JsonLines
from dataflow.state_folder import held
from extractors.clocks import write_iso
from tests.dataflow.live_feeds import SECOND_US, Player, Watched, bar, bars
from tests.dataflow.said_records import verdict
from tests.dataflow.watch_drills import Drill
from tests.live.harness import ROOT, differing, replayed
from tests.live.recorded import recorded

Record = dict[str, Any]


class Forcing(Drill):
    """A watch that notes what it forced, and a machine that crashes."""

    def command(self, workers: int = 1) -> list[str]:
        words = super().command(workers)
        return [word.replace("dataflow.cli", "tests.dataflow.forcing_watch") for word in words]

    def forced(self) -> dict[Path, int]:
        """How much of each file the disk keeps."""
        notes = Path(os.environ["FORCED"])
        lines = notes.read_text().splitlines() if notes.exists() else []
        return {Path(path): int(size) for size, path in (line.split(" ", 1) for line in lines)}

    def is_forced(self) -> bool:
        """Whether the disk keeps all records."""
        return self.forced().get(self.out, 0) == (self.out.stat().st_size if self.out.exists() else 0)

    def crash(self) -> None:
        """Of the records and the reports only that is left which was forced."""
        self.kill()
        forced = self.forced()
        for path in (self.out, *(self.folder / "reports").glob("*.md")):
            if path.exists():
                os.truncate(path, min(path.stat().st_size, forced.get(path, 0)))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_machine_that_crashes_again_and_again_loses_no_record_and_no_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    monkeypatch.setenv("FORCED", str(tmp_path / "forced"))
    (tmp_path / "run").mkdir()
    reports = tmp_path / "watch" / "reports"
    watch = Forcing([tmp_path / "run"], tmp_path / "watch", tmp_path / "clock", options=("--log", str(reports)))
    schedule = recorded(ROOT / "tests" / "captures" / "engine_death_meta_tensors")
    player = Player(watch.captures[0], schedule, random.Random(7))
    try:
        for number, share in enumerate((0.3, 0.5, 0.7, 0.9)):
            at_us = schedule.begin_us + int((schedule.end_us - schedule.begin_us) * share)
            player.write(at_us + 6 * SECOND_US)
            watch.ran_to(at_us, workers)
            if number % 2:
                watch.wait(watch.is_forced, 20)
            watch.crash()
        player.write(schedule.end_us + 30 * SECOND_US)
        watch.ran_to(schedule.end_us + 20 * SECOND_US, workers)
        watch.stop(signal.SIGTERM)
    finally:
        watch.kill()
    assert "moved to quarantine" not in watch.said
    expected = replayed(watch.captures[0], watch.folder, "--log", str(tmp_path / "replayed"))
    assert differing(expected.of(watch.lines()), expected.lines) == ""
    assert watch.is_forced()
    assert marks(reports, expected.end_us) == marks(tmp_path / "replayed", expected.end_us)


def marks(folder: Path, before_us: int) -> list[str]:
    """Which reports a folder holds of the time before a moment."""
    lines = [line for path in sorted(folder.glob("*.md")) for line in path.read_text().splitlines()]
    found = [line for line in lines if line.startswith("<!-- wedgewatch")]
    return [line for line in found if line.split(" at=")[1] < write_iso(before_us)]


@pytest.fixture
def forced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what is forced, in their order."""
    names: list[str] = []
    real = os.fsync

    def noted(fd: int) -> None:
        names.append(Path(os.readlink(f"/proc/self/fd/{fd}")).name)
        real(fd)

    monkeypatch.setattr(dataflow.appended.os, "fsync", noted)
    return names


def test_only_what_was_written_since_is_forced(tmp_path: Path, forced: list[str]) -> None:
    lines = ResumedLines(tmp_path / "out.jsonl", {"/a"})
    lines.force()
    assert forced == []
    lines.write(verdict("/a", 1))
    lines.force()
    lines.force()
    assert forced == ["out.jsonl", tmp_path.name]
    lines.close()


def test_a_file_that_was_moved_away_is_forced_before_another_is_begun(tmp_path: Path, forced: list[str]) -> None:
    file = Appended(tmp_path / "out")
    file.append(b"1\n")
    (tmp_path / "out").rename(tmp_path / "out.1")
    file.append(b"2\n")
    assert forced[0] == "out.1"
    file.close()


def test_a_pipe_is_not_asked_to_keep_anything(forced: list[str]) -> None:
    reads, writes = os.pipe()
    file = Appended(Path("standard output"), fd=writes)
    file.append(b"1\n")
    file.force()
    assert (os.read(reads, 9), forced) == (b"1\n", [])
    os.close(reads)
    os.close(writes)


def test_text_is_forced_before_the_memory_that_it_was_told(tmp_path: Path, forced: list[str]) -> None:
    file = Appended(tmp_path / "out.txt")
    told = Told(JsonLines(Pages(file)), tmp_path / "told", file)
    told.force()
    told.write(verdict("/a", 1))
    told.force()
    assert [name for name in forced if name != tmp_path.name] == ["out.txt", "told"]
    file.close()


def told_texts(folder: Path, records: list[Record], forced: int) -> None:
    """Tells records in a text file, so many of which are forced."""
    file = Appended(folder / "out.txt")
    told = Told(JsonLines(Pages(file)), folder / "told", file)
    for number, record in enumerate(records, 1):
        told.write(record)
        if number == forced:
            told.force()
    file.close()


@pytest.mark.parametrize("forced", [1, 2, 3, 5])
def test_text_that_a_crash_took_is_told_again_though_its_memory_outlived_it(tmp_path: Path, forced: int) -> None:
    records, out = [verdict("/a", second) for second in range(1, 7)], tmp_path / "out.txt"
    told_texts(tmp_path, records, forced)
    whole = out.read_bytes()
    lines = whole.splitlines(keepends=True)
    os.truncate(out, sum(map(len, lines[:forced])))
    told_texts(tmp_path, records, 0)
    assert out.read_bytes() == whole
    told_texts(tmp_path, records, 0)
    assert out.read_bytes() == whole


def test_text_that_was_forced_and_then_emptied_by_its_readers_is_not_told_again(tmp_path: Path) -> None:
    records = [verdict("/a", second) for second in range(1, 4)]
    told_texts(tmp_path, records, 3)
    os.truncate(tmp_path / "out.txt", 0)
    told_texts(tmp_path, [*records, verdict("/a", 9)], 0)
    assert (tmp_path / "out.txt").read_bytes().count(b"\n") == 1


def test_reports_are_forced_each_once(tmp_path: Path, forced: list[str]) -> None:
    reports = DatedReports(tmp_path)
    for job in ("/a", "/b"):
        reports.write(verdict(job, 1))
    reports.force()
    reports.force()
    assert [name for name in forced if name.endswith(".md")] == ["2026-07-20_a.md", "2026-07-20_b.md"]
    reports.write(verdict("/a", 2, says="KILL"))
    for path in tmp_path.glob("*_a.md"):
        path.unlink()
    reports.force()


def test_what_is_noted_of_late_lines_is_forced_with_the_state_that_knows_them(
    tmp_path: Path, forced: list[str]
) -> None:
    (tmp_path / "run").mkdir()
    watched = Watched(tmp_path / "run", tmp_path / "journal.jsonl")
    (tmp_path / "run" / "finelog.log").write_bytes(bars(0, 30))
    watched.poll(times=40)
    watched.feed.snapshot()
    assert "journal.jsonl" not in forced
    with (tmp_path / "run" / "finelog.log").open("ab") as log:
        log.write(bar(20))
    watched.poll(times=2)
    assert watched.feed.lag.late == 1
    watched.feed.snapshot()
    watched.feed.snapshot()
    assert forced.count("journal.jsonl") == 1


class Failing:
    """Takes records, and can't have them kept."""

    def __init__(self) -> None:
        self.error: OSError | None = OSError(5, "Input/output error")

    def write(self, record: Record) -> None:
        """Takes it."""

    def force(self) -> None:
        if self.error is not None:
            raise self.error


def test_what_the_disk_does_not_keep_is_said_again_by_the_next_run(tmp_path: Path) -> None:
    notes, sink = list[str](), Failing()
    with held(tmp_path, "v1") as state:
        patient = Patient("out.jsonl", sink, notes.append, state)
        patient.write(verdict("/a", 1))
        for _ in range(3):
            patient.force()
        sink.error = None
        patient.force()
    assert notes == ["out.jsonl: cannot be written: Input/output error; the next start reads all again"]
    with held(tmp_path, "v1") as state:
        assert ["before all its records could be written" in note for note in state.notes] == [True]


def test_a_journal_that_can_not_be_forced_is_in_trouble_until_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    journal.turned("finelog.log", 1)

    def failing(path: Path) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr("dataflow.journal.force", failing)
        journal.force()
    assert journal.trouble == "Input/output error"
    journal.force()
    assert journal.trouble == ""
