"""What stands before PyTorch's messages where a prefix was not peeled: the group's tag, and what throws."""

from typing import Any

TAG = r"(?:\[(?:PG (?P<group>\d+) |PG ID \d+ PG GUID (?P<group>\w+(?:\([^)]*\))?) )?Rank (?P<rank>\d+)\] )"
"""`[Rank 0] ` (2.1), `[PG 0 Rank 1] ` (2.2 to 2.4), `[PG ID 2 PG GUID 7563(TENSOR) Rank 3] ` (2.5 and later)."""

THROWN = (
    r"(?:(?:terminate called[^\n]*)?\s*what\(\): +|Unhandled exception: \w+\. what\(\): +|(?:[\w.]+\.)?\w*Error: )?"
)
"""What stands before a text that is thrown and not logged: C++'s what(), Ray's terminate handler, a Python type."""


def rank_of(found: Any) -> int | None:
    """The rank of a tag that the text kept. A sub-group's tag counts inside its group, so that it names no rank."""
    group = found["group"] or ""
    return int(found["rank"]) if found["rank"] and (not group or group.startswith("0")) else None
