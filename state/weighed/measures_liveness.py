"""What gate A measures, in words; progress, stage and the job's record serve the other gates as well."""

from collections.abc import Callable

from extractors.record import Evidence, SourceKind
from state.case import Case
from state.gates.endings import state_poll_age_allowed
from state.gates.liveness import is_multi_mesh
from state.gates.liveness_words import ACTORS, AGGREGATED, allowance_words, not_pulled
from state.gates.stall import signature, stall
from state.over import job_over
from state.unheard import unheard
from state.weighed.measured import Measured, absent, measured
from state.wording import clock, plural, span


def state_poll(case: Case) -> Measured:
    seen = case.scheduler
    if seen.state is None or seen.state_us is None:
        return absent("no state poll was read", seen.failure_evidence)
    age = span(case.seconds_since(seen.state_us))
    return measured(f"the state poll of {clock(seen.state_us)} ({age} old) says {seen.job_state}", seen.state_evidence)


def poll_age_allowed(case: Case) -> Measured:
    return measured(f"a state poll may be {span(state_poll_age_allowed(case))} old")


def over(case: Case) -> Measured:
    shown = job_over(case)
    if shown is None:
        return measured(f"no record shows the job over: {state_poll(case).says}", case.scheduler.state_evidence)
    return measured("a record shows the job over", shown)


def heard(case: Case) -> Measured:
    if (silence := unheard(case)) is not None:
        return measured(
            f"nothing is heard of the job; its newest line or poll is of {clock(silence.since_us)}", silence.newest
        )
    if case.coverage.unheard is not None:
        return measured(f"nothing is heard of the job, but {over(case).says}", *over(case).evidence)
    return measured("nothing says that lines and polls of the job don't arrive")


def done(case: Case) -> Measured:
    phases = case.phases
    if phases.done_us is None:
        return measured("no training-done line was read")
    return measured(
        f"training was done at {clock(phases.done_us)}, {span(case.seconds_since(phases.done_us))} ago", phases.done
    )


def steps(case: Case) -> Measured:
    fresh = case.freshness
    of = "an unknown number" if fresh.step_of is None else fresh.step_of
    return measured(f"{fresh.step_done} of {of} steps are done", fresh.step)


def phase_line(case: Case) -> Measured:
    phases = case.phases
    if phases.newest is None:
        return measured("no phase-timer or step line was read")
    return measured(f"the newest phase-timer or step line is of {clock(phases.newest_us)}", phases.newest)


def progress(case: Case) -> Measured:
    fresh = case.freshness
    if fresh.progress_us is None:
        return measured("the trainer has not progressed yet", case.scheduler.running_evidence)
    age = span(case.seconds_since(fresh.progress_us))
    return measured(f"the newest progress is of {clock(fresh.progress_us)}, {age} before now", fresh.progress)


def bring_up(case: Case) -> Measured:
    fresh = case.freshness
    if fresh.bring_up_us is None:
        return measured("no bring-up line was read")
    age = span(case.seconds_since(fresh.bring_up_us))
    return measured(f"the newest bring-up line is of {clock(fresh.bring_up_us)}, {age} before now", fresh.bring_up)


def allowance(case: Case) -> Measured:
    return measured(allowance_words(case))


def staleness(case: Case) -> Measured:
    stalled = stall(case)
    if case.freshness.progress_us is None:
        since = (
            f"without progress since it began to run at {clock(stalled.since_us)}, {span(stalled.seconds)} before now"
        )
        return measured(f"{since}; {bring_up(case).says}, against {allowance_words(case)}", *stalled.evidence)
    return measured(f"{progress(case).says}, against {allowance_words(case)}", *stalled.evidence)


def standing_signature(case: Case) -> Measured:
    sign = signature(case)
    if sign is not None:
        return measured(f"a hang signature stands: {sign.says}", *sign.evidence)
    faults = case.faults
    past = faults.abort or faults.hang
    if past is not None:
        moved = f"the trainer moved on after the one of {clock(past.own_us)}"
        return measured(f"no hang signature stands: {moved}", past.sources[0], case.freshness.progress)
    return measured(f"no hang signature stands ({plural(faults.total, 'error')} on record, none of them one)")


