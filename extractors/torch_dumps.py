"""PyTorch's flight recorder: the dump that follows a timeout or a watchdog's hang, and where it lies.

A dump is no fault of its own. Its file tells which rank did not enter the collective.
"""

from typing import Any

from extractors.pattern import Nature, pattern
from extractors.signal import Noted

_TAG = r"(?:\[(?:PG [^\]]{1,120}|Rank \d+)\] )*\s*"


@pattern(
    "torch_dist",
    Nature.FACT,
    hints=(
        "to signal dumping.",
        "preparing to dump debug info",
        "dumping nccl trace to ",
        "Flight Recorder trace successfully dumped",
        "Finished flight recorder successfully",
        "Broadcasting flight recorder dump signal",
    ),
    regex=_TAG + r"(?:First PG on this rank to signal dumping\.|ProcessGroupNCCL preparing to dump debug info\."
    r"|ProcessGroupNCCL dumping nccl trace to \S+|(?P<done>Flight Recorder trace successfully dumped\."
    r"|Finished flight recorder successfully\.)|Broadcasting flight recorder dump signal to other processes)",
    samples={
        "[rank6]:[E314 09:00:01.118313829 ProcessGroupNCCL.cpp:684] [PG ID 1 PG GUID 1(mesh_fsdp) Rank 6] First PG on "
        "this rank to signal dumping.": Noted("flight-recorder-dump"),
        "[rank6]:[E ProcessGroupNCCL.cpp:1346] [PG 1 Rank 6] ProcessGroupNCCL preparing to dump debug info.": (
            Noted("flight-recorder-dump")
        ),
        "[rank6]:[E314 09:00:01.118313829 ProcessGroupNCCL.cpp:1682] [PG ID 1 PG GUID 1 Rank 6] ProcessGroupNCCL "
        "preparing to dump debug info. Include stack trace: 1": Noted("flight-recorder-dump"),
        "[rank6]:[E314 09:00:01.118313829 ProcessGroupNCCL.cpp:1777] [PG ID 1 PG GUID 1 Rank 6] ProcessGroupNCCL "
        "preparing to dump debug info. Include stack trace: 1, only active collectives: 0": (
            Noted("flight-recorder-dump")
        ),
        "[rank6]:[E314 09:00:01.118313829 ProcessGroupNCCL.cpp:1503] [PG ID 1 PG GUID 1 Rank 6] ProcessGroupNCCL "
        "dumping nccl trace to /tmp/nccl_trace_rank_6": Noted("flight-recorder-dump"),
        "[rank6]:[I314 09:00:01.118313829 FlightRecorder.cpp:40] Flight Recorder trace successfully dumped.": (
            Noted("flight-recorder-dumped")
        ),
        "[rank6]:[E314 09:00:01.118313829 ProcessGroupNCCL.cpp:1531] [PG ID 1 PG GUID 1 Rank 6] Finished flight "
        "recorder successfully. Output can be analyzed using the fr_trace script.": Noted("flight-recorder-dumped"),
        "[rank6]:[I314 09:00:01.118313829 ProcessGroupNCCL.cpp:1550] [PG ID 1 PG GUID 1 Rank 6] Broadcasting flight "
        "recorder dump signal to other processes via TCPStore.": Noted("flight-recorder-dump"),
    },
    rejects=(
        "[rank0]:[E314 09:00:02.114313829 ProcessGroupNCCL.cpp:1806] [PG ID 1 PG GUID 1(mesh_fsdp) Rank 0] Observed "
        "flight recorder dump signal from another rank via TCPStore.",
        "ProcessGroupNCCL dumping is what I want",
    ),
)
def flight_recorder_dump(found: Any) -> Noted:
    """A rank dumps its last collectives (torch 2.2 on, into TORCH_FR_DUMP_TEMP_FILE or TORCH_NCCL_DEBUG_INFO_TEMP_FILE
    and its rank): the timeout or the hang stands before it."""
    return Noted("flight-recorder-dumped" if found["done"] else "flight-recorder-dump")


@pattern(
    "torch_dist",
    Nature.FACT,
    hints=("Stack trace of the failed collective",),
    regex=_TAG + r"Stack trace of the failed collective(?P<none> not found, potentially because FlightRecorder|:)",
    samples={
        "[rank6]:[E314 09:00:01.118313829 ProcessGroupNCCL.cpp:730] [PG ID 1 PG GUID 1(mesh_fsdp) Rank 6] Stack trace "
        "of the failed collective not found, potentially because FlightRecorder is disabled. You can enable it by "
        "setting TORCH_NCCL_TRACE_BUFFER_SIZE to a non-zero value.": Noted("flight-recorder-off"),
        "[rank6]:[E314 09:00:01.118313829 ProcessGroupNCCL.cpp:725] [PG ID 1 PG GUID 1(mesh_fsdp) Rank 6] Stack trace "
        "of the failed collective: ": Noted("failed-collective-stack"),
    },
    rejects=("the Stack trace of the failed collective: is long",),
)
def failed_collective_stack(found: Any) -> Noted:
    """Below it stand the frames that entered the collective which timed out (torch 2.4 on), where the flight recorder
    was on to keep them."""
    return Noted("failed-collective-stack" if found["none"] == ":" else "flight-recorder-off")


PATTERNS = (flight_recorder_dump, failed_collective_stack)
