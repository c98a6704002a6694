"""The documents in docs/schemas are what the models say, and can be used as they are."""

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from dataflow.schemas import FOLDER, documents, encoded

DOCUMENTS = documents()


def references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        yield from (value for key, value in part.items() if key == "$ref")
        part = list(part.values())
    if isinstance(part, list):
        for each in part:
            yield from references(each)


def found(document: Any, reference: str) -> Any:
    for word in reference.removeprefix("#/").split("/"):
        document = document[word]
    return document


@pytest.mark.parametrize("name", DOCUMENTS)
def test_document_is_current(name: str) -> None:
    assert (FOLDER / name).read_bytes() == encoded(DOCUMENTS[name]), "run python -m dataflow.schemas"


def test_no_other_document_lies_there() -> None:
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(DOCUMENTS)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_reference_leads_somewhere(name: str) -> None:
    document = orjson.loads(encoded(DOCUMENTS[name]))
    assert all(isinstance(found(document, reference), dict) for reference in references(document))


def test_asyncapi_document_names_three_topics_and_who_sends_and_hears_each() -> None:
    document = DOCUMENTS["asyncapi.json"]
    assert document["asyncapi"] == "3.0.0"
    assert [channel["address"] for channel in document["channels"].values()] == [
        "wedgewatch.lines",
        "wedgewatch.polls",
        "wedgewatch.verdicts",
    ]
    heard = {(each["channel"]["$ref"], each["action"]) for each in document["operations"].values()}
    assert heard == {(f"#/channels/{name}", action) for name in document["channels"] for action in ("send", "receive")}


def test_fields_may_be_added_without_breaking_a_consumer_that_validates() -> None:
    assert b'"additionalProperties":false' not in orjson.dumps(DOCUMENTS)
