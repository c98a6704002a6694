"""Ray: actors and workers that died, and why, as its exceptions, its driver and its raylets say.

Serves gate A (the actor-death record). A driver learns of a death after it happened: what the dead process printed
itself stands earlier. Nodes, memory and starts are in `ray_nodes`, the memory report in `ray_memory`, lost objects in
`ray_objects`, the event files in `ray_events`, the rest in `ray_benign`.
"""

from typing import Any

from extractors import ray_benign, ray_events, ray_memory, ray_nodes, ray_objects
from extractors.pattern import Nature, Role, pattern
from extractors.ray_lines import CPP, EXCEPTION, FAULTY_EXIT, INTENDED_EXIT
from extractors.signal import Benign, Fault


@pattern(
    "ray",
    Nature.FAULT,
    role=Role.EITHER,
    hints=("ActorDiedError: ", "RayActorError: ", "The actor died because of an error raised in its creation task"),
    regex=r"(?:"
    + EXCEPTION
    + r"(?P<type>ActorDiedError|RayActorError): (?=[^\n])|(?=The actor died because of an error raised in its creation "
    r"task))(?![^\n]*INTENDED_)(?![^\n]*killed by `ray\.kill`)(?![^\n]*(?:node|owner) has died)"
    r"(?![^\n]*(?:The actor is temporarily unavailable|cancelled before it started running))"
    r"(?P<what>[^\n.,]{0,120})",
    samples={
        "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.": (
            Fault("actor_died", "The actor died unexpectedly before finishing this task", "ActorDiedError")
        ),
        "ray.exceptions.RayActorError: The actor died because of an error raised in its creation task, "
        "ray::FSDPPolicyWorkerBase.__init__() (pid=900, ip=10.1.0.4)": (
            Fault("actor_died", "The actor died because of an error raised in its creation task", "RayActorError")
        ),
        "The actor died because of an error raised in its creation task, ray::RefWorker.__init__() (pid=900)": (
            Fault("actor_died", "The actor died because of an error raised in its creation task")
        ),
    },
    rejects=(
        "ray.exceptions.ActorDiedError: The actor is dead because it was killed by `ray.kill`.",
        "except ray.exceptions.ActorDiedError: pass",
        "ray.exceptions.ActorDiedError: The actor never ran - it was cancelled before it started running.",
    ),
)
def actor_died(found: Any) -> Fault:
    """A caller got the exception of a dead actor (Ray 2.40 to 2.60). Its own last words are in its worker's files."""
    return Fault("actor_died", found["what"], found["type"] or "")


@pattern(
    "ray",
    Nature.FAULT,
    role=Role.EITHER,
    hints=("\tclass_name: ",),
    regex=r"\tclass_name: (?:[\w.<>]+\.)?(?P<name>\w+)$",
    samples={
        "\tclass_name: FSDPPolicyWorkerBase": Fault("actor_died", "its class", entity="FSDPPolicyWorkerBase"),
        "\tclass_name: create_colocated_worker_cls.<locals>.WorkerDict": (
            Fault("actor_died", "its class", entity="WorkerDict")
        ),
    },
    rejects=("  class_name: RolloutCoordinator", "class_name: FSDPPolicyWorkerBase"),
)
def dead_actor_class(found: Any) -> Fault:
    """The class of the dead actor, on the tab-indented lines under ActorDiedError's first. Whose death it was decides
    whether training can go on."""
    return Fault("actor_died", "its class", entity=found["name"])


@pattern(
    "ray",
    Nature.FAULT,
    role=Role.EITHER,
    hints=("The actor is dead because its worker process has died",),
    regex=EXCEPTION
    + r"?(?:(?:ActorDiedError|RayActorError): )?The actor is dead because its worker process has died\. "
    r"Worker exit type: " + FAULTY_EXIT + r"(?: Worker exit detail: (?P<detail>[^.\n]{0,160}))?",
    samples={
        "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: "
        "Worker unexpectedly exits with a connection error code 2. End of file. There are some potential root causes. "
        "(1) The process is killed by SIGKILL by OOM killer due to high memory usage.": (
            Fault("actor_died", "SYSTEM_ERROR: Worker unexpectedly exits with a connection error code 2")
        ),
        "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: "
        "Worker unexpectedly exits with a connection error code 2. End of file. Some common causes include: (1) the "
        "process was killed by the OOM killer due to high memory usage": (
            Fault("actor_died", "SYSTEM_ERROR: Worker unexpectedly exits with a connection error code 2")
        ),
        "The actor is dead because its worker process has died. Worker exit type: USER_ERROR": (
            Fault("actor_died", "USER_ERROR")
        ),
        "The actor is dead because its worker process has died. Worker exit type: NODE_OUT_OF_MEMORY Worker exit "
        "detail: Task was killed due to the node running low on memory": Fault(
            "memory_monitor_kill", "NODE_OUT_OF_MEMORY: Task was killed due to the node running low on memory"
        ),
    },
    rejects=(
        "The actor is dead because its worker process has died. Worker exit type: INTENDED_SYSTEM_EXIT Worker exit "
        "detail: Worker exits by ray.kill()",
    ),
)
def actor_process_died(found: Any) -> Fault:
    """The reason line under a dead actor's exception. Its list of potential causes is the same for every death."""
    cause = "memory_monitor_kill" if found["exit"] == "NODE_OUT_OF_MEMORY" else "actor_died"
    return Fault(cause, f"{found['exit']}: {found['detail']}" if found["detail"] else found["exit"])


