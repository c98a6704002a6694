"""PyTorch distributed lines that look like death and are not."""

from typing import Any

from extractors.pattern import Nature, pattern
from extractors.signal import Benign


@pattern(
    "torch_dist",
    Nature.BENIGN,
    hints=("to perform barrier as devices used", "No device id is provided via", "is not yet listening"),
    regex=r"(?:\[c10d\] )?(?:\[PG[^\]]*\] "
    r"|\[Rank \d+\] )*\s*(?:[Uu]sing GPU \d+ to perform barrier as devices used by this process"
    r"|No device id is provided via `?init_process_group|(?P<listen>The server socket on \S+ is not yet listening))",
    samples={
        "[rank3]:[W314 09:00:00.4 ProcessGroupNCCL.cpp:4115] [PG ID 0 PG GUID 0 Rank 3]  using GPU 3 to perform "
        "barrier "
        "as devices used by this process are currently unknown. This can potentially cause a hang": (
            Benign("barrier-device-unknown")
        ),
        "[rank3]:[W314 09:00:00.4 ProcessGroupNCCL.cpp:5023] No device id is provided via `init_process_group` or "
        "`barrier `. Using the current device set by the user.": Benign("barrier-device-unknown"),
        "[W314 09:00:00.4 socket.cpp:752] [c10d] The server socket on [::]:29500 is not yet listening (errno: 111), "
        "will "
        "retry.": Benign("store-not-yet-listening"),
    },
    rejects=("The server socket has failed to listen on any local network address.",),
)
def torch_caution(found: Any) -> Benign:
    """A caution that healthy starts print: the barrier's device, a store that is not up yet and is asked again."""
    return Benign("store-not-yet-listening" if found["listen"] else "barrier-device-unknown")


@pattern(
    "torch_dist",
    Nature.BENIGN,
    hints=("destroy_process_group() was not called",),
    regex=r"(?:WARNING: )?(?:process group has NOT been destroyed"
    r"|destroy_process_group\(\) was not called before program exit)",
    samples={
        "[rank0]:[W314 09:59:00.4 ProcessGroupNCCL.cpp:1496] WARNING: destroy_process_group() was not called before "
        "program exit, which can leak resources.": Benign("groups-not-destroyed"),
    },
    rejects=("# destroy_process_group() was not called",),
)
def groups_not_destroyed(found: Any) -> Benign:
    """A process ends without tidying its groups (2.4 and later): an end's line, whatever the end was."""
    return Benign("groups-not-destroyed")


PATTERNS = (torch_caution, groups_not_destroyed)
