"""The words and the evidence that gate A's rules share."""

from extractors.polls import JobState
from extractors.record import Evidence, SourceKind
from state.benign import NOTED
from state.case import Case
from state.causality import rank_of
from state.causes import CAUSES, Transient
from state.gate import Gap
from state.gates.stall import left_behind, left_behind_words, signature, stall, stall_words
from state.policy import SECOND_US, STATE_POLL_INTERVAL_UNKNOWN
from state.trackers.coverage import Reading
from state.trackers.fault_list import FaultEvent
from state.trackers.flights import Absence
from state.wording import clock, plural, ranks, span

RANKS_SAID = 16
"""Ranks that a sentence lists."""
AGGREGATED = (SourceKind.AGGREGATED, SourceKind.SLURM, SourceKind.POD)
"""Homes that hold what the driver and the raylet forward of all processes."""
ACTORS = (SourceKind.ACTOR, SourceKind.DAEMON)


def allowance_words(case: Case) -> str:
    return f"the allowance of {span(case.phases.allowance_seconds)} ({case.phases.allowance_source})"


def state_words(case: Case) -> str:
    """How the job ended: by its state record, and by the driver's own exit where that is another."""
    driver = f"; its driver exited with {case.phases.driver_exit}" if driver_exit(case) else ""
    return _record_words(case) + driver


def driver_exit(case: Case) -> Evidence | None:
    """The line of the driver's own exit, where it says something else than the state record (after a SIGTERM the task
    itself exits 0)."""
    state = case.scheduler.state
    agrees = state is not None and case.phases.driver_exit == state.exit_code
    return None if agrees else case.phases.driver


def _record_words(case: Case) -> str:
    seen = case.scheduler
    code = f", exit {seen.state.exit_code}" if seen.state and seen.state.exit_code is not None else ""
    if seen.job_state is JobState.RUNNING:
        return f"its pod list is empty since {clock(seen.empty_pods_us[0])}"
    if seen.job_state is JobState.ABSENT:
        return f"its record is absent since {clock(seen.absent_since_us)} and its pod list empty"
    return f"{seen.job_state} since {clock(seen.over_since_us)}{code}"


def cause_words(event: FaultEvent) -> str:
    known = CAUSES.get(event.fault.cause)
    title = known.title if known else event.fault.cause.replace("_", " ")
    rank = rank_of(event)
    who = f" on rank {rank}" if rank is not None else f" in {event.origin.actor}" if event.origin.actor else ""
    detail = f" ({event.fault.detail})" if event.fault.detail else ""
    return f"{title}{who} at {clock(event.own_us)}{detail}"


def transience(event: FaultEvent) -> str:
    known = CAUSES.get(event.fault.cause)
    words = {Transient.YES: "which is transient", Transient.NO: "which is deterministic"}
    return words.get(known.transient, "transient or not is unknown") if known else "transient or not is unknown"


def cascade_words(case: Case) -> str:
    count = case.faults.cascade
    return f". The first cause explains {plural(count, 'later error')}" if count and case.faults.first else ""


def first_evidence(case: Case) -> tuple[Evidence, ...]:
    return case.faults.first.sources[:2] if case.faults.first else ()


def newest_line(case: Case) -> Evidence | None:
    return case.phases.newest or case.freshness.bring_up


def newest_evidence(case: Case) -> tuple[Evidence, ...]:
    return present(case.scheduler.state_evidence, newest_line(case))


def running_evidence(case: Case, *signs: Evidence) -> tuple[Evidence, ...]:
    """The signs, the state poll, the open phase's own line and the newest progress."""
    phase = case.phases.innermost
    opened = phase.evidence if phase else case.phases.newest
    behind = left_behind(case)
    late = behind[1] if behind else None
    seen = (case.scheduler.state_evidence, opened, *stall(case).evidence, late)
    return present(*signs, *seen, *absence_evidence(case))


