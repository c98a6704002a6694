"""What the command line says to somebody who has not read the code: help, and input that tells nothing."""

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
    assert f"{place}: nothing in it tells of a job; is it a capture, or a log of one?" in said.stderr


def test_moment_before_the_first_line_is_named_as_the_reason() -> None:
    said = run("replay", "--as-of", "2020-01-01", str(WELL))
    assert f"{WELL}: nothing in it tells of a job at that time" in said.stderr


def test_capture_of_a_job_is_not_doubted() -> None:
    assert "tells of a job" not in run("replay", str(WELL)).stderr
