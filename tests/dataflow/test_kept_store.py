"""A store that lasts: damage is mended with what can be read, foreign folders stay, a full disk is waited out."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dataflow.kept_store import KeptStore
from dataflow.patient import Patient
from state.store import StoreError, reading
from tests.dataflow.disks import fill, small_disk
from tests.dataflow.said_records import verdict
from tests.dataflow.test_patient import Book

ROOT = Path(__file__).resolve().parents[2]
Record = dict[str, Any]


def table(folder: Path) -> Path:
    return min(folder.glob("*.sst"))


def current_torn(folder: Path) -> None:
    (folder / "CURRENT").write_text("torn")


def current_missing(folder: Path) -> None:
    (folder / "CURRENT").unlink()


def manifest_missing(folder: Path) -> None:
    next(folder.glob("MANIFEST-*")).unlink()


def manifest_zeroed(folder: Path) -> None:
    with next(folder.glob("MANIFEST-*")).open("r+b") as file:
        file.write(b"\0" * 100)


def table_missing(folder: Path) -> None:
    table(folder).unlink()


def table_cut(folder: Path) -> None:
    os.truncate(table(folder), 500)


def table_zeroed(folder: Path) -> None:
    with table(folder).open("r+b") as file:
        file.write(b"\0" * 2000)


LOSSLESS = [current_torn, current_missing, manifest_missing, manifest_zeroed]
LOSING = [table_missing, table_cut, table_zeroed]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with one job in a table of its own and another one behind it; the watch's folder is in it."""
    for job in ("/a", "/b"):
        kept = KeptStore(tmp_path, pytest.fail, Book())
        for second in range(20):
            kept.write(verdict(job, second))
        kept.close()
    (tmp_path / "watch").mkdir()
    (tmp_path / "watch" / "000009.sst").write_text("none of the store's")
    (tmp_path / "notes.txt").write_text("mine")
    return tmp_path


def verdicts(folder: Path, job: str) -> int:
    with reading(folder) as book:
        return len(book.verdicts(job))


def ids(case: Callable[[Path], None]) -> str:
    return case.__name__


@pytest.mark.parametrize("damaged", LOSSLESS + LOSING, ids=ids)
def test_a_damaged_store_is_mended_and_its_files_are_kept_aside(store: Path, damaged: Callable[[Path], None]) -> None:
    damaged(store)
    notes: list[str] = []
    debts = Book()
    kept = KeptStore(store, notes.append, debts)
    patient = Patient("store", kept, notes.append, Book())
    for second in range(20, 22):
        patient.write(verdict("/a", second))
    assert patient.retry()
    kept.close()
    assert kept.was_mended or f"owes {store}, mended" in debts.owing
    assert any("the store was damaged; its files were copied to quarantine-" in note for note in notes)
    assert verdicts(store, "/b") == 20
    assert verdicts(store, "/a") == (22 if damaged in LOSSLESS else 2)
    (aside,) = store.glob("quarantine-*")
    assert any(aside.glob("*.sst"))
    assert (store / "watch" / "000009.sst").read_text() == "none of the store's"
    assert (store / "notes.txt").read_text() == "mine"


def test_only_the_newest_copies_of_damaged_stores_are_kept(store: Path) -> None:
    for _ in range(5):
        current_torn(store)
        KeptStore(store, lambda note: None, Book()).close()
    assert len(list(store.glob("quarantine-*"))) == 3


def test_an_undamaged_store_is_left_as_it_is(store: Path) -> None:
    kept = KeptStore(store, pytest.fail, Book())
    kept.close()
    assert not kept.was_mended


def test_a_store_that_another_process_writes_is_not_mended(store: Path) -> None:
    code = "import sys; from pathlib import Path; from state.store import Store\n"
    code += "store = Store(Path(sys.argv[1])); print(1, flush=True); sys.stdin.read()"
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(store)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert other.stdout is not None
    other.stdout.readline()
    with pytest.raises(StoreError, match="another wedgewatch writes into this store"):
        KeptStore(store, pytest.fail, Book())
    other.kill()
    other.communicate()


def test_a_full_disk_is_waited_out_and_nothing_is_missing(tmp_path: Path) -> None:
    records = [verdict("/a", second, reason=os.urandom(1500).hex()) for second in range(60)]
    with small_disk(tmp_path / "disk", 2048) as disk:
        notes: list[str] = []
        kept = KeptStore(disk / "s", notes.append, Book())
        patient = Patient("store", kept, notes.append, Book())
        filling = fill(disk, leave=64 << 10)
        for record in records:
            patient.write(record)
        assert patient.waiting > 10
        filling.unlink()
        assert patient.retry()
        kept.close()
        assert verdicts(disk / "s", "/a") == len(records)
        assert (len(notes), "the disk is full" in notes[0]) == (2, True)
