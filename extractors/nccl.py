"""NCCL: which ranks began and completed which communicator. Serves gate A's half-built communicators.

Lines keep their `host:pid:tid [device] NCCL INFO ` head. Versions are NCCL's (2.17 to 2.30). Faults are in
`nccl_faults`, networks and plugins in `nccl_setup`.
"""

import re
from typing import Any

import msgspec

from extractors import nccl_faults, nccl_setup
from extractors.pattern import Nature, pattern

INFO = r"(?P<process>[\w.-]+:\d+):\d+ \[-?\d+\] NCCL INFO "

_INFO = " NCCL INFO "
_HEAD = re.compile(r"([\w.-]{1,128}:\d+):\d+ \[-?\d+\]")
_GLUED_HEAD = re.compile(r"([A-Za-z][\w.-]{0,127}:\d+):\d+ \[-?\d+\]$")
_GLUED_LIMIT = 160
"""Characters before ` NCCL INFO ` in which a head stands that another writer's torn line is glued to."""
_FIELDS = frozenset(["cudaDev", "nvmlDev", "busId", "commId", "parent", "color", "key", "splitCount", "childCount"])


class CommInit(msgspec.Struct, frozen=True):
    """One rank's initialisation of one communicator began, or is complete. (process, comm) names the pair of lines.

    process is `host:pid`, comm the pointer; group is the same on all ranks: the commId, or the colour (and, from 2.24,
    which child of its parent it is) of a split without one; "" where NCCL prints neither (2.17).
    """

    process: str
    comm: str
    group: str
    rank: int
    ranks: int
    complete: bool


class CommTorn(msgspec.Struct, frozen=True):
    """The end of a torn line: some rank of the communicator began or completed it, and which one is lost."""

    group: str
    complete: bool


class CommCut(msgspec.Struct, frozen=True):
    """The head of a line whose end is lost: the rank began the communicator, and whether it completed it is not known.
    group is as much of the commId as is left, "" where none is."""

    group: str
    rank: int
    ranks: int


class CommClosed(msgspec.Struct, frozen=True):
    """One rank's communicator is gone: how is `abort`, `abort begun`, `destroy` or `revoke`."""

    process: str
    comm: str
    how: str


