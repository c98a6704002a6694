"""PyTorch's NCCL watchdog: it ends its process after a timeout or an error, or stands still itself."""

from typing import Any

from extractors.pattern import Nature, Role, pattern
from extractors.signal import Fault
from extractors.torch_tags import TAG, THROWN, rank_of


@pattern(
    "torch_dist",
    Nature.FAULT,
    role=Role.EITHER,
    hints=(
        "taking the entire process down",
        "Some NCCL operations have failed or timed out",
        "Terminating the process after attempting to dump",
        "watchdog thread terminated with exception",
    ),
    regex=THROWN
    + TAG
    + r"*(?P<what>To avoid (?:data inconsistency|this inconsistency), we are taking the entire process down"
    r"|Some NCCL operations have failed or timed out"
    r"|Terminating the process after attempting to dump debug info, due to (?:ProcessGroupNCCL watchdog hang"
    r"|collective timeout or exception)"
    r"|(?:Process group|NCCL) watchdog thread terminated with exception(?=: (?:\[[^\]]*\] ?)*Watchdog caught))",
    samples={
        "[E ProcessGroupNCCL.cpp:489] Some NCCL operations have failed or timed out. Due to the asynchronous nature of "
        "CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.": (
            Fault("collective_abort", "Some NCCL operations have failed or timed out")
        ),
        "[rank1]:[E ProcessGroupNCCL.cpp:583] [Rank 1] To avoid data inconsistency, we are taking the entire process "
        "down.": Fault("collective_abort", "To avoid data inconsistency, we are taking the entire process down"),
        "[E ProcessGroupNCCL.cpp:915] [Rank 3] NCCL watchdog thread terminated with exception: [Rank 3] Watchdog "
        "caught "
        "collective operation timeout: WorkNCCL(SeqNum=77, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1800268 "
        "milliseconds before timing out.": (
            Fault("collective_abort", "NCCL watchdog thread terminated with exception")
        ),
        "[rank0]:[F314 09:10:00.356851194 ProcessGroupNCCL.cpp:1557] [PG ID 0 PG GUID 0(default_pg) Rank 0] "
        "Terminating "
        "the process after attempting to dump debug info, due to ProcessGroupNCCL watchdog hang.": Fault(
            "collective_abort",
            "Terminating the process after attempting to dump debug info, due to ProcessGroupNCCL watchdog hang",
        ),
        "[rank0]:[F314 09:10:00.356851194 ProcessGroupNCCL.cpp:1557] [PG ID 0 PG GUID 0(default_pg) Rank 0] "
        "Terminating "
        "the process after attempting to dump debug info, due to collective timeout or exception.": Fault(
            "collective_abort",
            "Terminating the process after attempting to dump debug info, due to collective timeout or exception",
        ),
        "  what():  [PG ID 0 PG GUID 0(default_pg) Rank 5] Process group watchdog thread terminated with exception: "
        "[Rank 5] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=77, OpType=SEND, NumelIn=1, "
        "NumelOut=1, "
        "Timeout(ms)=600000) ran for 600032 milliseconds before timing out.": (
            Fault("collective_abort", "Process group watchdog thread terminated with exception", rank=5)
        ),
        "[2031-03-14 09:10:00,672 E 900 950] logging.cc:118: Unhandled exception: N3c1016DistBackendErrorE. what(): "
        "[PG "
        "ID 0 PG GUID 0(default_pg) Rank 1] Process group watchdog thread terminated with exception: [Rank 1] Watchdog "
        "caught collective operation timeout: WorkNCCL(SeqNum=77, OpType=SEND, Timeout(ms)=1)": (
            Fault("collective_abort", "Process group watchdog thread terminated with exception", rank=1)
        ),
    },
    rejects=(
        "[rank1]:[I314 09:00:00.1 ProcessGroupNCCL.cpp:1890] [PG ID 0 PG GUID 0 Rank 1] Process group watchdog thread "
        "terminated normally",
        "we are taking the entire process down for maintenance",
    ),
)
def collective_abort(found: Any) -> Fault:
    """The watchdog ends its own process after a timeout (SIGABRT follows): an abort, unlike a lone timeout."""
    return Fault("collective_abort", found["what"], rank=rank_of(found))


