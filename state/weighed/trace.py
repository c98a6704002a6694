"""A gate's judgement, rule by rule: what each requirement, clause and excuse came to, and why.

The rules are the gate's own (`Gate.judge` runs them), none is said a second time here.
"""

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from state.case import Case
from state.clause_facts import conditions_of
from state.gate import Clause, Excuse, Gate, Ruling, Status
from state.weighed.guards import because
from state.weighed.measured import Measured
from state.weighed.watch import Call, watched

PRESUMES = "it presumes that the rules before it were quiet, and can't be weighed by itself here"
LATER = "a rule before it would have fired as well"
OTHERWISE = "it is what the gate says where nothing else fired"


class Kind(StrEnum):
    """A requirement can only say what is missing."""

    REQUIREMENT = "requirement"
    CLAUSE = "clause"


class Came(StrEnum):
    """What a rule came to. MET is a requirement that has its evidence; WOULD_FIRE the one that would
    have fired next, had the earlier one not decided."""

    FIRED = "fired"
    EXCUSED = "excused"
    QUIET = "quiet"
    MET = "met"
    WOULD_FIRE = "would fire"
    NOT_REACHED = "not reached"


_QUIET = {Kind.REQUIREMENT: Came.MET, Kind.CLAUSE: Came.QUIET}


@dataclass(frozen=True, slots=True)
class Step:
    """One rule as it was weighed. why tells of a rule that said nothing; excuse is what held its ruling back, with what
    shows it; reached is false for the rules after the one that decided."""

    clause: Clause
    kind: Kind
    came: Came
    reached: bool
    ruling: Ruling | None
    why: Measured
    excuse: tuple[Excuse, Measured] | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """How a gate came to its ruling. excuses pairs each of the gate's with what shows it, None where nothing does."""

    gate: Gate
    ruling: Ruling
    steps: tuple[Step, ...]
    excuses: tuple[tuple[Excuse, Measured | None], ...]

    @property
    def fired(self) -> Step:
        """The rule that decided."""
        return next(step for step in self.steps if step.came is Came.FIRED)


def trace(gate: Gate, case: Case) -> Trace:
    """Weighs a gate once more, past the rule that decides."""
    excuses = tuple((excuse, _shown(excuse, case)) for excuse in gate.excuses)
    return Trace(gate, gate.judge(case), tuple(_steps(gate, case)), excuses)


def _steps(gate: Gate, case: Case) -> Iterator[Step]:
    fired = next_best = False
    for clause in gate.clauses:
        last = clause is gate.clauses[-1]
        step = _beyond(clause, case, last, next_best) if fired else _step(gate, clause, case, last)
        fired = fired or step.came is Came.FIRED
        next_best = next_best or step.came is Came.WOULD_FIRE
        yield step


def _step(gate: Gate, clause: Clause, case: Case, last: bool) -> Step:
    kind = kind_of(clause, last)
    call = _call_of(clause, watched(clause, case))
    ruling: Ruling | None = call.value
    if ruling is None:
        return Step(clause, kind, _QUIET[kind], True, None, because(call, case))
    held = gate.excuse_of(ruling, case)
    if held is None:
        return Step(clause, kind, Came.FIRED, True, ruling, Measured(ruling.reason, ruling.evidence))
    excuse = (held[0], Measured(held[0].why, (held[1],)))
    return Step(clause, kind, Came.EXCUSED, True, ruling, Measured(ruling.reason, ruling.evidence), excuse)


def _beyond(clause: Clause, case: Case, last: bool, next_best: bool) -> Step:
    """A rule that was not asked: what it would have said. Rules may rely on what those before them made sure of, so of
    those that say something only the first is heard."""
    kind = kind_of(clause, last)
    if last:
        return Step(clause, kind, Came.NOT_REACHED, False, None, Measured(OTHERWISE))
    try:
        call = _call_of(clause, watched(clause, case))
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
        return Step(clause, kind, Came.NOT_REACHED, False, None, Measured(PRESUMES))
    if call.value is None:
        return Step(clause, kind, _QUIET[kind], False, None, because(call, case))
    if next_best:
        return Step(clause, kind, Came.NOT_REACHED, False, None, Measured(LATER))
    return Step(clause, kind, Came.WOULD_FIRE, False, call.value, Measured(call.value.reason, call.value.evidence))


def kind_of(clause: Clause, last: bool) -> Kind:
    """Whether a rule asks for evidence or weighs it. A gate's last one answers in any case, so it asks for nothing."""
    errors = all(status is Status.ERROR for status, _ in conditions_of(clause))
    return Kind.REQUIREMENT if errors and not last else Kind.CLAUSE


def _call_of(clause: Clause, outermost: Call) -> Call:
    """The call of the clause itself, inside of what wraps it."""
    code = inspect.unwrap(clause).__code__
    waiting = list(outermost.calls)
    while waiting:
        call = waiting.pop(0)
        if call.code is code:
            call.value = outermost.value
            return call
        waiting += call.calls
    raise AssertionError(f"{code.co_name} was not called")


def _shown(excuse: Excuse, case: Case) -> Measured | None:
    evidence = excuse.shows(case)
    return None if evidence is None else Measured(excuse.why, (evidence,))
