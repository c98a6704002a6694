"""What would change a verdict: a condition on the job's views, said with the verdict and checked from then on.

Each signal of a flip is a row of one table: how it is said, and what shows on a later case that it came. A flip with a
time fires when its signal has not come by then, one without when it comes.
"""

from enum import StrEnum

import msgspec

from extractors.clocks import write_iso
from extractors.polls import JobState
from extractors.record import Evidence
from state.case import Case
from state.decision import Decided, Decision
from state.gate import Ruling, Status
from state.policy import DONE_NOT_EXITED, SECOND_US
from state.trackers.restarts import RestartPattern
from state.unheard import unheard
from state.wording import clock

DIGITS = str.maketrans("", "", "0123456789")


class FlipOn(StrEnum):
    """What is looked for: progress of the trainer, a reward above 0, a state that the scheduler's poll does not say
    now, a gate that passes, the pieces that a gate misses, a ledger that dooms the job no more."""

    PROGRESS = "progress"
    REWARD = "trial_rewarded"
    STATE = "state_changed"
    GATE = "gate_passed"
    EVIDENCE = "evidence_arrived"
    LEDGER = "attempt_recovered"


class FlipSignal(msgspec.Struct, frozen=True):
    """What would change the verdict: a signal to see, before a time (None: whenever it comes). gate and wanted say of
    which gate, and which pieces it misses."""

    says: str
    signal: FlipOn
    before_us: int | None = None
    gate: str = ""
    wanted: tuple[str, ...] = ()


class Watch(msgspec.Struct, frozen=True):
    """The flip of the last verdict that was said, at said_us, and what stood then: the newest progress, the newest
    reward, the state, the attempt. fired says when and how it fired, in words; empty while it has not."""

    flip: FlipSignal
    said_us: int
    progress_us: int | None
    reward: Evidence | None
    state: JobState | None
    attempt: int
    fired: str = ""


def deadline_us(case: Case) -> int:
    """Until when the innermost phase may go without progress."""
    since = case.freshness.progress_us or case.scheduler.running_since_us or case.now_us
    return since + int(case.phases.allowance_seconds * SECOND_US)


def flip_of(case: Case, decision: Decision, deciding: str, rulings: dict[str, Ruling]) -> FlipSignal:
    """The flip of a verdict on a job that is not over."""
    if decision is Decision.ERROR:
        wanted = tuple(dict.fromkeys(gap.what for gap in rulings[deciding].missing))
        says = f"gate {deciding} no longer misses: {'; '.join(wanted)}"
        return FlipSignal(says, FlipOn.EVIDENCE, None, deciding, wanted)
    if decision is Decision.KILL:
        return _of_a_kill(case, deciding, rulings)
    if _state(case) is JobState.PENDING:
        return FlipSignal("the state poll says something else than pending", FlipOn.STATE)
    if case.phases.done_us is not None:
        before_us = case.phases.done_us + int(DONE_NOT_EXITED * SECOND_US)
        return FlipSignal(f"the job has not ended before {write_iso(before_us)}", FlipOn.STATE, before_us)
    return _progress_by(deadline_us(case))


def _of_a_kill(case: Case, deciding: str, rulings: dict[str, Ruling]) -> FlipSignal:
    if deciding == "restarts":
        return FlipSignal("the attempt progresses past the furthest point where one died", FlipOn.LEDGER)
    if deciding == "C" and _reward(case) is None:
        return FlipSignal("a trial ends with a reward above 0", FlipOn.REWARD)
    if deciding == "A" and case.phases.done_us is None:
        return FlipSignal("the trainer makes progress after this record", FlipOn.PROGRESS)
    if deciding == "A":
        return FlipSignal("the state poll says that the job is over", FlipOn.STATE)
    condition = rulings[deciding].condition
    return FlipSignal(f"gate {deciding} passes and says {condition} no more", FlipOn.GATE, None, deciding)


def _progress_by(before_us: int) -> FlipSignal:
    says = f"no progress before {write_iso(before_us)}; each progress sets that time anew, by its phase's allowance"
    return FlipSignal(says, FlipOn.PROGRESS, before_us)


