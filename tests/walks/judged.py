"""What the real flow says of a walk, and how a failing seed is told: with the way to see it again."""

from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from dataflow.flow import replay_records
from tests.captures import contract, quotes
from tests.walks import faulty, healthy
from tests.walks.injected import Told
from tests.walks.walk import Walk

Json = dict[str, Any]
WRITTEN = 1.0
"""Seconds: the clocks of some lines tell whole ones, so that what they say is said by up to so much too early."""
SAMPLED = 25
"""Every so many-th seed is read by bytewax too, its records are held to the contract, their quotes to the files."""


def records_of(seed: int, folder: Path) -> list[Json]:
    """All records of a capture. Raises AssertionError where a sampled seed's break the contract."""
    lines = replay_records([str(folder)], engine="plain")
    records = [orjson.loads(line) for line in lines]
    if seed % SAMPLED == 0:
        assert replay_records([str(folder)]) == lines, "bytewax says something else than the plain loop"
        faults = [*contract.faults(records), *quotes.misquotes(folder, records)]
        assert not faults, "\n".join(faults)
    return records


def healthy_fault(seed: int, folder: Path) -> str:
    """Why a healthy run of this seed failed; empty where no record says KILL."""
    walk = healthy.lays(seed, folder)
    kill = next((record for record in records_of(seed, folder) if record.get("verdict") == "KILL"), None)
    return "" if kill is None else _told("healthy", seed, walk, folder, f"said KILL at {kill['at']}: {_failing(kill)}")


def faulty_fault(seed: int, folder: Path) -> str:
    """Why a run with a fault failed; empty where it was found for what it is, in time and not before its evidence."""
    walk, told = faulty.lays(seed, folder)
    kill = next((record for record in records_of(seed, folder) if record.get("verdict") == "KILL"), None)
    if kill is None:
        return _told("faulty", seed, walk, folder, f"never said KILL; wanted {told}")
    wrong = _wrong(walk, told, kill)
    return _told("faulty", seed, walk, folder, f"{wrong}; said at {kill['at']}: {_failing(kill)}") if wrong else ""


def _wrong(walk: Walk, told: Told, kill: Json) -> str:
    at = (datetime.fromisoformat(kill["at"]) - walk.run.clock.start).total_seconds()
    gate = kill["gates"].get(told.gate)
    decided = kill["restarts"]["pattern"] == "same-failure" if gate is None else gate["condition"] == told.condition
    if not decided:
        return f"not by {told.gate} {told.condition}"
    cause = kill["cause"]["code"] if kill["cause"] else ""
    if told.causes and cause not in told.causes:
        return f"cause {cause}, wanted {' or '.join(told.causes)}"
    if at < told.earliest - WRITTEN:
        return f"{told.earliest - at:.0f} s before the evidence"
    return f"{at - told.latest:.0f} s late" if at > told.latest else ""


def _failing(kill: Json) -> str:
    failed = [f"{letter} {gate['condition']}: {gate['reason']}" for letter, gate in kill["gates"].items()]
    return " | ".join(
        text for text, gate in zip(failed, kill["gates"].values(), strict=True) if gate["status"] == "FAIL"
    )


def _told(kind: str, seed: int, walk: Walk, folder: Path, why: str) -> str:
    fault = f", {faulty.fault_of(seed).__name__}" if kind == "faulty" else ""
    return (
        f"{kind} seed {seed} ({walk.trainer.name}, {walk.place.kind}{fault}) {why}\n"
        f"  its capture: {folder}\n  to see it again: python -m tests.walks {kind} {seed}"
    )
