"""Gate A, liveness: is the job alive, coming up, done, wedged or dead? The rules of GATES, Gate A, in their order.

Rules 1 to 4 stand in endings.py; what a stall is, in stall.py.
"""

from extractors.polls import JobState
from extractors.record import Evidence
from state.case import Case
from state.causality import is_engine, is_policy
from state.gate import Gap, Gate, Ruling, failed, passed, unjudged
from state.gates.endings import completed, dead, done_not_exited, state_poll_unread, unreconciled
from state.gates.liveness_words import (
    ACTORS,
    AGGREGATED,
    allowance_words,
    cascade_words,
    not_pulled,
    notes_of,
    present,
    running_evidence,
    standing_sign,
    why_unread,
)
from state.gates.stall import (
    ended_long_enough,
    frozen_policy,
    is_asked_after,
    is_stale,
    left_behind_words,
    signature,
    stacks_of_the_stall,
    stacks_words,
    stall,
    stall_words,
    the_live_stacks,
)
from state.policy import ABORTED_ALLOWANCE, SECOND_US, Stage
from state.wording import clock, plural, sentence, span


def trainer_record_unread(case: Case) -> Ruling | None:
    """Needs the authoritative state poll and the newest phase-timer or step line with its time."""
    seen, fresh = case.scheduler, case.freshness
    told = (case.phases.newest, fresh.progress, fresh.bring_up)
    if seen.job_state is not JobState.RUNNING:
        return None
    if fresh.progress is not None and fresh.known_us is None:
        return _undated(case, fresh.progress)
    if any(line is not None for line in told):
        return None
    homes = (*AGGREGATED, *ACTORS)
    read = any(case.coverage.was_read(kind) for kind in homes)
    but = "no line of the logs tells of its bring-up or of a phase" if read else "no log of the job was read"
    why = "the logs that were read hold none; their heads may be missing" if read else why_unread(case, homes)
    reason = f"The state poll of {clock(seen.state_us)} says running, but {but}"
    searched = [case.coverage.absence(kind, "a bring-up, phase-timer or step line") for kind in homes]
    gap = Gap("the newest phase-timer or step line", why)
    return unjudged("INCOMPLETE", reason, gap, evidence=present(seen.state_evidence, *searched))


def _undated(case: Case, progress: Evidence) -> Ruling:
    reason = (
        f"The state poll of {clock(case.scheduler.state_us)} says running, but the newest line of the trainer's "
        f"progress has no time, nor has any line before it in {progress.source}"
    )
    gap = Gap("the time of the newest phase-timer or step line", "no clock stands in the file that holds it")
    return unjudged("INCOMPLETE", reason, gap, evidence=present(case.scheduler.state_evidence, progress))


def logs_not_pulled(case: Case) -> Ruling | None:
    """Needs logs that reach to the present: where their sync fails, a standstill may be the sync's own."""
    gap, sign, synced_us = not_pulled(case), signature(case), case.scheduler.synced_us
    if case.scheduler.job_state is not JobState.RUNNING or gap is None:
        return None
    silent_us = 0 if synced_us is None else synced_us - stall(case).since_us
    if sign is not None and sign.ended and silent_us > ABORTED_ALLOWANCE * SECOND_US:
        return None
    reason = f"The state poll of {clock(case.scheduler.state_us)} says running, but {gap.what} were not pulled"
    return unjudged("INCOMPLETE", reason, gap, evidence=running_evidence(case))


def wedged(case: Case) -> Ruling | None:
    """Running, stale, and a hang signature, restarts not moving, no progress after it on any node; needs live stacks
    captured during the stall, except behind an abort that ended a policy process (15 min without progress)."""
    sign = signature(case)
    if case.scheduler.job_state is not JobState.RUNNING or sign is None or not is_asked_after(case, sign):
        return None
    if ended_long_enough(case, sign):
        reason = (
            f"The policy ranks are wedged: {stall_words(case)}, because of {sign.says}. It ended a policy process, so "
            f"{span(ABORTED_ALLOWANCE)} are enough{cascade_words(case)}"
        )
        return failed("WEDGED", reason, *running_evidence(case, *sign.evidence), fix=sign.fix, notes=notes_of(case))
    if not is_stale(case):
        return None
    stacks = stacks_of_the_stall(case)
    reason = f"{sentence(stall_words(case))}, past {allowance_words(case)}, because of {sign.says}"
    if not stacks:
        gaps = the_live_stacks(case, "a stall with this signature needs one live stack since the newest progress")
        reason = "; ".join(filter(None, (reason, left_behind_words(case), "no live stacks")))
        return unjudged("STALE", reason, *gaps, evidence=running_evidence(case, *sign.evidence))
    shown = tuple(dump.evidence for dump in stacks[-2:])
    reason = f"{reason}; {stacks_words(stacks)}{cascade_words(case)}"
    return failed("WEDGED", reason, *running_evidence(case, *sign.evidence, *shown), fix=sign.fix, notes=notes_of(case))