def watched(flip: FlipSignal | None, case: Case) -> Watch | None:
    """The watch of a flip that is said now; None for a job that is over."""
    if flip is None:
        return None
    return Watch(flip, case.now_us, case.freshness.progress_us, _reward(case), _state(case), case.restarts.attempt)


def checked(watch: Watch | None, case: Case, come: Decided) -> Watch | None:
    """The watch after a later case: it fires once, and its time moves on with what progress came before it. Of a job
    that isn't heard nothing is known that it could fire at."""
    if watch is None or watch.fired or unheard(case) is not None:
        return watch
    before_us = watch.flip.before_us
    shown = _shown(watch, case, come)
    if before_us is None:
        return _fired(watch, case.now_us, shown) if shown else watch
    if shown:
        return _moved_on(watch, case)
    if case.now_us < before_us:
        return watch
    awaited = "no progress came" if watch.flip.signal is FlipOn.PROGRESS else "the job had not ended"
    return _fired(watch, before_us, f"{awaited} before it")


def _fired(watch: Watch, at_us: int, how: str) -> Watch:
    words = f"The flip signal of {clock(watch.said_us)} ({watch.flip.signal}) fired at {clock(at_us)}: {how}"
    return msgspec.structs.replace(watch, fired=words)


def _moved_on(watch: Watch, case: Case) -> Watch | None:
    """A time that the job kept is followed by the next one. A new attempt, which has shown nothing yet, has the
    allowance of its bring-up from now on."""
    anew_us = case.now_us + int(case.phases.allowance_seconds * SECOND_US)
    anew = case.freshness.progress_us is None
    flip = _progress_by(anew_us) if anew else flip_of(case, Decision.NO_KILL, "A", {})
    now = watched(flip, case)
    return None if now is None else msgspec.structs.replace(now, said_us=watch.said_us)


def _shown(watch: Watch, case: Case, come: Decided) -> str:
    """What shows that the watch's signal has come, in words; empty where nothing does."""
    match watch.flip.signal:
        case FlipOn.PROGRESS:
            return _progressed(watch, case)
        case FlipOn.REWARD:
            reward = _reward(case)
            new = reward is not None and reward != watch.reward
            return f"a reward above 0 is on file ({_place(reward)})" if new else ""
        case FlipOn.STATE:
            state = _state(case)
            return f"the state poll says {state}" if state is not watch.state and state is not None else ""
        case FlipOn.LEDGER:
            pattern = case.restarts.pattern
            return "" if pattern is RestartPattern.SAME_FAILURE else f"the pattern of the restarts is {pattern}"
        case FlipOn.GATE:
            ruling = come.rulings[watch.flip.gate]
            passes = ruling.status is Status.PASS
            return f"gate {watch.flip.gate} says {ruling.condition}" if passes else ""
        case FlipOn.EVIDENCE:
            return "" if _wants(watch.flip, come) else f"gate {watch.flip.gate} misses it no more"


def _progressed(watch: Watch, case: Case) -> str:
    """Progress that is newer than what stood when the flip was said, or a new attempt, whose deadline is its own."""
    newest = case.freshness.progress_us
    if newest is not None and newest != watch.progress_us:
        return f"the trainer progressed at {clock(newest)} ({_place(case.freshness.progress)})"
    restarted = watch.flip.before_us is not None and case.restarts.attempt != watch.attempt
    return f"attempt {case.restarts.attempt} has begun" if restarted else ""


def _wants(flip: FlipSignal, come: Decided) -> bool:
    """Whether the gate still errs for want of one of the same pieces, of which there may be more or fewer now; one that
    does not apply any more never got them."""
    ruling = come.rulings[flip.gate]
    wanted = {what.translate(DIGITS) for what in flip.wanted}
    missing = any(gap.what.translate(DIGITS) in wanted for gap in ruling.missing)
    return ruling.status is Status.NOT_APPLICABLE or (ruling.status is Status.ERROR and missing)


def _state(case: Case) -> JobState | None:
    return None if case.scheduler.state is None else case.scheduler.state.state


def _reward(case: Case) -> Evidence | None:
    seen = case.rollouts
    return seen.newest_rewarded or seen.metrics.newest_positive


def _place(evidence: Evidence | None) -> str:
    return "" if evidence is None else f"{evidence.source}:{evidence.line}"
