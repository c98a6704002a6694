"""Is the job heard? One answer for all gates: while its lines and polls don't arrive, nothing new is concluded."""

from state.case import Case
from state.over import job_over
from state.trackers.silence import Silence


def unheard(case: Case) -> Silence | None:
    """The outage of a job that is not over; None where its lines and polls arrive, or where none are wanted."""
    silence = case.coverage.unheard
    return None if silence is None or job_over(case) is not None else silence
