"""Ray's nodes: lost nodes and raylets, the memory monitor, starts that fail, resources and disks that are not there."""

from typing import Any

from extractors.pattern import Nature, Role, pattern
from extractors.ray_lines import CPP, EXCEPTION
from extractors.signal import Fault


@pattern(
    "ray",
    Nature.FAULT,
    role=Role.EITHER,
    hints=(
        "has been marked dead because",
        "has been marked as dead",
        "its node has died",
        "NodeDiedError: ",
        "mistakenly been marked as dead by the GCS",
    ),
    regex=CPP + r"(?:The node with node id: \w+ and address: (?P<address>[\d.a-f:]+) [^\n]*?has been marked dead"
    r"|This node has been marked as dead|" + EXCEPTION + r"?NodeDiedError: "
    r"|(?:\[Timeout\] )?Exiting because this node manager has mistakenly been marked as dead by the GCS"
    r"|" + EXCEPTION + r"?(?:(?:ActorDiedError|RayActorError): )?The actor died because its node has died\.)",
    samples={
        "The node with node id: 77ab01 and address: 10.1.0.7 and node name: 10.1.0.7 has been marked dead because the "
        "detector has missed too many heartbeats from it.": Fault("node_died", "a node was lost", entity="10.1.0.7"),
        "[2031-03-14 09:10:01,714 C 99 99] (raylet) node_manager.cc:1020: This node has been marked as dead.": (
            Fault("node_died", "a node was lost")
        ),
        "The actor died because its node has died. Node Id: 77ab01": Fault("node_died", "a node was lost"),
        "ray.exceptions.NodeDiedError: The node died.": Fault("node_died", "a node was lost"),
        "[2031-03-14 09:10:01,714 C 99 99] (raylet) node_manager.cc:1020: [Timeout] Exiting because this node manager "
        "has mistakenly been marked as dead by the GCS: GCS failed to check the health of this node for 5 times.": (
            Fault("node_died", "a node was lost")
        ),
    },
    rejects=("node 3 has been marked dead because of the test", "NodeDiedError is in the list of retried errors"),
)
def node_died(found: Any) -> Fault:
    """The head lost a node: its machine, its network or its raylet is gone, and every actor on it."""
    return Fault("node_died", "a node was lost", entity=found["address"] or "")


@pattern(
    "ray",
    Nature.FAULT,
    role=Role.EITHER,
    hints=("Raylet is terminated.", "The raylet exited immediately", "LocalRayletDiedError: "),
    regex=CPP + r"(?:Raylet is terminated\. Termination is unexpected|The raylet exited immediately because"
    r"|" + EXCEPTION + r"?LocalRayletDiedError: )",
    samples={
        "(raylet, ip=10.1.0.7) Raylet is terminated. Termination is unexpected. Possible reasons include: (1) SIGKILL "
        "by "
        "the user or system OOM killer": Fault("raylet_died", "a raylet ended unexpectedly"),
        "[2031-03-14 09:10:01,714 E 99 99] (raylet) agent_manager.cc:84: The raylet exited immediately because the Ray "
        "agent failed. The raylet fate shares with the agent.": Fault("raylet_died", "a raylet ended unexpectedly"),
        "ray.exceptions.LocalRayletDiedError: The task's local raylet died. Check raylet.out for more information.": (
            Fault("raylet_died", "a raylet ended unexpectedly")
        ),
    },
    rejects=("Raylet is terminated. Termination is expected.", "Killed `raylet --flags` (via SIGKILL)"),
)
def raylet_died(found: Any) -> Fault:
    """A node's raylet ended unmeant; its workers go with it. The node's kernel log may say who killed it."""
    return Fault("raylet_died", "a raylet ended unexpectedly")


