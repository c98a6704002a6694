"""The store: one record stands once, the newest verdict wins by its own time, readers come beside the writer."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import state.store
from state.store import Store, StoreError, reading


def verdict(job: str, at: str, says: str = "NO-KILL", number: str = "v") -> dict:
    restarts = {"burned": 0, "evidence": [], "fingerprint": None}
    head = {"kind": "verdict", "id": f"{number}{at}", "job": job, "at": at, "verdict": says, "gates": {}}
    return {**head, "terminal": False, "cause": None, "restarts": restarts}


def gate(job: str, letter: str, at: str, condition: str) -> dict:
    return {"kind": "gate", "id": f"{letter}{at}", "job": job, "at": at, "gate": letter, "condition": condition}


def written(folder: Path, *records: dict) -> Path:
    store = Store(folder)
    for record in records:
        store.write(record)
    store.close()
    return folder


def test_the_newest_verdict_of_each_job_is_found_and_all_are_kept(tmp_path: Path) -> None:
    written(tmp_path / "s", verdict("/a", "T1"), verdict("/b", "T1"), verdict("/a", "T2", "KILL"))
    with reading(tmp_path / "s") as book:
        assert [(record["job"], record["at"]) for record in book.jobs()] == [("/a", "T2"), ("/b", "T1")]
        assert [record["at"] for record in book.verdicts("/a")] == ["T1", "T2"]
        assert book.newest("/c") is None


def test_a_replay_of_what_is_older_does_not_become_the_newest(tmp_path: Path) -> None:
    written(tmp_path / "s", verdict("/a", "T5", "KILL"))
    written(tmp_path / "s", verdict("/a", "T3"))
    with reading(tmp_path / "s") as book:
        assert (book.newest("/a") or {})["at"] == "T5"
        assert [record["at"] for record in book.verdicts("/a")] == ["T3", "T5"]


def test_a_record_that_is_written_twice_stands_once(tmp_path: Path) -> None:
    for _ in range(2):
        written(tmp_path / "s", verdict("/a", "T1"), gate("/a", "B", "T1", "FED"))
    with reading(tmp_path / "s") as book:
        assert len(book.verdicts("/a")) == len(book.gates("/a")) == 1


def test_a_job_whose_name_begins_like_anothers_is_not_mixed_with_it(tmp_path: Path) -> None:
    written(tmp_path / "s", verdict("/a", "T1"), verdict("/ab", "T1"), gate("/ab", "A", "T1", "ALIVE"))
    with reading(tmp_path / "s") as book:
        assert (len(book.verdicts("/a")), book.gates("/a")) == (1, {})


def test_the_newest_record_of_each_gate_stands(tmp_path: Path) -> None:
    written(
        tmp_path / "s", gate("/a", "B", "T1", "FED"), gate("/a", "B", "T2", "TRAINING"), gate("/a", "A", "T1", "ALIVE")
    )
    with reading(tmp_path / "s") as book:
        assert {letter: found["condition"] for letter, found in book.gates("/a").items()} == {
            "A": "ALIVE",
            "B": "TRAINING",
        }


def test_a_reader_sees_what_an_open_store_was_given(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    store.write(verdict("/a", "T1"))
    with reading(tmp_path / "s") as book:
        assert [record["job"] for record in book.jobs()] == ["/a"]
    store.write(verdict("/b", "T1"))
    with reading(tmp_path / "s") as book:
        assert [record["job"] for record in book.jobs()] == ["/a", "/b"]
    store.close()


def test_two_writers_of_one_store_are_told_apart(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    code = "import sys; from pathlib import Path; from state.store import Store; Store(Path(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "s")], capture_output=True, text=True, timeout=60, check=False
    )
    assert "another wedgewatch writes into this store" in done.stderr
    store.close()


def test_what_was_written_outlives_a_writer_that_is_killed(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from state.store import Store\n"
        "store = Store(Path(sys.argv[1]))\n"
        f"store.write({verdict('/a', 'T1', 'KILL')})\n"
        "os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "s")], timeout=60, check=False)
    with reading(tmp_path / "s") as book:
        assert (book.newest("/a") or {})["verdict"] == "KILL"


@pytest.mark.parametrize("folder", ["nothing", "empty"])
def test_a_folder_without_a_store_is_named_with_what_begins_one(folder: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreError, match=r"holds no store; `wedgewatch watch --store"), reading(tmp_path / folder):
        pass


def test_a_fresh_volume_may_become_a_store(tmp_path: Path) -> None:
    for name in ("lost+found", ".snapshot"):
        (tmp_path / name).mkdir()
    Store(tmp_path).close()
    with reading(tmp_path) as book:
        assert list(book.jobs()) == []


def test_a_damaged_store_is_named_with_what_to_do(tmp_path: Path) -> None:
    written(tmp_path / "s", verdict("/a", "T1"))
    (tmp_path / "s" / "CURRENT").write_text("torn")
    with pytest.raises(StoreError, match="the store is damaged"), reading(tmp_path / "s"):
        pass
    with pytest.raises(StoreError, match="the store is damaged"):
        Store(tmp_path / "s")


def test_a_file_where_the_store_should_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("no folder")
    with pytest.raises(StoreError, match="s: cannot be used as a store: File exists"):
        Store(tmp_path / "s")
    with pytest.raises(StoreError, match="s: holds no store"), reading(tmp_path / "s"):
        pass


def test_a_damaged_block_is_told_as_damage_by_writer_and_reader(tmp_path: Path) -> None:
    written(tmp_path / "s", *(verdict("/a", f"T{number:03}", "KILL " * 100) for number in range(200)))
    written(tmp_path / "s", verdict("/b", "T1"))
    with min((tmp_path / "s").glob("*.sst")).open("r+b") as table:
        table.write(b"\0" * 100)
    store = Store(tmp_path / "s")
    with pytest.raises(StoreError, match="the store is damaged") as caught:
        store.write(verdict("/a", "T201"))
    assert caught.value.damaged
    with reading(tmp_path / "s") as book, pytest.raises(StoreError, match="the store is damaged"):
        book.newest("/a")
    store.close()


READER = """
import os, sys
from pathlib import Path
from state.store import StoreError, reading
def read(folder):
    try:
        with reading(Path(folder)) as book:
            return [record["job"] for record in book.jobs()]
    except StoreError as error:
        return str(error)
