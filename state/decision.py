"""What is decided: four rulings and the restart ledger come to KILL, NO-KILL or ERROR (GATES, The verdict)."""

from dataclasses import dataclass
from enum import StrEnum

from extractors.record import Evidence
from state.case import Case
from state.gate import Gate, Ruling, Status
from state.gates.dynamics import DYNAMICS
from state.gates.liveness import LIVENESS
from state.gates.resources import RESOURCES
from state.gates.rollouts import ROLLOUTS
from state.over import job_over
from state.trackers.restarts import RestartPattern
from state.unheard import unheard

GATES: tuple[Gate, ...] = (LIVENESS, RESOURCES, ROLLOUTS, DYNAMICS)
DECIDING = ("A", "B", "C")


class Decision(StrEnum):
    """What the supervisor is told."""

    KILL = "KILL"
    NO_KILL = "NO-KILL"
    ERROR = "ERROR"


@dataclass(frozen=True, slots=True)
class NamedCause:
    """The first cause: a code of state/causes.py or a gate's condition in lower case, where it stands, and how many
    later errors it explains."""

    code: str
    evidence: tuple[Evidence, ...]
    cascade: int = 0


@dataclass(frozen=True, slots=True)
class Decided:
    """The ruling on a job before it is put in words: most are what was said before, and need none. over is the line
    that shows that the job has ended."""

    decision: Decision
    deciding: str
    rulings: dict[str, Ruling]
    cause: NamedCause | None
    over: Evidence | None

    @property
    def gist(self) -> tuple[str, str, str]:
        """What makes one verdict another: the decision, and why a job is not simply kept (deciding gate, condition)."""
        if self.decision is Decision.NO_KILL:
            return (str(self.decision), self.deciding, "")
        ruling = self.rulings.get(self.deciding)
        return (str(self.decision), self.deciding, ruling.condition if ruling is not None else "")

    def gist_of(self, letter: str) -> tuple[str, str, str]:
        """What makes one gate's answer another: status, condition, cause."""
        ruling = self.rulings[letter]
        cause = self.cause.code if self.cause is not None and self.deciding == letter else ""
        return (str(ruling.status), ruling.condition, cause)


def decided(case: Case) -> Decided:
    """What the four gates come to. A job that is not heard may live on whatever was read of it: never a KILL."""
    rulings = {gate.letter: gate.judge(case) for gate in GATES}
    decision, deciding = decide(case.restarts.pattern, rulings, case.dynamics.non_finite_collapse)
    if unheard(case) is not None:
        decision, deciding = Decision.ERROR, DECIDING[0]
    cause = _cause(case, deciding, rulings) if decision is Decision.KILL else None
    return Decided(decision, deciding, rulings, cause, job_over(case))


def decide(ledger: RestartPattern, rulings: dict[str, Ruling], non_finite: bool) -> tuple[Decision, str]:
    """The five rules of GATES, The verdict, in their order; with the gate (or `restarts`) that decided."""
    if ledger is RestartPattern.SAME_FAILURE:
        return Decision.KILL, "restarts"
    for letter in DECIDING:
        if rulings[letter].status is Status.FAIL:
            return Decision.KILL, letter
    if rulings["D"].status is Status.FAIL and non_finite:
        return Decision.KILL, "D"
    for letter in DECIDING:
        if rulings[letter].status is Status.ERROR:
            return Decision.ERROR, letter
    return Decision.NO_KILL, "D" if rulings["D"].status is Status.FAIL else "A"


def _cause(case: Case, deciding: str, rulings: dict[str, Ruling]) -> NamedCause | None:
    """What the KILL rests on: the newest ended attempt's cause for a doomed job, what the ruling names, else the first
    cause among the errors; a gate other than A that no out-of-memory fails is its own cause."""
    first = case.faults.first
    if deciding == "restarts":
        ended = case.restarts.attempts[-1]
        return NamedCause(ended.cause, ended.evidence)
    ruling = rulings[deciding]
    if ruling.cause:
        return NamedCause(ruling.cause, ruling.evidence)
    if first is not None and (deciding == "A" or ruling.condition.startswith("OOM")):
        return NamedCause(first.fault.cause, first.sources, case.faults.cascade)
    return None if deciding == "A" else NamedCause(ruling.condition.lower(), ruling.evidence)
