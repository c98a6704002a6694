"""vLLM's faults: engine cores, workers and their calls, weight reloads.

An engine core prints its own traceback; the clients' EngineDeadError only repeats that it happened.
"""

from typing import Any

from extractors.pattern import Nature, Role, pattern
from extractors.signal import Fault

RAISED = r"(?:(?:[\w.]+\.)?(?:\w*Error|\w*Exception): )?"
"""The exception type that stands before a message where the message was raised and not logged."""


@pattern(
    "vllm",
    Nature.FAULT,
    role=Role.EITHER,
    hints=("EngineCore encountered a fatal error", "EngineCore hit an exception"),
    regex=r"EngineCore (?:encountered a fatal error|hit an exception)",
    samples={
        "ERROR 03-14 09:40:00 [core.py:1101] EngineCore encountered a fatal error.": (
            Fault("engine_core_fatal", "EngineCore encountered a fatal error")
        ),
        "ERROR 03-14 09:40:00 [core.py:291] EngineCore hit an exception: Traceback (most recent call last):": (
            Fault("engine_core_fatal", "EngineCore encountered a fatal error")
        ),
    },
    rejects=("vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above)",),
)
def engine_core_fatal(found: Any) -> Fault:
    """An engine core announces its own traceback, which follows in the same file and names the cause."""
    return Fault("engine_core_fatal", "EngineCore encountered a fatal error")


@pattern(
    "vllm",
    Nature.FAULT,
    role=Role.CASCADE,
    hints=(
        "EngineDeadError",
        "AsyncLLM output_handler failed",
        "shutdown signal from EngineCore failed",
        "failed (engine dead)",
    ),
    regex=r"(?:(?:(?:[\w.]+\.)?RayTaskError\(EngineDeadError\): (?!ray::))|(?:[\w.]+\.)?EngineDeadError\b"
    r"|AsyncLLM output_handler failed\.|vLLM shutdown signal from EngineCore failed to send"
    r"|Request \S+ failed \(engine dead\))",
    samples={
        "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the "
        "root cause.": Fault("engine_dead", "EngineDeadError", "EngineDeadError"),
        "ERROR 03-14 09:40:02 [async_llm.py:708] AsyncLLM output_handler failed.": (
            Fault("engine_dead", "AsyncLLM output_handler failed")
        ),
        "vLLM shutdown signal from EngineCore failed to send. Please report this issue.": (
            Fault("engine_dead", "vLLM shutdown signal from EngineCore failed to send")
        ),
        "INFO 03-14 09:40:02 [async_llm.py:342] Request chatcmpl-11aa failed (engine dead).": (
            Fault("engine_dead", "request failed (engine dead)")
        ),
    },
    rejects=("except EngineDeadError:", "[INFO] Request chatcmpl-11aa failed (bad request)."),
)
def engine_dead(found: Any) -> Fault:
    """A client of an engine core learned that the core is dead. The core's own traceback stands in its actor's log."""
    text: str = found[0]
    if "EngineDeadError" in text:
        return Fault("engine_dead", "EngineDeadError", "EngineDeadError")
    if text.startswith("Request "):
        return Fault("engine_dead", "request failed (engine dead)")
    return Fault("engine_dead", text.rstrip("."))


@pattern(
    "vllm",
    Nature.FAULT,
    role=Role.EITHER,
    hints=("died unexpectedly",),
    regex=RAISED + r"(?:(?P<core>Engine core proc(?:ess)?) (?P<core_name>\S+)"
    r"|(?P<worker>Worker proc|RayWorkerProc) (?P<name>\S+)) died unexpectedly"
    r"(?:[^\n(]*\(exit code: (?P<code>-?\d+)\))?",
    samples={
        "ERROR 03-14 09:41:00 [core_client.py:562] Engine core proc EngineCore_DP1 died unexpectedly, shutting down "
        "client.": Fault("engine_dead", "engine core process died", entity="EngineCore_DP1"),
        "RuntimeError: Engine core process EngineCore died unexpectedly": (
            Fault("engine_dead", "engine core process died", entity="EngineCore")
        ),
        "ERROR 03-14 09:41:00 [multiproc_executor.py:230] Worker proc VllmWorker-2 died unexpectedly, shutting down "
        "executor.": Fault("engine_worker_died", "engine worker process died", entity="VllmWorker-2"),
        "ERROR 03-14 09:41:00 [multiproc_executor.py:301] Worker proc VllmWorker-0 died unexpectedly, shutting down "
        "executor. (exit code: -9)": (
            Fault("engine_worker_died", "engine worker process died with exit code -9", entity="VllmWorker-0")
        ),
        "ERROR 03-14 09:41:00 [ray_executor_v2.py:90] RayWorkerProc rank=[3] died unexpectedly, shutting down "
        "executor.": (Fault("engine_worker_died", "engine worker process died", entity="rank=[3]")),
    },
    rejects=("The actor died unexpectedly before finishing this task.", "my Worker proc died unexpectedly in the test"),
)
def engine_process_died(found: Any) -> Fault:
    """An engine's core or worker process ended without a word; why stands in its own log or the node's kernel log."""
    code = f" with exit code {found['code']}" if found["code"] else ""
    if found["core"]:
        return Fault("engine_dead", f"engine core process died{code}", entity=found["core_name"])
    return Fault("engine_worker_died", f"engine worker process died{code}", entity=found["name"])


