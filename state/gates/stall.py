"""What gate A knows of a stall: since when, past which allowance, with which signature, behind which stacks."""

from dataclasses import dataclass

from extractors.record import Evidence
from state.case import Case
from state.causality import AFTER_SECONDS, rank_of
from state.causes import CAUSES
from state.gate import Gap
from state.policy import ABORTED_ALLOWANCE, MINUTE, SECOND_US, STAGE_FLOORS, Stage
from state.trackers.fault_list import FaultEvent
from state.trackers.nccl import Communicator
from state.trackers.pipeline import StackDump
from state.trackers.processes import ProcessRole
from state.wording import clock, plural, ranks, span

BRING_UP_QUIET = 0.5
"""Bring-up signals are fresh while they are younger than this share of the bring-up allowance."""

BEHIND_AFTER = 5 * MINUTE
"""Ranks enter a forward within seconds of each other; after so long without progress the absent ones are told."""


@dataclass(frozen=True, slots=True)
class Stall:
    """How long the trainer has not moved, in seconds, and the newest place where it did (the running poll, before)."""

    since_us: int
    seconds: float
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class Signature:
    """A sign that processes hang, of the time at_us. says completes «because of …»; ended tells that it ended a policy
    process."""

    at_us: int
    says: str
    fix: str
    evidence: tuple[Evidence, ...]
    ended: bool


def stall(case: Case) -> Stall:
    """The time without progress: from the newest progress, else from when the job began to run."""
    fresh, seen = case.freshness, case.scheduler
    if fresh.progress_us is not None and fresh.progress is not None:
        return Stall(fresh.progress_us, case.seconds_since(fresh.progress_us), (fresh.progress,))
    since_us = seen.running_since_us if seen.running_since_us is not None else case.now_us
    evidence = tuple(item for item in (seen.running_evidence, fresh.bring_up) if item is not None)
    return Stall(since_us, case.seconds_since(since_us), evidence)


def is_stale(case: Case) -> bool:
    """Stale: now − newest progress > allowance; in bring-up also where its signals have dried up."""
    stalled = stall(case)
    if stalled.seconds > case.phases.allowance_seconds:
        return True
    if case.phases.opened or case.freshness.progress_us is not None:
        return False
    newest_us = max(case.freshness.bring_up_us or 0, stalled.since_us)
    return case.seconds_since(newest_us) > BRING_UP_QUIET * case.phases.allowance_seconds


def has_progress_after(case: Case, at_us: int) -> bool:
    """Whether any node showed progress after a moment."""
    progress_us = case.freshness.progress_us
    return progress_us is not None and progress_us > at_us + AFTER_SECONDS * SECOND_US


def signature(case: Case) -> Signature | None:
    """The hang signature that stands: an abort first, then the newest other one, then a half-built communicator."""
    abort, hang = case.faults.abort, case.faults.hang
    if abort is not None and not has_progress_after(case, abort.own_us):
        return _told_by(case, abort, ended=True)
    if hang is not None and not has_progress_after(case, hang.own_us):
        return _told_by(case, hang, ended=False)
    return _half_built_signature(case)


def _told_by(case: Case, event: FaultEvent, ended: bool) -> Signature:
    first = case.faults.first or event
    known = CAUSES[event.fault.cause]
    whose = rank_of(event)
    who = f" (rank {whose})" if whose is not None else f" ({event.origin.actor})" if event.origin.actor else ""
    says = f"{known.title}{who} at {clock(event.own_us)}"
    if first is not event:
        title = CAUSES[first.fault.cause].title if first.fault.cause in CAUSES else first.fault.cause
        says += f"; it began with {title} at {clock(first.own_us)}"
    fix = CAUSES[first.fault.cause].fix if first.fault.cause in CAUSES else known.fix
    evidence = tuple(dict.fromkeys((*first.sources[:2], *event.sources[:1])))
    return Signature(event.own_us, says, fix, evidence, ended)


def _half_built_signature(case: Case) -> Signature | None:
    built = half_built(case)
    if built is None:
        return None
    who = ranks(built.unfinished or built.absent)
    fix = f"look at {who} of that group: log and stacks from {clock(built.at_us)} on"
    return Signature(built.at_us, half_built_words(built), fix, (built.evidence,), False)


