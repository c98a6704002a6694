"""What `watch` refuses at its start."""

from pathlib import Path

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
