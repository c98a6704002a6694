"""Causes of the inference engines."""

from state.causes.cause import Cause, Transient

ROWS = (
    Cause(
        "engine_meta_tensors",
        "an engine that died on meta tensors (weights without data)",
        Transient.NO,
        (
            "the weights of the named module were never loaded before the first forward: fix the weight "
            "reload bracket or the load format"
        ),
        "hold: it fails the same way at each first weight sync until fixed",
    ),
    Cause(
        "engine_core_fatal",
        "an engine core that met a fatal error",
        Transient.UNKNOWN,
        "read the engine core's own traceback",
        "relaunch after the traceback is explained",
    ),
    Cause(
        "engine_dead",
        "an engine that is dead",
        Transient.UNKNOWN,
        "read the engine core's own traceback above it",
        "relaunch after the traceback is explained",
    ),
    Cause(
        "engine_worker_died",
        "an engine's worker process that died",
        Transient.UNKNOWN,
        "read the worker's own log and the kernel log of its node",
        "relaunch after the death is explained",
    ),
    Cause(
        "engine_rpc_timeout",
        "an engine that did not answer its executor in time",
        Transient.UNKNOWN,
        "take stacks of the engine's workers",
        "relaunch after the hang is explained",
        hang=True,
    ),
    Cause(
        "engine_server_error",
        "an engine's server that failed requests",
        Transient.UNKNOWN,
        "read the engine's own traceback of that moment",
        "relaunch after the traceback is explained",
    ),
    Cause(
        "engine_start_failed",
        "an engine that failed to start",
        Transient.NO,
        "read the engine's own traceback",
        "hold until the configuration is fixed",
    ),
    Cause(
        "weight_reload_order",
        "a weight reload out of order",
        Transient.NO,
        "call the reload bracket once around each update",
        "hold until fixed",
    ),
    Cause(
        "kv_cache_no_memory",
        "an engine whose share of the GPU holds no KV cache",
        Transient.NO,
        "raise gpu_memory_utilization, lower max_model_len, or free the device of what else holds it",
        "hold until changed",
        oom="gpu",
    ),
)
