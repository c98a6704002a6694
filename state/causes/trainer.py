"""Causes of the trainer and its launcher."""

from state.causes.cause import Cause, Transient

ROWS = (
    Cause(
        "train_loop_failed",
        "the train loop that failed",
        Transient.UNKNOWN,
        "read the traceback below it",
        "relaunch after the traceback is explained",
    ),
    Cause(
        "generator_failed",
        "the generator that failed",
        Transient.UNKNOWN,
        "read the exception it names",
        "relaunch after it is explained",
    ),
    Cause(
        "generation_stalled",
        "generation that stalled until its own deadline",
        Transient.UNKNOWN,
        "look at engines and coordinators in the time before it",
        "relaunch after the stall is explained",
    ),
    Cause(
        "model_init_timeout",
        "a model initialisation past its deadline",
        Transient.UNKNOWN,
        "look at the named actors' logs",
        "relaunch once",
    ),
    Cause(
        "config_error",
        "a configuration that the launcher refused",
        Transient.NO,
        "fix the named key",
        "hold until fixed",
    ),
    Cause(
        "model_unavailable",
        "a model or data set that could not be fetched",
        Transient.YES,
        "check that the named repository is reachable or staged",
        "relaunch once",
    ),
    Cause(
        "task_files_missing",
        "task files that a worker does not have",
        Transient.NO,
        "stage the data set's tasks on every node that runs trials",
        "hold until they are staged",
    ),
    Cause(
        "request_refused",
        "a request that its service refused for good (an HTTP status that no retry passes)",
        Transient.NO,
        "fix what the status names: the request (400), the key or the balance (401, 402, 403), the address (404)",
        "hold until one request is answered",
    ),
    Cause(
        "service_unreachable",
        "a service that the trainer depends on and that no longer answers",
        Transient.UNKNOWN,
        "look at the service's own log and whether its host answers",
        "relaunch once it answers",
    ),
    Cause(
        "python_exception",
        "an exception",
        Transient.UNKNOWN,
        "read the traceback",
        "relaunch after it is explained",
    ),
    Cause(
        "done_not_exited",
        "a trainer that is done while its job still runs",
        Transient.NO,
        "end the job: its work is banked",
        "nothing to relaunch",
    ),
)
