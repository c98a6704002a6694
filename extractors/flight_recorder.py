"""PyTorch's flight recorder: what a rank's dump says of the collectives that it waits in, and what analysers print.

A dump tells which collective each process group had reached on one rank. Laid beside the others' it names the rank that
did not enter. The JSON form is read (torch 2.4 to 2.9, `_dump_nccl_trace_json`); the pickled form is not.
"""

import re
from typing import Any
from zlib import crc32

import msgspec

from extractors.pattern import Nature, pattern

GROUPS_KEPT = 64
RANKS_KEPT = 4_096
_WAITING = frozenset({"scheduled", "started"})
_NUMBER = re.compile(r"\d{1,7}")


class FlightGroup(msgspec.Struct, frozen=True):
    """A process group of one rank; members is a checksum of its ranks. enqueued is the newest sequence number that the
    rank entered, None where the dump does not say; sequence is the one that it waits in (0: in none), which it entered
    at since_us."""

    name: str
    description: str
    members: int
    local: str = ""
    enqueued: int | None = None
    sequence: int = 0
    operation: str = ""
    since_us: int | None = None


class FlightRecorded(msgspec.Struct, frozen=True):
    """One rank's dump. status holds the newest entered sequence number by the process' own number of a group,
    newest_us is when its newest operation was entered (None: it holds none)."""

    rank: int
    groups: tuple[FlightGroup, ...]
    status: dict[str, int]
    newest_us: int | None = None


class FlightAnalysed(msgspec.Struct, frozen=True):
    """A line of an analyser of dumps: what it says of the collective that some ranks did not join; begins says that it
    is the first line of its report."""

    sequence: int | None = None
    group: str = ""
    operation: str = ""
    missing: tuple[int, ...] = ()
    begins: bool = True


class Entry(msgspec.Struct):
    """One recorded operation, as torch writes it."""

    state: str = ""
    profiling_name: str = ""
    collective_seq_id: int = 0
    pg_id: int = 0
    process_group: tuple[str, str] = ("", "")
    time_created_ns: int = 0
    is_p2p: bool = False
    retired: bool = False


class Config(msgspec.Struct):
    """One process group, as torch writes it."""

    ranks: str | list[int] = ""
    desc: str = ""


class Status(msgspec.Struct):
    """How far one process group came."""

    last_enqueued_collective: int = -1


class Dump(msgspec.Struct):
    """The file's own form, as far as it is read."""

    entries: list[Entry]
    pg_config: dict[str, Config]
    pg_status: dict[str, Status] = {}