@pattern(
    "ray",
    Nature.FAULT,
    role=Role.ROOT,
    hints=("due to memory pressure (OOM)", "node running low on memory", "Memory on the node (IP: "),
    regex=CPP
    + r"(?:"
    + EXCEPTION
    + r"OutOfMemoryError: )?(?:(?P<count>[1-9]\d*) Workers \(tasks / actors\) killed due to memory "
    r"pressure \(OOM\)(?:[^\n]*?IP: (?P<ip>[\d.a-f:]+))?|(?P<task>(?:Task was"
    r"|\d+ worker\(s\) were) killed due to the node "
    r"running low on memory)"
    r"|Memory on the node \(IP: (?P<node>[\d.a-f:]+), [^\n]{0,600}?was (?P<used>[\d.]+)GB[^\n]*?/ "
    r"(?P<limit>[\d.]+)GB)",
    samples={
        "[2031-03-14 09:10:01,014 E 99 99] (raylet) node_manager.cc:3277: 2 Workers (tasks / actors) killed due to "
        "memory "
        "pressure (OOM), 0 Workers crashed due to other reasons at node (ID: 77ab01, IP: 10.1.0.7) over the last time "
        "period.": Fault("memory_monitor_kill", "2 workers killed", entity="10.1.0.7"),
        "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.": (
            Fault("memory_monitor_kill", "Task was killed due to the node running low on memory")
        ),
        "ray.exceptions.OutOfMemoryError: 2 worker(s) were killed due to the node running low on memory.": (
            Fault("memory_monitor_kill", "2 worker(s) were killed due to the node running low on memory")
        ),
        "Memory on the node (IP: 10.1.0.7, ID: 77ab01) where the task (task ID: ffaa, name=RolloutCoordinator.run, "
        "pid=4242, memory used=12.18GB) was running was 1253.91GB / 1303.85GB (0.961697), which exceeds the memory "
        "usage "
        "threshold of 0.95. Ray killed this worker": (
            Fault("memory_monitor_kill", "1253.91 of 1303.85 GB in use", entity="10.1.0.7")
        ),
        "Memory on the node (IP: 10.1.0.7, ID: 77ab01) was 1253.91GB used / 1303.85GB limit (0.95)": (
            Fault("memory_monitor_kill", "1253.91 of 1303.85 GB in use", entity="10.1.0.7")
        ),
        "2 worker(s) were killed due to the node running low on memory.": (
            Fault("memory_monitor_kill", "2 worker(s) were killed due to the node running low on memory")
        ),
    },
    rejects=(
        "[2031-03-14 09:10:01,014 E 99 99] (raylet) node_manager.cc:3277: 0 Workers (tasks / actors) killed due to "
        "memory "
        "pressure (OOM), 1 Workers crashed due to other reasons at node (ID: 77ab01, IP: 10.1.0.7)",
    ),
)
def memory_monitor_kill(found: Any) -> Fault:
    """Ray killed workers because the node's memory passed its threshold (0.95): a host OOM, confirmed."""
    if found["count"]:
        return Fault("memory_monitor_kill", f"{found['count']} workers killed", entity=found["ip"] or "")
    if found["task"]:
        return Fault("memory_monitor_kill", found["task"])
    return Fault("memory_monitor_kill", f"{found['used']} of {found['limit']} GB in use", entity=found["node"])


_START_FAULTS = (("use a port number", "port_in_use"), ("Version mismatch", "version_mismatch"))
"""What of Ray's start-up messages has a cause of its own."""


@pattern(
    "ray",
    Nature.FAULT,
    role=Role.ROOT,
    hints=("Ray component ", "RaySystemError: ", "Could not find any running Ray instance", "Version mismatch: "),
    regex=r"(?:[\w.]+\.)?(?P<what>ValueError: Ray component \w+ is trying to use a port number"
    r"|RaySystemError: [^\n]{0,100}"
    r"|ConnectionError: Could not find any running Ray instance|RuntimeError: Version mismatch: )",
    samples={
        "ValueError: Ray component worker_ports is trying to use a port number 10123 that is used by other "
        "components.": (Fault("port_in_use", "ValueError: Ray component worker_ports is trying to use a port number")),
        "ray.exceptions.RaySystemError: System error: Failed to connect to the head": (
            Fault("ray_start_failed", "RaySystemError: System error: Failed to connect to the head")
        ),
        "ConnectionError: Could not find any running Ray instance. Please specify the one to connect to.": (
            Fault("ray_start_failed", "ConnectionError: Could not find any running Ray instance")
        ),
        "RuntimeError: Version mismatch: The cluster was started with: Ray: 2.51.1": (
            Fault("version_mismatch", "RuntimeError: Version mismatch:")
        ),
    },
    rejects=("ValueError: Ray component is a word", "Version mismatch: none"),
)
def ray_start_failed(found: Any) -> Fault:
    """Ray did not start, or a process could not join it: ports, versions, a head that is not there."""
    said = found["what"].strip()
    cause = next((code for words, code in _START_FAULTS if words in said), "ray_start_failed")
    return Fault(cause, said)


