"""Ray lines that look like death and are not: its orderly stop, its telemetry, its waiting and its lossy echo."""

from typing import Any

from extractors.pattern import Nature, pattern
from extractors.ray_lines import CPP
from extractors.signal import Benign, Teardown

_TELEMETRY = r"(?:\[\w+\] )?(?:File: \S+ )?"
"""How OpenTelemetry's own logger begins its lines."""


@pattern(
    "ray",
    Nature.BENIGN,
    hints=("Killed `", "Send termination request to `", " Ray processes."),
    regex=r"(?:Killed `(?P<killed>[^`\n]*)` \(via SIG\w+\)"
    r"|Send termination request to `(?P<asked>[^`\n]*)` \(via SIG\w+\)"
    r"|Stopped (?:all \d+|only \d+ out of \d+) Ray processes\.|Did not find any active Ray processes\.)",
    samples={
        "2031-03-14 09:59:04,815\tVINFO scripts.py:1254 -- Killed `ray::IDLE` (via SIGKILL)": (
            Teardown("ray stop ends its processes")
        ),
        "2031-03-14 09:59:05,055\tVINFO scripts.py:1254 -- Killed `/venv/ray/raylet/raylet --store_socket_name=/tmp/s` "
        "(via SIGKILL)": Teardown("ray stop ends its processes"),
        "2031-03-14 09:59:05,055\tVINFO scripts.py:1250 -- Send termination request to `ray::IDLE` (via SIGTERM)": (
            Teardown("ray stop ends its processes")
        ),
        "2031-03-14 09:59:05,575\tSUCC scripts.py:1335 -- Stopped all 6 Ray processes.": (
            Teardown("ray stop ends its processes")
        ),
        "2031-03-14 09:59:05,575\tWARN scripts.py:1328 -- Stopped only 4 out of 6 Ray processes. Set `-v`": (
            Teardown("ray stop ends its processes")
        ),
        "Did not find any active Ray processes.": Teardown("ray stop ends its processes"),
    },
    rejects=("Killed", "slurmstepd: error: node7: task 0: Killed", "Killed `vim` by accident"),
)
def ray_stopped(found: Any) -> Teardown:
    """`ray stop --force` by the supervisor, one line a process. Its SIGKILL is no OOM kill; why it was called stands
    before it."""
    return Teardown("ray stop ends its processes")


@pattern(
    "ray",
    Nature.BENIGN,
    hints=(
        "Export metrics to agent failed",
        "Failed to export metrics to the metrics agent",
        "[OTLP METRIC GRPC Exporter]",
        "[Periodic Exporting Metric Reader]",
    ),
    regex=CPP + r"(?:Export metrics to agent failed|Failed to export metrics to the metrics agent"
    r"|"
    + _TELEMETRY
    + r"\[OTLP METRIC GRPC Exporter\] Export\(\) failed|"
    + _TELEMETRY
    + r"\[Periodic Exporting Metric Reader\] Collect)",
    samples={
        "[2031-03-14 09:30:50,059 E 900 950] core_worker.cc:2011: Export metrics to agent failed: RpcError: rpc_code: "
        "14": (Benign("metrics-agent-rpc")),
        "[2031-03-14 09:30:50,059 E 900 950] Export metrics to agent failed: RpcError: RPC Error message: failed to "
        "connect to all addresses": Benign("metrics-agent-rpc"),
        "[2031-03-14 09:30:50,059 E 900 950] metrics.cc:80: Failed to export metrics to the metrics agent. Result: "
        "14": (Benign("metrics-agent-rpc")),
        "[OTLP METRIC GRPC Exporter] Export() failed: deadline": Benign("metrics-agent-rpc"),
        "[Error] File: otlp_grpc.cc:87 [OTLP METRIC GRPC Exporter] Export() failed with status_code: 14": (
            Benign("metrics-agent-rpc")
        ),
        "[Periodic Exporting Metric Reader] Collect failed": Benign("metrics-agent-rpc"),
    },
    rejects=("I read 'Export metrics to agent failed' in the log",),
)
def metrics_agent_rpc(found: Any) -> Benign:
    """Ray's telemetry could not reach its agent; the work does not need it."""
    return Benign("metrics-agent-rpc")


@pattern(
    "ray",
    Nature.BENIGN,
    hints=(
        "resource request cannot be scheduled right now",
        "may not be able to keep up with the stdout",
        "bject store spilled ",
        "objects, write throughput",
    ),
    regex=CPP + r"(?:(?:Warning: )?The following resource request (?P<wait>cannot be scheduled right now)"
    r"|The driver (?P<lossy>may not be able to keep up with the stdout)|(?:Object store spilled|Spilled) \d+ MiB)",
    samples={
        "(autoscaler +10m3s) Warning: The following resource request cannot be scheduled right now: {'GPU': 8.0}.": (
            Benign("waiting-for-resources")
        ),
        "The driver may not be able to keep up with the stdout/stderr of the workers. To avoid forwarding logs to the "
        "driver, use 'ray.init(log_to_driver=False)'.": Benign("driver-echo-lossy"),
        "(raylet, ip=10.1.0.4) Object store spilled 12 MiB to disk": Benign("object-spilling"),
        "(raylet) Spilled 1234 MiB, 12 objects, write throughput 456 MiB/s.": Benign("object-spilling"),
    },
    rejects=("Error: No available node types can fulfill resource request {'GPU': 8.0}.",),
)
def ray_waits(found: Any) -> Benign:
    """Ray waits for room, spills objects, or drops echoed lines: from a lossy echo on the aggregated log has holes."""
    if found["wait"]:
        return Benign("waiting-for-resources")
    return Benign("driver-echo-lossy" if found["lossy"] else "object-spilling")


PATTERNS = (ray_stopped, metrics_agent_rpc, ray_waits)
