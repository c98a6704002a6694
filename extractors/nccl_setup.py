"""NCCL's set-up: its version, the network it chose, the plugins it looked for. Serves the report's notes.

Nothing here is a fault: a job on sockets works, only slower than its fabric would let it.
"""

from typing import Any

from extractors.pattern import Nature, pattern
from extractors.signal import Benign, BringUp, Noted

_HEAD = r"[\w.-]+:\d+:\d+ \[-?\d+\] "


@pattern(
    "nccl",
    Nature.FACT,
    hints=("NCCL version 2.",),
    regex=r"(?:" + _HEAD + r"NCCL INFO )?NCCL version (?P<version>2\.\d+\.\d+)",
    samples={
        "NCCL version 2.27.7+cuda12.8": BringUp("NCCL 2.27.7"),
        "(FSDPPolicyWorkerBase pid=900) NCCL version 2.21.5+cuda12.4": BringUp("NCCL 2.21.5"),
        "node-11:900:950 [0] NCCL INFO NCCL version 2.17.1+cuda12.1": BringUp("NCCL 2.17.1"),
    },
    rejects=(
        "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1, unhandled system error, NCCL "
        "version 2.27.7",
        "we should pin NCCL version 2.27.7",
    ),
)
def nccl_version(found: Any) -> BringUp:
    """A process loads NCCL for its first communicator; once a process, by the first rank of it."""
    return BringUp(f"NCCL {found['version']}")


@pattern(
    "nccl",
    Nature.FACT,
    hints=("NCCL INFO Using network ", "NCCL INFO NET/IB : No device found"),
    regex=_HEAD + r"NCCL INFO (?:Using network (?P<network>[\w-]+)|NET/IB : No device found)",
    samples={
        "node-11:900:950 [0] NCCL INFO Using network IB": Noted("nccl-over-ib"),
        "node-11:900:950 [0] NCCL INFO Using network IBext_v8": Noted("nccl-over-ibext-v8"),
        "node-11:900:950 [0] NCCL INFO Using network Socket": Noted("nccl-over-socket"),
        "node-11:900:950 [0] NCCL INFO NET/IB : No device found.": Noted("nccl-without-infiniband"),
    },
    rejects=(
        "node-11:900:950 [0] NCCL INFO Using non-device net plugin version 0",
        "node-11:900:950 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.1.0.4<0>",
        "INFO Using network Socket",
    ),
)
def nccl_network(found: Any) -> Noted:
    """The network under a communicator. `Socket`, or no InfiniBand device, on a cluster that has a fabric costs most of
    the bandwidth between nodes; where there is none it is right."""
    network = found["network"]
    return Noted("nccl-without-infiniband" if network is None else f"nccl-over-{network.lower().replace('_', '-')}")


@pattern(
    "nccl",
    Nature.FACT,
    hints=("NCCL INFO Bootstrap : Using ", "NCCL INFO Bootstrap: Using ", "NCCL INFO NET/IB : Using "),
    regex=_HEAD + r"NCCL INFO (?:Bootstrap ?: Using [\w.@-]+:|(?P<fabric>NET/IB : Using \[0\]))",
    samples={
        "node-11:900:950 [0] NCCL INFO Bootstrap : Using eth0:10.1.0.4<0>": BringUp("NCCL bootstrap interface"),
        "node-11:900:950 [0] NCCL INFO Bootstrap: Using eth0:10.1.0.4<0>": BringUp("NCCL bootstrap interface"),
        "node-11:900:950 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.1.0.4<0>": (
            BringUp("NCCL InfiniBand devices")
        ),
    },
    rejects=(
        "node-11:900:950 [3] misc/socket.cc:460 NCCL WARN Bootstrap : no socket interface found",
        "Bootstrap : Using eth0",
    ),
)
def nccl_interface(found: Any) -> BringUp:
    """The interface over which ranks find each other (up to 2.22 `Bootstrap :`, from 2.24 `Bootstrap:`), and the
    fabric's devices: healthy."""
    return BringUp("NCCL InfiniBand devices" if found["fabric"] else "NCCL bootstrap interface")


@pattern(
    "nccl",
    Nature.BENIGN,
    hints=("libnccl-net", "NET/Plugin", "TUNER/Plugin", "opCount "),
    regex=r"(?:[\w.-]+:\d+:\d+ \[-?\d+\] (?:\S+ )?(?:\(\w+\) )?NCCL (?:INFO|WARN) )?(?:(?P<plugin>(?:NET|TUNER|PROFILER"
    r"|ENV)/Plugin ?: (?:Could not find|No plugin found|Failed to find|Plugin name set by env))"
    r"|(?:[^\n]{0,80})\bopCount (?:dead|[0-9a-f]*dead)\b)",
    samples={
        "node-11:900:950 [0] NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal net plugin.": (
            Benign("nccl-no-plugin")
        ),
        "node-11:900:950 [0] NCCL INFO NET/Plugin : No plugin found (libnccl-net.so), using internal implementation": (
            Benign("nccl-no-plugin")
        ),
        "node-11:900:950 [0] NCCL INFO TUNER/Plugin: Could not find: libnccl-tuner.so.": Benign("nccl-no-plugin"),
        "node-11:900:950 [0] NCCL INFO AllReduce: opCount dead sendbuff 0x7f00": Benign("nccl-op-count"),
    },
    rejects=(
        "node-11:900:950 [0] NCCL INFO NET/Plugin: Loaded net plugin IBext (v8)",
        "node-11:900:950 [0] NCCL INFO AllReduce: opCount 1f sendbuff 0x7f00",
    ),
)
def nccl_chatter(found: Any) -> Benign:
    """NCCL looked for an optional plugin and works without; or its operation counter happens to read `dead` in hex."""
    return Benign("nccl-no-plugin" if found["plugin"] else "nccl-op-count")


PATTERNS = (nccl_version, nccl_network, nccl_interface, nccl_chatter)