@pattern(
    "nccl",
    Nature.FACT,
    hints=("- Init START", "- Init COMPLETE"),
    samples={
        "node-11:900:950 [3] NCCL INFO comm 0x7f30b0000d00 rank 11 nranks 16 cudaDev 3 busId a7000 - Init COMPLETE": (
            CommInit("node-11:900", "0x7f30b0000d00", "", 11, 16, True)
        ),
        "node-11:900:950 [3] NCCL INFO comm 0x55d0aa rank 3 nranks 16 cudaDev 3 nvmlDev 3 busId 5d000 commId "
        "0x77aa0b3c5b6a7988 - Init START": CommInit("node-11:900", "0x55d0aa", "0x77aa0b3c5b6a7988", 3, 16, False),
        "(FSDPPolicyWorkerBase pid=900) node-11:900:950 [0] NCCL INFO ncclCommInitRank comm 0x55d0aa rank 3 nranks 16 "
        "cudaDev 0 nvmlDev 3 busId 5d000 commId 0x77aa0b3c5b6a7988 - Init COMPLETE": (
            CommInit("node-11:900", "0x55d0aa", "0x77aa0b3c5b6a7988", 3, 16, True)
        ),
        "node-11:900:950 [0] NCCL INFO ncclCommSplit comm 0x61f0 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 18000 "
        "parent "
        "0x55d0aa color 1 key 0 commId 0x2b2b0b3c5b6a7988 - Init START": (
            CommInit("node-11:900", "0x61f0", "0x2b2b0b3c5b6a7988", 0, 2, False)
        ),
        "node-11:900:950 [0] NCCL INFO ncclCommSplit comm 0x61f0 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 18000 "
        "parent "
        "0x55d0aa color 1 key 0- Init START": CommInit("node-11:900", "0x61f0", "color 1", 0, 2, False),
        "node-11:900:950 [0] NCCL INFO ncclCommSplit comm 0x61f0 rank 1 nranks 2 cudaDev 0 nvmlDev 0 busId 18000 "
        "parent "
        "0x55d0aa splitCount 2 color -934961569 key 1 - Init COMPLETE": (
            CommInit("node-11:900", "0x61f0", "color -934961569 of child 2", 1, 2, True)
        ),
        "node-11:900:950 [0] NCCL INFO ncclCommInitRankConfig comm 0x55d0aa rank 7 nranks 17 cudaDev 0 nvmlDev 7 busId "
        "db000 commId 0x77aa0b3c5b6a7988 - Init COMPLETE": (
            CommInit("node-11:900", "0x55d0aa", "0x77aa0b3c5b6a7988", 7, 17, True)
        ),
        "node-11:900:950 [0] NCCL INFO [Rank 3] ncclCommInitRankConfig comm 0x55d0aa rank 3 nranks 8 cudaDev 0 nvmlDev "
        "3 busId 5d000 commId 0x77aa0b3c5b6a7988 - Init START": (
            CommInit("node-11:900", "0x55d0aa", "0x77aa0b3c5b6a7988", 3, 8, False)
        ),
        "node-11:900:950 [0] NCCL INFO ncclCommGrow comm 0x61f0 rank 4 nranks 6 cudaDev 0 nvmlDev 0 busId 18000 parent "
        "0x55d0aa childCount 1 color 0 key 4 - Init COMPLETE": CommInit(
            "node-11:900", "0x61f0", "color 0 of child 1", 4, 6, True
        ),
        "node-11:900:950 [0] NCCL INFO ncclCommInitRankScalable comm 0x55d0aa rank 1 nranks 4096 cudaDev 0 nvmlDev 1 "
        "busId 3b000 commId 0x77aa0b3c5b6a7988 - Init START": (
            CommInit("node-11:900", "0x55d0aa", "0x77aa0b3c5b6a7988", 1, 4096, False)
        ),
        "node-11:900:950 [1] NCCL INFO ncclCommInitAll comm 0x55d0aa rank 1 nranks 8 cudaDev 1 nvmlDev 1 busId 3b000 "
        "commId 0x77aa0b3c5b6a7988 - Init COMPLETE": (
            CommInit("node-11:900", "0x55d0aa", "0x77aa0b3c5b6a7988", 1, 8, True)
        ),
        "node-11:900:950 [0] NCCL INFO ncclCommShrink comm 0x61f0 rank 2 nranks 7 cudaDev 0 nvmlDev 0 busId 18000 "
        "parent 0x55d0aa splitCount 3 color 0 key 2- Init START": (
            CommInit("node-11:900", "0x61f0", "color 0 of child 3", 2, 7, False)
        ),
        "[2031-03-14 09:00:00] node-11:900:950 [0] NCCL INFO ncclCommSplit comm 0x61f0 rank 0 nranks 2 cudaDev 0 "
        "nvmlDev 0 busId 18000 parent 0x55d0aa childCount 2 color 5 key 0 - Init COMPLETE": (
            CommInit("node-11:900", "0x61f0", "color 5 of child 2", 0, 2, True)
        ),
        "node-11:900:950 [3] NCCL INFO ncclCommInitRank comm 0x55d0aa rank 3 nranks 8 cudaDev 3 busId "
        "86node-11:901:951 [5] NCCL INFO ncclCommInitRank comm 0x66d0 rank 5 nranks 8 cudaDev 5 busId ab000 commId "
        "0x77 - Init COMPLETE": CommInit("node-11:901", "0x66d0", "0x77", 5, 8, True),
    },
    rejects=(
        "node-11:900:950 [0] NCCL INFO Init timings - ncclCommInitRankConfig: rank 3 nranks 16 total 2.85 (kernels "
        "0.21)",
        "node-11:900:950 [3] NCCL INFO ncclCommInitRank comm 0x55d0aa rank 3 nranks 8 cudaDev 3 busId "
        "86node-11:901:951 [5] NCCL INFO Init timings: rank 5 (kernels 0.2, alloc 000 commId 0x77 - Init COMPLETE",
        "node-11:900:950 [0] NCCL INFO comm 0x55d0aa rank 3 nranks 16 cudaDev 3 busId 5d000 - Abort COMPLETE",
    ),
)
def comm_init(text: str) -> CommInit | None:
    """One rank began or completed a communicator (NCCL_DEBUG=INFO). START is missing in 2.17; a START without its
    COMPLETE is a rank that waits for the others. Ranks without NCCL_DEBUG print neither. Of glued lines
    the one that is whole is read."""
    parts = text.split(_INFO)
    if len(parts) == 2:
        head = _HEAD.fullmatch(parts[0])
        return None if head is None else _init_of(head[1], parts[1])
    if "{" in text or '"' in text:
        return None
    for at in range(len(parts) - 1, 0, -1):
        head = _HEAD.fullmatch(parts[0]) if at == 1 else _GLUED_HEAD.search(parts[at - 1][-_GLUED_LIMIT:])
        if head is not None and (read := _init_of(head[1], parts[at])) is not None:
            return read
    return None


