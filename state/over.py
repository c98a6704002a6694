"""Is the job over? One answer for all gates (GATES, Gate A rules 2–4): B, C and D are N/A once it is."""

from extractors.polls import JobState
from extractors.record import Evidence
from state.case import Case
from state.policy import EMPTY_PODS_MIN_APART, SECOND_US
from state.trackers.scheduler import living_pods

_APART_US = int(EMPTY_PODS_MIN_APART * SECOND_US)


def job_over(case: Case) -> Evidence | None:
    """The record that shows the job over: a terminal state; a running state whose pod list was empty twice, two
    minutes apart; or a record that vanished while the pod list, read separately, is empty. None where nothing does, or
    where the trainer moves on while its pods are said to be gone: the list is then of something else."""
    seen = case.scheduler
    if seen.state is None:
        return None
    if seen.state.state.over:
        return seen.over_evidence or seen.state_evidence
    if seen.state.state is JobState.ABSENT:
        return _vanished(case)
    times = seen.empty_pods_us
    if len(times) > 1 and max(times) - min(times) >= _APART_US and not moves_without_pods(case):
        return seen.first_empty_pods_evidence or seen.pods_evidence
    return None


def moves_without_pods(case: Case) -> bool:
    """Whether the trainer made progress after its pods or its record were first missed, log delays allowed for."""
    seen, progress_us = case.scheduler, case.freshness.progress_us
    missed = [at_us for at_us in (*seen.empty_pods_us[:1], seen.absent_since_us) if at_us is not None]
    return progress_us is not None and bool(missed) and progress_us > min(missed) + _APART_US


def _vanished(case: Case) -> Evidence | None:
    seen = case.scheduler
    if not seen.seen_before or seen.pods is None or living_pods(seen.pods):
        return None
    if seen.pods_us is None or seen.absent_since_us is None or seen.pods_us < seen.absent_since_us:
        return None
    if moves_without_pods(case):
        return None
    return seen.pods_evidence
