"""What others may count on, as documents for their tools: JSON Schemas of the output records and of their envelope, and
an AsyncAPI document of the three topics. `python -m dataflow.schemas` writes docs/schemas/; a test holds it current.
"""

from pathlib import Path
from typing import Any, Literal

import msgspec
import orjson
from pydantic import BaseModel, Field

from dataflow.envelope import CONTENT_TYPE, CloudEvent
from dataflow.kafka import Topic
from dataflow.kafka_settings import DEFAULT_PREFIX
from dataflow.wire import POLLS_SOURCE
from extractors.polls import PollRecord
from state.records import RECORDS
from state.report import SCHEMA

Document = dict[str, Any]

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "schemas"
DRAFT = "https://json-schema.org/draft/2020-12/schema"
_ASYNCAPI = "3.0.0"
_SCHEMAS = "#/components/schemas/"
_KEY = {"type": "string", "description": "The job. A message's partition is crc32(job) modulo the topic's partitions."}


_NUMBER = r"^\d+$"


class BlockHeaders(BaseModel):
    """The headers of a block of lines, as text."""

    kind: Literal["block", "part", "word"] = Field(
        default="block",
        description="block: whole lines; part: raw bytes of a file that is read as a whole; word: JSON about the "
        "capture, without source, offset and line",
    )
    source: str = Field(description="the file, relative to the capture")
    offset: str = Field(pattern=_NUMBER, description="byte offset of the block in the uncompressed file")
    line: str = Field(pattern=_NUMBER, description="number of the block's first line, from 1")
    host: str = Field(description="the host that shipped it")
    encoding: Literal["identity", "zstd"] = Field(default="identity", description="of the body")
    generation: str = Field(default="0", pattern=_NUMBER, description="how often the file was replaced by another")
    size: str | None = Field(default=None, pattern=_NUMBER, description="of a part: bytes of the whole file")
    mtime_ns: str | None = Field(default=None, pattern=_NUMBER, description="of a part: when the file was written")
    session: str = Field(default="", description="names one reading of a capture by one shipper")
    recorded: Literal["", "1"] = Field(default="", description="1: the session is that of a recorded capture")
    wire_schema: str = Field(default=SCHEMA, alias="schema", description="what the message is written by")


class PollHeaders(BaseModel):
    """The headers of a poll, as text. All may be absent."""

    source: str = Field(default=POLLS_SOURCE, description="the file, relative to the capture")
    offset: str | None = Field(default=None, pattern=_NUMBER, description="byte offset of the record in its file")
    line: str | None = Field(default=None, pattern=_NUMBER, description="number of its line, from 1")
    host: str = Field(default="", description="the host that shipped it")
    encoding: Literal["identity", "zstd"] = Field(default="identity", description="of the body")
    generation: str = Field(default="0", pattern=_NUMBER, description="how often the file was replaced by another")
    session: str = Field(default="", description="names one reading of a capture by one shipper")
    recorded: Literal["", "1"] = Field(default="", description="1: the session is that of a recorded capture")
    wire_schema: str = Field(default=SCHEMA, alias="schema", description="what the message is written by")


def documents() -> dict[str, Document]:
    """Each document by the name of its file."""
    models: dict[str, type[BaseModel]] = {**RECORDS, "cloudevent": CloudEvent}
    schemas = {f"{name}.schema.json": _schema(name, model) for name, model in models.items()}
    return {**schemas, "asyncapi.json": _asyncapi()}


def encoded(document: Document) -> bytes:
    """A document as it stands in its file."""
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def write(folder: Path = FOLDER) -> None:
    """Writes all of them anew."""
    for name, document in documents().items():
        (folder / name).write_bytes(encoded(document))


def _schema(name: str, model: type[BaseModel]) -> Document:
    head = {"$schema": DRAFT, "$id": f"urn:{SCHEMA.replace('/', ':')}:{name}"}
    return {**head, **model.model_json_schema(by_alias=True)}


def _asyncapi() -> Document:
    return {
        "asyncapi": _ASYNCAPI,
        "info": {
            "title": "wedgewatch",
            "version": SCHEMA.partition("/")[2],
            "description": "Lines and polls of RL jobs on their way to be judged, and what they were judged to be. "
            "All messages of one job share a partition, so that their order is kept. Delivery is at least once; what "
            "comes twice has the same id, or the same source and offset.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "channels": {str(topic): _channel(topic) for topic in Topic},
        "operations": {
            "shipLines": _operation("send", Topic.LINES, "A shipper publishes what was appended to a file."),
            "shipPolls": _operation("send", Topic.POLLS, "A shipper publishes what a probe printed."),
            "judgeLines": _operation("receive", Topic.LINES, "A flow process reads the partitions that it owns."),
            "judgePolls": _operation("receive", Topic.POLLS, "A flow process reads the partitions that it owns."),
            "sayVerdicts": _operation("send", Topic.VERDICTS, "A flow process says what changed, and heartbeats."),
            "followVerdicts": _operation("receive", Topic.VERDICTS, "A supervisor follows, and drops repeats by id."),
        },
        "components": {"messages": _messages(), "schemas": _components()},
    }


def _channel(topic: Topic) -> Document:
    message = {"$ref": f"#/components/messages/{topic}"}
    return {"address": topic.under(DEFAULT_PREFIX), "messages": {str(topic): message}}


def _operation(action: str, topic: Topic, summary: str) -> Document:
    return {"action": action, "channel": {"$ref": f"#/channels/{topic}"}, "summary": summary}


def _messages() -> Document:
    return {
        str(Topic.LINES): {
            "summary": "A block of whole lines of one file; also raw bytes of a file, or a word about the capture.",
            "contentType": "application/octet-stream",
            "headers": {"$ref": f"{_SCHEMAS}BlockHeaders"},
            "payload": {"type": "string", "format": "binary", "description": "the bytes as they stand in the file"},
            "bindings": {"kafka": {"key": _KEY}},
        },
        str(Topic.POLLS): {
            "summary": "One attempt of a probe, failures included.",
            "contentType": "application/json",
            "headers": {"$ref": f"{_SCHEMAS}PollHeaders"},
            "payload": {"$ref": f"{_SCHEMAS}PollRecord"},
            "bindings": {"kafka": {"key": _KEY}},
        },
        str(Topic.VERDICTS): {
            "summary": "An output record in a CloudEvents 1.0 envelope (structured JSON mode).",
            "contentType": CONTENT_TYPE,
            "payload": {"$ref": f"{_SCHEMAS}CloudEvent"},
            "bindings": {"kafka": {"key": _KEY}},
        },
    }


def _components() -> Document:
    """Every schema that a message refers to, beside the others."""
    _, polls = msgspec.json.schema_components([PollRecord], ref_template=_SCHEMAS + "{name}")
    found = dict(polls)
    for model in (CloudEvent, BlockHeaders, PollHeaders):
        schema = model.model_json_schema(by_alias=True, ref_template=_SCHEMAS + "{model}")
        found |= schema.pop("$defs", {})
        found[model.__name__] = schema
    return dict(sorted(found.items()))


if __name__ == "__main__":
    if not FOLDER.is_dir():
        raise SystemExit(f"{FOLDER}: no such folder; the documents are written into a clone of the project")
    write()
