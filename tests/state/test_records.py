"""The models of output records name every field of real ones, and refuse what is none."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner
from pydantic import ValidationError

from dataflow.cli import main
from state.records import RECORDS

CAPTURES = Path(__file__).parents[1] / "captures"
GOLDENS = sorted(CAPTURES.glob("*.golden.json"))
SEVERAL = ("one_slot_401_burst", "crash_loop_same_failure", "gpu_poll_failed")


def unnamed(record: dict[str, Any]) -> list[str]:
    """The fields whose contents the model doesn't hold whole."""
    said = RECORDS[record["kind"]].model_validate(record).model_dump(by_alias=True, exclude_unset=True)
    return [key for key, value in record.items() if said.get(key) != value]


@pytest.mark.parametrize("path", GOLDENS, ids=lambda path: path.name.partition(".")[0])
def test_model_holds_every_field_of_a_final_verdict(path: Path) -> None:
    assert not unnamed(orjson.loads(path.read_bytes()))


@pytest.mark.parametrize("name", SEVERAL)
def test_model_holds_every_field_of_what_is_said_on_the_way(name: str) -> None:
    said = CliRunner().invoke(main, ["replay", "--heartbeat", "10m", str(CAPTURES / name)]).stdout
    records = [orjson.loads(line) for line in said.splitlines()]
    assert {record["kind"] for record in records} == {"gate", "verdict"}
    assert not [record["id"] for record in records if unnamed(record)]


@pytest.mark.parametrize(
    ("field", "value"), [("verdict", "MAYBE"), ("at", "yesterday"), ("gates", {"E": {}}), ("step", None), ("id", "")]
)
def test_model_refuses_what_is_no_record(field: str, value: object) -> None:
    record = orjson.loads(GOLDENS[0].read_bytes())
    with pytest.raises(ValidationError):
        RECORDS["verdict"].model_validate({**record, field: value})


def test_field_that_a_later_version_adds_is_let_through() -> None:
    record = orjson.loads(GOLDENS[0].read_bytes())
    RECORDS["verdict"].model_validate({**record, "weather": "fair"})