@pattern(
    "ray",
    Nature.FAULT,
    role=Role.CASCADE,
    hints=(
        "owner has died",
        "The object's owner has exited",
        "ActorUnavailableError: ",
        "OwnerDiedError: ",
        "temporarily unavailable",
    ),
    regex=EXCEPTION + r"?(?:(?:ActorDiedError|RayActorError): )?(?P<what>The actor died because its owner has died"
    r"|The actor is temporarily unavailable|The object's owner has exited"
    r"|(?:ActorUnavailableError|OwnerDiedError)(?=: ))",
    samples={
        "ray.exceptions.ActorDiedError: The actor died because its owner has died. Owner Id: 01000000ffff Owner Ip "
        "address: 10.1.0.4": Fault("actor_died", "The actor died because its owner has died"),
        "ray.exceptions.ActorUnavailableError: The actor 17f730ef04 is unavailable: RpcError. The task may or may not "
        "have been executed on the actor.": Fault("actor_died", "ActorUnavailableError"),
        "ray.exceptions.OwnerDiedError: Failed to retrieve object 00ffaa. The object's owner has exited.": (
            Fault("actor_died", "OwnerDiedError")
        ),
        "The object's owner has exited. This is the Python worker that first created the ObjectRef via `.remote()`.": (
            Fault("actor_died", "The object's owner has exited")
        ),
        "ray.exceptions.RayActorError: The actor is temporarily unavailable: IOError: the connection is gone": (
            Fault("actor_died", "The actor is temporarily unavailable")
        ),
    },
    rejects=("The pet's owner has died", "OwnerDiedError is raised when an owner exits"),
)
def actor_orphaned(found: Any) -> Fault:
    """An actor or object went with its owner, or can't be reached: somebody else died first."""
    return Fault("actor_died", found["what"])


@pattern(
    "ray",
    Nature.FAULT,
    role=Role.EITHER,
    hints=("A worker died or was killed while executing a task", "WorkerCrashedError: "),
    regex=CPP
    + r"(?:"
    + EXCEPTION
    + r"(?P<type>WorkerCrashedError): |A worker died or was killed while executing a task by an "
    r"unexpected system error\.(?:[^\n]*?Worker PID: (?P<pid>\d+))?(?:[^\n]*?Worker exit type: " + FAULTY_EXIT + r")?"
    r"(?![^\n]*exit type: INTENDED))",
    samples={
        "(raylet, ip=10.1.0.4) A worker died or was killed while executing a task by an unexpected system error. To "
        "troubleshoot the problem, check the logs for the dead worker. RayTask ID: ffaa Worker ID: bb01 Node ID: cc02 "
        "Worker IP address: 10.1.0.4 Worker port: 10012 Worker PID: 4242 Worker exit type: SYSTEM_ERROR Worker exit "
        "detail: Worker unexpectedly exits with a connection error code 2. End of file.": (
            Fault("worker_crashed", "SYSTEM_ERROR", entity="pid 4242")
        ),
        "ray.exceptions.WorkerCrashedError: The worker died unexpectedly while executing this task. Check "
        "python-core-worker-*.log files for more information.": Fault("worker_crashed", "", "WorkerCrashedError"),
    },
    rejects=(
        "A worker died or was killed while executing a task by an unexpected system error. Worker PID: 4242 Worker "
        "exit "
        "type: INTENDED_USER_EXIT Worker exit detail: exit() was called",
    ),
)
def worker_crashed(found: Any) -> Fault:
    """The driver hears that a worker ended under a task. The dead worker's own files say of what."""
    pid = found["pid"]
    return Fault("worker_crashed", found["exit"] or "", found["type"] or "", entity=f"pid {pid}" if pid else "")


