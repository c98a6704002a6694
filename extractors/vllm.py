"""vLLM: what its engines say of their load, their configuration and their coming up.

Serves gate B (running, waiting and KV use of each engine) and the bring-up stage. Faults are in `vllm_faults` and
`vllm_start`. Versions are vLLM's; V0 logs from `metrics.py`, V1 from `loggers.py`.
"""

import re
from functools import lru_cache
from typing import Any

from extractors import vllm_benign, vllm_faults, vllm_reload, vllm_setup, vllm_start
from extractors.pattern import Nature, pattern
from extractors.signal import BringUp
from extractors.vllm_signals import AGGREGATED, EngineConfigured, EngineLoad

__all__ = ["AGGREGATED", "PATTERNS", "EngineConfigured", "EngineLoad"]

_PROMPT = "Avg prompt throughput: "
_GENERATION = "Avg generation throughput: "
_PER_SECOND = " tokens/s"
_QUEUED = ("Waiting: ", "Pending: ")
_KV = "KV cache usage: "
_V1 = re.compile(
    r"(?:Engine ([0-9]+): )?Avg prompt throughput: ([0-9.]+) tokens/s, Avg generation throughput: ([0-9.]+) tokens/s, "
    r"Running: ([0-9]+) reqs, Waiting: ([0-9]+) reqs, GPU KV cache usage: ([0-9.]+)%(?:, |$)"
)
"""The commonest form, which is read at once; a run prints more of these lines than of all others."""


@lru_cache(maxsize=1024)
def _engine_of(head: str) -> str | None:
    """The engine that the words before the first figure name; None when they are no statistics line's."""
    if not head:
        return ""
    if head.startswith("Engine ") and head.endswith(": "):
        tag = head[7:-2]
        return tag if tag.isdigit() else None
    return AGGREGATED if head.endswith(" Engines Aggregated: ") and head[:1].isdigit() else None