read(sys.argv[1])
if os.geteuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
print(read(sys.argv[2]))
"""
"""What somebody without rights reads. What is imported on the way is, before they are given up."""


@pytest.fixture
def of_another() -> Iterator[Path]:
    """A store into whose folder nobody but root may write."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        place = written(Path(folder) / "s", verdict("/a", "T1"))
        for path in place.iterdir():
            path.chmod(0o444)
        place.chmod(0o555)
        yield place
        place.chmod(0o755)


def as_nobody(tmp_path: Path, folder: Path) -> str:
    own = written(tmp_path / "own", verdict("/own", "T1"))
    done = subprocess.run(
        [sys.executable, "-c", READER, str(own), str(folder)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr == ""
    return done.stdout.strip()


def test_a_store_of_another_user_is_read_and_left_as_it_is(tmp_path: Path, of_another: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in [of_another, *of_another.iterdir()]}
    assert as_nobody(tmp_path, of_another) == "['/a']"
    with reading(of_another) as book:
        assert len(book.jobs()) == 1
    assert {path: path.stat().st_mtime_ns for path in [of_another, *of_another.iterdir()]} == before


def test_a_store_that_may_not_be_read_is_told_by_its_own_place(tmp_path: Path, of_another: Path) -> None:
    (of_another / "CURRENT").chmod(0o000)
    said = as_nobody(tmp_path, of_another)
    assert said.startswith(f"{of_another}: the store cannot be used: ")
    assert f"{of_another}/CURRENT: Permission denied" in said
    of_another.chmod(0o000)
    assert as_nobody(tmp_path, of_another) == f"{of_another}: cannot be used as a store: Permission denied"


def test_a_store_whose_files_change_while_it_is_opened_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, linked, looks = Store(tmp_path / "s"), state.store._linked, list[str]()
    store.write(verdict("/a", "T1"))

    def changing(folder: Path, place: Path) -> set[str]:
        names = linked(folder, place)
        if not looks:
            store.write(verdict("/b", "T1"))
            store._book.flush()
        looks.append(place.name)
        return names

    monkeypatch.setattr(state.store, "_linked", changing)
    with reading(tmp_path / "s") as book:
        assert [record["job"] for record in book.jobs()] == ["/a", "/b"]
    assert looks == ["look-5", "look-4"]
    store.close()


def test_without_a_temporary_folder_it_is_told_what_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "s", verdict("/a", "T1"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(StoreError, match=r"No such file or directory: .*none/wedgewatch-"), reading(tmp_path / "s"):
        pass
