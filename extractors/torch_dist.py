"""PyTorch's ProcessGroupNCCL: collectives that time out, watchdogs that abort, survivors that notice.

Serves gate A rule 5. The c10 prefix (`[rank5]:[E701 …]`) and the process-group tag after it are peeled before a pattern
looks, and name the rank; a tag that is left stands inside raw text. Store and rendezvous are in `torch_store`.
"""

from typing import Any

from extractors import torch_benign, torch_store
from extractors.pattern import Nature, Role, pattern
from extractors.signal import Fault

TAG = r"(?:\[(?:PG (?P<group>\d+) |PG ID \d+ PG GUID (?P<group>\w+(?:\([^)]*\))?) )?Rank (?P<rank>\d+)\] )"
"""`[Rank 0] ` (2.1), `[PG 0 Rank 1] ` (2.2 to 2.4), `[PG ID 2 PG GUID 7563(TENSOR) Rank 3] ` (2.5 and later)."""

THROWN = (
    r"(?:(?:terminate called[^\n]*)?\s*what\(\): +|Unhandled exception: \w+\. what\(\): +|(?:[\w.]+\.)?\w*Error: )?"
)
"""What stands before a text that is thrown and not logged: C++'s what(), Ray's terminate handler, a Python type."""


@pattern(
    "torch_dist",
    Nature.FAULT,
    role=Role.EITHER,
    hints=("Watchdog caught collective operation timeout",),
    regex=r"(?:what\(\): +|(?:[\w.]+\.)?\w*Error: )?"
    + TAG
    + r"*Watchdog caught collective operation timeout: WorkNCCL\((?:SeqNum=\d+(?:, )?)?(?:OpType=(?P<operation>\w+))?"
    r"(?:[^\n]{0,200}?Timeout\(ms\)=(?P<limit>\d+)\))?",
    samples={
        "[E ProcessGroupNCCL.cpp:475] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=412, "
        "OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1800268 milliseconds before timing out.": (
            Fault("collective_timeout", "ALLREDUCE timed out after 1800 s")
        ),
        "[rank1]:[E ProcessGroupNCCL.cpp:563] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL("
        "SeqNum=412, OpType=BROADCAST, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600096 milliseconds before "
        "timing out.": Fault("collective_timeout", "BROADCAST timed out after 600 s"),
        "(FSDPPolicyWorkerBase pid=900) [rank6]:[E314 09:00:00.426415540 ProcessGroupNCCL.cpp:616] [Rank 6] Watchdog "
        "caught collective operation timeout: WorkNCCL(SeqNum=77, OpType=ALLTOALL, NumelIn=9, NumelOut=9, "
        "Timeout(ms)=600000) ran for 600013 milliseconds before timing out.": (
            Fault("collective_timeout", "ALLTOALL timed out after 600 s")
        ),
        "[rank5]:[E1229 09:00:00.426415540 ProcessGroupNCCL.cpp:683] [PG ID 2 PG GUID "
        "7563(TENSOR_MODEL_PARALLEL_GROUP) "
        "Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=77, OpType=_ALLGATHER_BASE, "
        "NumelIn=1048576, NumelOut=8388608, Timeout(ms)=1800000) ran for 1800041 milliseconds before timing out.": (
            Fault("collective_timeout", "_ALLGATHER_BASE timed out after 1800 s")
        ),
        "[E ProcessGroupNCCL.cpp:475] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=41": (
            Fault("collective_timeout", "a collective timed out")
        ),
        "torch.distributed.DistBackendError: [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3, "
        "OpType=BARRIER, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600041 milliseconds before timing out.": (
            Fault("collective_timeout", "BARRIER timed out after 600 s", rank=2)
        ),
    },
    rejects=(
        "the last line was Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=SEND, "
        "Timeout(ms)=1)",
        "[rank5]:[E1229 09:00:00.4 ProcessGroupNCCL.cpp:1895] [PG ID 0 PG GUID 0(default_pg) Rank 5] Process group "
        "watchdog thread terminated with exception: [Rank 5] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=1, OpType=SEND, Timeout(ms)=1) ran for 2 milliseconds before timing out.",
    ),
)
def collective_timeout(found: Any) -> Fault:
    """A collective of this rank outlived its group's timeout. The absent rank is another one; without an abort or a
    death after it the line alone is no proof of an end (torch 2.1 to 2.12)."""
    seconds = f" after {int(found['limit']) // 1000} s" if found["limit"] else ""
    return Fault(
        "collective_timeout", f"{found['operation'] or 'a collective'} timed out{seconds}", rank=rank_of(found)
    )


