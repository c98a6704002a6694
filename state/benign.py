"""Why a sign of gate A is benign, as data: each case has a name, what shows it, and the words for it.

An excuse mutes a sign and is quoted beside it; it never deletes it (DESIGN §1).
"""

from extractors.record import Evidence
from state.case import Case
from state.causality import AFTER_SECONDS, NEEDS_ABORT
from state.gate import Excuse
from state.policy import SECOND_US


def progress_after_a_watchdog_line(case: Case) -> Evidence | None:
    """The trainer's progress after the newest watchdog line that no abort followed."""
    progress_us, progress = case.freshness.progress_us, case.freshness.progress
    if progress_us is None or progress is None:
        return None
    lone = [event for event in case.faults.events if event.fault.cause == NEEDS_ABORT]
    if not lone or case.faults.abort is not None:
        return None
    return progress if progress_us > lone[-1].own_us + AFTER_SECONDS * SECOND_US else None


def progress_after_an_error(case: Case) -> Evidence | None:
    """What the component of the newest handled error did after it."""
    handled = [event.handled_by for event in case.faults.noted if event.handled_by is not None]
    return handled[-1] if handled else None


NOTED: tuple[Excuse, ...] = (
    Excuse(
        "lone-watchdog-line",
        ("WEDGED",),
        progress_after_a_watchdog_line,
        "a watchdog line or barrier snapshot without an abort, and progress after it, is not a wedge",
    ),
    Excuse(
        "handled-error",
        ("WEDGED", "DEAD"),
        progress_after_an_error,
        "an error that its component moved on from was handled",
    ),
)
"""Benign situations that a running job's ruling notes where they show themselves. They speak of signs that the
clauses themselves leave out of account, so that the gate need not mute a FAIL for them."""