@pattern(
    "ray",
    Nature.FAULT,
    role=Role.CASCADE,
    hints=("Failed to connect to GCS", "Failed to get the system config from raylet"),
    regex=CPP + r"(?:Failed to connect to GCS|Failed to get the system config from raylet because it is dead)",
    samples={
        "[2031-03-14 09:10:01,714 W 900 950] gcs_client.cc:178: Failed to connect to GCS at address 10.1.0.4:6379 "
        "within "
        "5 seconds.": Fault("peer_lost", "Ray's head or raylet does not answer"),
        "Failed to get the system config from raylet because it is dead. Worker will terminate.": (
            Fault("peer_lost", "Ray's head or raylet does not answer")
        ),
    },
    rejects=("Connecting to GCS at address 10.1.0.4:6379",),
)
def ray_head_lost(found: Any) -> Fault:
    """A process lost Ray's head or its own raylet: a consequence of their end, or of an orderly stop."""
    return Fault("peer_lost", "Ray's head or raylet does not answer")


@pattern(
    "ray",
    Nature.FAULT,
    role=Role.ROOT,
    hints=(
        "No available node types can fulfill",
        "UnschedulableError: ",
        "RuntimeEnvSetupError: ",
        "OutOfDiskError: ",
        "ObjectStoreFullError: ",
    ),
    regex=r"(?:Error: )?(?:"
    + EXCEPTION
    + r"(?P<type>TaskUnschedulableError|ActorUnschedulableError|RuntimeEnvSetupError"
    r"|OutOfDiskError|ObjectStoreFullError): (?P<what>[^\n]{0,100})"
    r"|No available node types can fulfill resource request)",
    samples={
        "(autoscaler +1h2m3s) Error: No available node types can fulfill resource request {'GPU': 8.0}.": (
            Fault("resources_unavailable", "no node type can fulfil the request")
        ),
        "ray.exceptions.ActorUnschedulableError: The actor is not schedulable: its node is gone": (
            Fault("resources_unavailable", "The actor is not schedulable: its node is gone", "ActorUnschedulableError")
        ),
        "ray.exceptions.RuntimeEnvSetupError: Failed to set up runtime environment.": (
            Fault("runtime_env_failed", "Failed to set up runtime environment.", "RuntimeEnvSetupError")
        ),
        "ray.exceptions.OutOfDiskError: Local disk is full": (
            Fault("disk_full", "Local disk is full", "OutOfDiskError")
        ),
        "ray.exceptions.ObjectStoreFullError: Failed to put object 00ffaa": (
            Fault("object_store_full", "Failed to put object 00ffaa", "ObjectStoreFullError")
        ),
    },
    rejects=("Warning: The following resource request cannot be scheduled right now: {'GPU': 8.0}.",),
)
def ray_resource_missing(found: Any) -> Fault:
    """Ray has no place for what was asked: no fitting node, no disk, no object memory, no environment."""
    kind = found["type"]
    if not kind:
        return Fault("resources_unavailable", "no node type can fulfil the request")
    return Fault(_MISSING.get(kind, "resources_unavailable"), found["what"], kind)


_MISSING = {
    "RuntimeEnvSetupError": "runtime_env_failed",
    "OutOfDiskError": "disk_full",
    "ObjectStoreFullError": "object_store_full",
}

PATTERNS = (node_died, raylet_died, memory_monitor_kill, ray_start_failed, ray_head_lost, ray_resource_missing)
