"""Every recorded run: its expectations hold, its records keep the contract and the quote law, and the same input gives
the same bytes however it is read."""

import os
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import pytest

from dataflow.flow import replay_records
from tests.captures import contract, expectations, quotes
from tests.captures.writing.all import CAPTURES

HOME = Path(__file__).parent
SMALL = 7
"""A read size that cuts every line and most characters."""


def further_captures() -> Path | None:
    """A folder of more captures with their expectations: $WEDGEWATCH_SHARED, else `shared/captures` beside the
    repository; None where there is none."""
    named = os.environ.get("WEDGEWATCH_SHARED")
    places = [Path(named), Path(named) / "captures"] if named else [HOME.parents[2] / "shared" / "captures"]
    return next((place for place in places if (place / "expect").is_dir()), None)


FURTHER = further_captures()
CASES = {name: (HOME / name, HOME / f"{name}.expect.toml") for name in CAPTURES}
if FURTHER is not None:
    CASES |= {f"further-{path.stem}": (FURTHER / path.stem, path) for path in sorted(FURTHER.glob("expect/*.json"))}


@cache
def lines_of(name: str) -> tuple[bytes, ...]:
    """What a replay of a capture says, line by line."""
    return tuple(replay_records([str(CASES[name][0])]))


def records_of(name: str) -> list[dict[str, Any]]:
    """The same, read."""
    return [orjson.loads(line) for line in lines_of(name)]


@pytest.mark.parametrize("name", CASES)
def test_expectations_of_a_capture_hold(name: str) -> None:
    wrong = expectations.failures(expectations.load(CASES[name][1]), records_of(name))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", CASES)
def test_records_of_a_capture_keep_the_contract(name: str) -> None:
    wrong = contract.faults(records_of(name))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", CASES)
def test_each_quote_stands_where_it_is_said_to(name: str) -> None:
    wrong = quotes.misquotes(CASES[name][0], records_of(name))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", CASES)
def test_a_kept_job_is_not_said_to_be_kept_again_before_the_end(name: str) -> None:
    said = [record["verdict"] for record in records_of(name) if record["kind"] == "verdict" and not record["final"]]
    assert ("NO-KILL", "NO-KILL") not in pairwise(said)


@pytest.mark.parametrize("name", CAPTURES)
def test_final_verdict_is_the_golden_one(name: str, accept: bool) -> None:
    golden = HOME / f"{name}.golden.json"
    final = next(record for record in records_of(name) if record["kind"] == "verdict" and record["final"])
    final["captured"] = f"tests/captures/{name}"
    if accept:
        golden.write_bytes(orjson.dumps(final, option=orjson.OPT_INDENT_2) + b"\n")
    assert golden.is_file(), "no golden verdict; run pytest --accept and read what it says"
    assert final == orjson.loads(golden.read_bytes()), "the verdict has changed; run pytest --accept and read the diff"


@pytest.mark.parametrize("name", CAPTURES)
def test_second_replay_gives_the_same_bytes(name: str) -> None:
    assert tuple(replay_records([str(CASES[name][0])])) == lines_of(name)


@pytest.mark.parametrize("name", CAPTURES)
def test_two_workers_give_the_same_bytes_as_one(name: str) -> None:
    assert tuple(replay_records([str(CASES[name][0])], workers=2)) == lines_of(name)


@pytest.mark.parametrize("name", CAPTURES)
@pytest.mark.parametrize("read_size", [SMALL, 4096, 1 << 20])
def test_read_size_does_not_change_a_byte(name: str, read_size: int) -> None:
    assert tuple(replay_records([str(CASES[name][0])], read_size=read_size)) == lines_of(name)


@pytest.mark.parametrize("name", CAPTURES)
def test_plain_loop_gives_the_same_bytes_as_the_flow(name: str) -> None:
    assert tuple(replay_records([str(CASES[name][0])], engine="plain")) == lines_of(name)


@pytest.mark.parametrize("name", CAPTURES)
def test_capture_on_disk_is_what_its_builder_writes(name: str) -> None:
    folder, written = CASES[name][0], CAPTURES[name]()
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    assert set(found) == set(written), "run python -m tests.captures.writing"
    differing = [
        path for path, body in written.items() if not path.endswith(".gz") and found[path].read_bytes() != body
    ]
    assert not differing, f"run python -m tests.captures.writing {name}"


@pytest.mark.skipif(FURTHER is not None, reason="further captures are at hand and tested above")
def test_further_captures_are_at_hand() -> None:
    pytest.skip("no further captures: set WEDGEWATCH_SHARED to a folder that holds them and their expect/")
