"""Gate A, how a job ends: the rules of GATES, Gate A, on its state record and on a terminal job (1–4), and on one that
is done and does not end."""

from extractors.polls import JobState, PollFailed
from extractors.record import Evidence
from state.case import Case
from state.causality import by_unknown_hand
from state.causes import CAUSES
from state.gate import Gap, Ruling, failed, passed, unjudged
from state.gates.liveness_words import (
    ACTORS,
    AGGREGATED,
    absence_evidence,
    cascade_words,
    cause_words,
    driver_exit,
    first_evidence,
    logs_words,
    newest_evidence,
    newest_line,
    not_pulled,
    notes_of,
    present,
    state_words,
    transience,
    unread_homes,
)
from state.outlived import outlived
from state.over import job_over, moves_without_pods
from state.policy import DONE_NOT_EXITED, STATE_POLL_INTERVAL_UNKNOWN, STATE_POLL_MAX_INTERVALS
from state.wording import clock, plural, span

_BY_THE_SCHEDULER = {JobState.PREEMPTED: "preempted", JobState.TIMED_OUT: "wall_clock"}
"""Ends that are their own explanation, by the cause that they come to."""
_NO_CAUSE = "neither the aggregated log nor the per-actor logs hold an error that nothing else explains"
_SIGKILL = "a bare SIGKILL; the node's kernel log, the pod's last state or the scheduler's events tell who sent it"


def state_poll_unread(case: Case) -> Ruling | None:
    """No state poll succeeded, the newest one is older than 3 poll intervals (10 min when unknown), or it can't be
    parsed."""
    seen = case.scheduler
    if seen.state is None or seen.state_us is None:
        why = "no state poll succeeded" if seen.failure else "no state poll is on file"
        established = present(*first_evidence(case), newest_line(case), case.freshness.progress)
        reason = f"The job's state is not known: {why}{logs_words(case)}"
        return unjudged("INCOMPLETE", reason, _state_gap(case, why), evidence=established)
    if seen.state.state.over:
        return None
    age, allowed = case.seconds_since(seen.state_us), state_poll_age_allowed(case)
    if age <= allowed:
        return None
    why = f"the newest one that succeeded is of {clock(seen.state_us)}, {span(age)} old (allowed: {span(allowed)})"
    reason = f"The job's present state is not known: {why}, and says {seen.state.state}"
    return unjudged("INCOMPLETE", reason, _state_gap(case, why), evidence=newest_evidence(case))


def state_poll_age_allowed(case: Case) -> float:
    """The seconds that a state poll may be old: three of its own intervals, 10 min where none is known."""
    interval = case.scheduler.interval_seconds
    return STATE_POLL_INTERVAL_UNKNOWN if interval is None else STATE_POLL_MAX_INTERVALS * interval


def _state_gap(case: Case, why: str) -> Gap:
    failure = case.scheduler.failure
    if failure is None:
        return Gap("the state poll", why)
    return _failed_gap("the state poll", f"{why}; {failure.why}", failure)


def _failed_gap(what: str, why: str, failure: PollFailed) -> Gap:
    return Gap(what, why, failure.command, failure.exit, failure.output)


def unreconciled(case: Case) -> Ruling | None:
    """A poll says running and the pod list shows none: once; or a record vanished, and no pod list read separately is
    empty."""
    seen = case.scheduler
    if job_over(case) is not None:
        return None
    if seen.job_state is JobState.RUNNING and seen.empty_pods_us:
        evidence = present(seen.state_evidence, seen.pods_evidence)
        reason = (
            f"The state poll of {clock(seen.state_us)} says running, the pod list of {clock(seen.pods_us)} shows no "
            f"living pod{_unsettled(case)}"
        )
        return unjudged("UNRECONCILED", reason, _pods_gap(case, "it contradicts the state poll"), evidence=evidence)
    if seen.job_state is not JobState.ABSENT:
        return None
    before = "was seen before" if seen.seen_before else "was never seen before, which proves nothing"
    listed = f"the pod list of {clock(seen.pods_us)} does not settle it" if seen.pods_us else "no pod list was read"
    reason = f"The record of the job is absent since {clock(seen.absent_since_us)}; it {before}, and {listed}"
    gap = _pods_gap(case, "an absent record is an end only with an empty pod list, read separately")
    return unjudged("UNRECONCILED", reason, gap, evidence=present(seen.state_evidence, seen.pods_evidence))


def _unsettled(case: Case) -> str:
    first, progress_us = clock(case.scheduler.empty_pods_us[0]), case.freshness.progress_us
    if moves_without_pods(case):
        return f", and the trainer moved on until {clock(progress_us)} after the first empty list of {first}"
    return f". A second empty list, 2 min or more after {first}, would settle it"


def _pods_gap(case: Case, why: str) -> Gap:
    failure = case.scheduler.pods_failure
    if failure is None:
        return Gap("a pod list that agrees with the state poll", why)
    return _failed_gap("a pod list that agrees with the state poll", f"{why}; {failure.why}", failure)


def completed(case: Case) -> Ruling | None:
    """Terminal and succeeded, with the last step reached or a training-done line (errors past the step ceiling are
    noise)."""
    over, state = job_over(case), case.scheduler.job_state
    if over is None or state not in (JobState.SUCCEEDED, JobState.RUNNING, JobState.ABSENT):
        return None
    done, fresh = case.phases.done, case.freshness
    reached = fresh.step_of is not None and fresh.step_done >= fresh.step_of
    if done is None and not reached:
        return None
    how = f"training was done at {clock(case.phases.done_us)}" if done else "the last step was reached"
    of = f" of {fresh.step_of}" if fresh.step_of is not None else ""
    reason = f"The job is over ({state_words(case)}) and {how}: {fresh.step_done}{of} steps"
    return passed("COMPLETED", reason, *present(done, fresh.step, over, newest_line(case), driver_exit(case)))


