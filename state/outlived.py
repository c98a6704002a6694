"""Errors that their process went on after: of asyncio's dropped tasks, or survived before by the same run."""

from typing import TYPE_CHECKING

from state.policy import SECOND_US

if TYPE_CHECKING:
    from state.trackers.fault_list import FaultEvent

DETACHED = "detached_exception"
"""The pattern of exceptions that ended nothing by themselves: their tasks were dropped, their process went on."""
FOLLOWS_US = 300 * SECOND_US
"""An end that comes later is not a dropped task's doing."""


def is_detached(event: "FaultEvent") -> bool:
    """Whether the error is one of a task that nobody awaits."""
    return event.sources[0].signal == DETACHED


def dropped(causal: "list[FaultEvent]", death: "FaultEvent | None") -> "FaultEvent | None":
    """The error of a dropped task that the end followed: of the newest kind, since the process went on after the
    others, the earliest."""
    detached = [event for event in causal if is_detached(event) and (death is None or event.own_us <= death.own_us)]
    if not detached or (death is not None and death.own_us - detached[-1].own_us > FOLLOWS_US):
        return None
    newest = detached[-1]
    return next(e for e in detached if _raised(e) == _raised(newest) and newest.own_us - e.own_us <= FOLLOWS_US)


def outlived(event: "FaultEvent", events: "tuple[FaultEvent, ...]") -> bool:
    """Whether the process went on after such an error: a dropped task's, or one that the run survived before."""
    return is_detached(event) or survived(event, events)


def survived(event: "FaultEvent", events: "tuple[FaultEvent, ...]") -> bool:
    """Whether the run went on after the same exception before: a parser that fails on each bad answer ends nothing."""
    if event.fault.cause != "python_exception":
        return False
    return any(
        earlier.handled and earlier.own_us < event.own_us and _raised(earlier) == _raised(event) for earlier in events
    )


def _raised(event: "FaultEvent") -> tuple[str, str, str, str]:
    """What was raised where, whichever process of an actor class it was."""
    return (event.fault.cause, event.fault.exception, event.fault.site, event.origin.actor)
