"""NCCL: which ranks began and completed which communicator. Serves gate A's half-built communicators.

Lines keep their `host:pid:tid [device] NCCL INFO ` head. Versions are NCCL's (2.17 to 2.30). Faults are in
`nccl_faults`.
"""

from typing import Any

import msgspec

from extractors import nccl_faults
from extractors.pattern import Nature, pattern
from extractors.signal import Benign

INFO = r"(?P<process>[\w.-]+:\d+):\d+ \[-?\d+\] NCCL INFO "


_GLUED = r"(?:[^\n{\"]*NCCL INFO [^\n{\"]*?(?=[A-Za-z][\w.-]*:\d+:\d+ \[))?"
"""What another writer's torn line left before the head: streams without line locking are glued."""


class CommInit(msgspec.Struct, frozen=True):
    """One rank's initialisation of one communicator began, or is complete. (process, comm) names the pair of lines.

    process is `host:pid`, comm the pointer; group is the same on all ranks (the commId; for a split before it had
    one, `parent/color`, which joins the ranks of one process only), "" where NCCL prints neither (2.17).
    """

    process: str
    comm: str
    group: str
    rank: int
    ranks: int
    complete: bool


class CommClosed(msgspec.Struct, frozen=True):
    """One rank's communicator is gone: how is `abort`, `destroy` or `revoke`."""

    process: str
    comm: str
    how: str


@pattern(
    "nccl",
    Nature.FACT,
    hints=("- Init START", "- Init COMPLETE"),
    regex=_GLUED
    + INFO
    + r"(?:\[Rank \d+\] )?(?:ncclComm\w+ )?comm (?P<comm>0x[0-9a-f]+) rank (?P<rank>\d+) nranks (?P<ranks>\d+)"
    r"(?P<fields>(?: \w+ -?\w+)*?) ?- Init (?P<end>START|COMPLETE)",
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
        "0x55d0aa color 1 key 0- Init START": CommInit("node-11:900", "0x61f0", "0x55d0aa/1", 0, 2, False),
        "node-11:900:950 [0] NCCL INFO ncclCommSplit comm 0x61f0 rank 1 nranks 2 cudaDev 0 nvmlDev 0 busId 18000 "
        "parent "
        "0x55d0aa splitCount 2 color -934961569 key 1 - Init COMPLETE": (
            CommInit("node-11:900", "0x61f0", "0x55d0aa/-934961569", 1, 2, True)
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
            "node-11:900", "0x61f0", "0x55d0aa/0", 4, 6, True
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
def comm_init(found: Any) -> CommInit:
    """One rank began or completed a communicator (NCCL_DEBUG=INFO). START is missing in 2.17; a START without its
    COMPLETE is a rank that waits for the others. Ranks without NCCL_DEBUG print neither. Of glued lines
    the one that is whole is read."""
    pairs = found["fields"].split()
    fields = dict(zip(pairs[::2], pairs[1::2], strict=False))
    group = fields.get("commId") or (f"{fields['parent']}/{fields.get('color', '')}" if "parent" in fields else "")
    return CommInit(
        found["process"], found["comm"], group, int(found["rank"]), int(found["ranks"]), found["end"] == "COMPLETE"
    )


@pattern(
    "nccl",
    Nature.FACT,
    hints=("- Abort COMPLETE", "- Destroy COMPLETE", "- Revoke COMPLETE"),
    regex=INFO + r"(?:\[Rank \d+\] )?(?:ncclComm\w+ )?comm (?P<comm>0x[0-9a-f]+) rank \d+ n[rR]anks \d+"
    r"(?: \w+ -?\w+)*? ?- (?P<how>Abort|Destroy|Revoke) COMPLETE",
    samples={
        "node-11:900:950 [3] NCCL INFO comm 0x55d0aa rank 3 nranks 16 cudaDev 3 busId 5d000 - Abort COMPLETE": (
            CommClosed("node-11:900", "0x55d0aa", "abort")
        ),
        "node-11:900:950 [3] NCCL INFO comm 0x55d0aa rank 3 nranks 16 cudaDev 3 busId 5d000 - Destroy COMPLETE": (
            CommClosed("node-11:900", "0x55d0aa", "destroy")
        ),
        "node-11:900:950 [3] NCCL INFO comm 0x55d0aa rank 3 nRanks 16 cudaDev 3 busId 5d000 - Revoke COMPLETE, result "
        "0": (CommClosed("node-11:900", "0x55d0aa", "revoke")),
    },
    rejects=("node-11:900:950 [3] NCCL INFO comm 0x55d0aa rank 3 nRanks 16 cudaDev 3 busId 5d000 - Abort START",),
)
def comm_closed(found: Any) -> CommClosed:
    """A communicator was aborted (by a watchdog or on purpose), destroyed in order, or revoked (2.30)."""
    return CommClosed(found["process"], found["comm"], found["how"].lower())


@pattern(
    "nccl",
    Nature.BENIGN,
    hints=("libnccl-net", "NET/Plugin", "TUNER/Plugin", "opCount "),
    regex=r"(?:[\w.-]+:\d+:\d+ \[-?\d+\] (?:\S+ )?(?:\(\w+\) )?NCCL (?:INFO|WARN) )?(?:(?P<plugin>(?:NET|TUNER|PROFILER"
    r"|ENV)/Plugin ?: (?:Could not find|No plugin found|Failed to find|Plugin name set by env))"
    r"|(?:[^\n]{0,80})\bopCount (?:dead|[0-9a-f]*dead)\b)",
    samples={
        "node-11:900:950 [0] NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal net plugin.": (
            Benign("nccl-no-plugin")
        ),
        "node-11:900:950 [0] NCCL INFO NET/Plugin : No plugin found (libnccl-net.so), using internal implementation": (
            Benign("nccl-no-plugin")
        ),
        "node-11:900:950 [0] NCCL INFO TUNER/Plugin: Could not find: libnccl-tuner.so.": Benign("nccl-no-plugin"),
        "node-11:900:950 [0] NCCL INFO AllReduce: opCount dead sendbuff 0x7f00": Benign("nccl-op-count"),
    },
    rejects=(
        "node-11:900:950 [0] NCCL INFO NET/Plugin: Loaded net plugin IBext (v8)",
        "node-11:900:950 [0] NCCL INFO AllReduce: opCount 1f sendbuff 0x7f00",
    ),
)
def nccl_chatter(found: Any) -> Benign:
    """NCCL looked for an optional plugin and works without; or its operation counter happens to read `dead` in hex."""
    return Benign("nccl-no-plugin" if found["plugin"] else "nccl-op-count")


PATTERNS = (comm_init, comm_closed, nccl_chatter, *nccl_faults.PATTERNS)
