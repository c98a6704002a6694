"""What a gate is: requirements it must have read, clauses weighed in order, excuses that mute a sign.

A ruling of PASS or FAIL can't be built without evidence, and an ERROR not without a gap. The first requirement of every
gate is that the job is heard.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from extractors.record import Evidence
from state.case import Case
from state.unheard import unheard
from state.wording import clock


class Status(StrEnum):
    """What a gate says."""

    PASS = "PASS"
    FAIL = "FAIL"
    ERROR = "ERROR"
    NOT_APPLICABLE = "N/A"


@dataclass(frozen=True, slots=True)
class Gap:
    """A piece of evidence that could not be had. what reads after «missing:»; command is the argv, output raw."""

    what: str
    why: str
    command: tuple[str, ...] = ()
    exit: int | None = None
    output: str = ""


@dataclass(frozen=True, slots=True)
class Ruling:
    """What a clause or requirement came to. Build it with `passed`, `failed`, `unjudged` or `not_applicable`.

    notes are benign or lesser signs that were seen and weighed. cause is the cause code of a FAIL that no error line
    tells (empty: the first cause among the errors, or none). allowance says that a PASS rests on an allowance (early
    bring-up, hard tasks), which makes it low confidence.
    """

    status: Status
    condition: str
    reason: str
    evidence: tuple[Evidence, ...] = ()
    missing: tuple[Gap, ...] = ()
    fix: str = ""
    notes: tuple[str, ...] = ()
    allowance: bool = False
    cause: str = ""

    def __post_init__(self) -> None:
        if self.status in (Status.PASS, Status.FAIL) and not self.evidence:
            raise ValueError(f"a {self.status} {self.condition} without evidence can't be said")
        if self.status is Status.ERROR and not self.missing:
            raise ValueError(f"an ERROR {self.condition} must say what is missing")


def passed(
    condition: str,
    reason: str,
    *evidence: Evidence,
    missing: tuple[Gap, ...] = (),
    notes: tuple[str, ...] = (),
    allowance: bool = False,
) -> Ruling:
    """The gate had all the information to determine that the job is not in a bad state."""
    return Ruling(Status.PASS, condition, reason, evidence, missing, "", notes, allowance)


def failed(
    condition: str, reason: str, *evidence: Evidence, fix: str, notes: tuple[str, ...] = (), cause: str = ""
) -> Ruling:
    """The bad state is there, shown by evidence; fix is what to do about it."""
    return Ruling(Status.FAIL, condition, reason, evidence, (), fix, notes, cause=cause)


def unjudged(condition: str, reason: str, *missing: Gap, evidence: tuple[Evidence, ...] = ()) -> Ruling:
    """It can't be told, since `missing` could not be had; evidence is what was established all the same."""
    return Ruling(Status.ERROR, condition, reason, evidence, missing)


def not_applicable(condition: str, reason: str, *evidence: Evidence) -> Ruling:
    """The gate's question does not arise."""
    return Ruling(Status.NOT_APPLICABLE, condition, reason, evidence)


def the_lines_and_polls(case: Case) -> Ruling | None:
    """The job's lines and polls: while they don't arrive (no broker answers, its shipper is silent), nothing is
    concluded of a job that is not over."""
    silence = unheard(case)
    if silence is None:
        return None
    signal, newest = silence.signal, silence.newest
    newest_at = f"its newest line or poll is of {clock(silence.since_us)}"
    reason = f"Nothing is heard of the job: {signal.why}; {newest_at}"
    gap = Gap("lines and polls of the job", signal.why, signal.command, None, signal.output)
    return unjudged("INCOMPLETE", reason, gap, evidence=() if newest is None else (newest,))


Clause = Callable[[Case], Ruling | None]
"""One rule of GATES.md: its ruling where it holds, else None. The docstring's first line is the rule's sentence."""

Shows = Callable[[Case], Evidence | None]


@dataclass(frozen=True, slots=True)
class Excuse:
    """Why a fault sign is benign here, and what shows it. mutes names the conditions it speaks against."""

    name: str
    mutes: tuple[str, ...]
    shows: Shows
    why: str


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate: its letter, its clauses in the order of GATES.md (requirements are the clauses that give ERROR first; the
    one that all gates have is put before its own), and the excuses that may mute a FAIL of its clauses."""

    letter: str
    title: str
    clauses: tuple[Clause, ...]
    excuses: tuple[Excuse, ...] = field(default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "clauses", (the_lines_and_polls, *self.clauses))

    def judge(self, case: Case) -> Ruling:
        """The first ruling that stands: a FAIL that an excuse mutes is passed over and noted."""
        notes: list[str] = []
        shown: list[Evidence] = []
        for clause in self.clauses:
            ruling = clause(case)
            if ruling is None:
                continue
            excuse = self.excuse_of(ruling, case)
            if excuse is not None:
                notes.append(f"{ruling.condition} not concluded ({excuse[0].name}): {excuse[0].why}")
                shown.append(excuse[1])
                continue
            return _with(ruling, tuple(notes), tuple(shown))
        raise AssertionError(f"gate {self.letter} has no last clause")

    def excuse_of(self, ruling: Ruling, case: Case) -> tuple[Excuse, Evidence] | None:
        """The excuse that mutes a FAIL, with what shows it; None where the ruling stands."""
        if ruling.status is not Status.FAIL:
            return None
        for excuse in self.excuses:
            if ruling.condition in excuse.mutes and (evidence := excuse.shows(case)) is not None:
                return excuse, evidence
        return None


def _with(ruling: Ruling, notes: tuple[str, ...], shown: tuple[Evidence, ...]) -> Ruling:
    return replace(ruling, evidence=ruling.evidence + shown, notes=ruling.notes + notes) if notes else ruling
