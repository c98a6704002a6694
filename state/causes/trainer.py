"""Causes of the trainer and its launcher."""

from state.causes.cause import Cause, Transient

ROWS = (
    Cause(
        "train_loop_failed",
        "the train loop that failed",
        Transient.UNKNOWN,
        "read the traceback below it",
        "relaunch after the traceback is explained",
        "SkyRL's trainer («Train loop failed at global_step N:», its traceback below)",
    ),
    Cause(
        "generator_failed",
        "the generator that failed",
        Transient.UNKNOWN,
        "read the exception it names",
        "relaunch after it is explained",
        "SkyRL's generator («Generator worker errored out with exception»), Harbor's orchestrator",
    ),
    Cause(
        "generation_stalled",
        "generation that stalled until its own deadline",
        Transient.UNKNOWN,
        "look at engines and coordinators in the time before it",
        "relaunch after the stall is explained",
        "MarinSkyRL's GenerationStalledError («no groups admitted for 1800.0s; active_producers=…»)",
    ),
    Cause(
        "model_init_timeout",
        "a model initialisation past its deadline",
        Transient.UNKNOWN,
        "look at the named actors' logs",
        "relaunch once",
        "MarinSkyRL's own deadline («… model initialization timed out after N seconds; terminating model actors»)",
    ),
    Cause(
        "config_error",
        "a configuration that the launcher refused",
        Transient.NO,
        "fix the named key",
        "hold until fixed",
        (
            "Hydra 1.x («Could not override», «Key … is not in struct», HYDRA_FULL_ERROR=1); the launchers' "
            "argument parsers"
        ),
    ),
    Cause(
        "model_unavailable",
        "a model or data set that could not be fetched",
        Transient.YES,
        "check that the named repository is reachable or staged",
        "relaunch once",
        (
            "huggingface_hub and transformers («does not appear to have a file named», OfflineModeIsEnabled, HTTP "
            "429 and 504 of huggingface.co)"
        ),
    ),
    Cause(
        "task_files_missing",
        "task files that a worker does not have",
        Transient.NO,
        "stage the data set's tasks on every node that runs trials",
        "hold until they are staged",
        ("Python's FileNotFoundError of a task.toml on workers: each trial of the data set then ends without a reward"),
    ),
    Cause(
        "request_refused",
        "a request that its service refused for good (an HTTP status that no retry passes)",
        Transient.NO,
        "fix what the status names: the request (400), the key or the balance (401, 402, 403), the address (404)",
        "hold until one request is answered",
        "HTTP (RFC 9110): the 4xx statuses that a retry does not pass; Tinker's and OpenAI's client exceptions",
    ),
    Cause(
        "service_unreachable",
        "a service that the trainer depends on and that no longer answers",
        Transient.UNKNOWN,
        "look at the service's own log and whether its host answers",
        "relaunch once it answers",
        "Tinker's client («session lost» after its own retries)",
    ),
    Cause(
        "python_exception",
        "an exception",
        Transient.UNKNOWN,
        "read the traceback",
        "relaunch after it is explained",
        "the traceback itself (Python, Tracebacks)",
    ),
    Cause(
        "done_not_exited",
        "a trainer that is done while its job still runs",
        Transient.NO,
        "end the job: its work is banked",
        "nothing to relaunch",
        "gate A: the trainer's done line and a state poll that says running 15 min later",
    ),
    Cause(
        "billing_refused",
        "a service that refused a request for want of money or quota on its account",
        Transient.NO,
        "top up the account or raise its spending limit, then prove it by one request",
        "hold until one request is answered",
        "HTTP 402 (RFC 9110, Payment Required) and «insufficient_quota» of the OpenAI API's error codes",
    ),
    Cause(
        "snapshot_quota",
        "a sandbox provider whose snapshot quota is used up",
        Transient.NO,
        "delete unused snapshots or raise the quota, then create one sandbox by hand",
        "hold until one sandbox comes up",
        "Daytona's quota message and Harbor's SnapshotQuotaExceeded (its name says what is used up)",
    ),
)
