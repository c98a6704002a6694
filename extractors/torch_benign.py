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
    regex=r"(?:\[Rank \d+\] )?(?:WARNING: )?(?:process group has NOT been destroyed"
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


@pattern(
    "torch_dist",
    Nature.BENIGN,
    hints=(
        "ProcessGroupNCCL initialization options: ",
        "HeartbeatMonitor environments: ",
        "watchdog thread started!",
        "watchdog thread terminated normally",
        "ProcessGroupNCCL aborts successfully",
    ),
    regex=r"(?:\[(?:PG [^\]]{1,120}|Rank \d+)\] )*(?:ProcessGroupNCCL initialization options: "
    r"|HeartbeatMonitor environments: |(?:Process group|NCCL) watchdog thread (?:started!|terminated normally)"
    r"|ProcessGroupNCCL aborts successfully)",
    samples={
        "[rank3]:[I314 09:00:00.4 ProcessGroupNCCL.cpp:951] [PG ID 0 PG GUID 0(default_pg) Rank 3] ProcessGroupNCCL "
        "initialization options: size: 16, global rank: 3, TIMEOUT(ms): 1800000": Benign("process-group-life"),
        "[rank3]:[I314 09:00:00.4 ProcessGroupNCCL.cpp:1320] [PG ID 0 PG GUID 0(default_pg) Rank 3] HeartbeatMonitor "
        "environments: TORCH_NCCL_ENABLE_MONITORING: 1, TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC: 1800": (
            Benign("process-group-life")
        ),
        "[I ProcessGroupNCCL.cpp:835] [Rank 3] NCCL watchdog thread started!": Benign("process-group-life"),
        "[rank3]:[I314 09:00:00.4 ProcessGroupNCCL.cpp:1890] [PG ID 0 PG GUID 0 Rank 3] Process group watchdog thread "
        "started!": Benign("process-group-life"),
        "[rank3]:[I314 09:00:00.4 ProcessGroupNCCL.cpp:1890] [PG ID 0 PG GUID 0 Rank 3] Process group watchdog thread "
        "terminated normally": Benign("process-group-life"),
        "[rank3]:[I314 09:00:00.4 ProcessGroupNCCL.cpp:1420] [PG ID 0 PG GUID 0 Rank 3] ProcessGroupNCCL aborts "
        "successfully.": Benign("process-group-life"),
    },
    rejects=(
        "[rank2]:[E314 09:10:00.1 ProcessGroupNCCL.cpp:1895] [PG ID 0 PG GUID 0(default_pg) Rank 2] Process group "
        "watchdog thread terminated with exception: CUDA error: an illegal memory access was encountered",
    ),
)
def process_group_life(found: Any) -> Benign:
    """A process group's coming and going at level I (TORCH_CPP_LOG_LEVEL=INFO): an abort that went well is how a group
    is destroyed on purpose as well."""
    return Benign("process-group-life")


PATTERNS = (torch_caution, groups_not_destroyed, process_group_life)
