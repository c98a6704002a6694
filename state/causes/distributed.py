"""Causes of torch.distributed and NCCL."""

from state.causes.cause import Cause, Transient

ROWS = (
    Cause(
        "collective_timeout",
        "a collective that timed out",
        Transient.UNKNOWN,
        "find the rank that did not enter the collective (stacks of all policy ranks, flight recorder)",
        "hold until the absent rank is explained, then relaunch from the last checkpoint",
        (
            "PyTorch 2.0–2.12, ProcessGroupNCCL («Watchdog caught collective operation timeout»); PyTorch's "
            "Flight Recorder tutorial"
        ),
        hang=True,
    ),
    Cause(
        "collective_abort",
        "a policy rank that its watchdog aborted after a collective timeout",
        Transient.UNKNOWN,
        "find the rank that did not enter the collective (stacks of all policy ranks, flight recorder)",
        "relaunch from the last checkpoint once the absent rank is explained; hold until then",
        (
            "PyTorch 2.1–2.12, ProcessGroupNCCL («we are taking the entire process down», «Terminating the "
            "process … due to collective timeout»)"
        ),
        hang=True,
        fatal=True,
    ),
    Cause(
        "watchdog_stuck",
        "a NCCL watchdog thread that stands still (GIL or CUDA hang)",
        Transient.UNKNOWN,
        "take stacks with native frames of the named rank; look for a thread that holds the GIL",
        "relaunch after the holder is known",
        (
            "PyTorch 2.2–2.12, heartbeat monitor: its own message names a CUDA API hang or another thread that "
            "holds the GIL (TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC)"
        ),
        hang=True,
        fatal=True,
    ),
    Cause(
        "weight_sync_bootstrap_timeout",
        "the weight-sync bootstrap that timed out on its store key",
        Transient.UNKNOWN,
        (
            "check that every engine joined the weight-sync group with ranks 1..N-1 exactly once and that "
            "rank 0 published the NCCL id"
        ),
        "hold until the weight-sync group builds, then relaunch",
        (
            "SkyRL's weight-sync group (world size engines × TP × PP × DP + 1, rank 0 the trainer) over PyTorch's "
            "store («wait timeout after 1800000ms, keys: /skyrl/…»)"
        ),
        hang=True,
    ),
    Cause(
        "store_wait_timeout",
        "a rendezvous store key that never came",
        Transient.UNKNOWN,
        "find the rank that should have published the key; look at its log before the timeout",
        "relaunch after that rank is explained",
        (
            "PyTorch 2.0–2.12, ProcessGroupNCCL and TCPStore: «This may indicate a possible application crash on "
            "rank 0 or a network set up issue»"
        ),
        hang=True,
    ),
    Cause(
        "nccl_error",
        "a NCCL error",
        Transient.UNKNOWN,
        "read the NCCL WARN line before it; check the fabric",
        "relaunch on other nodes if the fabric is at fault",
        (
            "NCCL 2.18–2.27 by PyTorch's DistBackendError («run with NCCL_DEBUG=INFO for details»); NCCL docs, "
            "Troubleshooting"
        ),
    ),
    Cause(
        "fabric_error",
        "a fabric error that NCCL reports",
        Transient.UNKNOWN,
        "drain the named node and HCA",
        "relaunch without the node",
        (
            "NCCL 2.18–2.27, NET/IB («Got completion from peer … with status=12», «async fatal event»), which "
            "names the HCA"
        ),
    ),
    Cause(
        "peer_lost",
        "a peer that went away",
        Transient.UNKNOWN,
        "look for the peer's own error before it",
        "relaunch after the peer is explained",
        (
            "NCCL 2.18–2.27 («Connection closed by remote peer») and PyTorch's TCPStore («Did the remote server "
            "shutdown or crash?»)"
        ),
    ),
    Cause(
        "nccl_misconfigured",
        "ranks that NCCL could not bring together",
        Transient.NO,
        "fix what the warning names: NCCL_SOCKET_IFNAME, device pinning, NCCL versions, group sizes",
        "hold until fixed",
        (
            "NCCL 2.18–2.27, its WARN lines («no socket interface found», «Duplicate GPU detected», «Mismatched "
            "NCCL version»); NCCL docs, Environment variables"
        ),
    ),
)