def dead(case: Case) -> Ruling | None:
    """Terminal otherwise: both homes, aggregated log and per-actor logs, must have been read; first cause found →
    DEAD with cause, transient or deterministic; both read and no cause → UNEXPLAINED."""
    over = job_over(case)
    if over is None:
        return None
    unread = unread_homes(case)
    quoted = present(over, newest_line(case), driver_exit(case))
    if unread:
        reason = f"The job is over ({state_words(case)}), but nothing was read of {' or '.join(g.what for g in unread)}"
        return unjudged("INCOMPLETE", reason, *unread, evidence=present(*first_evidence(case), *quoted))
    first = case.faults.first
    state, lacking = case.scheduler.state, not_pulled(case)
    if first is None and state is not None and state.state in _BY_THE_SCHEDULER:
        return _ended_by_the_scheduler(case, _BY_THE_SCHEDULER[state.state], quoted)
    if first is None and lacking is not None:
        reason = f"The job is over ({state_words(case)}), but {lacking.what} were not pulled"
        return unjudged("INCOMPLETE", reason, lacking, evidence=quoted)
    if first is None and case.coverage.upload_cut is not None:
        return _cut_short(case, case.coverage.upload_cut, quoted)
    if first is None:
        return _unexplained(case, quoted)
    if by_unknown_hand(first, state.exit_code if state else None):
        but = f"but {cause_words(first)}, by an unknown hand"
        return _unexplained(case, (*first_evidence(case), *quoted), but, _SIGKILL)
    if state is not None and state.state is JobState.SUCCEEDED and outlived(first, case.faults.events):
        but = f"but {cause_words(first)}, after which the run went on"
        return _unexplained(case, (*first_evidence(case), *quoted), but, "the job succeeded, by its scheduler's word")
    known = CAUSES.get(first.fault.cause)
    reason = (
        f"The job is over ({state_words(case)}) after {plural(case.freshness.step_done, 'step')}. The first cause is "
        f"{cause_words(first)}, {transience(first)}{cascade_words(case)}"
    )
    fix = f"{known.fix}; {known.relaunch}" if known else "read the quoted error and explain it before a relaunch"
    evidence = present(*first_evidence(case), *quoted, *absence_evidence(case))
    return failed("DEAD", reason, *evidence, fix=fix, notes=notes_of(case))


def _cut_short(case: Case, cut: Evidence, quoted: tuple[Evidence, ...]) -> Ruling:
    """The cause of an end may stand in what a supervisor did not upload any more."""
    reason = (
        f"The job is over ({state_words(case)}) after {plural(case.freshness.step_done, 'step')}, and neither home "
        f"holds a first cause as far as it was read: the last upload of the per-actor Ray logs was cut"
    )
    gap = Gap("the ends of the per-actor Ray logs", "the supervisor gave up on their last upload")
    return unjudged("INCOMPLETE", reason, gap, evidence=present(cut, *quoted))


def _ended_by_the_scheduler(case: Case, code: str, quoted: tuple[Evidence, ...]) -> Ruling:
    known, seen = CAUSES[code], case.scheduler
    said = f" ({seen.state.error})" if seen.state is not None and seen.state.error else ""
    reason = (
        f"The job is over ({state_words(case)}{said}) after {plural(case.freshness.step_done, 'step')}, by the "
        f"scheduler's own word, and no error of the job stands before it: {known.title}, which is transient"
    )
    fix = f"{known.fix}; {known.relaunch}"
    return failed("DEAD", reason, *quoted, fix=fix, notes=notes_of(case), cause=code)


def _unexplained(case: Case, quoted: tuple[Evidence, ...], but: str = "", why: str = _NO_CAUSE) -> Ruling:
    searched = "an error that could have ended the job"
    absences = [case.coverage.absence(kind, searched) for kind in (*AGGREGATED, *ACTORS)]
    reason = (
        f"The job is over ({state_words(case)}) after {plural(case.freshness.step_done, 'step')}, without a "
        f"training-done line. Both homes were read and neither holds a first cause{f', {but}' if but else ''}"
    )
    gap = Gap("the first cause of the end", why)
    return unjudged("UNEXPLAINED", reason, gap, evidence=present(*quoted, *absences))


def done_not_exited(case: Case) -> Ruling | None:
    """Trainer finished but the job still running (orchestrator or engines alive) beyond 15 min."""
    done_us, done = case.phases.done_us, case.phases.done
    if done_us is None or done is None or case.scheduler.job_state is not JobState.RUNNING:
        return None
    since = case.seconds_since(done_us)
    if since <= DONE_NOT_EXITED:
        return None
    reason = (
        f"Training was done at {clock(done_us)}, {span(since)} ago, and the state poll of "
        f"{clock(case.scheduler.state_us)} still says running (allowed: {span(DONE_NOT_EXITED)})"
    )
    known = CAUSES["done_not_exited"]
    evidence = present(done, case.scheduler.state_evidence)
    return failed("WEDGED", reason, *evidence, fix=f"{known.fix}; {known.relaunch}", cause=known.code)
