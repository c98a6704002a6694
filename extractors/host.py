"""The host: its memory as the fd-monitor samples it, and the kernel's, Slurm's and Kubernetes' words of an OOM kill.

Serves gate B rule 2. The limit that binds is the cgroup's, not the node's. Native crashes are in `crashes`, the GPU's
errors in `cuda`, open files in `fd_monitor`, what Kubernetes says in lines in `cluster_words`.
"""

from typing import Any

import msgspec

from extractors import cluster_words, crashes, cuda, fd_monitor
from extractors.kernel import DMESG
from extractors.pattern import Nature, Role, pattern
from extractors.signal import Fault

_MONITOR = "[fd-monitor] ["


class HostMemory(msgspec.Struct, frozen=True):
    """Memory in use at one moment, in GiB. scope is `cgroup` or `node`; limit_gib is None where there is no cap;
    node is the host's name where the line says it."""

    scope: str
    used_gib: float
    limit_gib: float | None
    node: str


def _of(text: str, scope: str, label: str, node: str = "") -> HostMemory | None:
    """The `used/limit` that stands after a label; None where the line has none or says n/a."""
    at = text.find(label)
    if at < 0 or not text.startswith(_MONITOR):
        return None
    figures = text[at + len(label) :].split(" ", 1)[0].replace(",", "")
    used, _, limit = figures.partition("/")
    if used == "n/a":
        return None
    return HostMemory(scope, float(used), float(limit) if limit and limit not in ("nocap", "n/a") else None, node)


@pattern(
    "host",
    Nature.HEARTBEAT,
    hints=(": cgroup mem ",),
    samples={
        "(RolloutCoordinator pid=15018, ip=10.1.0.6) [fd-monitor] [09:00:00] OK: cgroup mem 640.25/1200.50 GiB (53.3% "
        "of "
        "cap), peak 700.00 GiB": HostMemory("cgroup", 640.25, 1200.5, ""),
        "[fd-monitor] [09:00:00] CRITICAL: cgroup mem 1,190.12/1,200.50 GiB (99.1% of cap), peak 1,195.00 GiB": (
            HostMemory("cgroup", 1190.12, 1200.5, "")
        ),
        "[fd-monitor] [09:00:00] OK: cgroup mem 900.12 GiB (no cap)": HostMemory("cgroup", 900.12, None, ""),
    },
    rejects=(
        "[fd-monitor] [09:00:00] CGROUP memory pressure HIGH - approaching the --memory cap; OOM-kill imminent",
        "note: cgroup mem 1.0/2.0 GiB is what I saw",
    ),
)
def cgroup_memory(text: str) -> HostMemory | None:
    """The container's memory against its cap, every 120 s (MarinSkyRL's fd-monitor): the limit that kills."""
    return _of(text, "cgroup", ": cgroup mem ")


@pattern(
    "host",
    Nature.HEARTBEAT,
    hints=(" | node mem ",),
    samples={
        "[fd-monitor] [09:00:00] OK: RSS 12.34 GiB, peak RSS 13.00 GiB | node mem 512.4/2014.0 GiB used (25.4%), avail "
        "1501.6 GiB": HostMemory("node", 512.4, 2014.0, ""),
        "[fd-monitor] [09:00:00] WARNING: RSS 12.34 GiB | node mem 1,760.0/2,014.0 GiB used (87.4%), avail 254.0 GiB": (
            HostMemory("node", 1760.0, 2014.0, "")
        ),
    },
    rejects=("[fd-monitor] [09:00:00] Node memory pressure HIGH", "top | node mem 1.0/2.0 GiB"),
)
def node_memory(text: str) -> HostMemory | None:
    """The whole node's memory. A node at a quarter can hold a container at its cap."""
    return _of(text, "node", " | node mem ")


@pattern(
    "host",
    Nature.HEARTBEAT,
    hints=("HOST_RAM_BREAKDOWN node=",),
    samples={
        "[fd-monitor] [09:00:00] HOST_RAM_BREAKDOWN node=gpu-07 cgroup=740.1/1200.5 GiB pids=212 | workers=600.1 "
        "raylet=1.2 plasma=0.0 coord=10.3 shm=90.0 pinned=n/a other=20.0 GiB": (
            HostMemory("cgroup", 740.1, 1200.5, "gpu-07")
        ),
        "[fd-monitor] [09:00:00] HOST_RAM_BREAKDOWN node=gpu-07 cgroup=740.1/nocap GiB pids=212 | workers=600.1": (
            HostMemory("cgroup", 740.1, None, "gpu-07")
        ),
    },
    rejects=("[fd-monitor] [09:00:00] HOST_RAM_BREAKDOWN node=gpu-07 cgroup=n/a pids=212 | workers=600.1",),
)
def host_memory_breakdown(text: str) -> HostMemory | None:
    """The container's memory with its node's name, and what holds it (the parts stay in the quote)."""
    node = text.partition(" node=")[2].split(" ", 1)[0]
    return _of(text, "cgroup", " cgroup=", node)


