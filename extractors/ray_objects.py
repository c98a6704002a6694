"""Ray's objects, channels and placement groups that are gone when somebody asks for them. A part of `ray`."""

from typing import Any

from extractors.pattern import Nature, Role, pattern
from extractors.ray_lines import EXCEPTION
from extractors.signal import Benign, Fault


@pattern(
    "ray",
    Nature.FAULT,
    role=Role.EITHER,
    hints=(
        "ObjectLostError: ",
        "ObjectReconstructionFailed",
        "ObjectFetchTimedOutError: ",
        "have been lost due to node failure",
        "GetTimeoutError: ",
    ),
    regex=r"(?:" + EXCEPTION + r"(?:(?P<lost>ObjectLostError|ObjectReconstructionFailed\w*|ObjectFetchTimedOutError)"
    r"|(?P<slow>GetTimeoutError)): "
    r"|All copies of \w+ (?P<gone>have been lost due to node failure))",
    samples={
        "ray.exceptions.ObjectLostError: Failed to retrieve object 00ffaa. All copies of 00ffaa have been lost due to "
        "node failure.": Fault("object_lost", "", "ObjectLostError"),
        "All copies of 00ffaa have been lost due to node failure. Check cluster logs for more information.": (
            Fault("object_lost", "all copies were lost with a node")
        ),
        "ray.exceptions.ObjectReconstructionFailedError: Failed to retrieve object 00ffaa.": (
            Fault("object_lost", "", "ObjectReconstructionFailedError")
        ),
        "ray.exceptions.ObjectReconstructionFailedMaxAttemptsExceededError: Failed to retrieve object 00ffaa.": (
            Fault("object_lost", "", "ObjectReconstructionFailedMaxAttemptsExceededError")
        ),
        "ray.exceptions.ObjectReconstructionFailedLineageEvictedError: Failed to retrieve object 00ffaa.": (
            Fault("object_lost", "", "ObjectReconstructionFailedLineageEvictedError")
        ),
        "ray.exceptions.ObjectFetchTimedOutError: Failed to retrieve object 00ffaa.": (
            Fault("object_lost", "", "ObjectFetchTimedOutError")
        ),
        "ray.exceptions.GetTimeoutError: Get timed out: some object(s) not ready.": (
            Fault("ray_get_timeout", "", "GetTimeoutError")
        ),
    },
    rejects=("ObjectLostError", "All copies of the book have been lost due to node failure"),
)
def object_not_had(found: Any) -> Fault:
    """An object was lost with its node, or a call was not answered within the time its caller gave it."""
    if found["slow"]:
        return Fault("ray_get_timeout", "", "GetTimeoutError")
    return Fault("object_lost", "all copies were lost with a node" if found["gone"] else "", found["lost"] or "")


@pattern(
    "ray",
    Nature.FAULT,
    role=Role.CASCADE,
    hints=(
        "ObjectFreedError: ",
        "ReferenceCountingAssertionError: ",
        "RayChannelError: ",
        "RayChannelTimeoutError: ",
        "PlacementGroupRemoved: ",
    ),
    regex=EXCEPTION + r"(?P<type>ObjectFreedError|ReferenceCountingAssertionError|RayChannel(?:Timeout)?Error"
    r"|(?:Actor|Task)PlacementGroupRemoved): ",
    samples={
        "ray.exceptions.ObjectFreedError: Failed to retrieve object 00ffaa. The object was manually freed using the "
        "internal `free` call.": Fault("object_lost", "", "ObjectFreedError"),
        "ray.exceptions.ReferenceCountingAssertionError: Failed to retrieve object 00ffaa. The object has already been "
        "deleted by the reference counting protocol.": Fault("object_lost", "", "ReferenceCountingAssertionError"),
        "ray.exceptions.RayChannelError: System error: Channel closed.": Fault("object_lost", "", "RayChannelError"),
        "ray.exceptions.RayChannelTimeoutError: System error: Timed out waiting for object available to read.": (
            Fault("object_lost", "", "RayChannelTimeoutError")
        ),
        "ray.exceptions.ActorPlacementGroupRemoved: The placement group corresponding to this Actor was removed.": (
            Fault("object_lost", "", "ActorPlacementGroupRemoved")
        ),
        "ray.exceptions.TaskPlacementGroupRemoved: The placement group corresponding to this task has been removed.": (
            Fault("object_lost", "", "TaskPlacementGroupRemoved")
        ),
    },
    rejects=(
        "The RayChannelError: told us nothing",
        "ray.exceptions.ObjectLostError: Failed to retrieve object 00ffaa.",
    ),
)
def object_taken_away(found: Any) -> Fault:
    """An object, a channel or a placement group was taken away under its user by somebody who was closing down, or who
    died: look for that one."""
    return Fault("object_lost", "", found["type"])


@pattern(
    "ray",
    Nature.BENIGN,
    hints=("TaskCancelledError: ",),
    regex=EXCEPTION + r"TaskCancelledError: ",
    samples={
        "ray.exceptions.TaskCancelledError: Task: TaskID(c2668a65bda616c1) was cancelled.": Benign("intended-exit"),
    },
    rejects=("a TaskCancelledError: is no death",),
)
def task_cancelled(found: Any) -> Benign:
    """Somebody called `ray.cancel` on the task."""
    return Benign("intended-exit")


PATTERNS = (object_not_had, object_taken_away, task_cancelled)
