"""NCCL's warnings and errors that name a fault: misconfiguration, the fabric, lost peers, CUDA underneath.

A WARN line reads `host:pid:tid [device] file.cc:line NCCL WARN message`; 2.26 puts a time before it, 2.30 the function
after the file. Most WARN lines are echoes of an error elsewhere: only those that say what happened are read.
"""

from typing import Any

from extractors.pattern import Nature, Role, pattern
from extractors.signal import Fault

WARN = r"(?:\[[^\]]{19,32}\] )?[\w.-]+:\d+:\d+ \[-?\d+\] (?:[\w./-]+:\d+ )?(?:\(\w+\) )?NCCL WARN "


SAID = f"(?:{WARN})?"
"""A warning, or its text alone: PyTorch repeats it on the line after `Last error:`, behind the result code."""


@pattern(
    "nccl",
    Nature.FAULT,
    role=Role.ROOT,
    hints=(
        "no socket interface found",
        "No usable listening interface found",
        "Duplicate GPU detected",
        "Mismatched NCCL version",
        "Message truncated : received",
        "mismatch in info from procs",
    ),
    regex=SAID + r"(?P<what>Bootstrap ?: no socket interface found|NET/Socket ?: No usable listening interface found"
    r"|Duplicate GPU detected(?= ?: rank \d)|Mismatched NCCL version detected(?= ?: rank \d)"
    r"|Message truncated ?: received(?= \d+ bytes)|Bootstrap Root ?: mismatch in info from procs)",
    samples={
        "node-11:900:950 [3] misc/socket.cc:460 NCCL WARN Bootstrap : no socket interface found": (
            Fault("nccl_misconfigured", "Bootstrap : no socket interface found")
        ),
        "[2031-03-14 09:00:00] node-11:900:950 [0] transport/net_socket.cc:80 NCCL WARN NET/Socket : No usable "
        "listening interface found": Fault("nccl_misconfigured", "NET/Socket : No usable listening interface found"),
        "node-11:900:950 [0] init.cc:880 NCCL WARN Duplicate GPU detected : rank 2 and rank 3 both on CUDA device "
        "5d000": Fault("nccl_misconfigured", "Duplicate GPU detected"),
        "node-11:900:950 [0] init.cc:901 NCCL WARN Mismatched NCCL version detected : rank 0 version 22707": (
            Fault("nccl_misconfigured", "Mismatched NCCL version detected")
        ),
        "[2031-03-14 09:00:00] node-11:900:950 [0] bootstrap.cc:302 (bootstrapRoot) NCCL WARN Bootstrap Root : "
        "mismatch "
        "in info from procs, nranks 16 vs 8, nroots 1": (
            Fault("nccl_misconfigured", "Bootstrap Root : mismatch in info from procs")
        ),
        "node-11:900:950 [0] misc/socket.cc:50 NCCL WARN Message truncated : received 8 bytes instead of 4": (
            Fault("nccl_misconfigured", "Message truncated : received")
        ),
        "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 5d000": (
            Fault("nccl_misconfigured", "Duplicate GPU detected")
        ),
    },
    rejects=(
        "node-11:900:950 [0] NCCL INFO Bootstrap: Using eth0:10.1.0.4<0>",
        "Duplicate GPU detected, so I pin each rank",
    ),
)
def nccl_misconfigured(found: Any) -> Fault:
    """The ranks can't agree or have no interface: NCCL_SOCKET_IFNAME, device pinning, versions, group sizes."""
    return Fault("nccl_misconfigured", found["what"])