@pattern(
    "host",
    Nature.FAULT,
    role=Role.CONFIRMS,
    hints=("invoked oom-killer", "oom-kill:constraint", "ut of memory: Killed process"),
    regex=DMESG
    + r"(?:(?P<comm>[^\n]{1,32}?) invoked oom-killer: |oom-kill:constraint=\w+[^\n]*?task=(?P<task>[^,\n]+),pid="
    r"(?P<task_pid>\d+)|(?:Memory cgroup out|Out) of memory: Killed process (?P<pid>\d+) \((?P<name>[^)\n]*)\))",
    samples={
        "[12345.678901] python invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=997": (
            Fault("host_oom", "the kernel's OOM killer was called", entity="python")
        ),
        "[12345.678902] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),oom_memcg=/kubepods/"
        "burstable,task_memcg=/kubepods/burstable/x,task=ray::FSDPPolicy,pid=4242,uid=0": (
            Fault("host_oom", "the kernel killed a process", entity="ray::FSDPPolicy (4242)")
        ),
        "[12345.678903] Memory cgroup out of memory: Killed process 4242 (ray::FSDPPolicy) total-vm:123456kB, "
        "anon-rss:99kB": Fault("host_oom", "the kernel killed a process", entity="ray::FSDPPolicy (4242)"),
        "[Sun Mar 14 09:24:18 2031] Out of memory: Killed process 4243 (python) total-vm:123456kB": (
            Fault("host_oom", "the kernel killed a process", entity="python (4243)")
        ),
        "Mar 14 09:24:18 gpu-07 kernel: [12345.6] Out of memory: Killed process 4243 (python) total-vm:123456kB": (
            Fault("host_oom", "the kernel killed a process", entity="python (4243)")
        ),
        "kern  :err   : 2031-03-14T09:41:44,285060+00:00 Memory cgroup out of memory: Killed process 4242 (python)": (
            Fault("host_oom", "the kernel killed a process", entity="python (4242)")
        ),
    },
    rejects=(
        "dmesg Out of memory: Killed process 4243 (python)",
        "[task-runtime] memory cap is 1304 GiB, oom-kill:constraint unknown",
    ),
)
def kernel_oom(found: Any) -> Fault:
    """The kernel killed a process for memory, of a container (memcg) or of the node: proof behind a bare `Killed`."""
    if found["comm"]:
        return Fault("host_oom", "the kernel's OOM killer was called", entity=found["comm"])
    name, pid = (found["task"], found["task_pid"]) if found["task"] else (found["name"], found["pid"])
    return Fault("host_oom", "the kernel killed a process", entity=f"{name} ({pid})")


@pattern(
    "host",
    Nature.FAULT,
    role=Role.CONFIRMS,
    hints=(" oom_kill event", " oom-kill event", ": Out Of Memory", "OOMKilled"),
    regex=r"(?:slurmstepd: error: Detected \d+ oom[_-]kill event(?:\(?s?\)?) in (?:[Ss]tep(?:Id)?[ =])?(?P<step>[\w.]+)"
    r"|srun: error: (?P<node>[\w-]+): tasks? [\d,-]+: Out Of Memory"
    r"|\s*\"?(?i:last ?state|reason|status|state)\"?\s*[:=]\s*\"?(?i:terminated: )?(?P<pod>OOMKilled)\b)",
    samples={
        "slurmstepd: error: Detected 1 oom_kill event in StepId=123.0. Some of the step tasks have been OOM Killed.": (
            Fault("host_oom", "Slurm saw an OOM kill", entity="123.0")
        ),
        "slurmstepd: error: Detected 2 oom-kill event(s) in StepId=123.batch cgroup. Some of your processes may have "
        "been "
        "killed by the cgroup out-of-memory handler.": Fault("host_oom", "Slurm saw an OOM kill", entity="123.batch"),
        "slurmstepd: error: Detected 1 oom-kill event(s) in step 123.0 cgroup.": (
            Fault("host_oom", "Slurm saw an OOM kill", entity="123.0")
        ),
        "srun: error: node-12: task 3: Out Of Memory": Fault("host_oom", "Slurm saw an OOM kill", entity="node-12"),
        "      Reason:       OOMKilled": Fault("host_oom", "Kubernetes reports OOMKilled"),
        "    reason: OOMKilled": Fault("host_oom", "Kubernetes reports OOMKilled"),
    },
    rejects=("srun: error: node-12: task 3: Killed", "he asks whether the pod was OOMKilled"),
)
def scheduler_oom(found: Any) -> Fault:
    """The scheduler's own word that memory was the reason. A bare `Killed` or exit 137 is none."""
    if found["pod"]:
        return Fault("host_oom", "Kubernetes reports OOMKilled")
    return Fault("host_oom", "Slurm saw an OOM kill", entity=(found["step"] or found["node"]).rstrip("."))


PATTERNS = (
    cgroup_memory,
    node_memory,
    host_memory_breakdown,
    kernel_oom,
    scheduler_oom,
    *fd_monitor.PATTERNS,
    *cluster_words.PATTERNS,
    *crashes.PATTERNS,
    *cuda.PATTERNS,
)