@pattern(
    "torch_dist",
    Nature.FAULT,
    role=Role.EITHER,
    hints=("detected by watchdog at work", "Timeout at NCCL work: ", "Timeout at collective: ", "from this local rank"),
    regex=TAG + r"*\s*(?:Exception \(either an error or timeout\) detected by watchdog at work: (?P<work>\d+)"
    r"|failure detected by watchdog at work sequence id: (?P<sequence>\d+)"
    r"|Timeout at NCCL work: (?P<nccl_work>\d+)|Timeout at collective: (?P<operation>\w+)"
    r"|Received a dump signal due to a collective timeout from this local rank)",
    samples={
        "[rank3]:[E ProcessGroupNCCL.cpp:523] [Rank 3] Timeout at NCCL work: 77, last enqueued NCCL work: 79, last "
        "completed NCCL work: 76.": Fault("collective_timeout", "a watchdog gives the state of its group"),
        "[rank3]:[E314 09:00:00.861967180 ProcessGroupNCCL.cpp:1785] [PG ID 2 PG GUID 9 Rank 3] Exception (either an "
        "error or timeout) detected by watchdog at work: 77, last enqueued NCCL work: 79, last completed NCCL work: "
        "76.": Fault("collective_timeout", "a watchdog gives the state of its group"),
        "[rank3]:[E314 09:00:00.861967180 ProcessGroupNCCL.cpp:2241] [PG ID 1 PG GUID 1(mesh_fsdp) Rank 3]   failure "
        "detected by watchdog at work sequence id: 77 PG status: last enqueued work: 79, last completed work: 76": (
            Fault("collective_timeout", "a watchdog gives the state of its group")
        ),
        "[E ProcessGroupNCCL.cpp:460] [Rank 3] Timeout at collective: ALLREDUCE, #12": (
            Fault("collective_timeout", "a watchdog gives the state of its group")
        ),
        "[rank3]:[E314 09:00:01.861967180 ProcessGroupNCCL.cpp:1870] [PG ID 1 PG GUID 1 Rank 3] Received a dump signal "
        "due to a collective timeout from this local rank and we will try our best to dump the debug info.": (
            Fault("collective_timeout", "a watchdog gives the state of its group")
        ),
    },
    rejects=("no failure detected by watchdog at work today", "Timeout at work"),
)
def collective_timeout_state(found: Any) -> Fault:
    """The lines that follow a watchdog's timeout: last enqueued and last completed work of the same rank."""
    return Fault("collective_timeout", "a watchdog gives the state of its group", rank=rank_of(found))


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


@pattern(
    "torch_dist",
    Nature.FAULT,
    role=Role.CASCADE,
    hints=("Observed flight recorder dump signal", "Received a dump signal due to a collective timeout from  rank"),
    regex=TAG + r"*(?:Observed flight recorder dump signal from another rank via TCPStore"
    r"|Received a dump signal due to a collective timeout from +rank (?P<first>\d+))",
    samples={
        "[rank0]:[E314 09:00:02.114313829 ProcessGroupNCCL.cpp:1806] [PG ID 1 PG GUID 1(mesh_fsdp) Rank 0] Observed "
        "flight recorder dump signal from another rank via TCPStore.": Fault("peer_lost", "another rank timed out"),
        "[rank0]:[E314 09:00:02.115313697 ProcessGroupNCCL.cpp:1870] [PG ID 1 PG GUID 1(mesh_fsdp) Rank 0] Received a "
        "dump signal due to a collective timeout from  rank 6 and we will try our best to dump the debug info.": (
            Fault("peer_lost", "another rank timed out", entity="rank 6")
        ),
    },
    rejects=(
        "[rank6]:[E314 09:00:01.1 ProcessGroupNCCL.cpp:1870] [PG ID 1 PG GUID 1 Rank 6] Received a dump signal due to "
        "a "
        "collective timeout from this local rank and we will try our best to dump the debug info.",
    ),
)
def peer_timed_out(found: Any) -> Fault:
    """A survivor learned that another rank's watchdog fired first; entity names that rank where the line does."""
    return Fault("peer_lost", "another rank timed out", entity=f"rank {found['first']}" if found["first"] else "")


def rank_of(found: Any) -> int | None:
    """The rank of a tag that the text kept. A sub-group's tag counts inside its group, so that it names no rank."""
    group = found["group"] or ""
    return int(found["rank"]) if found["rank"] and (not group or group.startswith("0")) else None


PATTERNS = (
    collective_timeout,
    collective_timeout_state,
    collective_abort,
    watchdog_met_error,
    watchdog_stuck,
    gil_not_acquired,
    peer_timed_out,
    *torch_store.PATTERNS,
    *torch_benign.PATTERNS,
)
