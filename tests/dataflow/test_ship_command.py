"""What `ship` refuses at its start."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from dataflow.cli import main
from tests.dataflow.live_feeds import bars
from tests.dataflow.test_ship_recorded import write

NOWHERE = "127.0.0.1:1"


def refused(*words: str | Path) -> str:
    done = CliRunner().invoke(main, ["ship", "--brokers", NOWHERE, *map(str, words)])
    assert done.exit_code == 2, done.output
    return done.stderr


def test_brokers_must_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KAFKA_BOOTSTRAP", raising=False)
    done = CliRunner().invoke(main, ["ship", "--once", str(tmp_path)])
    assert done.exit_code == 2
    assert "no brokers are named" in done.stderr


@pytest.mark.parametrize("once", [["--once"], []])
def test_what_can_be_read_only_once_is_refused(tmp_path: Path, once: list[str]) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in ("-", tmp_path / "pipe"):
        assert "can't be shipped" in refused("--store", tmp_path / "store", *once, path)


def test_capture_that_is_not_there_is_refused_where_it_can_never_come(tmp_path: Path) -> None:
    assert "cannot be read" in refused("--once", tmp_path / "none")
    assert "its folder is not there" in refused("--store", tmp_path / "store", tmp_path / "none" / "run")


def test_capture_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "run", {"finelog.log": bars(0, 2)})
    os.symlink("run", tmp_path / "same")
    assert "named twice" in refused("--store", tmp_path / "store", tmp_path / "run", tmp_path / "same")
    assert "name each job once" in refused("--once", tmp_path / "run", f"{tmp_path / 'run'}/")


def test_nothing_is_kept_in_a_capture(tmp_path: Path) -> None:
    assert "lies in the capture" in refused("--store", tmp_path / "run" / "kept", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_facts_that_cannot_be_used_are_refused_of_a_recorded_capture(tmp_path: Path) -> None:
    write(tmp_path / "run", {"finelog.log": bars(0, 2), "job.toml": b"[job]\nidd = 3\n"})
    assert "idd" in refused("--once", tmp_path / "run")


@pytest.mark.parametrize("host", ["", "a b/c"])
def test_host_that_can_be_no_part_of_a_files_name_is_refused(tmp_path: Path, host: str) -> None:
    assert "--host" in refused("--host", host, tmp_path)


def test_rounds_are_never_so_rare_that_the_shipper_would_seem_silent(tmp_path: Path) -> None:
    assert "--every is at most 5s" in refused("--every", "6s", tmp_path)
