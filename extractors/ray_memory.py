"""Ray's report of a node that ran out of memory: which process held most, and the report's tail. A part of `ray`.

Serves gate B rule 2. The largest process need not be Ray's own: a reward server beside it counts against the same node.
"""

from typing import Any

from extractors.joining import MEMORY_TABLE
from extractors.pattern import Nature, Role, pattern
from extractors.signal import Fault


@pattern(
    "ray",
    Nature.FAULT,
    role=Role.CONFIRMS,
    hints=(MEMORY_TABLE,),
    regex=r"PID\tMEM\(GB\)\tCOMMAND\n(?P<pid>\d+)\t(?P<held>\d+(?:\.\d+)?)\t(?P<command>[^\n]{1,160})",
    samples={
        "(raylet) PID\tMEM(GB)\tCOMMAND\n(raylet) 4242\t310.25\tpython serve_reward.py --port 8500": (
            Fault("memory_monitor_kill", "the largest process holds 310.25 GB: python serve_reward.py --port 8500")
        ),
        "PID\tMEM(GB)\tCOMMAND\n900\t88.10\tray::RolloutCoordinator.run": (
            Fault("memory_monitor_kill", "the largest process holds 88.10 GB: ray::RolloutCoordinator.run")
        ),
    },
    rejects=("PID\tMEM(GB)\tCOMMAND\nnone is left", "PID USER COMMAND\n4242\t310.25\tpython"),
)
def memory_users(found: Any) -> Fault:
    """The head of Ray's «Top 10 memory users» of a node whose memory monitor killed a worker (Ray 2)."""
    return Fault("memory_monitor_kill", f"the largest process holds {found['held']} GB: {found['command']}")


@pattern(
    "ray",
    Nature.FAULT,
    role=Role.CONFIRMS,
    hints=("how to address the out of memory issue: ",),
    regex=r"Refer to the documentation on how to address the out of memory issue: ",
    samples={
        "Refer to the documentation on how to address the out of memory issue: https://docs.ray.io/en/latest/ray-core/"
        "scheduling/ray-oom-prevention.html. Consider provisioning more memory on this node": (
            Fault("memory_monitor_kill", "the tail of Ray's report of a worker killed for memory")
        ),
    },
    rejects=("ask the team how to address the out of memory issue: it came back",),
)
def memory_report_tail(found: Any) -> Fault:
    """The last line of the report that Ray's memory monitor writes for each worker it kills. It names nobody; the lines
    before it, or the death beside it, do."""
    return Fault("memory_monitor_kill", "the tail of Ray's report of a worker killed for memory")


PATTERNS = (memory_users, memory_report_tail)