def _init_of(process: str, body: str) -> CommInit | None:
    """The message `[[Rank R] ][ncclCommCall ]comm P rank R nranks N field value … - Init START`, None of any other."""
    said, _, end = body.partition("- Init ")
    words = _call_left_out(said.split())
    if words[0:6:2] != ["comm", "rank", "nranks"] or len(words) % 2 or not end.startswith(("START", "COMPLETE")):
        return None
    comm, rank, ranks = words[1:6:2]
    names = words[6::2]
    if not (_FIELDS.issuperset(names) and comm[:2] == "0x" and rank.isdecimal() and ranks.isdecimal()):
        return None
    group = words[-1] if words[-2] == "commId" else _group_of(dict(zip(names, words[7::2], strict=True)))
    return CommInit(process, comm, group, int(rank), int(ranks), end[0] == "C")


def _call_left_out(words: list[str]) -> list[str]:
    """The words of a message from `comm` on: without the rank's tag and the call's name."""
    if words[:1] == ["[Rank"]:
        del words[:2]
    if words and words[0].startswith("ncclComm"):
        del words[0]
    return words


def _group_of(fields: dict[str, str]) -> str:
    if "commId" in fields:
        return fields["commId"]
    if "parent" not in fields:
        return ""
    child = fields.get("splitCount") or fields.get("childCount")
    return f"color {fields.get('color', '')}" + (f" of child {child}" if child else "")


@pattern(
    "nccl",
    Nature.FACT,
    hints=("- Init START", "- Init COMPLETE"),
    regex=r"[^\n{\"]{0,800}?\bcommId (?P<group>0x[0-9a-f]+) - Init (?P<end>START|COMPLETE)",
    samples={
        "000 commId 0x77aa0b3c5b6a7988 - Init COMPLETE": CommTorn("0x77aa0b3c5b6a7988", True),
        "node-11:900:950 [3] NCCL INFO ncclCommInitRank comm 0x55d0aa rank 3 nranks 8 cudaDev 3 busId "
        "86node-11:901:951 [5] NCCL INFO Init timings: rank 5 (kernels 0.2, alloc 000 commId 0x77 - Init COMPLETE": (
            CommTorn("0x77", True)
        ),
        "Dev 4 busId 9b000 commId 0x77aa0b3c5b6a7988 - Init START": CommTorn("0x77aa0b3c5b6a7988", False),
    },
    rejects=(
        "node-11:900:950 [1] NCCL INFO ncclCommInitAll comm 0x55d0aa rank 1 nranks 8 cudaDev 1 nvmlDev 1 busId 3b000 "
        "commId 0x77aa0b3c5b6a7988 - Init COMPLETE",
        '{"text": "commId 0x77 - Init COMPLETE"}',
    ),
)
def comm_torn(found: Any) -> CommTorn:
    """The tail of a line that another writer tore apart: it counts for its communicator, and no rank can be named."""
    return CommTorn(found["group"], found["end"] == "COMPLETE")


