"""What a watch keeps on disk: one watch at a time, what can't be used is moved aside, what can't be kept is told."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dataflow.state_folder import QUARANTINES, StateError, held
from tests.dataflow.disks import fill, remount, small_disk

ROOT = Path(__file__).resolve().parents[2]
HOLDING = """
import sys
from pathlib import Path
from dataflow.state_folder import StateError, held
try:
    with held(Path(sys.argv[1]), "v1"):
        print("held", flush=True)
        sys.stdin.read()
except StateError as error:
    sys.exit(str(error))
"""


def holder(store: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(store)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def quarantines(store: Path) -> list[Path]:
    return sorted((store / "watch").glob("quarantine-*"))


def notes(store: Path, fingerprint: str = "v1") -> list[str]:
    with held(store, fingerprint) as state:
        return state.notes


def test_a_first_start_makes_all_there_is_and_has_nothing_to_tell(tmp_path: Path) -> None:
    with held(tmp_path / "new" / "store", "v1") as state:
        assert state.notes == []
        assert (state.recovery / "part-0.sqlite3").is_file()
        assert state.journal.is_dir()
        assert state.told.is_dir()
    assert notes(tmp_path / "new" / "store") == []


def test_a_second_watch_is_told_who_has_the_state(tmp_path: Path) -> None:
    first = holder(tmp_path)
    assert first.stdout is not None
    assert first.stdout.readline() == "held\n"
    with pytest.raises(StateError, match=rf"watch: another wedgewatch \(process {first.pid}\) watches with this state"):
        notes(tmp_path)
    first.kill()
    first.communicate()
    assert notes(tmp_path) == []


def test_a_probe_that_outlives_its_watch_does_not_keep_the_lock(tmp_path: Path) -> None:
    with held(tmp_path, "v1"):
        probe = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        assert notes(tmp_path) == []
    finally:
        probe.kill()
        probe.wait()


def test_a_recovery_of_another_version_is_moved_aside_in_words(tmp_path: Path) -> None:
    notes(tmp_path, "v1")
    (note,) = notes(tmp_path, "v2")
    assert "it was written by another version, or with other settings; it was moved to quarantine-" in note
    assert "the logs are read again from the start, and nothing is said twice" in note
    assert notes(tmp_path, "v2") == []


def test_a_recovery_without_a_fingerprint_is_not_trusted(tmp_path: Path) -> None:
    notes(tmp_path)
    (tmp_path / "watch" / "fingerprint").unlink()
    assert len(notes(tmp_path)) == len(quarantines(tmp_path)) == 1


def test_a_recovery_that_was_removed_is_begun_anew(tmp_path: Path) -> None:
    notes(tmp_path)
    (tmp_path / "watch" / "recovery" / "part-0.sqlite3").unlink()
    (tmp_path / "watch" / "recovery").rmdir()
    assert notes(tmp_path) == []


def test_a_file_where_the_recovery_should_be_is_moved_aside(tmp_path: Path) -> None:
    notes(tmp_path)
    (tmp_path / "watch" / "recovery" / "part-0.sqlite3").unlink()
    (tmp_path / "watch" / "recovery").rmdir()
    (tmp_path / "watch" / "recovery").write_text("no folder")
    assert "it is no folder" in notes(tmp_path)[0]


def test_only_the_newest_quarantines_are_kept(tmp_path: Path) -> None:
    for number in range(QUARANTINES + 3):
        notes(tmp_path, f"v{number}")
        (tmp_path / "watch" / "recovery" / "number").write_text(str(number))
    kept = {(path / "number").read_text() for path in quarantines(tmp_path)}
    assert kept == {str(number) for number in range(2, 2 + QUARANTINES)}


def test_a_quarantine_asked_for_by_the_engine_begins_anew(tmp_path: Path) -> None:
    with held(tmp_path, "v1") as state:
        (state.recovery / "old").touch()
        state.quarantine("the engine can't read it")
        assert [path.name for path in state.recovery.iterdir()] == ["part-0.sqlite3"]
        assert "recovery: the engine can't read it; it was moved to quarantine-" in state.notes[0]


def test_what_a_kill_left_of_a_beginning_is_swept(tmp_path: Path) -> None:
    notes(tmp_path)
    (tmp_path / "watch" / "recovery").rename(tmp_path / "watch" / "recovery.new")
    assert notes(tmp_path) == []
    assert not (tmp_path / "watch" / "recovery.new").exists()


def test_a_run_that_ended_owing_a_record_reads_all_again(tmp_path: Path) -> None:
    with held(tmp_path, "v1") as state:
        state.owes("--out")
        state.owes("--log")
        state.paid("--log")
    assert "the last run ended before all its records could be written" in notes(tmp_path)[0]
    with held(tmp_path, "v1") as state:
        assert state.notes == []
        state.owes("--out")
        state.paid("--out")
    assert notes(tmp_path) == []


@pytest.mark.parametrize("place", ["store", "store/watch"])
def test_a_file_in_its_place_is_told(tmp_path: Path, place: str) -> None:
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).write_text("a file")
    with pytest.raises(StateError, match=r"watch: the watch's state can't be kept here: a file stands in its place"):
        notes(tmp_path / "store")


def test_a_full_disk_is_told_before_the_engine_meets_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with small_disk(tmp_path / "disk", 1024) as disk:
        fill(disk, leave=64 << 10)
        with pytest.raises(StateError, match="the disk is full; make room, or name a --store on another one"):
            notes(disk)
        (disk / "filling").unlink()
        assert notes(disk) == []
    assert capfd.readouterr().err == ""


def test_a_debt_can_be_noted_on_a_full_disk(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1024) as disk:
        with held(disk, "v1") as state:
            filling = fill(disk)
            state.owes("--out")
        filling.unlink()
        assert "before all its records could be written" in notes(disk)[0]


def test_a_read_only_disk_is_told(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1024) as disk:
        notes(disk)
        remount(disk, "ro")
        with pytest.raises(StateError, match="the file system is read-only; name a --store that can be written"):
            notes(disk)
        with pytest.raises(StateError, match="the file system is read-only"):
            notes(disk / "another")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    with pytest.raises(StateError, match="Permission denied; name another --store"):
        notes(tmp_path / "store")
    tmp_path.chmod(0o755)
