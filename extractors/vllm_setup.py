"""vLLM's set-up around its engines: eager mode, capacity, SkyRL's client and weight-sync lines, the server's answers.

Serves bring-up and the launch facts. Versions are vLLM's; lines of SkyRL's wrappers say so.
"""

from typing import Any

from extractors.pattern import Nature, Role, pattern
from extractors.signal import BringUp, Fault, Noted
from extractors.vllm_signals import EngineConfigured


@pattern(
    "vllm",
    Nature.FACT,
    hints=("Cudagraph is disabled under eager mode", "Enforce eager set, "),
    regex=r"(?:Cudagraph is disabled under eager mode|Enforce eager set, )",
    samples={
        "INFO 03-14 09:20:03 [config.py:482] Cudagraph is disabled under eager mode": (
            EngineConfigured(None, True, None, "")
        ),
        "WARNING 03-14 09:20:03 [vllm.py:901] Enforce eager set, overriding optimization level to -O0": (
            EngineConfigured(None, True, None, "")
        ),
    },
    rejects=(
        "INFO 03-14 09:20:03 [config.py:482] Cudagraph mode is FULL_AND_PIECEWISE",
        "I read that Cudagraph is disabled under eager mode",
    ),
)
def engine_eager(found: Any) -> EngineConfigured:
    """The engine runs without CUDA graphs: three to ten times slower when it decodes."""
    return EngineConfigured(None, True, None, "")


_SETTLED = {
    "Maximum concurrency for": "engine KV cache sized",
    "Chunked prefill is enabled": "engine scheduler configured",
    "Server ready after": "engine endpoint ready",
    "setup_envvars_for_vllm:": "engine environment set",
    "init_weight_update_communicator:": "weight-sync group joining",
}


@pattern(
    "vllm",
    Nature.FACT,
    hints=tuple(_SETTLED),
    regex=r"(?P<step>Maximum concurrency for(?= [\d,]+ tokens per request: )"
    r"|Chunked prefill is enabled(?= with max_num_batched_tokens=\d)|Server ready after(?= \d+ attempts?)"
    r"|setup_envvars_for_vllm:(?= \w+=)|init_weight_update_communicator:(?= master_address=))",
    samples={
        "INFO 03-14 09:22:10 [kv_cache_utils.py:1234] Maximum concurrency for 65,536 tokens per request: 12.39x": (
            BringUp("engine KV cache sized")
        ),
        "INFO 03-14 09:20:02 [scheduler.py:222] Chunked prefill is enabled with max_num_batched_tokens=16384.": (
            BringUp("engine scheduler configured")
        ),
        "2031-03-14 09:23:10.000 | INFO     | skyrl_train.inference_engines.utils:wait:80 - Server ready after 4 "
        "attempts": BringUp("engine endpoint ready"),
        "2031-03-14 09:19:10.000 | INFO     | skyrl_train.inference_engines.vllm.utils:setup:61 - "
        "setup_envvars_for_vllm: distributed_executor_backend=mp": BringUp("engine environment set"),
        "2031-03-14 09:25:10.000 | INFO     | skyrl_train.inference_engines.vllm.vllm_engine:init:310 - "
        "init_weight_update_communicator: master_address=10.1.0.4, master_port=34567, ": (
            BringUp("weight-sync group joining")
        ),
    },
    rejects=(
        "Maximum concurrency for tests: 4",
        "await self.init_weight_update_communicator(master_address=address)",
        "Server ready after a while",
    ),
)
def engine_settling(found: Any) -> BringUp:
    """Milestones between an engine's weights and its first request (vLLM; the last three of SkyRL's wrappers). Of the
    weight-sync line the rest of the message is lost by a mistake in its logging call."""
    return BringUp(_SETTLED[found["step"]])


@pattern(
    "vllm",
    Nature.FACT,
    hints=("vllm.__version__=",),
    regex=r"\w*InferenceEngine: [^\n]{0,200}?\bvllm\.__version__=(?P<version>\d[\w.+]*)",
    samples={
        "2031-03-14 09:19:40.000 | INFO     | skyrl_train.inference_engines.vllm.vllm_engine:__init__:120 - "
        "BaseVLLMInferenceEngine: vllm_v1_disable_multiproc=True, vllm.__version__=0.20.2": (
            EngineConfigured(None, None, None, "0.20.2")
        ),
    },
    rejects=("assert vllm.__version__=='0.20.2'", "print: vllm.__version__=0.20.2"),
)
def engine_version(found: Any) -> EngineConfigured:
    """SkyRL's engine actor says which vLLM it drives, before the engine prints its own configuration."""
    return EngineConfigured(None, None, None, found["version"])


@pattern(
    "vllm",
    Nature.FACT,
    hints=("abort_generation() finished, aborted", "Destroying existing model update group"),
    regex=r"(?:(?P<aborted>abort_generation\(\) finished, aborted \d+ requests?)"
    r"|Destroying existing model update group)",
    samples={
        "2031-03-14 09:31:00.000 | INFO     | skyrl_train.inference_engines.vllm.vllm_engine:abort:512 - "
        "abort_generation() finished, aborted 7 requests": Noted("generation-aborted-for-weights"),
        "(AsyncVLLMInferenceEngine pid=7011) Destroying existing model update group": Noted(
            "weight-sync-group-rebuilt"
        ),
    },
    rejects=("abort_generation() failed", "# Destroying existing model update group"),
)
def weight_sync_chatter(found: Any) -> Noted:
    """SkyRL's engine stops its requests before new weights come in, or joins the weight-sync group anew: by design."""
    return Noted("generation-aborted-for-weights" if found["aborted"] else "weight-sync-group-rebuilt")


@pattern(
    "vllm",
    Nature.FAULT,
    role=Role.CASCADE,
    hints=(' HTTP/1.1" 50',),
    regex=r"(?:INFO: {1,8})?[\w.:\[\]-]{3,64}:\d{1,5} - \"(?P<call>(?:GET|POST|PUT) /[\w./-]{0,120})[^\n\"]{0,200} "
    r"HTTP/1\.1\" (?P<status>50[0-9])\b",
    samples={
        'INFO:     10.1.0.9:41234 - "POST /v1/chat/completions HTTP/1.1" 500 Internal Server Error': (
            Fault("engine_server_error", "answered 500", entity="POST /v1/chat/completions")
        ),
        '(APIServer pid=10) INFO:     10.1.0.9:41234 - "GET /health HTTP/1.1" 503 Service Unavailable': (
            Fault("engine_server_error", "answered 503", entity="GET /health")
        ),
    },
    rejects=(
        'INFO:     10.1.0.9:41234 - "POST /v1/chat/completions HTTP/1.1" 400 Bad Request',
        'INFO:     10.1.0.9:41234 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
        '10.1.0.9 - - [14/Mar/2031 09:00:00] "GET /index.html HTTP/1.1" 500 -',
    ),
)
def engine_server_error(found: Any) -> Fault:
    """An engine's HTTP server (uvicorn) failed a request; what failed stands in the engine's own log. 400 is an agent's
    overlong prompt, and 200 nothing."""
    return Fault("engine_server_error", f"answered {found['status']}", entity=found["call"])


PATTERNS = (engine_eager, engine_settling, engine_version, weight_sync_chatter, engine_server_error)