@pattern(
    "vllm",
    Nature.HEARTBEAT,
    hints=(_GENERATION,),
    samples={
        "INFO 03-14 09:26:53 metrics.py:455] Avg prompt throughput: 310.4 tokens/s, Avg generation throughput: "
        "92.1 tokens/s, Running: 7 reqs, Swapped: 0 reqs, Pending: 3 reqs, GPU KV cache usage: 41.7%, CPU KV cache "
        "usage: 0.0%.": EngineLoad("", 7, 3, 41.7, 310.4, 92.1),
        "INFO 03-14 09:26:53 [loggers.py:78] Avg prompt throughput: 18.0 tokens/s, Avg generation throughput: 640.2 "
        "tokens/s, Running: 12 reqs, Waiting: 1 reqs, GPU KV cache usage: 8.8%, Prefix cache hit rate: 51.0%": (
            EngineLoad("", 12, 1, 8.8, 18.0, 640.2)
        ),
        "(AsyncVLLMInferenceEngine pid=5120, ip=10.1.0.9) INFO 03-14 09:26:53 [loggers.py:111] Engine 003: Avg prompt "
        "throughput: 0.0 tokens/s, Avg generation throughput: 0.0 tokens/s, Running: 0 reqs, Waiting: 0 reqs, GPU KV "
        "cache usage: 0.0%, Prefix cache hit rate: 0.0%": EngineLoad("003", 0, 0, 0.0, 0.0, 0.0),
        "INFO 03-14 09:26:53 [loggers.py:248] Engine 000: Avg prompt throughput: 77.5 tokens/s, Avg generation "
        "throughput: 1204.9 tokens/s, Running: 31 reqs, Waiting: 14 reqs, Preemptions: 2, GPU KV cache usage: 99.1%, "
        "Prefix cache hit rate: 64.3%, External prefix cache hit rate: 5.0%, MM cache hit rate: 0.0%": (
            EngineLoad("000", 31, 14, 99.1, 77.5, 1204.9)
        ),
        "INFO 03-14 09:26:53 [loggers.py:259] 4 Engines Aggregated: Avg prompt throughput: 5.0 tokens/s, Avg "
        "generation "
        "throughput: 80.0 tokens/s, Running: 9 reqs, Waiting: 0 reqs, GPU KV cache usage: 3.0%, Prefix cache hit rate: "
        "1.0%": EngineLoad(AGGREGATED, 9, 0, 3.0, 5.0, 80.0),
        "INFO 03-14 09:26:53 [loggers.py:271] Engine 001: Avg prompt throughput: 9.0 tokens/s, Avg generation "
        "throughput: 555.5 tokens/s, Running: 5 reqs, Waiting: 6 reqs, Deferred: 4 reqs, Preemptions: 1, GPU KV cache "
        "usage: 22.2%, Prefix cache hit rate: 70.0%, Corrupted: 1 reqs": EngineLoad("001", 5, 6, 22.2, 9.0, 555.5),
        "(MainProcess pid=71) INFO 03-14 09:26:53 [v1/metrics/loggers.py:335] Engine 012: Avg prompt throughput: 3.0 "
        "tokens/s, Avg generation throughput: 4.0 tokens/s, Running: 2 reqs, Waiting: 0 reqs, XPU KV cache usage: "
        "0.5%": EngineLoad("012", 2, 0, 0.5, 3.0, 4.0),
        "(EngineCore pid=71) INFO 03-14 09:26:53 [loggers.py:335] Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg "
        "generation throughput: 2.0 tokens/s, Running: 1 reqs, Waiting: 2 reqs, KV fetch: 1 waiting to start, 0 in "
        "progress, 9 completed waiting, CPU KV cache usage: 7.7%": EngineLoad("000", 1, 2, 7.7, 1.0, 2.0),
    },
    rejects=(
        "INFO 03-14 09:26:53 [loggers.py:310] Engine 000: Iteration(12): 1 context requests, 4096 context tokens, 8 "
        "generation requests, 8 generation tokens, iteration elapsed time: 12.34 ms, GPU KV cache usage: 12.3%",
        "INFO 03-14 09:26:53 metrics.py:471] Prefix cache hit rate: GPU: 12.34%, CPU: 0.00%",
        "INFO 03-14 09:26:53 metrics.py:488] Speculative metrics: Draft acceptance rate: 0.655, System efficiency: "
        "0.581, Number of speculative tokens: 4, Number of accepted tokens: 131, Number of draft tokens: 200, Number "
        "of emitted tokens: 152.",
        "INFO 03-14 09:26:53 [metrics.py:77] SpecDecoding metrics: Draft acceptance rate: 65.5%, Mean acceptance "
        "length: 2.31, Accepted: 131 tokens, Drafted: 200 tokens, Per-position acceptance rate: 0.800, 0.500",
        "INFO 03-14 09:26:53 [metrics.py:96] SpecDecoding metrics: Mean acceptance length: 2.31, Accepted throughput: "
        "14.10 tokens/s, Drafted throughput: 22.00 tokens/s, Accepted: 141 tokens, Drafted: 220 tokens",
        "the log shows Avg generation throughput: 12.0 tokens/s, Running: 3 reqs, so I wait",
    ),
)
def engine_load(text: str) -> EngineLoad | None:
    """An engine's statistics, every 10 s by default. From V1 on an idle or hung engine falls silent after one line of
    zeros: absence is neither health nor death, and a hang may leave a last line that looks busy."""
    found = _V1.match(text)
    if found is not None:
        engine, prompt, generation, running, waiting, kv_percent = found.groups()
        return EngineLoad(engine or "", int(running), int(waiting), float(kv_percent), float(prompt), float(generation))
    return _load_of_any(text)


def _load_of_any(text: str) -> EngineLoad | None:
    """The same from lines with other fields, or fewer: those of V0, of several engines, of 0.20 and later."""
    at = text.find(_PROMPT)
    engine = _engine_of(text[:at]) if at >= 0 else None
    if engine is None:
        return None
    fields = text[at + len(_PROMPT) :].split(", ")
    if not fields[1].startswith(_GENERATION):
        return None
    waiting: int | None = None
    kv_percent: float | None = None
    for field in fields[3:]:
        if field.startswith(_QUEUED):
            waiting = int(field[9:].removesuffix(" reqs"))
        elif kv_percent is None and _KV in field:
            kv_percent = float(field.partition(_KV)[2].rstrip("%."))
        if waiting is not None and kv_percent is not None:
            break
    return EngineLoad(
        engine,
        int(fields[2].removeprefix("Running: ").removesuffix(" reqs")),
        waiting or 0,
        kv_percent,
        float(fields[0].removesuffix(_PER_SECOND)),
        float(fields[1][len(_GENERATION) :].removesuffix(_PER_SECOND)),
    )


def _value(text: str, key: str) -> str:
    """The value of `key=…` in a printed configuration, "" where it is absent."""
    at = text.find(f" {key}=")
    return "" if at < 0 else text[at + len(key) + 2 :].split(",", 1)[0].strip()


def _whole(text: str) -> int | None:
    return int(text) if text.isdigit() else None


