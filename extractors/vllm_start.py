"""vLLM engines that do not come up: a refused argument, a GPU share without room, an exception while loading."""

from typing import Any

from extractors.pattern import Nature, Role, pattern
from extractors.signal import Fault
from extractors.vllm_faults import RAISED


@pattern(
    "vllm",
    Nature.FAULT,
    role=Role.CASCADE,
    hints=("EngineCore failed to start", "WorkerProc failed to start", "Engine core initialization failed"),
    regex=RAISED + r"(?:EngineCore failed to start|WorkerProc failed to start|WorkerProc initialization failed"
    r"|Engine core initialization failed)",
    samples={
        "(EngineCore_DP0 pid=71) ERROR 03-14 09:22:00 [core.py:842] EngineCore failed to start.": (
            Fault("engine_start_failed", "an engine failed to start")
        ),
        "ERROR 03-14 09:22:00 [multiproc_executor.py:700] WorkerProc failed to start.": (
            Fault("engine_start_failed", "an engine failed to start")
        ),
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}": (
            Fault("engine_start_failed", "an engine failed to start")
        ),
    },
    rejects=("Generator startup failed: x", "EngineCore encountered a fatal error."),
)
def engine_start_failed(found: Any) -> Fault:
    """An engine did not come up; the exception that stopped it is a line of its own."""
    return Fault("engine_start_failed", "an engine failed to start")


@pattern(
    "vllm",
    Nature.FAULT,
    role=Role.ROOT,
    hints=("No available memory for the cache blocks", "Free memory on device", "KV cache is needed, which is larger"),
    regex=r"(?:[\w.]+\.)?ValueError: (?P<what>No available memory for the cache blocks|Free memory on device"
    r"|To serve at least one request)",
    samples={
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when "
        "initializing the engine.": Fault(
            "kv_cache_no_memory", "No available memory for the cache blocks", "ValueError"
        ),
        "(EngineCore pid=71) ERROR 03-14 09:22:00 [core.py:842] ValueError: Free memory on device (11.2/79.1 GiB) on "
        "startup is less than desired GPU memory utilization (0.9, 71.2 GiB).": (
            Fault("kv_cache_no_memory", "Free memory on device", "ValueError")
        ),
        "ValueError: To serve at least one request with the models's max seq len (131072), (16.0 GiB KV cache is "
        "needed, which is larger than the available KV cache memory (9.2 GiB).": (
            Fault("kv_cache_no_memory", "To serve at least one request", "ValueError")
        ),
    },
    rejects=("ValueError: Free memory must be positive", "torch.OutOfMemoryError: CUDA out of memory."),
)
def kv_cache_no_memory(found: Any) -> Fault:
    """An engine refused to start because its share of the GPU holds no KV cache: a setting, not a leak."""
    return Fault("kv_cache_no_memory", found["what"], "ValueError")


@pattern(
    "vllm",
    Nature.FAULT,
    role=Role.ROOT,
    hints=("vllm: error: ",),
    regex=r"(?:usage: )?vllm: error: (?P<what>[^\n]{1,160})",
    samples={
        "vllm: error: unrecognized arguments: --max-modle-len 4096": (
            Fault("config_error", "unrecognized arguments: --max-modle-len 4096")
        ),
    },
    rejects=("usage: vllm [-h] [-v]", "$ vllm: error: no such command"),
)
def vllm_usage_error(found: Any) -> Fault:
    """vLLM's command line refused its arguments; the server was never started."""
    return Fault("config_error", found["what"])


PATTERNS = (engine_start_failed, kv_cache_no_memory, vllm_usage_error)
