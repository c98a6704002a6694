"""The dumps of PyTorch's flight recorder in a capture, one file a rank, as observations."""

import re
from collections.abc import Iterator

import msgspec

from dataflow.capture import Source
from dataflow.opened import Damage
from dataflow.reads import chunks, unpacked_name
from extractors.flight_recorder import read_dump
from extractors.quoting import quote
from extractors.record import Evidence, Observation, SourceEnded, SourceFailed

DUMP_BYTES = 33_554_432
"""A recorder of 20,000 entries takes some ten megabytes as JSON."""
PATTERN = "flight_recorder"
_RANK = re.compile(r"(\d{1,6})(?:\.json)?$")
_ENTRY = re.compile(rb'"profiling_name"')
_ENTRIES = re.compile(rb'"entries"')


def flight_observations(source: Source, read_size: int, notes: list[str], anchor_us: int) -> Iterator[Observation]:
    """What one rank's dump says, by the time of its newest operation. What is no dump is told and observed as a
    failure."""
    data, why = bytearray(), ""
    for chunk in chunks(source.path, source.compression, read_size=read_size):
        if isinstance(chunk, Damage):
            why = chunk.why
        elif len(data) <= DUMP_BYTES:
            data += chunk
    rank = _RANK.search(unpacked_name(source.relative))
    if not why and len(data) > DUMP_BYTES:
        why = f"has more than {DUMP_BYTES} bytes and is not read as a dump"
    try:
        recorded, waits = read_dump(bytes(data), int(rank[1]) if rank else 0)
    except (msgspec.MsgspecError, ValueError) as error:
        why = why or f"no dump of a flight recorder: {error}"
    place = Evidence(PATTERN, source.relative, 1, 0, None, "")
    if why:
        notes.append(f"{source.relative}: {why}")
        yield Observation(SourceFailed(source.kind, why), place, anchor_us, "source_failed")
        return
    times = [group.since_us for group in recorded.groups if group.since_us is not None]
    at_us = min(times, default=None)
    place = _quoted(bytes(data), waits, source.relative, at_us)
    effective_us = anchor_us if at_us is None else at_us
    yield Observation(recorded, place, effective_us, PATTERN)
    ended = SourceEnded(source.kind, data.count(b"\n"), len(data), 0, True)
    yield Observation(ended, place, effective_us, "source_ended")


def _quoted(data: bytes, waits: int, source: str, at_us: int | None) -> Evidence:
    """The line of the first operation that waits; of the list of operations, where none does."""
    found = [match.start() for match in _ENTRY.finditer(data)] if waits >= 0 else []
    listed = _ENTRIES.search(data)
    at = found[waits] if waits < len(found) and found else listed.start() if listed else 0
    start, end = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
    line = data[start : len(data) if end < 0 else end].decode("utf-8", "replace")
    said = quote(line, "profiling_name" if found else "entries")
    return Evidence(PATTERN, source, 1 + data.count(b"\n", 0, start), start, at_us, said)
