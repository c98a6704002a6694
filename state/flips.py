"""Flip signals: what would change a verdict, as a condition that is checked when the next record is said (GATES, The
verdict)."""

import msgspec

from extractors.clocks import write_iso
from state.case import Case
from state.decision import Decision
from state.gate import Ruling, Status
from state.policy import SECOND_US
from state.wording import clock


class FlipSignal(msgspec.Struct, frozen=True):
    """What would change the verdict: a signal to see, before a time (None: whenever it comes).

    after_us is when it was said, gate the gate that decided; awaited names the evidence that an ERROR waits for.
    """

    says: str
    signal: str
    before_us: int | None
    after_us: int
    gate: str
    awaited: str = ""


def deadline_us(case: Case) -> int:
    """When the open phase's allowance will be over if nothing moves."""
    since = case.freshness.progress_us or case.scheduler.running_since_us or case.now_us
    return since + int(case.phases.allowance_seconds * SECOND_US)


def flip_of(case: Case, decision: Decision, deciding: str, rulings: dict[str, Ruling]) -> FlipSignal:
    """The flip signal of a verdict on a job that is not over."""
    now_us = case.now_us
    if decision is Decision.ERROR:
        what = rulings[deciding].missing[0].what
        return FlipSignal(f"what is missing arrives: {what}", "evidence_arrived", None, now_us, deciding, what)
    if decision is Decision.KILL:
        if deciding == "C":
            return FlipSignal("a trial ends with a reward above 0", "trial_ended", None, now_us, deciding)
        says = "the trainer makes progress after this record"
        return FlipSignal(says, "phase_finished", None, now_us, deciding)
    before_us = deadline_us(case)
    signal = "phase_finished" if case.phases.opened else "phase_started"
    says = f"no {signal.replace('_', ' ')} before {write_iso(before_us)}"
    return FlipSignal(says, signal, before_us, now_us, deciding)


def fired(flip: FlipSignal, case: Case, rulings: dict[str, Ruling]) -> str:
    """The sentence that the flip signal of an earlier verdict has fired; "" where it has not."""
    seen = _seen(flip, case, rulings)
    return f"The flip signal of {clock(flip.after_us)} fired: {seen}" if seen else ""


def _seen(flip: FlipSignal, case: Case, rulings: dict[str, Ruling]) -> str:
    progress_us, rewarded = case.freshness.progress_us or 0, case.rollouts.newest_rewarded
    if flip.signal == "evidence_arrived":
        return f"{flip.awaited} arrived" if _arrived(flip, rulings[flip.gate]) else ""
    if flip.signal == "trial_ended":
        if rewarded is None or (rewarded.at_us or 0) <= flip.after_us:
            return ""
        return f"a trial ended with a reward above 0 at {clock(rewarded.at_us)}"
    if flip.before_us is None:
        return f"the trainer made progress at {clock(progress_us)}" if progress_us > flip.after_us else ""
    late = case.now_us > flip.before_us and progress_us <= flip.after_us
    return flip.says if late else ""


def _arrived(flip: FlipSignal, ruling: Ruling) -> bool:
    """Whether what an ERROR waited for is no longer missing. A gate that is N/A now did not get it."""
    if ruling.status is Status.ERROR:
        return flip.awaited not in [gap.what for gap in ruling.missing]
    return ruling.status is not Status.NOT_APPLICABLE
