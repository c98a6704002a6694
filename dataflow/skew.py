"""How far the clocks of the nodes' own files run ahead of the job's stream: measured by lines that stand in both homes.

Ray's driver forwards what its workers print, so that the same line stands in the aggregated log, by the transport's
clock, and in the worker's file, by its node's. The heads and tails of both homes are compared.
"""

import os
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from dataflow.capture import Source
from dataflow.reads import Compression, chunks
from extractors.clocks import SECOND_US, Clock
from extractors.extract import NO_SKEW, Skew
from extractors.layers import Unwrapper
from extractors.record import NOWHERE, SourceKind

NOTICED_US = 60 * SECOND_US
"""Forwarding takes seconds; a smaller difference is no skew."""
TOGETHER_US = 12 * SECOND_US
"""Pairs of lines of one clock agree to this."""
PAIRS_FEWEST = 5
AGREEING = 0.5
"""This share of a node's lines must agree on one difference."""
PAIRS_ENOUGH = 100
SAME_TEXT_MOST = 3
"""A text that a node says more often (a phase of each step) is not paired: it fits at many distances."""
_ACTOR_BYTES = 262_144
_AGGREGATED_BYTES = 8 << 20
_FILES_A_NODE = 24

_FORWARDED = re.compile(rb"^\[[^\n]{0,600}?[( ]pid=(\d{1,10})[^)\n]{0,80}\)(?:\x1b\[0m)? ([^\n]{16,})$", re.MULTILINE)
_CLOCK = re.compile(rb"\d\d(?:\d\d)?-\d\d(?:-\d\d)?[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?|\[[IWEF]\d{3,4} \d\d:\d\d:\d\d\.\d+")
_DRESSING = re.compile(rb"\x1b\[[0-9;]*m")

Key = tuple[int, bytes]
"""The process that a line is of, and what it says without its clock."""
Spoken = dict[Key, list[str]]
"""Dated lines of a node's files, by pid and the text without its clock."""
Pair = tuple[int, int, list[int]]
"""A line's transport time and its settled time in the aggregated log, and the times that its node gives to it."""


def measured(sources: Sequence[Source], anchor_us: int) -> dict[str, Skew]:
    """The skew of each node (by the host of its files) whose clock differs. A node without common lines goes with the
    others where they all agree."""
    hosts = _by_host(sources)
    aggregated = [source for source in sources if source.kind is SourceKind.AGGREGATED and source.stream is None]
    forwarded = [_forwarded(source) for source in aggregated if hosts]
    wanted = {key for lines in forwarded for key, _ in lines}
    nodes = {host: _spoken(files, wanted) for host, files in hosts.items()}
    pairs: dict[str, list[Pair]] = {host: [] for host in nodes}
    for lines in forwarded:
        _pair(lines, nodes, anchor_us, pairs)
    found = {host: skew for host, lines in pairs.items() if (skew := _skew(lines)) is not None}
    found |= dict.fromkeys(hosts.keys() - found.keys(), _common(list(found.values())))
    return {host: found[host] for host in sorted(found) if found[host] != NO_SKEW}


def _common(skews: list[Skew]) -> Skew:
    """The skew on which at least two nodes, and all that are known, agree."""
    spread = max((skew.own_us for skew in skews), default=0) - min((skew.own_us for skew in skews), default=0)
    return skews[0] if len(skews) > 1 and spread <= TOGETHER_US else NO_SKEW


def _by_host(sources: Iterable[Source]) -> dict[str, list[Source]]:
    hosts: dict[str, list[Source]] = defaultdict(list)
    for source in sources:
        if source.kind is SourceKind.ACTOR and source.writer.pid:
            hosts[source.writer.host].append(source)
    return hosts


def _forwarded(source: Source) -> list[tuple[Key, bytes]]:
    """The lines of actors at the ends of an aggregated log."""
    return [
        ((int(found[1]), _text(found[2]) or b""), found[0])
        for part in _ends(source, _AGGREGATED_BYTES)
        for found in _FORWARDED.finditer(part)
    ]


def _spoken(files: list[Source], wanted: set[Key]) -> Spoken:
    """Which of the forwarded lines stand at the ends of a node's files, where their text is not commonplace."""
    spoken: Spoken = {}
    pids = {pid for pid, _ in wanted}
    for source in [source for source in files if source.writer.pid in pids][:_FILES_A_NODE]:
        for line in (line for part in _ends(source, _ACTOR_BYTES) for line in part.splitlines()):
            text = _text(line)
            if text is None or (key := (source.writer.pid, text)) not in wanted:
                continue
            kept = spoken.setdefault(key, [])
            if len(kept) <= SAME_TEXT_MOST:
                kept.append(line.decode("utf-8", "replace"))
    return {key: lines for key, lines in spoken.items() if len(lines) <= SAME_TEXT_MOST}


def _pair(
    lines: list[tuple[Key, bytes]], nodes: dict[str, Spoken], anchor_us: int, pairs: dict[str, list[Pair]]
) -> None:
    """Gathers, by node, the forwarded lines that it has too."""
    transport = Unwrapper(Clock(anchor_us), NOWHERE)
    for key, raw in lines:
        for host in (host for host, spoken in nodes.items() if key in spoken and len(pairs[host]) < PAIRS_ENOUGH):
            line = transport.unwrap(raw.decode("utf-8", "replace"))
            own = Unwrapper(Clock(anchor_us), NOWHERE)
            times = [at_us for said in nodes[host][key] if (at_us := own.unwrap(said).at_us) is not None]
            if line.transport_us is not None and line.at_us is not None and times:
                pairs[host].append((line.transport_us, line.at_us, times))


def _text(line: bytes) -> bytes | None:
    """What a line says without its clock; None where it shows none."""
    bare = _DRESSING.sub(b"", line)
    found = _CLOCK.search(bare, 0, 48)
    return None if found is None else bare[found.end() :].strip()


def _skew(lines: list[Pair]) -> Skew | None:
    """What a node's pairs come to; None where they are too few or do not agree."""
    by_transport = _agreed([[own - transport for own in owns] for transport, _, owns in lines])
    by_settled = _agreed([[own - settled for own in owns] for _, settled, owns in lines])
    if by_transport is None or by_settled is None:
        return None
    return Skew(own_us=by_settled, stream_us=by_transport)


def _agreed(differences: list[list[int]]) -> int | None:
    """The difference on which most lines agree; 0 where it is not worth the name."""
    every = sorted(each for line in differences for each in line)
    if len(differences) < PAIRS_FEWEST:
        return None
    ends = [bisect_right(every, first + TOGETHER_US) for first in every]
    count, first = max((end - place, -place) for place, end in enumerate(ends))
    if count < max(PAIRS_FEWEST, AGREEING * len(differences)):
        return None
    middle = every[count // 2 - first]
    return middle if abs(middle) >= NOTICED_US else 0


def _ends(source: Source, size: int) -> Iterator[bytes]:
    """The first bytes of a file, and of a plain file the last ones too."""
    head = bytearray()
    for chunk in chunks(source.path, source.compression):
        if not isinstance(chunk, bytes):
            break
        head += chunk
        if len(head) >= size:
            break
    yield bytes(head)
    if source.compression is Compression.NONE and len(head) >= size:
        yield _tail(source.path, len(head), size)


def _tail(path: str, after: int, size: int) -> bytes:
    try:
        with open(path, "rb") as file:
            file.seek(max(after, os.fstat(file.fileno()).st_size - size))
            return file.read(size)
    except OSError:
        return b""
