"""What the command line says to somebody who has not read the code: help, and input that tells nothing."""

import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dataflow.cli import EXIT_CODES, main

WELL = Path(__file__).parents[1] / "captures/lone_watchdog_line"


def run(*arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(main, arguments, input=stdin)


def test_commands_are_listed_with_whole_sentences() -> None:
    said = run("--help").output
    assert "explain  Say why a gate answers as it does, or what a cause means.\n" in said
    assert "replay   Judge recorded captures: KILL, NO-KILL or ERROR for each job.\n" in said
    assert "..." not in said.split("Commands:")[1]


def test_help_names_every_exit_code_and_stays_within_eighty_columns() -> None:
    said = run("replay", "--help").output
    for decision, code in EXIT_CODES.items():
        assert any(f"  {code} " in line and decision in line for line in said.splitlines()), decision
    assert all(len(line) <= 80 for line in said.splitlines())


@pytest.mark.parametrize("name", ["folder", "notes.txt", "nothing.log"])
def test_input_that_tells_of_no_job_is_an_error_that_says_so(tmp_path: Path, name: str) -> None:
    place = tmp_path / name
    if name == "folder":
        place.mkdir()
    else:
        place.write_text("milk, bread, butter\n" if name == "notes.txt" else "")
    said = run("replay", "--exit-code", str(place))
    assert said.exit_code == EXIT_CODES["ERROR"]
    assert f"nothing in {place} tells of a job; is it a capture, or a log of one?" in said.stderr


def test_a_name_that_sounds_like_a_secret_hides_no_word_of_the_message(tmp_path: Path) -> None:
    (tmp_path / "passwd").write_text("milk\n")
    assert "[masked]" not in run("replay", str(tmp_path / "passwd")).stderr


@pytest.mark.parametrize("option", ["--out", "--log", "--store"])
def test_a_replay_writes_nothing_into_a_capture(tmp_path: Path, option: str) -> None:
    capture = tmp_path / "capture"
    shutil.copytree(WELL, capture)
    said = run("replay", option, str(capture / "new"), str(capture))
    assert said.exit_code == 2
    assert f"{capture / 'new'}: lies in the capture {capture}, into which nothing is written" in said.stderr
    assert not (capture / "new").exists()


def test_a_folder_of_other_files_becomes_no_store(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "hosts").write_text("127.0.0.1 localhost\n")
    said = run("replay", "--store", str(tmp_path / "etc"), str(WELL))
    assert said.exit_code == 2
    assert "holds other files and no store; name a folder of its own" in said.stderr
    assert os.listdir(tmp_path / "etc") == ["hosts"]


def test_moment_before_the_first_line_is_named_as_the_reason() -> None:
    said = run("replay", "--as-of", "2020-01-01", str(WELL))
    assert f"nothing in {WELL} tells of a job at that time" in said.stderr


def test_capture_of_a_job_is_not_doubted() -> None:
    assert "tells of a job" not in run("replay", str(WELL)).stderr