@pattern(
    "vllm",
    Nature.FAULT,
    role=Role.EITHER,
    hints=("RPC call to ",),
    regex=RAISED + r"RPC call to (?P<call>\w+) timed out",
    samples={
        "TimeoutError: RPC call to sample_tokens timed out.": (
            Fault("engine_rpc_timeout", "RPC call to sample_tokens timed out", entity="sample_tokens")
        ),
        "(EngineCore pid=71) ERROR 03-14 09:42:00 [core.py:1101] TimeoutError: RPC call to execute_model timed out.": (
            Fault("engine_rpc_timeout", "RPC call to execute_model timed out", entity="execute_model")
        ),
    },
    rejects=("TimeoutError: the RPC call to sample_tokens was slow",),
)
def engine_rpc_timeout(found: Any) -> Fault:
    """An engine's workers did not answer within VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS (300): they hang or are gone."""
    return Fault("engine_rpc_timeout", f"RPC call to {found['call']} timed out", entity=found["call"])


@pattern(
    "vllm",
    Nature.FAULT,
    role=Role.CASCADE,
    hints=(
        "Executor failed.",
        "Worker failed with error",
        "WorkerProc hit an exception",
        "WorkerProc failed.",
        "Dumping input data for V",
        "Dumping scheduler output for model execution",
    ),
    regex=r"(?:RuntimeError: )?(?:Executor failed\.|Worker failed with error '|WorkerProc hit an exception"
    r"|WorkerProc failed\.|Dumping input data for V\d LLM engine \(|Dumping scheduler output for model execution: )",
    samples={
        "RuntimeError: Executor failed.": Fault("engine_core_fatal", "an engine worker failed"),
        "RuntimeError: Worker failed with error 'index out of range', please check the stack trace above for the root "
        "cause": Fault("engine_core_fatal", "an engine worker failed"),
        "(Worker_TP1 pid=80) ERROR 03-14 09:42:00 [multiproc_executor.py:671] WorkerProc hit an exception.": (
            Fault("engine_core_fatal", "an engine worker failed")
        ),
        "ERROR 03-14 09:42:00 [multiproc_executor.py:420] WorkerProc failed.": (
            Fault("engine_core_fatal", "an engine worker failed")
        ),
        "ERROR 03-14 09:42:00 [dump_input.py:72] Dumping input data for V1 LLM engine (v0.20.2) with config: "
        "model='org/m', max_seq_len=65536, tensor_parallel_size=2": (
            Fault("engine_core_fatal", "an engine worker failed")
        ),
        "ERROR 03-14 09:42:00 [dump_input.py:79] Dumping scheduler output for model execution: "
        "SchedulerOutput(scheduled_new_reqs=[], num_scheduled_tokens={'r-1': 1})": (
            Fault("engine_core_fatal", "an engine worker failed")
        ),
    },
    rejects=(
        "RuntimeError: Worker failed to pick a port",
        "WorkerProc failed to start.",
        "INFO 03-14 09:20:01 [core.py:101] Initializing a V1 LLM engine (v0.28.0) with config: model='org/m'",
        "Dumping input data for Vera",
    ),
)
def engine_worker_failed(found: Any) -> Fault:
    """An executor repeats that one of its workers raised, or the core dumps what it was asked to run: the traceback
    that names the cause stands beside it, the dump before it."""
    return Fault("engine_core_fatal", "an engine worker failed")


