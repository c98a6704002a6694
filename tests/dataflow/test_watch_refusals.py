"""What `watch` refuses at its start."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dataflow.cli import main

NOWHERE = "/proc/none"
"""A store that can't be: a watch that is not refused before ends over it."""


def refused(*words: str | Path) -> Result:
    done = CliRunner().invoke(main, ["watch", *map(str, words)])
    assert done.exit_code == 2
    return done


def test_nothing_is_kept_in_a_capture_that_is_still_to_come(tmp_path: Path) -> None:
    for option in ("--out", "--log"):
        done = refused("--store", NOWHERE, option, tmp_path / "run" / "kept", tmp_path / "run")
        assert "lies in the capture" in done.stderr
    assert not (tmp_path / "run").exists()


def test_two_captures_of_one_job_are_refused(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "job.toml").write_text('[job]\nid = "/kim/rl-demo"\n')
    done = refused("--store", NOWHERE, tmp_path / "one", tmp_path / "two")
    assert "is of the job /kim/rl-demo" in done.stderr


def test_a_watch_of_nothing_is_told_what_it_may_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KAFKA_BOOTSTRAP", raising=False)
    assert "name a CAPTURE to watch, or --brokers" in refused("--store", NOWHERE).stderr


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--brokers", "127.0.0.1:1", "run"), "not both"),
        (("--share", "1/2", "run"), "--share is for --brokers"),
        (("--brokers", "127.0.0.1:1", "--job", "job.toml"), "--job is for captures"),
        (("--brokers", "127.0.0.1:1", "--workers", "2"), "--workers is for captures"),
        (("--brokers", "127.0.0.1:1", "--share", "3/2"), "'3/2' is no share"),
    ],
)
def test_options_that_do_not_go_together_are_refused(words: tuple[str, ...], why: str) -> None:
    assert why in refused("--store", NOWHERE, *words).output


RECORD = b'{"schema":"wedgewatch/1","kind":"gate","job":"/kim/rl"}\n'
TEXT = b"2026-05-04T08:00:00.000Z  /kim/rl  gate A  PASS ALIVE: it goes on\n"


@pytest.mark.parametrize(
    ("held", "layout", "why"),
    [
        (RECORD, "text", "holds JSON lines, and is not gone on with as text"),
        (RECORD[:5], "text", "holds JSON lines, and is not gone on with as text"),
        (b"\0\0\n" + TEXT, "jsonl", "holds text, and is not gone on with in JSON lines"),
        (TEXT, None, "holds text, and is not gone on with in JSON lines"),
    ],
)
@pytest.mark.parametrize("brokers", [False, True])
def test_text_and_json_lines_are_not_mixed_in_one_file(
    tmp_path: Path, held: bytes, layout: str | None, why: str, brokers: bool
) -> None:
    out, store = tmp_path / "out", tmp_path / "store"
    out.write_bytes(held)
    words = ("--brokers", "127.0.0.1:1") if brokers else (tmp_path / "run",)
    done = refused("--store", store, "--out", out, *(("--format", layout) if layout else ()), *words)
    assert (done.stderr.count("\n"), f"{out}: {why}" in done.stderr, done.stdout) == (1, True, "")
    assert (out.read_bytes(), store.exists()) == (held, False)


@pytest.mark.parametrize(("held", "layout"), [(RECORD, "jsonl"), (TEXT, "text"), (b"", "text"), (b"\n\0", "jsonl")])
def test_a_file_of_the_same_layout_is_gone_on_with(tmp_path: Path, held: bytes, layout: str) -> None:
    (tmp_path / "out").write_bytes(held)
    done = refused("--store", NOWHERE, "--out", tmp_path / "out", "--format", layout, tmp_path / "run")
    assert NOWHERE in done.stderr
