"""Causes of Ray and the nodes it runs on."""

from state.causes.cause import Cause, Transient

ROWS = (
    Cause(
        "wall_clock",
        "a time limit of the scheduler that ran out",
        Transient.YES,
        "raise the limit, or let the job resume from its last checkpoint",
        "relaunch from the last checkpoint",
        (
            "Slurm's slurmstepd («CANCELLED AT … DUE TO TIME LIMIT») and sbatch(1), --time; Kubernetes, "
            "activeDeadlineSeconds («DeadlineExceeded»)"
        ),
    ),
    Cause(
        "actor_died",
        "an actor that died",
        Transient.UNKNOWN,
        "read the dead worker's own log on its node",
        "relaunch after the death is explained",
        (
            "Ray 2.40–2.60, ActorDiedError: its own text lists the worker's exit type and detail; Ray docs, Actor "
            "fault tolerance"
        ),
        hang=True,
    ),
    Cause(
        "node_died",
        "a node that was lost",
        Transient.YES,
        "check the node",
        "relaunch on healthy nodes",
        (
            "Ray 2.40–2.60, gcs_server («has been marked dead because the detector has missed too many "
            "heartbeats»); Ray docs, Node fault tolerance; Slurm's NODE_FAIL"
        ),
        hang=True,
    ),
    Cause(
        "raylet_died",
        "a raylet that died",
        Transient.YES,
        "check the node's kernel log",
        "relaunch",
        (
            "Ray 2.40–2.60, its own message («Raylet is terminated … Possible reasons include: SIGKILL by the "
            "user or system OOM killer»)"
        ),
        hang=True,
    ),
    Cause(
        "ray_start_failed",
        "Ray that failed to start",
        Transient.YES,
        "check ports and the head's address",
        "relaunch",
        (
            "Ray 2.40–2.60, ray start: ValueError of ports that other components use, «Could not find any running "
            "Ray instance», «Version mismatch»"
        ),
    ),
    Cause(
        "worker_crashed",
        "a worker process that crashed",
        Transient.UNKNOWN,
        "read the worker's own log",
        "relaunch after the crash is explained",
        (
            "Ray 2.40–2.60, WorkerCrashedError («Check python-core-worker-*.log files for more information»); "
            "torchrun's and srun's exit lines"
        ),
        hang=True,
    ),
    Cause(
        "bounded_put_timeout",
        "a coordinator whose bounded put timed out",
        Transient.UNKNOWN,
        "take stacks of the coordinators and of the driver",
        "relaunch after the stall is explained",
        "MarinSkyRL's DispatchPutTimeoutError: the deadline of a dispatch's put into Ray's object store",
        hang=True,
    ),
    Cause(
        "rendezvous_failed",
        "a Ray rendezvous that failed",
        Transient.YES,
        "check storage and the head",
        "relaunch",
        (
            "the Iris task supervisor's own messages («Rendezvous write STALLED», «failed to publish the "
            "rendezvous … after 5 attempts»)"
        ),
    ),
    Cause(
        "nodes_missing",
        "nodes that never joined",
        Transient.YES,
        "check the absent nodes",
        "relaunch",
        "the Iris task supervisor's own message («Only 15/16 Ray nodes joined within 1800s»)",
    ),
    Cause(
        "port_in_use",
        "a rendezvous port that was taken",
        Transient.YES,
        "end the left-over process that holds the port, or choose another",
        "relaunch",
        (
            "PyTorch 2.x, TCPStore («The server socket has failed to listen … EADDRINUSE»); torchrun docs, "
            "--rdzv-endpoint"
        ),
    ),
    Cause(
        "resources_unavailable",
        "resources that no node of the cluster has",
        Transient.NO,
        "compare what the job asks for with what the nodes offer",
        "hold until they match",
        (
            "Ray 2.40–2.60, autoscaler («No available node types can fulfill resource request»), "
            "TaskUnschedulableError and ActorUnschedulableError"
        ),
    ),
    Cause(
        "object_lost",
        "a Ray object that was lost",
        Transient.UNKNOWN,
        "look for the node or owner that held it",
        "relaunch after its loss is explained",
        (
            "Ray 2.40–2.60, ObjectLostError and OwnerDiedError («The object's owner has exited»); Ray docs, "
            "Object fault tolerance"
        ),
    ),
    Cause(
        "ray_get_timeout",
        "a Ray call that was not answered in time",
        Transient.UNKNOWN,
        "take stacks of the actor that was called",
        "relaunch after the stall is explained",
        "Ray 2.40–2.60, GetTimeoutError («some object(s) not ready»); ray.get's timeout in Ray's API reference",
    ),
    Cause(
        "disk_full",
        "a node whose disk is full",
        Transient.UNKNOWN,
        "free the node's local disk",
        "relaunch on a node with room",
        (
            "Ray 2.40–2.60, OutOfDiskError; Kubernetes docs, Node-pressure eviction («low on resource: "
            "ephemeral-storage»)"
        ),
    ),
    Cause(
        "object_store_full",
        "a Ray object store that is full",
        Transient.NO,
        "raise the object-store memory or hold fewer objects",
        "hold until changed",
        "Ray 2.40–2.60, ObjectStoreFullError; Ray docs, Memory management (--object-store-memory)",
        oom="host",
    ),
    Cause(
        "runtime_env_failed",
        "a Ray runtime environment that could not be set up",
        Transient.UNKNOWN,
        "read the runtime-env set-up log",
        "relaunch after it is fixed",
        "Ray 2.40–2.60, RuntimeEnvSetupError; Ray docs, Environment dependencies (runtime_env_setup-*.log)",
    ),
    Cause(
        "preempted",
        "a pre-emption by its scheduler",
        Transient.YES,
        "nothing is to be repaired: look at the priority, or let the job resume from its last checkpoint",
        "relaunch from the last checkpoint",
        "Slurm («DUE TO PREEMPTION», PREEMPTED; its docs, Preemption); Kubernetes docs, Pod priority and "
        "preemption; Iris («Preempted by …»)",
    ),
    Cause(
        "version_mismatch",
        "processes of different Python or Ray versions in one cluster",
        Transient.NO,
        "run head, workers and driver from one image; the message names both versions",
        "hold until the images are one",
        "Ray 2.40–2.60 («Version mismatch: The cluster was started with») and the Iris task supervisor («Iris runtime "
        "version mismatch before Ray join»)",
    ),
)