@pattern(
    "vllm",
    Nature.FAULT,
    role=Role.ROOT,
    hints=("'Meta' backend", "Cannot copy out of meta tensor"),
    regex=r"(?:[\w.]+\.)?NotImplementedError: (?:Could not run '(?P<operator>[^']+)'[^\n]*'Meta' backend"
    r"|[^\n]*?'Meta' backend|Cannot copy out of meta tensor)",
    samples={
        "ERROR 03-14 09:43:00 [core.py:1101] NotImplementedError: Could not run '_C_cache_ops::"
        "reshape_and_cache_flash' with arguments from the 'Meta' backend. This could be because the operator doesn't "
        "exist for this backend.": Fault(
            "engine_meta_tensors",
            "no kernel for the Meta backend: weights without data",
            "NotImplementedError",
            "_C_cache_ops::reshape_and_cache_flash",
        ),
        "NotImplementedError: Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty()": Fault(
            "engine_meta_tensors", "no kernel for the Meta backend: weights without data", "NotImplementedError"
        ),
    },
    rejects=(
        "NotImplementedError: Could not run 'aten::add' with arguments from the 'CPU' backend.",
        "the 'Meta' backend has no NotImplementedError here",
    ),
)
def engine_meta_tensors(found: Any) -> Fault:
    """A forward met weights that were never filled: the first weight sync left modules on the meta device."""
    return Fault(
        "engine_meta_tensors",
        "no kernel for the Meta backend: weights without data",
        "NotImplementedError",
        found["operator"] or "",
    )


@pattern(
    "vllm",
    Nature.FAULT,
    role=Role.ROOT,
    hints=("skyrl_begin_weight_reload must be", "weight update is already active"),
    regex=RAISED + r"(?P<rule>skyrl_begin_weight_reload must be called before"
    r"|\w+ called while a weight update is already active)",
    samples={
        "RuntimeError: skyrl_begin_weight_reload must be called before skyrl_finish_weight_reload": (
            Fault("weight_reload_order", "skyrl_begin_weight_reload must be called before")
        ),
        "RuntimeError: start_weight_update called while a weight update is already active; call finish first": (
            Fault("weight_reload_order", "start_weight_update called while a weight update is already active")
        ),
    },
    rejects=("# skyrl_begin_weight_reload must be called before this", "start_weight_update called"),
)
def weight_reload_order(found: Any) -> Fault:
    """A call of the weight-reload bracket came twice or without its opening (MarinSkyRL's engines, newer vLLM)."""
    return Fault("weight_reload_order", found["rule"])


@pattern(
    "vllm",
    Nature.FAULT,
    role=Role.EITHER,
    hints=("Inference engine ", "inference engines have died"),
    regex=r"(?:Inference engine (?P<engine>\d+) died \((?P<why>\w+)\)\. (?P<left>\d+/\d+) engines remaining"
    r"|(?P<all>All inference engines have died)|(?P<error>Inference engine error): (?P<message>[^\n]{0,160}))",
    samples={
        "2031-03-14 09:44:00.000 | ERROR    | skyrl_train.inference_engines.inference_engine_client:_drop:410 - "
        "Inference engine 3 died (ActorDiedError). 7/8 engines remaining.": (
            Fault("engine_dead", "7/8 engines remaining", "ActorDiedError", entity="engine 3")
        ),
        "All inference engines have died!": Fault("engine_dead", "all inference engines have died"),
        "Inference engine error: actor unavailable": Fault("engine_dead", "actor unavailable"),
    },
    rejects=("Inference engine 3 died down a little", "InferenceEngineClient initialized with 8 engines."),
)
def inference_engine_died(found: Any) -> Fault:
    """SkyRL's client lost an engine, or all of them; the engine's own log holds the reason."""
    if found["all"]:
        return Fault("engine_dead", "all inference engines have died")
    if found["error"]:
        return Fault("engine_dead", found["message"])
    return Fault("engine_dead", f"{found['left']} engines remaining", found["why"], entity=f"engine {found['engine']}")


PATTERNS = (
    engine_core_fatal,
    engine_dead,
    engine_process_died,
    engine_rpc_timeout,
    engine_worker_failed,
    engine_meta_tensors,
    weight_reload_order,
    inference_engine_died,
)