@pattern(
    "torch_dist",
    Nature.FAULT,
    role=Role.EITHER,
    hints=("watchdog thread terminated with exception",),
    regex=THROWN + TAG + r"*(?:Process group|NCCL) watchdog thread terminated with exception: (?:\[[^\]]*\] ?)*"
    r"(?!Watchdog caught)(?P<what>(?P<cuda>CUDA error: )?[^\n(]{1,160})",
    samples={
        "[rank2]:[E314 09:10:00.1 ProcessGroupNCCL.cpp:1895] [PG ID 0 PG GUID 0(default_pg) Rank 2] Process group "
        "watchdog thread terminated with exception: CUDA error: an illegal memory access was encountered": (
            Fault("cuda_error", "CUDA error: an illegal memory access was encountered")
        ),
        "  what():  [PG 0 Rank 2] Process group watchdog thread terminated with exception: NCCL error: remote process "
        "exited or there was a network error, NCCL version 2.20.5": (
            Fault(
                "nccl_error",
                "NCCL error: remote process exited or there was a network error, NCCL version 2.20.5",
                rank=2,
            )
        ),
    },
    rejects=("Process group watchdog thread terminated normally",),
)
def watchdog_met_error(found: Any) -> Fault:
    """The watchdog ends its process because the device or NCCL returned an error, not because of a timeout."""
    return Fault("cuda_error" if found["cuda"] else "nccl_error", found["what"].strip(), rank=rank_of(found))


@pattern(
    "torch_dist",
    Nature.FAULT,
    role=Role.EITHER,
    hints=("Heartbeat monitor timed out!", "watchdog got stuck for", "no heartbeat of its watchdog"),
    regex=TAG + r"*(?:Heartbeat monitor timed out!|ProcessGroupNCCL's watchdog got stuck for (?P<seconds>\d+) seconds"
    r"|First PG on this rank that detected no heartbeat of its watchdog)",
    samples={
        "[rank4]:[E ProcessGroupNCCL.cpp:1316] [PG 5 Rank 0] Heartbeat monitor timed out! Process will be terminated "
        "after dumping debug info. workMetaList_.size()=2": Fault("watchdog_stuck", "no heartbeat of the watchdog"),
        "[rank2]:[F1019 09:14:03.356851194 ProcessGroupNCCL.cpp:1224] [PG 3 Rank 2] [PG 3 Rank 2] ProcessGroupNCCL's "
        "watchdog got stuck for 600 seconds without making progress in monitoring enqueued collectives.": (
            Fault("watchdog_stuck", "the watchdog stood still for 600 s")
        ),
        "[rank2]:[E314 09:53:25.421620797 ProcessGroupNCCL.cpp:1484] [PG ID 2 PG GUID 9 Rank 2] ProcessGroupNCCL's "
        "watchdog got stuck for 480 seconds without making progress in monitoring enqueued collectives.": (
            Fault("watchdog_stuck", "the watchdog stood still for 480 s")
        ),
        "[rank7]:[E1019 01:04:03.357615073 ProcessGroupNCCL.cpp:1375] [PG 3 Rank 7] First PG on this rank that "
        "detected "
        "no heartbeat of its watchdog.": Fault("watchdog_stuck", "no heartbeat of the watchdog"),
    },
    rejects=("my watchdog got stuck for 480 seconds", "Heartbeat monitor started"),
)
def watchdog_stuck(found: Any) -> Fault:
    """The watchdog thread itself stands still: a CUDA call hangs, or another thread holds the GIL
    (TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC). The process is ended after the dump, minutes later."""
    if found["seconds"]:
        return Fault("watchdog_stuck", f"the watchdog stood still for {found['seconds']} s", rank=rank_of(found))
    return Fault("watchdog_stuck", "no heartbeat of the watchdog", rank=rank_of(found))


@pattern(
    "torch_dist",
    Nature.FAULT,
    role=Role.CONFIRMS,
    hints=("Could not acquire GIL within",),
    regex=TAG + r"*Could not acquire GIL within \d+ ms on exit",
    samples={
        "[rank2]:[E314 09:53:25.421620797 ProcessGroupNCCL.cpp:1490] [PG ID 2 PG GUID 9 Rank 2] Could not acquire GIL "
        "within 300 ms on exit, possible GIL induced hang": Fault("watchdog_stuck", "another thread holds the GIL"),
    },
    rejects=("Could not acquire lock within 300 ms on exit",),
)
def gil_not_acquired(found: Any) -> Fault:
    """The heartbeat monitor asked for the GIL and did not get it: the hang is a thread that holds it."""
    return Fault("watchdog_stuck", "another thread holds the GIL", rank=rank_of(found))


PATTERNS = (collective_abort, watchdog_met_error, watchdog_stuck, gil_not_acquired)