@pattern(
    "nccl",
    Nature.FAULT,
    role=Role.ROOT,
    hints=("async fatal event", "Got completion from peer"),
    regex=SAID + r"NET/IB ?: (?:(?P<device>\w+)(?::\d+)? (?P<event>async fatal event)"
    r"|Got completion from peer[^\n]*?status=(?P<status>\d+)[^\n]*?(?:hca (?P<hca>\w+))?$)",
    samples={
        "node-11:900:950 [3] transport/net_ib.cc:122 NCCL WARN NET/IB : mlx5_4:1 async fatal event: local work queue "
        "catastrophic error": Fault("fabric_error", "async fatal event", entity="mlx5_4"),
        "[2031-03-14 09:00:00] node-11:900:950 [3] transport/net_ib.cc:2301 NCCL WARN NET/IB: Got completion from peer "
        "10.1.0.7<53412> with status=12 opcode=0 len=0 vendor err 129 (Send) localGid fe80::1 hca mlx5_4": (
            Fault("fabric_error", "completion with status 12", entity="mlx5_4")
        ),
        "node-11:900:950 [3] transport/net_ib.cc:1101 NCCL WARN NET/IB : Got completion from peer 10.1.0.7<53412> with "
        "status=5 opcode=0 len=0 vendor err 244 (Recv)": Fault("fabric_error", "completion with status 5"),
        "[2031-03-14 09:00:00] node-11:900:950 [3] transport/net_ib.cc:610 (ncclIbAsyncThreadMain) NCCL WARN NET/IB : "
        "mlx5_4:1 async fatal event: local catastrophic error": (
            Fault("fabric_error", "async fatal event", entity="mlx5_4")
        ),
        "NET/IB: Got completion from peer 10.1.0.7<53412> with status=12 opcode=0 len=0 vendor err 129 (Send) hca "
        "mlx5_2": Fault("fabric_error", "completion with status 12", entity="mlx5_2"),
    },
    rejects=("node-11:900:950 [3] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.1.0.4<0>",),
)
def fabric_error(found: Any) -> Fault:
    """InfiniBand failed under NCCL: a device's fatal event or a work completion with an error status (12: retries)."""
    if found["event"]:
        return Fault("fabric_error", found["event"], entity=found["device"])
    return Fault("fabric_error", f"completion with status {found['status']}", entity=found["hca"] or "")


@pattern(
    "nccl",
    Nature.FAULT,
    role=Role.CASCADE,
    hints=("Connection closed by remote peer", "exceeded error retry count", "ncclRemoteError"),
    regex=r"(?:(?:"
    + WARN
    + r"(?:\w+: )?|socket\w+: )(?:(?P<closed>Connection closed by remote peer)(?: (?P<peer>[^\s<]+))?"
    r"|connect to (?P<address>\S+) returned [\w ]+, (?P<refused>exceeded error retry count))"
    r"|(?P<remote>ncclRemoteError): )",
    samples={
        "node-11:900:950 [3] misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by remote peer "
        "node-12<41234>": Fault("peer_lost", "Connection closed by remote peer", entity="node-12"),
        "node-11:900:950 [3] misc/socket.cc:550 NCCL WARN socketPollConnect: connect to 10.1.0.7<53412> returned "
        "Connection refused, exceeded error retry count (35)": (
            Fault("peer_lost", "exceeded error retry count", entity="10.1.0.7<53412>")
        ),
        "[2031-03-14 09:00:00] node-11:900:950 [3] misc/socket.cc:601 NCCL WARN socketPollConnect: connect to "
        "10.1.0.7<53412> returned Connection refused, exceeded error retry count after 35 attempts": (
            Fault("peer_lost", "exceeded error retry count", entity="10.1.0.7<53412>")
        ),
        "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.": (
            Fault("peer_lost", "ncclRemoteError")
        ),
        "socketProgress: Connection closed by remote peer node-12.local<41234>": (
            Fault("peer_lost", "Connection closed by remote peer", entity="node-12.local")
        ),
    },
    rejects=(
        "node-11:900:950 [3] NCCL INFO Connection closed by remote peer is what I expect",
        "curl: Connection closed by remote peer",
    ),
)
def nccl_peer_lost(found: Any) -> Fault:
    """The other end of a NCCL socket went away or never listened: look for that process's own error."""
    if found["remote"]:
        return Fault("peer_lost", "ncclRemoteError")
    if found["closed"]:
        return Fault("peer_lost", found["closed"], entity=found["peer"] or "")
    return Fault("peer_lost", found["refused"], entity=found["address"])


