"""Every scenario file, played onto disk and read by the real flow: it says what the file says it does.

`pytest tests/scenarios --accept` rewrites the `says` blocks with what is said now.
"""

from pathlib import Path

import orjson
import pytest

from dataflow.flow import replay_records
from tests.captures import contract, quotes
from tests.scenarios import timeline
from tests.scenarios.playing import play
from tests.scenarios.scenario import load, rewritten

HOME = Path(__file__).parent
SCENARIOS = {path.relative_to(HOME).with_suffix("").as_posix(): path for path in sorted(HOME.glob("*/*.txt"))}


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(name: str, tmp_path: Path, accept: bool) -> None:
    path = SCENARIOS[name]
    scenario = load(path)
    play(scenario, tmp_path)
    lines = replay_records([str(tmp_path)])
    records = [orjson.loads(line) for line in lines]
    said = timeline.timeline(records, scenario)
    if accept:
        path.write_text(rewritten(path, said))
    elif wrong := timeline.difference(scenario.lines("says"), said, name):
        pytest.fail(wrong, pytrace=False)
    faults = [*timeline.failures(scenario, records), *contract.faults(records), *quotes.misquotes(tmp_path, records)]
    if faults:
        pytest.fail("\n".join(["", *said, *faults]), pytrace=False)
    assert replay_records([str(tmp_path)], engine="plain") == lines, "the plain loop says something else"