def read_dump(data: bytes, rank: int) -> tuple[FlightRecorded, int]:
    """One rank's dump, and the place among its entries of the first that still waits (-1: none). Raises
    msgspec.DecodeError on what is no dump."""
    dump = msgspec.json.decode(data, type=Dump)
    waiting = [_waits(entry) for entry in dump.entries]
    groups = [
        _group(name, config, dump.entries, dump.pg_status)
        for name, config in dump.pg_config.items()
        if len(_ranks(config.ranks)) > 1
    ]
    status = {key: each.last_enqueued_collective for key, each in list(dump.pg_status.items())[:GROUPS_KEPT]}
    newest_us = max((entry.time_created_ns // 1000 for entry in dump.entries), default=None)
    return FlightRecorded(rank, tuple(groups[:GROUPS_KEPT]), status, newest_us), waiting.index(
        True
    ) if True in waiting else -1


def _waits(entry: Entry) -> bool:
    return entry.state in _WAITING and not entry.is_p2p and not entry.retired


def _group(name: str, config: Config, entries: list[Entry], status: dict[str, Status]) -> FlightGroup:
    own = [entry for entry in entries if entry.process_group[0] == name and not entry.is_p2p]
    first = min(filter(_waits, own), key=lambda entry: entry.collective_seq_id, default=None)
    local = str(own[0].pg_id) if own else ""
    told = [entry.collective_seq_id for entry in own]
    if local in status:
        told.append(status[local].last_enqueued_collective)
    return FlightGroup(
        name,
        config.desc[:80],
        crc32(repr(_ranks(config.ranks)).encode()),
        local,
        max(told, default=None),
        first.collective_seq_id if first else 0,
        first.profiling_name[:80] if first else "",
        first.time_created_ns // 1000 if first else None,
    )


def _ranks(said: str | list[int]) -> tuple[int, ...]:
    """Torch writes the ranks as a list's text."""
    found = _NUMBER.findall(said) if isinstance(said, str) else said
    return tuple(int(rank) for rank in found[:RANKS_KEPT])


def _missing(text: str) -> tuple[int, ...]:
    return tuple(int(rank) for rank in _NUMBER.findall(text)[:RANKS_KEPT])


@pattern(
    "torch_dist",
    Nature.FACT,
    hints=("Not all ranks joining collective",),
    regex=r"Not all ranks joining collective(?:, sequence number: (?P<number>\d+)|,? (?P<old>\d+) at entry \d+"
    r"| for group (?P<group>[^\n]{1,120}?) collective (?P<operation>\S+) +Missing ranks are \{(?P<missing>[\d, ]+)\})",
    samples={
        "Not all ranks joining collective, sequence number: 412": FlightAnalysed(412),
        "Not all ranks joining collective 5 at entry 4": FlightAnalysed(5),
        "Not all ranks joining collective for group 7:mesh_fsdp collective nccl:all_reduce Missing ranks are {3, 11}": (
            FlightAnalysed(None, "7:mesh_fsdp", "nccl:all_reduce", (3, 11))
        ),
    },
    rejects=("Not all ranks joining collective", "why Not all ranks joining collective 5 at entry 4"),
)
def flight_not_joined(found: Any) -> FlightAnalysed:
    """torch's analyser of dumps (`torchfrtrace`, 2.5 to 2.9) met a collective that not all ranks of its group are in;
    the lines below say which."""
    number = found["number"] or found["old"]
    return FlightAnalysed(
        int(number) if number else None,
        found["group"] or "",
        found["operation"] or "",
        _missing(found["missing"] or ""),
    )


@pattern(
    "torch_dist",
    Nature.FACT,
    hints=("group info: ", "collective: nccl:", "missing ranks: {"),
    regex=r"\s*(?:group info: (?P<group>[^\n]{1,120})|collective: (?P<operation>nccl:\S{1,60})"
    r"|missing ranks: \{(?P<missing>[\d, ]+)\})\s*$",
    samples={
        "group info: 7:mesh_fsdp": FlightAnalysed(None, "7:mesh_fsdp", begins=False),
        "collective: nccl:all_reduce": FlightAnalysed(None, "", "nccl:all_reduce", begins=False),
        "missing ranks: {3, 11}": FlightAnalysed(None, "", "", (3, 11), begins=False),
    },
    rejects=("collective: nccl: the manual", "missing ranks: {}", "the group info: 7"),
)
def flight_detail(found: Any) -> FlightAnalysed:
    """A line of the analyser's report on one collective."""
    said = _missing(found["missing"] or "")
    return FlightAnalysed(None, found["group"] or "", found["operation"] or "", said, begins=False)


@pattern(
    "torch_dist",
    Nature.FACT,
    hints=(" | nccl:",),
    regex=r"(?P<id>\w+) +\| (?P<group>[\w.-]+)(?:,\d+)? +\| (?P<operation>nccl:\w+) +\| [\dx]+ +\| \w+ +\| "
    r"(?P<missing>\d[\d, ]*)$",
    samples={
        "74     | EXPERT_GROUP,0 | nccl:all_to_all | 4096x5120                 | BFloat16 | 12, 14": (
            FlightAnalysed(None, "EXPERT_GROUP", "nccl:all_to_all", (12, 14))
        ),
    },
    rejects=("PGID   | Process Group Desc | Op Type | nccl: | Dtype | Missing Ranks", "7 | a | nccl:x | 1x2 | Half | "),
)
def flight_table_row(found: Any) -> FlightAnalysed:
    """A row of NVIDIA's resiliency extension (0.4): a collective and the ranks that are missing in it."""
    return FlightAnalysed(None, found["group"], found["operation"], _missing(found["missing"]))


PATTERNS = (flight_not_joined, flight_detail, flight_table_row)
