"""Output records in CloudEvents 1.0 envelopes (structured JSON), as they travel on the verdict topic (CONTRACT §5).

What comes from a topic may have been written by anybody: what is no record of ours is a value that says why.
"""

import re
from typing import Any, Literal, NamedTuple

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from extractors.quoting import masked, without_controls
from state.records import RECORDS, GateRecord, Moment, VerdictRecord
from state.report import SCHEMA

Record = dict[str, Any]

CONTENT_TYPE = "application/cloudevents+json; charset=UTF-8"
HEADERS = (("content-type", CONTENT_TYPE.encode()),)
SOURCE = "urn:wedgewatch"
"""The same for all: an id is a digest of its record, so that the same record from two processes is one event."""
QUOTED = 200
"""Characters of a poison's value that are told."""
_TYPE = "io.wedgewatch."
_VERSION = re.compile(r"wedgewatch/(\d+)")
_OURS = int(SCHEMA.partition("/")[2])


class CloudEvent(BaseModel):
    """The envelope of a record. What it holds beyond these (extensions) is let through."""

    model_config = ConfigDict(strict=True, extra="ignore")

    specversion: Literal["1.0"]
    id: str = Field(min_length=1, description="the record's id, by which a consumer drops repeats")
    source: str = Field(min_length=1, json_schema_extra={"format": "uri-reference"})
    type: Literal["io.wedgewatch.gate", "io.wedgewatch.verdict"]
    subject: str = Field(description="the job")
    time: Moment = Field(description="the record's event time")
    datacontenttype: Literal["application/json"] = "application/json"
    data: GateRecord | VerdictRecord = Field(description="the record")


class Poison(NamedTuple):
    """A value that is no record of ours: why, and what it begins with."""

    why: str
    quote: str


def enveloped(record: Record) -> bytes:
    """A record of kind gate or verdict in its envelope."""
    return orjson.dumps(
        {
            "specversion": "1.0",
            "id": record["id"],
            "source": SOURCE,
            "type": f"{_TYPE}{record['kind']}",
            "subject": record["job"],
            "time": record["at"],
            "datacontenttype": "application/json",
            "data": record,
        }
    )


def unwrapped(value: bytes) -> Record | Poison:
    """The record in an envelope, with the bytes that it was written with: encoding it again gives the same."""
    try:
        event = orjson.loads(value)
    except ValueError as error:
        return poison(value, f"no JSON ({error})")
    if not isinstance(event, dict):
        return poison(value, "no JSON object")
    if "specversion" not in event:
        return poison(value, "no CloudEvents envelope (it has no specversion)")
    record = event.get("data")
    if why := _foreign(event, record):
        return poison(value, why)
    assert isinstance(record, dict)
    try:
        RECORDS[record["kind"]].model_validate(record)
    except ValidationError as error:
        return poison(value, f"no {record['kind']} record: {_told(error)}")
    return record


def event_id(value: bytes) -> str:
    """The id of an envelope, without a look at what it holds; "" where it is none."""
    try:
        event = orjson.loads(value)
    except ValueError:
        return ""
    id = event.get("id") if isinstance(event, dict) else None
    return id if isinstance(id, str) else ""


def _foreign(event: Record, record: object) -> str:
    """Why an envelope isn't one of ours; "" where it is."""
    if event["specversion"] != "1.0":
        return f"CloudEvents {event['specversion']!r}, of which 1.0 is known"
    kind = str(event.get("type")).removeprefix(_TYPE)
    if not isinstance(record, dict):
        return "no record in its envelope (data is no object)"
    if why := of_another_version(record.get("schema")):
        return why
    if kind not in RECORDS:
        return f"an event of unknown type {event.get('type')!r}"
    if record.get("kind") != kind:
        return f"its type says {kind}, its record {record.get('kind')!r}"
    if event.get("id") != record.get("id") or event.get("subject") != record.get("job"):
        return "its envelope's id or subject is not its record's"
    return ""


def of_another_version(schema: object) -> str:
    """Why what says this schema can't be read here; "" where it can."""
    if schema == SCHEMA:
        return ""
    found = _VERSION.fullmatch(schema) if isinstance(schema, str) else None
    if found and int(found[1]) > _OURS:
        return f"written by a newer version ({schema}, of which {SCHEMA} is known); update this one"
    return f"its schema is {schema!r}, not {SCHEMA}"


def _told(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg'][:1].lower()}{first['msg'][1:]}"


def poison(value: bytes, why: str) -> Poison:
    """A value that can't be used, quoted as far as it is fit for a terminal."""
    text = value[: 4 * QUOTED].decode("utf-8", "replace")
    quote = without_controls(masked(text.replace("\n", "\\n")))
    return Poison(
        without_controls(why), quote[:QUOTED] + ("…" if len(quote) > QUOTED or len(value) > 4 * QUOTED else "")
    )
