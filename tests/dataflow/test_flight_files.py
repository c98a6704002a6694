"""Dumps of PyTorch's flight recorder as files of a capture."""

import json
from pathlib import Path
from typing import Any

import pytest

from dataflow.capture import open_capture
from dataflow.flights import flight_observations
from extractors.flight_recorder import FlightRecorded
from extractors.record import Observation, SourceFailed, SourceKind
from tests.captures.public_logs import final

MOMENT_NS = 1_930_000_000_000_000_000


def entry(sequence: int, state: str = "scheduled", **more: Any) -> dict[str, Any]:
    """One recorded operation of the group `4`."""
    return {
        "pg_id": 2,
        "process_group": ["4", "mesh_ep"],
        "collective_seq_id": sequence,
        "profiling_name": "nccl:all_to_all",
        "time_created_ns": MOMENT_NS + sequence,
        "state": state,
        "is_p2p": False,
        "retired": False,
        **more,
    }


def dump(*entries: dict[str, Any], enqueued: int = 40) -> str:
    return json.dumps(
        {
            "version": "2.9",
            "pg_config": {"4": {"name": "4", "desc": "mesh_ep", "ranks": "[0, 1]"}},
            "pg_status": {"2": {"last_enqueued_collective": enqueued, "last_completed_collective": 39}},
            "entries": list(entries),
        },
        indent=1,
    )


def read(folder: Path, content: str, name: str = "rank_01.json") -> tuple[list[Observation], list[str]]:
    place = folder / "flight_recorder"
    place.mkdir(exist_ok=True)
    (place / name).write_text(content)
    notes: list[str] = []
    (source,) = open_capture(str(folder)).sources
    assert source.kind is SourceKind.FLIGHT
    return list(flight_observations(source, 4096, notes, 0)), notes


def test_a_dump_tells_what_its_rank_waits_in_and_quotes_that_operation(tmp_path: Path) -> None:
    found, _ = read(tmp_path, dump(entry(39, "completed"), entry(40), entry(41), enqueued=41))
    recorded = found[0].signal
    assert isinstance(recorded, FlightRecorded)
    (group,) = recorded.groups
    assert (recorded.rank, group.description, group.sequence, group.enqueued) == (1, "mesh_ep", 40, 41)
    quoted = found[0].evidence
    lines = (tmp_path / quoted.source).read_text().splitlines()
    assert lines[quoted.line - 1] == quoted.quote == '   "profiling_name": "nccl:all_to_all",'
    assert [n for n, line in enumerate(lines, start=1) if "profiling_name" in line][1] == quoted.line


def test_point_to_point_and_retired_operations_are_waited_in_by_nobody(tmp_path: Path) -> None:
    found, _ = read(tmp_path, dump(entry(40, is_p2p=True), entry(41, retired=True)))
    assert [group.sequence for group in found[0].signal.groups] == [0]


@pytest.mark.parametrize("content", ["", "[1, 2]", '{"entries": 3}', '{"trial": "x"}'])
def test_what_is_no_dump_is_told_and_no_evidence(tmp_path: Path, content: str) -> None:
    found, notes = read(tmp_path, content)
    assert [type(each.signal) for each in found] == [SourceFailed]
    assert "no dump of a flight recorder" in notes[0]


def test_a_verdict_on_a_dead_job_names_the_rank_that_did_not_enter(tmp_path: Path) -> None:
    folder = tmp_path / "flight_recorder"
    folder.mkdir()
    (folder / "rank_0.json").write_text(dump(entry(41), enqueued=41))
    (folder / "rank_1.json").write_text(dump(enqueued=40))
    worker = tmp_path / "ray_session_logs" / "rank0-node-a" / "worker-aabb-01000000-77.out"
    worker.parent.mkdir(parents=True)
    worker.write_text(":actor_name:Idle\n")
    (tmp_path / "finelog.log").write_text(
        "[rank0]:[E ProcessGroupNCCL.cpp:563] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL("
        "SeqNum=41, OpType=ALLTOALL, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600096 milliseconds before "
        "timing out.\n"
    )
    (tmp_path / "polls").mkdir()
    poll = {
        "at": "2031-02-28T00:00:00Z",
        "probe": "state",
        "command": ["sacct", "-P", "-j", "77", "-o", "JobID,State,ExitCode"],
        "exit": 0,
        "elapsed_ms": 40,
        "stdout": "JobID|State|ExitCode\n77|FAILED|134:0\n",
        "stderr": "",
    }
    (tmp_path / "polls" / "state.jsonl").write_text(json.dumps(poll) + "\n")
    ruling = final(tmp_path)["gates"]["A"]
    told = "the flight recorder shows that rank 1 did not enter all_to_all 41 of mesh_ep, in which rank 0 waits"
    assert ruling["condition"] == "DEAD"
    assert told in json.dumps(ruling)
    assert "flight_recorder/rank_0.json" in [item["source"] for item in ruling["evidence"]]