@pattern(
    "vllm",
    Nature.FACT,
    hints=(" LLM engine (v",),
    regex=r"Initializing an? (?:V[01] )?LLM engine \(v(?P<version>[^)]+)\) with config: (?P<config>.*)",
    samples={
        "INFO 03-14 09:20:01 llm_engine.py:213] Initializing an LLM engine (v0.6.0) with config: model='org/m', "
        "tokenizer='org/m', max_seq_len=4096, tensor_parallel_size=1, pipeline_parallel_size=1, enforce_eager=True, "
        "seed=0": EngineConfigured(1, True, 4096, "0.6.0"),
        "INFO 03-14 09:20:01 llm_engine.py:234] Initializing a V0 LLM engine (v0.7.3) with config: model='org/m', "
        "max_seq_len=8192, tensor_parallel_size=4, enforce_eager=False, kv_cache_dtype=auto": (
            EngineConfigured(4, False, 8192, "0.7.3")
        ),
        "(EngineCore_DP0 pid=71) INFO 03-14 09:20:01 [core.py:101] Initializing a V1 LLM engine (v0.20.2) with config: "
        "model='org/m', speculative_config=None, max_seq_len=65536, tensor_parallel_size=2, data_parallel_size=1, "
        "enforce_eager=False, enable_prefix_caching=True": EngineConfigured(2, False, 65536, "0.20.2"),
        "INFO 03-14 09:20:01 [core.py:101] Initializing a V1 LLM engine (v0.28.0) with config: model='org/m'": (
            EngineConfigured(None, None, None, "0.28.0")
        ),
    },
    rejects=(
        "ERROR 03-14 09:20:01 [dump_input.py:72] Dumping input data for V1 LLM engine (v0.20.2) with config: "
        "model='org/m', max_seq_len=65536",
    ),
)
def engine_configured(found: Any) -> EngineConfigured:
    """What an engine starts with. The line does not hold max_num_seqs: the cap comes from the launch configuration."""
    config = " " + found["config"]
    eager = _value(config, "enforce_eager")
    return EngineConfigured(
        _whole(_value(config, "tensor_parallel_size")),
        None if eager not in ("True", "False") else eager == "True",
        _whole(_value(config, "max_seq_len")),
        found["version"],
    )


_STEPS = {
    "Loading weights took": "engine weights loaded",
    "Model loading took": "engine model loaded",
    "GPU KV cache size:": "engine KV cache sized",
    "Graph capturing finished": "engine graphs captured",
    "init engine (profile": "engine initialised",
    "Starting vLLM API server": "engine server starting",
}


@pattern(
    "vllm",
    Nature.FACT,
    hints=tuple(_STEPS),
    regex=r"(?P<step>Loading weights took|Model loading took|GPU KV cache size:|Graph capturing finished"
    r"|init engine \(profile|Starting vLLM API server)\D{0,60}\d",
    samples={
        "INFO 03-14 09:21:40 [default_loader.py:308] Loading weights took 31.07 seconds": (
            BringUp("engine weights loaded")
        ),
        "INFO 03-14 09:21:44 [gpu_model_runner.py:3338] Model loading took 14.5 GiB memory and 33.0 seconds": (
            BringUp("engine model loaded")
        ),
        "INFO 03-14 09:21:44 model_runner.py:1115] Model loading took 14.5 GiB and 33.0 seconds": (
            BringUp("engine model loaded")
        ),
        "INFO 03-14 09:22:10 [kv_cache_utils.py:1229] GPU KV cache size: 812,304 tokens": (
            BringUp("engine KV cache sized")
        ),
        "INFO 03-14 09:23:02 [gpu_model_runner.py:4244] Graph capturing finished in 27 secs, took 1.10 GiB": (
            BringUp("engine graphs captured")
        ),
        "INFO 03-14 09:23:05 [core.py:250] init engine (profile, create kv cache, warmup model) took 61.20 seconds": (
            BringUp("engine initialised")
        ),
        "INFO 03-14 09:23:09 [api_server.py:1845] Starting vLLM API server 0 on http://0.0.0.0:8000": (
            BringUp("engine server starting")
        ),
    },
    rejects=("Loading weights took too long, says the agent", "the Model loading took 3 seconds"),
)
def engine_coming_up(found: Any) -> BringUp:
    """A milestone of an engine's start: weights, KV cache, graphs, warm-up (vLLM, all versions)."""
    return BringUp(_STEPS[found["step"]])


PATTERNS = (
    engine_load,
    engine_configured,
    engine_coming_up,
    *vllm_faults.PATTERNS,
    *vllm_start.PATTERNS,
    *vllm_setup.PATTERNS,
    *vllm_reload.PATTERNS,
    *vllm_benign.PATTERNS,
)
