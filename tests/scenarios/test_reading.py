"""How a scenario file is read, played and rewritten; what is wrong with one is said with its place."""

from pathlib import Path

import pytest

from tests.scenarios import timeline
from tests.scenarios.playing import play
from tests.scenarios.scenario import Scenario, ScenarioError, clock, load, rewritten

FILE = """A sentence.

fires: A10
given
  08:00 every 30s until 08:01  trainer  Started: 'phase {n*10+1}'
  08:02                        rank 1 prints
                               | one
                               |   two
says
  08:00:10  A PASS ALIVE
bounds
  never KILL
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "a_scenario.txt"
    path.write_text(text)
    return path


def read(folder: Path, text: str) -> Scenario:
    return load(written(folder, text))


def test_an_entry_has_its_times_and_the_lines_that_continue_it(tmp_path):
    repeated, once = read(tmp_path, FILE).given
    assert list(repeated.times()) == [clock("08:00"), clock("08:00:30"), clock("08:01")]
    assert (once.speaker, once.text) == ("rank 1 prints", "one\n  two")


def test_a_counter_counts_the_repetitions(tmp_path):
    play(read(tmp_path, FILE), tmp_path / "capture")
    said = (tmp_path / "capture" / "finelog.log").read_text()
    assert [f"'phase {n}'" in said for n in (11, 21, 31, 41)] == [True, True, True, False]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("08:00 sometimes  trainer  Started: 'step'", "a_scenario.txt:5: not `<time>"),
        ("8 o'clock  trainer  Started: 'step'", "a_scenario.txt:5: "),
        ("08:00  narrator  Once upon a time", "a_scenario.txt:5: nobody is called: narrator"),
        ("08:00  scene  the end of the world", "a_scenario.txt:5: scene: the end of the world"),
        ("08:00  poll gpus  policy=88", "a_scenario.txt:5: poll gpus: policy=88: KeyError('engine')"),
    ],
)
def test_a_line_that_cannot_be_played_is_told_with_its_place(tmp_path, wrong, told):
    text = FILE.replace("08:00 every 30s until 08:01  trainer  Started: 'phase {n*10+1}'", wrong)
    with pytest.raises(ScenarioError) as error:
        play(read(tmp_path, text), tmp_path / "capture")
    assert told in str(error.value)


def test_an_unknown_header_is_no_part_of_the_title(tmp_path):
    with pytest.raises(ScenarioError, match=r"a_scenario\.txt:4: neither a header"):
        read(tmp_path, FILE.replace("given", "shows: everything\ngiven", 1))


def test_only_the_says_block_is_rewritten(tmp_path):
    text = rewritten(written(tmp_path, FILE), ["08:01:10  A PASS ALIVE", "08:05:00  NO-KILL high final"])
    assert text == FILE.replace(
        "  08:00:10  A PASS ALIVE\n", "  08:01:10  A PASS ALIVE\n  08:05:00  NO-KILL high final\n"
    )


def test_a_bound_that_does_not_hold_says_by_how_much(tmp_path):
    record = {"kind": "gate", "at": "2026-03-14T08:10:00.000Z", "gate": "A", "status": "FAIL", "condition": "WEDGED"}
    text = FILE.replace("never KILL", "A FAIL not before 08:10:30\n  WEDGED not after 08:09\n  STALE not after 08:00")
    assert timeline.failures(read(tmp_path, text), [record]) == [
        "bounds: A FAIL not before 08:10:30: it was said 30 s earlier",
        "bounds: WEDGED not after 08:09: it was said 60 s later",
        "bounds: STALE not after 08:00: it was never said",
    ]
