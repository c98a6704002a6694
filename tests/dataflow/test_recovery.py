"""A real flow that is killed, and its recovery damaged: what the engine does of itself, and what the folder does."""

import os
import shutil
import sqlite3
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from bytewax.recovery import init_db_dir

from dataflow.recovery import begin, damage
from tests.dataflow.disks import remount, small_disk

ROOT = Path(__file__).resolve().parents[2]
LAST, DIES = 60, 41
WHOLE = {f"{key} {number} {number * (number + 1) // 2}" for key in "abc" for number in range(1, LAST + 1)}

Break = Callable[[Path], None]


def flow(store: Path, dies: int = 0, workers: int = 1, unchecked: Path | str = "") -> subprocess.CompletedProcess[str]:
    words = [store, store / "out", LAST, dies, workers, unchecked]
    return subprocess.run(
        [sys.executable, "-m", "tests.dataflow.tiny_flow", *map(str, words)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def said(store: Path) -> list[str]:
    return (store / "out").read_text().splitlines()


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store whose flow was killed at two thirds."""
    store = tmp_path_factory.mktemp("killed") / "store"
    store.mkdir()
    assert flow(store, dies=DIES).returncode == -9
    return store


@pytest.fixture
def store(killed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(killed, tmp_path / "store"))


def database(recovery: Path) -> Path:
    return recovery / "part-0.sqlite3"


def settled(recovery: Path) -> Path:
    """The database with its log taken in."""
    opened = sqlite3.connect(database(recovery))
    opened.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    opened.close()
    return database(recovery)


def missing(recovery: Path) -> None:
    database(recovery).unlink()


def all_missing(recovery: Path) -> None:
    for path in recovery.iterdir():
        path.unlink()


def header_zeroed(recovery: Path) -> None:
    with database(recovery).open("r+b") as file:
        file.write(b"\0" * 100)


def log_cut(recovery: Path) -> None:
    log = recovery / "part-0.sqlite3-wal"
    os.truncate(log, log.stat().st_size // 2 + 7)


def log_removed(recovery: Path) -> None:
    (recovery / "part-0.sqlite3-wal").unlink()


def log_header_zeroed(recovery: Path) -> None:
    with (recovery / "part-0.sqlite3-wal").open("r+b") as file:
        file.write(b"\0" * 32)


def not_sqlite(recovery: Path) -> None:
    all_missing(recovery)
    database(recovery).write_bytes(b"no database\n" * 1000)


def empty(recovery: Path) -> None:
    all_missing(recovery)
    database(recovery).touch()


def pages_overwritten(recovery: Path) -> None:
    with settled(recovery).open("r+b") as file:
        file.seek(3 * 4096)
        file.write(b"\x5a\x17" * 3 * 2048)


def cut_in_half(recovery: Path) -> None:
    path = settled(recovery)
    os.truncate(path, path.stat().st_size // 2)


def one_of_two(recovery: Path) -> None:
    shutil.rmtree(recovery)
    recovery.mkdir()
    init_db_dir(recovery, 2)
    (recovery / "part-1.sqlite3").unlink()


def two(recovery: Path) -> None:
    shutil.rmtree(recovery)
    recovery.mkdir()
    init_db_dir(recovery, 2)


DAMAGES = [
    missing,
    all_missing,
    header_zeroed,
    log_cut,
    log_removed,
    log_header_zeroed,
    not_sqlite,
    empty,
    pages_overwritten,
    cut_in_half,
    one_of_two,
    two,
]


def test_a_flow_that_was_killed_goes_on_where_it_was(store: Path) -> None:
    done = flow(store)
    assert (done.returncode, done.stderr.strip()) == (0, "")
    assert (set(said(store)), len(said(store))) == (WHOLE, len(WHOLE))
    assert not list((store / "watch").glob("quarantine-*"))


def test_the_number_of_workers_may_change(store: Path) -> None:
    done = flow(store, workers=2)
    assert (done.returncode, set(said(store))) == (0, WHOLE)


@pytest.mark.parametrize("damaged", DAMAGES, ids=lambda f: f.__name__)
def test_a_damaged_recovery_is_moved_aside_and_all_is_read_again(store: Path, damaged: Break) -> None:
    damaged(store / "watch" / "recovery")
    done = flow(store)
    assert done.returncode == 0, done.stderr
    assert "was moved to quarantine-" in done.stderr
    assert "Traceback" not in done.stderr
    assert set(said(store)) == WHOLE
    assert len(said(store)) == len(WHOLE) + 3 * (DIES - 1)
    assert len(list((store / "watch").glob("quarantine-*"))) == 1


def test_a_state_that_the_engine_can_not_unpickle_is_quarantined_when_it_says_so(store: Path) -> None:
    opened = sqlite3.connect(settled(store / "watch" / "recovery"))
    opened.execute("UPDATE snaps SET ser_change = x'00'")
    opened.commit()
    opened.close()
    assert damage(store / "watch" / "recovery") == ""
    assert flow(store).returncode == 0
    assert set(said(store)) == WHOLE


@pytest.mark.parametrize(
    ("damaged", "error"),
    [
        (missing, "damaged NoPartitionsError"),
        (header_zeroed, "damaged RuntimeError"),
        (pages_overwritten, "damaged RuntimeError"),
        (one_of_two, "damaged MissingPartitionsError"),
    ],
    ids=lambda f: getattr(f, "__name__", ""),
)
def test_the_engine_itself_gives_up_over_it_with_an_error_that_can_be_told(
    store: Path, damaged: Break, error: str
) -> None:
    recovery = store / "watch" / "recovery"
    damaged(recovery)
    done = flow(store, unchecked=recovery)
    assert (done.returncode, done.stderr.startswith(error)) == (3, True), done.stderr


@pytest.mark.parametrize("share", [0.1, 0.35, 0.5, 0.72, 0.9, 0.99])
def test_a_log_that_was_cut_unseen_leaves_an_earlier_state_that_is_whole(store: Path, share: float) -> None:
    """What happens after a power cut, when no index tells how long the log was: sums are those of all numbers."""
    recovery = store / "watch" / "recovery"
    log = recovery / "part-0.sqlite3-wal"
    os.truncate(log, int(log.stat().st_size * share))
    (recovery / "part-0.sqlite3-shm").unlink()
    assert damage(recovery) == ""
    assert flow(store).returncode == 0
    assert set(said(store)) == WHOLE


def test_a_log_without_its_last_frame_is_told_by_its_index(store: Path) -> None:
    recovery = store / "watch" / "recovery"
    log = recovery / "part-0.sqlite3-wal"
    frames = struct.unpack_from("=I", (recovery / "part-0.sqlite3-shm").read_bytes(), 16)[0]
    os.truncate(log, 32 + frames * (24 + 4096))
    shutil.copytree(recovery, store / "whole")
    assert damage(store / "whole") == ""
    os.truncate(log, 32 + (frames - 1) * (24 + 4096))
    assert damage(recovery) == "the database's log was cut"


def test_a_disk_that_fills_up_ends_the_engine_and_with_room_it_goes_on(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 512) as disk:
        (tmp_path / "out").touch()
        (disk / "out").symlink_to(tmp_path / "out")
        done = flow(disk)
        assert (done.returncode, done.stderr.strip().startswith("full RuntimeError")) == (3, True)
        assert 3 < len(said(disk)) < len(WHOLE)
        remount(disk, "size=8m")
        done = flow(disk)
        assert (done.returncode, done.stderr.strip(), set(said(disk))) == (0, "", WHOLE)


def test_a_fresh_recovery_is_whole_and_an_orderly_end_leaves_it_so(tmp_path: Path) -> None:
    begin(tmp_path / "r")
    assert damage(tmp_path / "r") == ""
    assert flow(tmp_path, unchecked=tmp_path / "r").returncode == 0
    assert damage(tmp_path / "r") == ""
    assert [path.name for path in (tmp_path / "r").iterdir()] == ["part-0.sqlite3"]
