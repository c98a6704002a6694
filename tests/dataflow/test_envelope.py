"""Records in and out of their envelopes, and what is no record."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from dataflow.envelope import QUOTED, CloudEvent, Poison, enveloped, unwrapped
from state.report import encode

GOLDEN = Path(__file__).parents[1] / "captures" / "bring_up.golden.json"
RECORD: dict[str, Any] = orjson.loads(GOLDEN.read_bytes())


def event(**changed: Any) -> bytes:
    return orjson.dumps({**orjson.loads(enveloped(RECORD)), **changed})


def test_record_comes_out_with_the_bytes_that_it_went_in_with() -> None:
    found = unwrapped(enveloped(RECORD))
    assert not isinstance(found, Poison)
    assert encode(found) == encode(RECORD)


def test_envelope_is_a_cloud_event_of_the_record() -> None:
    told = orjson.loads(enveloped(RECORD))
    CloudEvent.model_validate(told)
    assert {key: value for key, value in told.items() if key != "data"} == {
        "specversion": "1.0",
        "id": RECORD["id"],
        "source": "urn:wedgewatch",
        "type": "io.wedgewatch.verdict",
        "subject": RECORD["job"],
        "time": RECORD["at"],
        "datacontenttype": "application/json",
    }


def test_extensions_of_an_envelope_and_added_fields_of_a_record_are_let_through() -> None:
    assert not isinstance(unwrapped(event(traceparent="00-1-2-03")), Poison)
    assert not isinstance(unwrapped(event(data={**RECORD, "weather": "fair"})), Poison)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"", "no JSON"),
        (b"\xff\xfe", "no JSON"),
        (b"[1]", "no JSON object"),
        (encode(RECORD), "no CloudEvents envelope (it has no specversion)"),
        (event(specversion="2.0"), "CloudEvents '2.0', of which 1.0 is known"),
        (event(data=None), "no record in its envelope"),
        (event(data={**RECORD, "schema": "wedgewatch/2"}), "written by a newer version (wedgewatch/2, of which"),
        (event(data={**RECORD, "schema": "wedgewatch/2"}, type="io.wedgewatch.other"), "written by a newer version"),
        (event(data={**RECORD, "schema": "other/1"}), "its schema is 'other/1', not wedgewatch/1"),
        (event(data={**RECORD, "schema": None}), "its schema is None, not wedgewatch/1"),
        (event(type="io.wedgewatch.weather"), "an event of unknown type 'io.wedgewatch.weather'"),
        (event(type="io.wedgewatch.gate"), "its type says gate, its record 'verdict'"),
        (event(id="another"), "its envelope's id or subject is not its record's"),
        (event(data={**RECORD, "verdict": "MAYBE"}), "no verdict record: verdict: "),
        (event(data={key: value for key, value in RECORD.items() if key != "gates"}), "no verdict record: gates: "),
    ],
)
def test_poison_says_why_it_is_no_record(value: bytes, why: str) -> None:
    found = unwrapped(value)
    assert isinstance(found, Poison)
    assert found.why.startswith(why)


def test_quote_of_a_poison_is_short_and_fit_for_a_terminal_and_keeps_secrets() -> None:
    found = unwrapped(b"\x1b[2J\nkey=sk-abcdefghijklmnop123456 " + b"x" * 5_000)
    assert isinstance(found, Poison)
    assert found.quote.isprintable()
    assert "sk-abc" not in found.quote
    assert len(found.quote) == QUOTED + 1
    assert found.quote.endswith("…")