def logs_words(case: Case) -> str:
    """What the logs alone tell, for a job whose state is not known: its newest progress and its first cause."""
    told, fresh = [], case.freshness
    if fresh.progress_us is not None:
        age = span(case.seconds_since(fresh.progress_us))
        told.append(f"the newest progress is of {clock(fresh.progress_us)}, {age} before the newest line")
    if case.faults.first is not None:
        told.append(f"the first cause among the errors is {cause_words(case.faults.first)}{cascade_words(case)}")
    return f". By the logs {'; '.join(told)}" if told else ""


def present(*evidence: Evidence | None) -> tuple[Evidence, ...]:
    return tuple(dict.fromkeys(item for item in evidence if item is not None))


def notes_of(case: Case) -> tuple[str, ...]:
    """A lone watchdog line or a barrier snapshot, progress after it: not a wedge; noted (rule 7). So are handled
    errors."""
    told = [f"{excuse.name}: {excuse.why}" for excuse in NOTED if excuse.shows(case) is not None]
    if behind := left_behind_words(case):
        told.append(behind)
    told += [absence_words(absence) for absence in case.flights.absences]
    if case.faults.noted:
        told.append(f"the newest handled error is {cause_words(case.faults.noted[-1])}")
    return tuple(told)


def absence_words(absence: Absence) -> str:
    """`rank 3 did not enter all_reduce 412 of mesh_fsdp, in which ranks 0, 1 wait`."""
    which = f" {absence.sequence}" if absence.sequence is not None else ""
    what = f"{absence.operation.removeprefix('nccl:') or 'a collective'}{which}"
    of = f" of {absence.group}" if absence.group else ""
    said = f"the flight recorder shows that {_some(absence.missing)} did not enter {what}{of}"
    verb = "waits" if len(absence.waiting) == 1 else "wait"
    return f"{said}, in which {_some(absence.waiting)} {verb}" if absence.waiting else said


def _some(numbers: tuple[int, ...]) -> str:
    more = len(numbers) - RANKS_SAID
    return ranks(numbers[:RANKS_SAID]) + (f" and {more} more" if more > 0 else "")


def absence_evidence(case: Case) -> tuple[Evidence, ...]:
    """Where a flight recorder or its analyser tells who is missing."""
    return tuple(absence.evidence for absence in case.flights.absences[:2])


def standing_sign(case: Case) -> tuple[str, ...]:
    """The hang signature that a fresh job shows, too young to weigh."""
    sign = signature(case)
    return () if sign is None else (f"watched: {sign.says}, with {stall_words(case)}",)


def unread_homes(case: Case) -> tuple[Gap, ...]:
    gaps = []
    if not any(case.coverage.was_read(kind) for kind in AGGREGATED):
        gaps.append(Gap("the aggregated log", why_unread(case, AGGREGATED)))
    if not any(case.coverage.was_read(kind) for kind in ACTORS):
        gaps.append(Gap("the per-actor Ray logs", why_unread(case, ACTORS)))
    return tuple(gaps)


def not_pulled(case: Case) -> Gap | None:
    """The gap of the logs since the newest sync that succeeded, where syncs fail and it is no longer fresh."""
    seen = case.scheduler
    failure, since_us = seen.sync_failure, seen.synced_us
    end_us = seen.over_since_us if seen.over_since_us is not None else case.now_us
    if failure is None or (since_us is not None and end_us - since_us <= STATE_POLL_INTERVAL_UNKNOWN * SECOND_US):
        return None
    what = "the job's logs" if since_us is None else f"the job's logs since {clock(since_us)}"
    return Gap(what, f"the log sync fails: {failure.why}", failure.command, failure.exit, failure.output)


def why_unread(case: Case, kinds: tuple[SourceKind, ...]) -> str:
    names = [name for name, source in case.coverage.sources.items() if source.kind in kinds]
    failures = [f"{name}: {why}" for name, why in case.coverage.failures if name in names]
    failures += [f"{name} is empty" for name in names if case.coverage.sources[name].reading is Reading.READ]
    return "; ".join(failures[:3]) if failures else "no such file is in the capture"
