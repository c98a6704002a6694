"""The bracket around a reload of an engine's weights: its two edges, where an engine names them (gate C rule 7)."""

from enum import StrEnum
from typing import Any

import msgspec

from extractors.pattern import Nature, pattern


class Edge(StrEnum):
    """Which end of the bracket."""

    BEGIN = "begin"
    FINISH = "finish"


class WeightReload(msgspec.Struct, frozen=True):
    """An engine named one edge of its weight reload."""

    edge: Edge


_EDGES = {
    "initialize_layerwise_reload": Edge.BEGIN,
    "skyrl_begin_weight_reload": Edge.BEGIN,
    "finalize_layerwise_reload": Edge.FINISH,
    "skyrl_finish_weight_reload": Edge.FINISH,
}


@pattern(
    "vllm",
    Nature.FACT,
    hints=tuple(_EDGES),
    regex=r"(?![^\n]{0,120}(?:Error|must be called|File \"|#))[^\n]{0,120}?\b(?P<call>" + "|".join(_EDGES) + r")\b",
    samples={
        "(AsyncVLLMInferenceEngine pid=7011) INFO 03-14 09:31:02 [worker.py:88] initialize_layerwise_reload 48": (
            WeightReload(Edge.BEGIN)
        ),
        "skyrl_begin_weight_reload done in 0.2s": WeightReload(Edge.BEGIN),
        "(AsyncVLLMInferenceEngine pid=7011) INFO 03-14 09:31:40 [worker.py:97] finalize_layerwise_reload 48": (
            WeightReload(Edge.FINISH)
        ),
        "weight sync: calling skyrl_finish_weight_reload": WeightReload(Edge.FINISH),
    },
    rejects=(
        "RuntimeError: skyrl_begin_weight_reload must be called before skyrl_finish_weight_reload",
        "the layerwise reload was initialized",
    ),
)
def weight_reload(found: Any) -> WeightReload:
    """An edge of the reload bracket (MarinSkyRL's engines; `SKYRL_W13_RELOAD_BRACKET`). Stock vLLM prints no such
    line, so its absence alone proves nothing but where to look first when a mixture-of-experts model talks nonsense."""
    return WeightReload(_EDGES[found["call"]])


PATTERNS = (weight_reload,)