@pattern(
    "ray",
    Nature.FAULT,
    role=Role.EITHER,
    hints=("exited, exit type ",),
    regex=CPP
    + r"(?:[^\n;]{0,120}; )?[Ww]orker (?P<id>\w+) (?:of job \w+ )?with pid (?P<pid>\d+) exited, exit type "
    + FAULTY_EXIT
    + r"(?:, exit detail: (?P<detail>[^.\n]{0,160}))?",
    samples={
        "[2031-03-14 09:10:01,714 I 99 99] (raylet) node_manager.cc:1586: Owner process fate-sharing is off; worker "
        "da9195d115a742f0 with pid 4242 exited, exit type SYSTEM_ERROR, exit detail: Worker unexpectedly exits with a "
        "connection error code 2. End of file.": Fault(
            "worker_crashed",
            "SYSTEM_ERROR: Worker unexpectedly exits with a connection error code 2",
            entity="pid 4242",
        ),
        "[2031-03-14 09:10:01,714 I 99 99] (raylet) worker_pool.cc:801: Worker da9195d1 with pid 4242 exited, exit "
        "type "
        "USER_ERROR": Fault("worker_crashed", "USER_ERROR", entity="pid 4242"),
        "[2031-03-14 09:10:01,714 I 99 99] (raylet) worker_pool.cc:801: Worker da9195d1 with pid 4242 exited, exit "
        "type "
        "NODE_OUT_OF_MEMORY": Fault("memory_monitor_kill", "NODE_OUT_OF_MEMORY", entity="pid 4242"),
    },
    rejects=(
        "[2031-03-14 09:10:01,714 I 99 99] (raylet) worker_pool.cc:801: Worker da9195d1 with pid 4242 exited, exit "
        "type "
        "INTENDED_SYSTEM_EXIT, exit detail: Worker exits because it was idle",
    ),
)
def worker_exited(found: Any) -> Fault:
    """A raylet saw one of its workers end by itself; the pid leads to the worker's files on the same node."""
    cause = "memory_monitor_kill" if found["exit"] == "NODE_OUT_OF_MEMORY" else "worker_crashed"
    detail = f"{found['exit']}: {found['detail']}" if found["detail"] else found["exit"]
    return Fault(cause, detail, entity=f"pid {found['pid']}")


@pattern(
    "ray",
    Nature.BENIGN,
    hints=(
        "INTENDED_USER_EXIT",
        "INTENDED_SYSTEM_EXIT",
        "killed by `ray.kill`",
        "was cancelled before it started running",
    ),
    regex=CPP
    + r"(?:"
    + EXCEPTION
    + r"(?:ActorDiedError|RayActorError): )?(?:[^\n;]{0,120}; )?(?:(?:The actor is dead because "
    r"its worker process has died\.|A worker died or was killed while executing a task"
    r"|[Ww]orker \w+ )[^\n]*?exit type:? "
    + INTENDED_EXIT
    + r"|Worker exit type: "
    + INTENDED_EXIT
    + r"|The actor is dead because it was killed by `ray\.kill`"
    r"|[^\n{\"]{0,160}?The actor never ran - it was cancelled before it started running)",
    samples={
        "[2031-03-14 09:10:01,714 I 99 99] (raylet) worker_pool.cc:801: Worker da9195d1 with pid 4242 exited, exit "
        "type "
        "INTENDED_SYSTEM_EXIT, exit detail: Worker exits because it was idle": Benign("intended-exit"),
        "The actor is dead because its worker process has died. Worker exit type: INTENDED_USER_EXIT Worker exit "
        "detail: Worker exits by an user request.": Benign("intended-exit"),
        "ray.exceptions.ActorDiedError: The actor is dead because it was killed by `ray.kill`.": (
            Benign("intended-exit")
        ),
        "The actor never ran - it was cancelled before it started running.": Benign("intended-exit"),
    },
    rejects=("SYSTEM_ERROR is no INTENDED_USER_EXIT", "Worker da9195d1 with pid 4242 exited, exit type SYSTEM_ERROR"),
)
def intended_exit(found: Any) -> Benign:
    """A worker or actor ended because somebody meant it: idle, exit(), ray.kill(), a cancelled start."""
    return Benign("intended-exit")


PATTERNS = (
    actor_died,
    dead_actor_class,
    actor_process_died,
    actor_orphaned,
    worker_crashed,
    worker_exited,
    intended_exit,
    *ray_objects.PATTERNS,
    *ray_nodes.PATTERNS,
    *ray_events.PATTERNS,
    *ray_memory.PATTERNS,
    *ray_benign.PATTERNS,
)