@pattern(
    "nccl",
    Nature.FACT,
    hints=(" nranks ",),
    samples={
        "node-11:900:950 [3] NCCL INFO ncclCommInitRank comm 0x55d0aa rank 3 nranks 8 cudaDev 3 nvmlDev 3 busId 5d000 "
        "commId 0x77aa0": CommCut("0x77aa0", 3, 8),
        "node-11:900:950 [0] NCCL INFO [Rank 3] ncclCommInitRankConfig comm 0x55d0aa rank 3 nranks 8 cudaDev 0 nvml": (
            CommCut("", 3, 8)
        ),
        "node-11:900:950 [3] NCCL INFO comm 0x55d0aa rank 3 nranks 16 cudaDev 3 busId": CommCut("", 3, 16),
    },
    rejects=(
        "node-11:900:950 [3] NCCL INFO comm 0x55d0aa rank 3 nranks 1",
        "node-11:900:950 [3] NCCL INFO comm 0x55d0aa rank 3 nranks 16 cudaDev 3 busId 5d000 - Destroy COMPLETE",
        "node-11:900:950 [3] NCCL INFO comm 0x55d0aa rank 3 nranks 16 cudaDev 3 busId 5d000 localSize 8 used 64 bytes",
        "node-11:900:950 [0] NCCL INFO Init timings - ncclCommInitRankConfig: rank 3 nranks 16 total 2.85",
    ),
)
def comm_cut(text: str) -> CommCut | None:
    """The end of a line is lost, with it whether its rank began or completed. A number at the very end may be cut."""
    if "- " in text:
        return None
    head, _, body = text.partition(_INFO)
    words = _call_left_out(body.split())
    if len(words) < 7 or words[0:6:2] != ["comm", "rank", "nranks"] or _HEAD.fullmatch(head) is None:
        return None
    names, values = words[6::2], words[7::2]
    known = _FIELDS.issuperset(names[: len(values)]) and any(field.startswith(names[-1]) for field in _FIELDS)
    if not (known and words[3].isdecimal() and words[5].isdecimal()):
        return None
    return CommCut(dict(zip(names, values, strict=False)).get("commId", ""), int(words[3]), int(words[5]))


@pattern(
    "nccl",
    Nature.FACT,
    hints=("- Abort START", "- Abort COMPLETE", "- Destroy COMPLETE", "- Revoke COMPLETE"),
    regex=INFO + r"(?:\[Rank \d+\] )?(?:ncclComm\w+ )?comm (?P<comm>0x[0-9a-f]+) rank \d+ n[rR]anks \d+"
    r"(?: \w+ -?\w+)*? ?- (?P<how>Abort|Destroy|Revoke) (?:COMPLETE|(?P<begun>(?<=Abort )START))",
    samples={
        "node-11:900:950 [3] NCCL INFO comm 0x55d0aa rank 3 nranks 16 cudaDev 3 busId 5d000 - Abort COMPLETE": (
            CommClosed("node-11:900", "0x55d0aa", "abort")
        ),
        "node-11:900:950 [3] NCCL INFO comm 0x55d0aa rank 3 nranks 16 cudaDev 3 busId 5d000 - Destroy COMPLETE": (
            CommClosed("node-11:900", "0x55d0aa", "destroy")
        ),
        "node-11:900:950 [3] NCCL INFO comm 0x55d0aa rank 3 nRanks 16 cudaDev 3 busId 5d000 - Revoke COMPLETE, result "
        "0": (CommClosed("node-11:900", "0x55d0aa", "revoke")),
        "node-11:900:950 [3] NCCL INFO comm 0x55d0aa rank 3 nRanks 16 cudaDev 3 busId 5d000 - Abort START": (
            CommClosed("node-11:900", "0x55d0aa", "abort begun")
        ),
    },
    rejects=(
        "node-11:900:950 [3] NCCL INFO comm 0x55d0aa rank 3 nRanks 16 cudaDev 3 busId 5d000 - Destroy START",
        "node-11:900:950 [3] NCCL INFO comm 0x55d0aa rank 3 nranks 16 cudaDev 3 busId 5d000 - Init COMPLETE",
    ),
)
def comm_closed(found: Any) -> CommClosed:
    """A communicator was aborted (by a watchdog or on purpose), destroyed in order, or revoked (2.30). An abort's START
    (2.28) without its COMPLETE hangs in the abort. In 2.30 only `NCCL_DEBUG_SUBSYS` shows aborts and destroys."""
    return CommClosed(found["process"], found["comm"], "abort begun" if found["begun"] else found["how"].lower())


PATTERNS = (comm_init, comm_torn, comm_cut, comm_closed, *nccl_setup.PATTERNS, *nccl_faults.PATTERNS)