def half_built(case: Case) -> Communicator | None:
    """The newest communicator that some ranks began and others did not complete, after which nothing progressed."""
    for built in reversed(case.nccl.communicators):
        stuck = built.unfinished or built.absent
        if stuck and not has_progress_after(case, built.at_us):
            return built
    return None


def left_behind(case: Case) -> tuple[str, Evidence] | None:
    """Which ranks the others wait for, and where that shows, once the bring-up allowance is over: those that a
    communicator lacks, else those without the newest forward's marker, as long as nothing progressed after it."""
    since_us = case.scheduler.running_since_us
    allowed = case.facts.facts.expect.get("bring_up", STAGE_FLOORS[Stage.BRING_UP])
    if since_us is None or case.seconds_since(since_us) <= allowed:
        return None
    built, nccl = half_built(case), case.nccl
    if built is not None:
        return half_built_words(built), built.evidence
    if not nccl.behind or nccl.forward is None or nccl.forward_us is None:
        return None
    if case.seconds_since(nccl.forward_us) <= BEHIND_AFTER or has_progress_after(case, nccl.forward_us):
        return None
    return f"{ranks(nccl.behind)} did not enter the forward of {clock(nccl.forward_us)}", nccl.forward


def left_behind_words(case: Case) -> str:
    """`rank 7 did not enter the forward of 10:02:11Z`; nothing where none is, or the signature names them already."""
    behind, sign = left_behind(case), signature(case)
    return "" if behind is None or (sign is not None and behind[0] in sign.says) else behind[0]


def half_built_words(built: Communicator) -> str:
    """`ranks 3, 11 of 16 began, never completed`, `rank 7 never began`."""
    told = []
    if built.unfinished:
        told.append(f"{ranks(built.unfinished)} of {built.ranks} began, never completed")
    if built.absent:
        told.append(f"{ranks(built.absent)} never began")
    return f"a communicator left half-built ({'; '.join(told)})"


def is_asked_after(case: Case, sign: Signature) -> bool:
    """Whether the scheduler was asked since the signature, and still says what it said: a job whose processes ended may
    be restarting already, which only its next state shows."""
    return case.scheduler.state_us is not None and case.scheduler.state_us >= sign.at_us


def ended_long_enough(case: Case, sign: Signature) -> bool:
    """Whether a signature that ended a policy process has been followed by 15 min without progress."""
    return sign.ended and stall(case).seconds > ABORTED_ALLOWANCE


def stacks_of_the_stall(case: Case) -> tuple[StackDump, ...]:
    """The live stacks that were captured since the newest progress."""
    since_us = stall(case).since_us
    return tuple(dump for dump in case.pipeline.stacks if dump.at_us >= since_us)


def frozen_policy(case: Case) -> tuple[tuple[StackDump, StackDump], ...]:
    """The policy ranks' two dumps, where every rank that was dumped twice stands in the same frames both times."""
    pairs = case.pipeline.pairs(ProcessRole.POLICY, stall(case).since_us)
    same = all(older.frames and older.frames == newer.frames for older, newer in pairs)
    return pairs if same else ()


def the_live_stacks(case: Case, why: str) -> tuple[Gap, ...]:
    """The gap of the live stacks, one for each refused dump since the stall began."""
    stalled = stall(case)
    refused = [seen for seen in case.pipeline.stack_failures if seen.at_us >= stalled.since_us]
    if not refused:
        return (Gap("live stacks of the policy ranks", why),)
    return tuple(
        Gap(
            f"live stacks of {seen.failure.target or 'the policy ranks'}",
            f"the dump at {clock(seen.at_us)} failed: {seen.failure.why}",
            seen.failure.command,
            seen.failure.exit,
            seen.failure.output,
        )
        for seen in refused[-3:]
    )


def stall_words(case: Case) -> str:
    """`no progress for 31 min (since 09:57:48Z) in 'policy_train'`."""
    stalled, phase = stall(case), case.phases.innermost
    where = f" in '{phase.name}'" if phase else ""
    return f"no progress for {span(stalled.seconds)} (since {clock(stalled.since_us)}){where}"


def stacks_words(dumps: tuple[StackDump, ...]) -> str:
    """`2 live stacks, the newest in all_gather (…) of pod-0 pid 4242`."""
    newest = dumps[-1]
    frame = newest.frames[0] if newest.frames else "an empty stack"
    return f"{plural(len(dumps), 'live stack')}, the newest in {frame} of {newest.target} pid {newest.pid}"