@pattern(
    "nccl",
    Nature.FAULT,
    role=Role.EITHER,
    hints=("NCCL WARN Cuda failure",),
    regex=WARN + r"Cuda failure (?:\d+ )?'(?P<what>(?!out of memory)[^']*)'",
    samples={
        "node-11:900:950 [3] transport.cc:180 NCCL WARN Cuda failure 'unspecified launch failure'": (
            Fault("cuda_error", "unspecified launch failure")
        ),
        "node-11:900:950 [3] enqueue.cc:90 NCCL WARN Cuda failure 700 'an illegal memory access was encountered'": (
            Fault("cuda_error", "an illegal memory access was encountered")
        ),
    },
    rejects=("node-11:900:950 [3] enqueue.cc:90 NCCL WARN Cuda failure 2 'out of memory'",),
)
def nccl_cuda_failure(found: Any) -> Fault:
    """A CUDA call inside NCCL failed; the error is sticky, an earlier kernel of the process may be the one at fault."""
    return Fault("cuda_error", found["what"])


@pattern(
    "nccl",
    Nature.FAULT,
    role=Role.ROOT,
    hints=("NCCL WARN Cuda failure",),
    regex=WARN + r"Cuda failure (?:\d+ )?'out of memory'",
    samples={
        "node-11:900:950 [3] init.cc:410 NCCL WARN Cuda failure 'out of memory'": (
            Fault("cuda_oom", "NCCL found no GPU memory for its buffers")
        ),
        "[2031-03-14 09:00:00] node-11:900:950 [3] include/alloc.h:228 NCCL WARN Cuda failure 2 'out of memory'": (
            Fault("cuda_oom", "NCCL found no GPU memory for its buffers")
        ),
    },
    rejects=("node-11:900:950 [3] enqueue.cc:90 NCCL WARN Cuda failure 'unspecified launch failure'",),
)
def nccl_out_of_memory(found: Any) -> Fault:
    """NCCL could not allocate its own GPU buffers: the process had left it nothing."""
    return Fault("cuda_oom", "NCCL found no GPU memory for its buffers")


@pattern(
    "nccl",
    Nature.FAULT,
    role=Role.EITHER,
    hints=("NCCL error in: ", "NCCL Error "),
    regex=r"(?:what\(\): +)?(?:[\w.]+\.)?(?P<type>DistBackendError|RuntimeError): NCCL [eE]rror(?: in: [^\s,]+)?,? ?"
    r"(?P<what>[^(\n,]*)",
    samples={
        "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:317, "
        "unhandled "
        "system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.27.7": (
            Fault("nccl_error", "unhandled system error", "DistBackendError")
        ),
        "RuntimeError: NCCL Error 2: unhandled system error": (
            Fault("nccl_error", "2: unhandled system error", "RuntimeError")
        ),
    },
    rejects=("torch.distributed.DistBackendError: NCCL is not available", "I saw an NCCL error in: step 3"),
)
def nccl_error(found: Any) -> Fault:
    """A NCCL call returned an error to PyTorch; the WARN line before it, or another rank, says why."""
    return Fault("nccl_error", found["what"].strip(), found["type"])


@pattern(
    "nccl",
    Nature.FAULT,
    role=Role.CASCADE,
    hints=(
        "ncclUnhandledCudaError: ",
        "ncclSystemError: ",
        "ncclInternalError: ",
        "ncclInvalidArgument: ",
        "ncclInvalidUsage: ",
    ),
    regex=r"(?P<code>nccl(?:UnhandledCudaError|SystemError|InternalError|InvalidArgument|InvalidUsage)): (?=[A-Z])",
    samples={
        "ncclUnhandledCudaError: Call to CUDA function failed.": Fault("nccl_error", "ncclUnhandledCudaError"),
        "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.": (
            Fault("nccl_error", "ncclSystemError")
        ),
        "ncclInternalError: Internal check failed.": Fault("nccl_error", "ncclInternalError"),
        "ncclInvalidArgument: Invalid value for an argument.": Fault("nccl_error", "ncclInvalidArgument"),
        "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.": (
            Fault("nccl_error", "ncclInvalidUsage")
        ),
    },
    rejects=(
        "case ncclSystemError: return 2;",
        "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
    ),
)
def nccl_result(found: Any) -> Fault:
    """The line below PyTorch's NCCL exception: what kind of call failed. The line after its `Last error:` says why."""
    return Fault("nccl_error", found["code"])


PATTERNS = (
    nccl_misconfigured,
    fabric_error,
    nccl_peer_lost,
    nccl_cuda_failure,
    nccl_out_of_memory,
    nccl_error,
    nccl_result,
)
