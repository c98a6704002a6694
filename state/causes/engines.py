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
        (
            "PyTorch's NotImplementedError («… with arguments from the 'Meta' backend») at an engine's first "
            "forward after a reload; vLLM's layer-wise reload"
        ),
    ),
    Cause(
        "engine_core_fatal",
        "an engine core that met a fatal error",
        Transient.UNKNOWN,
        "read the engine core's own traceback",
        "relaunch after the traceback is explained",
        "vLLM 0.8–0.20, EngineCore («encountered a fatal error», its traceback above)",
    ),
    Cause(
        "engine_dead",
        "an engine that is dead",
        Transient.UNKNOWN,
        "read the engine core's own traceback above it",
        "relaunch after the traceback is explained",
        "vLLM 0.8–0.20, EngineDeadError («See stack trace (above) for the root cause»)",
    ),
    Cause(
        "engine_worker_died",
        "an engine's worker process that died",
        Transient.UNKNOWN,
        "read the worker's own log and the kernel log of its node",
        "relaunch after the death is explained",
        "vLLM 0.9–0.33, its executor («Worker proc … died unexpectedly, shutting down executor»)",
    ),
    Cause(
        "engine_rpc_timeout",
        "an engine that did not answer its executor in time",
        Transient.UNKNOWN,
        "take stacks of the engine's workers",
        "relaunch after the hang is explained",
        "vLLM 0.9–0.20, «RPC call to … timed out» (VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS); vLLM docs, Troubleshooting",
        hang=True,
    ),
    Cause(
        "engine_server_error",
        "an engine's server that failed requests",
        Transient.UNKNOWN,
        "read the engine's own traceback of that moment",
        "relaunch after the traceback is explained",
        "uvicorn's access lines of the vLLM server (5xx)",
    ),
    Cause(
        "engine_start_failed",
        "an engine that failed to start",
        Transient.NO,
        "read the engine's own traceback",
        "hold until the configuration is fixed",
        "vLLM 0.8–0.20, «EngineCore failed to start», «WorkerProc failed to start» (root cause above)",
    ),
    Cause(
        "weight_reload_order",
        "a weight reload out of order",
        Transient.NO,
        "call the reload bracket once around each update",
        "hold until fixed",
        (
            "SkyRL's engine wrapper, its own messages («skyrl_begin_weight_reload must be called before», "
            "«start_weight_update called while … already active»)"
        ),
    ),
    Cause(
        "kv_cache_no_memory",
        "an engine whose share of the GPU holds no KV cache",
        Transient.NO,
        "raise gpu_memory_utilization, lower max_model_len, or free the device of what else holds it",
        "hold until changed",
        (
            "vLLM 0.6–0.20, its own message («Try increasing `gpu_memory_utilization`», «less than desired GPU "
            "memory utilization»)"
        ),
        oom="gpu",
    ),
)
