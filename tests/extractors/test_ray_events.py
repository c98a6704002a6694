"""Ray's event files: the line's own time in each version's form, and the node that it names."""

import pytest

from extractors.extract import Reader
from extractors.record import NOWHERE, Block
from extractors.signal import Fault
from tests.builders import T0, us

BASE = (
    '{"severity":"ERROR","label":"RAY_NODE_REMOVED","source_type":"GCS","message":"m","custom_fields":{"ip":"10.1.0.7"}'
)


@pytest.mark.parametrize(
    "time",
    [
        '"time_stamp":"2026-07-20 08:10:00.000000"',
        f'"timestamp":{us(600) // 1_000_000}',
        f'"timestamp":"{us(600) // 1_000_000}"',
        f'"timestamp":{us(600) // 1_000}',
        f'"timestamp":"{us(600)}"',
    ],
    ids=["local", "seconds", "as a string", "milliseconds", "microseconds"],
)
def test_an_events_time_is_its_own_in_every_form(time: str) -> None:
    reader = Reader("event_GCS.log", NOWHERE, T0)
    (found,) = reader.read(Block("event_GCS.log", 0, 1, f"{BASE},{time}}}\n".encode())) + reader.end()
    assert found.signal == Fault("node_died", "a node was lost", entity="10.1.0.7")
    assert found.evidence.at_us == us(600)


def test_json_that_is_no_event_has_no_time_of_its_own() -> None:
    reader = Reader("x.log", NOWHERE, T0)
    lines = b'{"timestamp":1782945001,"label":"x"}\nKilled\n'
    (found,) = reader.read(Block("x.log", 0, 1, lines)) + reader.end()
    assert found.evidence.at_us is None