def stale(case: Case) -> Ruling | None:
    """Running, stale, no signature: with two stack captures ≥ 60 s apart in which the policy ranks stand in the same
    frames → WEDGED; else ERROR STALE, missing live stacks."""
    if case.scheduler.job_state is not JobState.RUNNING or not is_stale(case):
        return None
    reason = f"{sentence(stall_words(case))}, past {allowance_words(case)}"
    pairs = frozen_policy(case)
    if not pairs:
        why = "without a hang signature, two captures 60 s or more apart must show the policy ranks in the same frames"
        reason = "; ".join(filter(None, (reason, left_behind_words(case), "no hang signature")))
        return unjudged("STALE", reason, *the_live_stacks(case, why), evidence=running_evidence(case))
    older, newer = pairs[0]
    reason = (
        f"{reason}; {plural(len(pairs), 'policy rank')} stood in the same frames at {clock(older.at_us)} and "
        f"{clock(newer.at_us)}, innermost {newer.frames[0]}"
    )
    fix = "find the rank that stands elsewhere than the others and what it waits for; relaunch once it is explained"
    shown = (older.evidence, newer.evidence)
    return failed("WEDGED", reason, *running_evidence(case, *shown), fix=fix, notes=notes_of(case))


def bringing_up(case: Case) -> Ruling | None:
    """No trainer phase yet: queued → BRINGING_UP "queued since …"; running, within the bring-up allowance and
    bring-up signals fresh → BRINGING_UP."""
    seen = case.scheduler
    if seen.job_state is JobState.PENDING:
        since_us = seen.queued_since_us or seen.state_us
        reason = f"Queued since {clock(since_us)}; the state poll of {clock(seen.state_us)} says pending"
        return passed("BRINGING_UP", reason, *present(seen.state_evidence, seen.queued_evidence), allowance=True)
    if case.phases.opened:
        return None
    newest = case.freshness.bring_up_us
    told = f"its newest bring-up signal is of {clock(newest)}" if newest else "no bring-up signal yet"
    reason = (
        f"Running since {clock(stall(case).since_us)} ({span(stall(case).seconds)}), no trainer phase yet, {told}, "
        f"within {allowance_words(case)}"
    )
    evidence = present(seen.state_evidence, case.freshness.bring_up, seen.running_evidence)
    return passed("BRINGING_UP", reason, *evidence, notes=notes_of(case), allowance=True)


def signals_unread(case: Case) -> Ruling | None:
    """Multi-mesh, a phase has opened, and one of the three signals unread: actor record or watchdog record unread →
    INCOMPLETE."""
    if not case.phases.opened or not is_multi_mesh(case):
        return None
    gaps = []
    if not any(case.coverage.was_read(kind) for kind in ACTORS):
        gaps.append(Gap("the actor-death record (per-actor Ray logs)", why_unread(case, ACTORS)))
    if not any(case.coverage.was_read(kind) for kind in AGGREGATED):
        gaps.append(Gap("the collective watchdog record (aggregated log)", why_unread(case, AGGREGATED)))
    if not gaps:
        return None
    reason = f"A multi-mesh job can't be judged without {' and '.join(gap.what for gap in gaps)}"
    return unjudged("INCOMPLETE", reason, *gaps, evidence=running_evidence(case))


def is_multi_mesh(case: Case) -> bool:
    """Engines and policy workers seen as separate actor classes (or said by `[mesh]`)."""
    facts = case.facts.facts
    if facts.policy_mesh and facts.engine_mesh:
        return True
    actors = case.coverage.actors
    return any(is_policy(actor) for actor in actors) and any(is_engine(actor) for actor in actors)


def alive(case: Case) -> Ruling | None:
    """Running and fresh."""
    phase = case.phases.innermost
    where = f"in '{phase.name}' since {clock(phase.started_us)}" if phase else f"between phases ({case.phases.stage})"
    if case.phases.stage is Stage.OVER:
        where = f"done since {clock(case.phases.done_us)}"
    reason = (
        f"The state poll of {clock(case.scheduler.state_us)} says running; the trainer is {where}, its newest "
        f"progress {span(stall(case).seconds)} old, within {allowance_words(case)}"
    )
    return passed("ALIVE", reason, *running_evidence(case), notes=(*notes_of(case), *standing_sign(case)))


LIVENESS = Gate(
    "A",
    "liveness",
    clauses=(
        state_poll_unread,
        unreconciled,
        completed,
        dead,
        done_not_exited,
        trainer_record_unread,
        logs_not_pulled,
        wedged,
        stale,
        bringing_up,
        signals_unread,
        alive,
    ),
)
