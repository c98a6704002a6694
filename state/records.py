"""The output records of kind `gate` and `verdict` as models: what a consumer may count on (CONTRACT §3).

The records are written by `state/report.py`; a test holds the two together. Fields are added, never repurposed, so a
model takes more than it names.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0)]
Moment = Annotated[
    str,
    Field(
        pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$",
        description="RFC 3339, UTC",
        json_schema_extra={"format": "date-time"},
    ),
]
Letter = Literal["A", "B", "C", "D"]


class Said(BaseModel):
    """A part of a record. What it holds beyond its fields is let through."""

    model_config = ConfigDict(strict=True, extra="ignore", validate_by_name=False, validate_by_alias=True)


class EvidenceSaid(Said):
    """A line that was read, quoted."""

    signal: str = Field(description="the pattern that read it")
    source: str = Field(description="the file, relative to the capture; `<archive>!/<member>`, `-` for standard input")
    line: Count = Field(description="from 1")
    offset: Count = Field(description="byte offset of the line in the uncompressed file")
    at: Moment | None = Field(description="the line's own time, null where it has none")
    quote: str = Field(description="the line without control characters, cut with `…`, secrets as `[masked]`")
    searched: str = Field(default="", description="where it is there, the evidence is an absence: what was looked for")


class MissingSaid(Said):
    """Evidence that could not be had."""

    evidence: str = Field(description="what is missing")
    why: str
    command: list[str] | None = Field(description="the command of a probe that failed")
    exit: int | None
    output: str


class RulingSaid(Said):
    """What a gate says."""

    gate: Letter = Field(description="A liveness, B resources, C rollouts, D dynamics")
    status: Literal["PASS", "FAIL", "ERROR", "N/A"]
    condition: str = Field(description="why, as a word of docs/gates.md")
    stage: str
    reason: str
    evidence: list[EvidenceSaid] = Field(description="never empty for PASS and FAIL")
    missing: list[MissingSaid]
    fix: str | None


class Head(Said):
    """What every record has."""

    schema_: Literal["wedgewatch/1"] = Field(alias="schema")
    id: str = Field(min_length=1, description="a digest of the content; the same input gives the same id")
    job: str
    at: Moment = Field(description="event time")


class GateRecord(RulingSaid, Head):
    """Said when a gate first answers, and whenever its status, condition or cause changes."""

    kind: Literal["gate"]


class StepSaid(Said):
    """How far the training is."""

    done: Count | None
    of: Count | None


class RestartsSaid(Said):
    """The restart ledger."""

    burned: Count
    max: Count | None
    remaining: Count | None
    pattern: Literal["none", "same-failure", "different-failures", "transient-recovered", "unknown"]
    fingerprint: str | None
    evidence: list[EvidenceSaid]


class CauseSaid(Said):
    """The first cause of a KILL, not the loudest line."""

    code: str
    transient: bool | None
    evidence: list[EvidenceSaid]
    cascade: Count = Field(description="later errors that it explains")


class FlipSaid(Said):
    """What would change the verdict."""

    says: str
    signal: str
    before: Moment | None


class SpreadSaid(Said):
    """How a measure is spread over the trials."""

    median: float
    p10: float
    p90: float
    max: float


class DutySaid(Said):
    """What trials spend their time on."""

    trials: Count
    shares: dict[str, SpreadSaid | None]
    setup_seconds: SpreadSaid | None
    release_races: Count


class SlotSaid(Said):
    """Trials that ended in ten minutes."""

    from_: Moment = Field(alias="from")
    ended: Count
    exceptions: dict[str, Count]


class CoverageSaid(Said):
    """What was read of a source."""

    lines: Count
    from_: Moment | None = Field(alias="from")
    to: Moment | None
    complete: bool
    gaps: list[str]
    late: Count
    unparsed: Count


class VerdictRecord(Head):
    """Said when a job's verdict changes, at each heartbeat, and once at the end of a replay."""

    kind: Literal["verdict"]
    captured: str = Field(description="where the evidence lies; it does not count for the id")
    cluster: str | None
    model: str | None
    geometry: str | None
    stage: str
    step: StepSaid
    verdict: Literal["KILL", "NO-KILL", "ERROR"]
    confidence: Literal["high", "medium", "low"]
    terminal: bool = Field(description="the job is over: there is nothing to kill")
    final: bool = Field(description="the last record of the job in a replay")
    restarts: RestartsSaid
    gates: dict[Letter, RulingSaid]
    cause: CauseSaid | None
    reasoning: str
    next_steps: list[str]
    flip_signal: FlipSaid | None
    duty_cycle: DutySaid | None
    slots: list[SlotSaid] | None
    coverage: dict[str, CoverageSaid] | None


RECORDS: dict[str, type[GateRecord] | type[VerdictRecord]] = {"gate": GateRecord, "verdict": VerdictRecord}
"""The model of each kind."""