def log_sync(case: Case) -> Measured:
    gap = not_pulled(case)
    return measured("no log sync is known to fail" if gap is None else f"{gap.what} were not pulled: {gap.why}")


def opened(case: Case) -> Measured:
    if not case.phases.opened:
        return measured("no trainer phase has opened yet", case.freshness.bring_up)
    return measured(f"a trainer phase has opened; {phase_line(case).says}", case.phases.newest)


def multi_mesh(case: Case) -> Measured:
    said = "" if is_multi_mesh(case) else "not "
    actors = tuple(case.coverage.actors.items())[:2]
    named = f" ({', '.join(name for name, _ in actors)})" if actors else ""
    return measured(
        f"engines and policy workers are {said}seen as separate actor classes{named}", *(line for _, line in actors)
    )


def homes_read(case: Case) -> Measured:
    homes = (("the aggregated log", AGGREGATED), ("the per-actor logs", ACTORS))
    told = [f"{name} {'was' if _read(case, kinds) else 'was not'} read" for name, kinds in homes]
    return measured(" and ".join(told).replace("logs was", "logs were"), *(_newest(case, kinds) for _, kinds in homes))


def _read(case: Case, kinds: tuple[SourceKind, ...]) -> bool:
    return any(case.coverage.was_read(kind) for kind in kinds)


def _newest(case: Case, kinds: tuple[SourceKind, ...]) -> Evidence | None:
    places = [s.newest for s in case.coverage.sources.values() if s.kind in kinds and s.newest is not None]
    return max(places, key=lambda place: (place.at_us or 0, place.source, place.offset), default=None)


def first_cause(case: Case) -> Measured:
    first = case.faults.first
    if first is None:
        return measured(f"no first cause among {plural(case.faults.total, 'error')}")
    return measured(f"the first cause is {first.fault.cause} at {clock(first.own_us)}", *first.sources[:1])


def stage(case: Case) -> Measured:
    phase = case.phases.innermost
    if phase is None:
        return measured(f"the stage is {case.phases.stage}", case.phases.newest or case.freshness.bring_up)
    return measured(
        f"the stage is {case.phases.stage}, in '{phase.name}' since {clock(phase.started_us)}", phase.evidence
    )


def since_run(case: Case) -> Measured:
    running = case.scheduler.running_since_us
    if running is None:
        return measured("no poll says since when it runs")
    return measured(
        f"it runs since {clock(running)}, {span(case.seconds_since(running))} before now",
        case.scheduler.running_evidence,
    )


def first_progress(case: Case) -> Measured:
    first = case.freshness.first_us
    if first is None:
        return since_run(case)
    return measured(
        f"the attempt's first progress is of {clock(first)}, {span(case.seconds_since(first))} before now",
        case.freshness.first,
    )


MEASURES: dict[str, Callable[[Case], Measured]] = {
    "case.scheduler.job_state": state_poll,
    "case.scheduler.state": state_poll,
    "case.scheduler.state.state.over": state_poll,
    "case.scheduler.state_us": state_poll,
    "state_poll_age_allowed(case)": poll_age_allowed,
    "job_over(case)": over,
    "unheard(case)": heard,
    "case.phases.done": done,
    "case.phases.done_us": done,
    "case.freshness.step_done": steps,
    "case.freshness.step_of": steps,
    "case.phases.newest": phase_line,
    "case.freshness.progress": progress,
    "case.freshness.progress_us": progress,
    "case.freshness.bring_up": bring_up,
    "case.freshness.first_us": first_progress,
    "case.scheduler.running_since_us": since_run,
    "case.phases.allowance_seconds": allowance,
    "is_stale(case)": staleness,
    "signature(case)": standing_signature,
    "not_pulled(case)": log_sync,
    "case.phases.opened": opened,
    "is_multi_mesh(case)": multi_mesh,
    "gaps": homes_read,
    "case.faults.first": first_cause,
    "case.phases.stage": stage,
    "case.phases.innermost": stage,
}
