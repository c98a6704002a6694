"""What vLLM's engines say: the signals that more than one of its pattern files builds."""

import msgspec

AGGREGATED = "aggregated"
"""The engine's name on a line that sums all engines of one server (0.12 and later)."""


class EngineLoad(msgspec.Struct, frozen=True, gc=False):
    """One statistics line. engine is the tag (`000`), "" where the version prints none, or `aggregated`.

    running and waiting count requests (V0: Pending; from 0.20 waiting includes skipped ones); kv_percent is the KV
    cache in use; rates are tokens per second over the logging interval, prompt_rate of uncached tokens from 0.20.
    """

    engine: str
    running: int
    waiting: int
    kv_percent: float | None
    prompt_rate: float
    generation_rate: float


class EngineConfigured(msgspec.Struct, frozen=True):
    """What an engine was started with. None means that the line does not say."""

    tensor_parallel: int | None
    enforce_eager: bool | None
    max_model_len: int | None
    version: str
