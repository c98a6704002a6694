"""What came and went in a live capture, without a look at everything each time."""

import os
from pathlib import Path

import pytest

from dataflow.capture import open_capture
from dataflow.rescan import FULL_EVERY_US, NOTHING, Found, Rescan
from dataflow.walk import entries_of

SECOND_US = 1_000_000


class Looking:
    """A rescan with a clock that is turned by hand."""

    def __init__(self, path: Path, snapshot: bytes = b"") -> None:
        self.rescan = Rescan(str(path), snapshot)
        self.now_us = 0

    def look(self, times: int = 1) -> Found:
        """The last look's finds."""
        for _ in range(times):
            self.now_us += SECOND_US
            found = self.rescan.look(self.now_us)
        return found


def write(path: Path, content: str = "a line\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    write(tmp_path / "finelog.log")
    write(tmp_path / "pod_logs" / "pod-0.log")
    write(tmp_path / "ray_session_logs" / "rank0-node3" / "worker-0a-01-77.out")
    return tmp_path


@pytest.fixture
def looking(capture: Path) -> Looking:
    looking = Looking(capture)
    looking.look()
    return looking


def test_the_first_look_finds_what_a_replay_reads(capture: Path) -> None:
    found = Looking(capture).look()
    assert found.new == open_capture(str(capture)).sources
    assert not found.ranks


def test_a_quiet_capture_gives_nothing_and_lists_no_folder(looking: Looking, monkeypatch: pytest.MonkeyPatch) -> None:
    looking.look(3)
    listed: list[str] = []
    monkeypatch.setattr(os, "scandir", lambda path: listed.append(path) or pytest.fail("listed"))
    assert looking.look(5) is NOTHING


def test_files_and_folders_that_appear_are_sources_with_ranks_as_in_a_replay(looking: Looking, capture: Path) -> None:
    write(capture / "finelog.log.1")
    write(capture / "ray_session_logs" / "rank1-node4" / "session_x" / "worker-0b-01-78.err")
    found = looking.look()
    assert {source.relative for source in found.new} == {
        "finelog.log.1",
        "ray_session_logs/rank1-node4/session_x/worker-0b-01-78.err",
    }
    assert found.ranks
    assert tuple(looking.rescan.sources.values()) == open_capture(str(capture)).sources


def test_a_file_that_appears_right_behind_a_listing_is_found(looking: Looking, capture: Path) -> None:
    """The folder's time may be the same then: it counts in steps."""
    folder = capture / "pod_logs"
    stat = folder.stat()
    write(folder / "pod-1.log")
    os.utime(folder, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert [source.relative for source in looking.look().new] == ["pod_logs/pod-1.log"]


def test_what_a_file_system_does_not_tell_is_found_a_minute_later(looking: Looking, capture: Path) -> None:
    looking.look(4)
    folder = capture / "pod_logs"
    stat = folder.stat()
    write(folder / "pod-1.log")
    os.utime(folder, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert looking.look() is NOTHING
    looking.now_us += FULL_EVERY_US
    assert [source.relative for source in looking.look().new] == ["pod_logs/pod-1.log"]


def test_a_file_that_goes_and_comes_is_told_both_times(looking: Looking, capture: Path) -> None:
    pod = capture / "pod_logs" / "pod-0.log"
    pod.unlink()
    assert looking.look().gone == ("pod_logs/pod-0.log",)
    write(pod)
    assert [source.relative for source in looking.look().new] == ["pod_logs/pod-0.log"]


def test_a_file_that_is_packed_goes_and_comes_under_its_new_name(looking: Looking, capture: Path) -> None:
    write(capture / "finelog.log.1.gz")
    assert [source.relative for source in looking.look().new] == ["finelog.log.1.gz"]
    write(capture / "finelog.log.gz")
    found = looking.look()
    assert (found.new, found.gone) == ((), ())
    assert found.skipped == (("finelog.log.gz", "finelog.log lies beside it and is read instead"),)


def test_what_is_skipped_or_fails_is_told_once(looking: Looking, capture: Path) -> None:
    write(capture / "notes.bin")
    (capture / "pod_logs" / "nowhere.log").symlink_to("missing")
    found = looking.look()
    assert [relative for relative, _ in found.skipped] == ["notes.bin"]
    assert [relative for relative, _ in found.failures] == ["pod_logs/nowhere.log"]
    looking.now_us += FULL_EVERY_US
    assert looking.look() == NOTHING


def test_a_capture_that_appears_later_is_told_missing_once_and_then_read(tmp_path: Path) -> None:
    looking = Looking(tmp_path / "later")
    assert len(looking.look().failures) == 1
    assert looking.look(3) == NOTHING
    write(tmp_path / "later" / "finelog.log")
    assert [source.relative for source in looking.look().new] == ["finelog.log"]


def test_a_bare_file_is_its_only_source(tmp_path: Path) -> None:
    path = write(tmp_path / "some.log")
    looking = Looking(path)
    assert looking.look().new == open_capture(str(path)).sources
    assert looking.look(3) == NOTHING


def test_a_job_toml_that_appears_is_known(looking: Looking, capture: Path) -> None:
    assert looking.rescan.job_toml is None
    write(capture / "job.toml")
    looking.look()
    assert looking.rescan.job_toml == str(capture / "job.toml")


def test_an_archive_of_trials_is_told_when_it_stands_still_and_when_it_was_written_again(
    looking: Looking, capture: Path
) -> None:
    archive = write(capture / "trace_jobs.tar", "half")
    assert looking.look().archives == ()
    write(archive, "whole, it seems")
    assert looking.look().archives == ()
    assert [each.relative for each in looking.look().archives] == ["trace_jobs.tar"]
    assert looking.look(3) == NOTHING
    write(archive, "written again by the next copy")
    looking.look()
    assert [each.relative for each in looking.look().archives] == ["trace_jobs.tar"]


def test_only_the_folder_that_changed_is_listed(
    looking: Looking, capture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking.look(4)
    listed: list[str] = []
    monkeypatch.setattr("dataflow.folders.entries_of", lambda path: listed.append(path) or entries_of(path))
    write(capture / "pod_logs" / "pod-1.log")
    looking.look()
    assert listed == [str(capture / "pod_logs")]


def test_what_can_not_be_read_is_told_once_whatever_restarts(capture: Path) -> None:
    (capture / "pod_logs" / "pod-1.log").symlink_to("nowhere")
    os.symlink(b"nowhere", os.fsencode(capture) + b"/pod_logs/pod-\xff.log")
    looking = Looking(capture)
    assert len(looking.look().failures) == 2
    looking = Looking(capture, looking.rescan.snapshot())
    assert looking.look().failures == ()
    os.mkfifo(capture / "pod_logs" / "pod-2.log")
    assert [relative for relative, _ in looking.look().failures] == ["pod_logs/pod-2.log"]


def test_a_capture_of_which_nothing_can_be_listed_is_told_at_each_start(tmp_path: Path) -> None:
    looking = Looking(tmp_path / "none")
    for _ in range(2):
        assert len(looking.look().failures) == 1
        assert looking.look().failures == ()
        looking = Looking(tmp_path / "none", looking.rescan.snapshot())
