"""PyTorch's ProcessGroupNCCL: collectives that time out, and survivors that notice. What its watchdogs do about it
stands in `torch_watchdog`, what they dump in `torch_dumps`.

Serves gate A rule 5. The c10 prefix (`[rank5]:[E701 …]`) and the process-group tag after it are peeled before a pattern
looks, and name the rank; a tag that is left stands inside raw text. Store and rendezvous are in `torch_store`.
"""

from typing import Any

from extractors import torch_benign, torch_dumps, torch_store, torch_watchdog
from extractors.pattern import Nature, Role, pattern
from extractors.signal import Fault
from extractors.torch_tags import TAG, rank_of


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
        "[rank5]:[E314 09:00:00.426415540 ProcessGroupNCCL.cpp:607] [PG 3 Rank 1] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=77, OpType=COALESCED, NumelIn=18446744073709551615, NumelOut=18446744073709551615, "
        "Timeout(ms)=600000) ran for 600063 milliseconds before timing out.": (
            Fault("collective_timeout", "COALESCED timed out after 600 s")
        ),
        "[rank5]:[E1229 09:00:00.426415540 ProcessGroupNCCL.cpp:693] [PG ID 4 PG GUID 12 Rank 5] Watchdog caught "
        "collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLGATHER_INTO_TENSOR_COALESCED, NumelIn=1, "
        "NumelOut=8, Timeout(ms)=7200000) ran for 7200003 milliseconds before timing out.": (
            Fault("collective_timeout", "ALLGATHER_INTO_TENSOR_COALESCED timed out after 7200 s")
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
    role=Role.CASCADE,
    hints=("Observed flight recorder dump signal", "Received a dump signal due to a collective timeout from "),
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


PATTERNS = (
    collective_timeout,
    collective_timeout_state,
    *torch_watchdog.PATTERNS,
    peer_timed_out,
    *torch_store.PATTERNS,
    *torch_dumps.PATTERNS,
    *torch_benign.PATTERNS,
)
