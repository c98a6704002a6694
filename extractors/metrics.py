"""The trainer's per-step metrics record: the one-line JSON mirror, and the pretty-printed block of older builds.

Values keep NaN and infinities: a non-finite loss is what gate D looks for. What can't be read becomes
`MetricsUnreadable`, never a default.
"""

import math
from enum import StrEnum
from json import JSONDecodeError, JSONDecoder
from typing import Any

import msgspec
import orjson

from extractors.pattern import Nature, pattern


class StepMetrics(msgspec.Struct, frozen=True):
    """The metrics of one step. kind is `train` or `eval`; values holds the numeric ones under their full names."""

    step: int
    kind: str
    values: dict[str, float]


class MetricsUnreadable(msgspec.Struct, frozen=True):
    """A metrics record that is torn, cut or failed to serialise. step is None where even that is lost."""

    step: int | None
    why: str


MIRROR_HEADER = "WANDB_MIRROR kind="
_FAILED = "_serialize_error"
_BLOCK = ("{'async/", "{'generate/")
_LONGEST_WORD = len("-Infinity")
_NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_NUMBERS = frozenset((int, float))
"""Exact types: a flag is an int by inheritance, and no number."""
_DECODER = JSONDecoder(parse_constant=_NON_FINITE.__getitem__)


@pattern(
    "metrics",
    Nature.PROGRESS,
    hints=(MIRROR_HEADER, *_BLOCK),
    samples={
        "2026-03-04 09:50:00.000 | INFO     | skyrl_train.trainer:_log_metrics_stdout:3180 - WANDB_MIRROR kind=train "
        'step=9 metrics={"policy/policy_entropy": 0.75, "reward/avg_raw_reward": 0.5, "trainer/global_step": 9}': (
            StepMetrics(
                9,
                "train",
                {"policy/policy_entropy": 0.75, "reward/avg_raw_reward": 0.5, "trainer/global_step": 9.0},
            )
        ),
        'WANDB_MIRROR kind=eval step=0 metrics={"eval/all/avg_score":0.25}': StepMetrics(
            0, "eval", {"eval/all/avg_score": 0.25}
        ),
        'WANDB_MIRROR kind=train step=10 metrics={"policy/final_loss": NaN, "policy/raw_grad_norm": Infinity} (r0)': (
            StepMetrics(10, "train", {"policy/final_loss": math.nan, "policy/raw_grad_norm": math.inf})
        ),
        "(skyrl_entrypoint pid=5150) {'async/staleness_max': 1,\n"
        "(skyrl_entrypoint pid=5150)  'async/staleness_mean': '0.2500',\n"
        "(skyrl_entrypoint pid=5150)  'policy/final_loss': '-0.0013',\n"
        "(skyrl_entrypoint pid=5150)  'trainer/global_step': 9}": StepMetrics(
            9,
            "train",
            {
                "async/staleness_max": 1.0,
                "async/staleness_mean": 0.25,
                "policy/final_loss": -0.0013,
                "trainer/global_step": 9.0,
            },
        ),
        "{'generate/avg_num_tokens': '812.5000',\n 'trainer/global_step': 3}": StepMetrics(
            3, "train", {"generate/avg_num_tokens": 812.5, "trainer/global_step": 3.0}
        ),
    },
    rejects=(
        "WANDB_MIRROR kind=train is what I grep for",
        "{'async/await': 'keyword'}",
        "{'generate/errors': ['AgentTimeoutError']}",
    ),
)
def step_metrics(text: str) -> StepMetrics | None:
    """The trainer's metrics of one step (`_log_metrics_stdout`; `pprint` before it existed). Keys such as
    `generate/errors/AgentTimeoutError` are counters, not errors."""
    read = _read(text)
    return read if isinstance(read, StepMetrics) else None


@pattern(
    "metrics",
    Nature.FACT,
    hints=(MIRROR_HEADER, *_BLOCK),
    samples={
        'WANDB_MIRROR kind=train step=9 metrics={"policy/final_loss": 0.5, "policy/ra': MetricsUnreadable(
            9, "the JSON object is cut or torn"
        ),
        'WANDB_MIRROR kind=train step=9 metrics={"_serialize_error": "Tensor is not JSON serializable"}': (
            MetricsUnreadable(9, "the trainer could not serialise it: Tensor is not JSON serializable")
        ),
        "{'async/staleness_max': 1,\n 'async/staleness_mean': '0.2500'}": MetricsUnreadable(
            None, "the block has no trainer/global_step"
        ),
    },
    rejects=("WANDB_MIRROR kind=train is what I grep for", "{'async/await': 'keyword'}"),
)
def metrics_unreadable(text: str) -> MetricsUnreadable | None:
    """A step's metrics were printed and can't be read: cut by the transport, torn by another writer, or not
    serialised. The step ran; its numbers are missing evidence."""
    read = _read(text)
    return read if isinstance(read, MetricsUnreadable) else None


def _read(text: str) -> StepMetrics | MetricsUnreadable | None:
    if text.startswith(MIRROR_HEADER):
        return _mirror(text)
    return _block(text) if text.startswith(_BLOCK) else None


def _mirror(text: str) -> StepMetrics | MetricsUnreadable | None:
    kind, _, rest = text[len(MIRROR_HEADER) :].partition(" step=")
    step, _, payload = rest.partition(" metrics=")
    if not (kind.isidentifier() and step.isdigit()):
        return None
    metrics = _object(payload)
    if metrics is None:
        return MetricsUnreadable(int(step), "the JSON object is cut or torn")
    if _FAILED in metrics:
        return MetricsUnreadable(int(step), f"the trainer could not serialise it: {metrics[_FAILED]}")
    return StepMetrics(
        int(step), kind, {key: float(value) for key, value in metrics.items() if type(value) in _NUMBERS}
    )


class Wholeness(StrEnum):
    """Whether the object of a mirror line is all there: whole, cut at its end, or broken before it."""

    WHOLE = "whole"
    CUT = "cut"
    BROKEN = "broken"


def wholeness(text: str) -> Wholeness:
    """Of a `WANDB_MIRROR` line. One over 16 KiB may be split by the transport (Ray's, the kubelet's): what is cut at
    its end goes on in a later line of the same stream."""
    payload = text.partition(" metrics=")[2]
    if _object(payload) is not None:
        return Wholeness.WHOLE
    try:
        _DECODER.raw_decode(payload)
    except JSONDecodeError as error:
        unfinished = error.msg.startswith("Unterminated string") or error.pos >= len(payload) - _LONGEST_WORD
        return Wholeness.CUT if unfinished and payload[:1] in ("{", "") else Wholeness.BROKEN
    except (ValueError, RecursionError):
        pass
    return Wholeness.BROKEN


def _object(payload: str) -> dict[str, Any] | None:
    """The JSON object at the start of the payload; orjson knows neither NaN nor what may trail behind the object."""
    try:
        read = orjson.loads(payload)
    except orjson.JSONDecodeError:
        try:
            read, _ = _DECODER.raw_decode(payload)
        except (ValueError, RecursionError):
            return None
    return read if isinstance(read, dict) else None


def _block(text: str) -> StepMetrics | MetricsUnreadable | None:
    """A `pprint` of the metrics, line by line: floats are quoted strings; lines of other writers are passed over."""
    if "\n" not in text:
        return None
    values: dict[str, float] = {}
    for line in text.split("\n"):
        key, quoted, shown = line.strip(" {},").partition("': ")
        value = _number(shown.strip("'")) if quoted and key.startswith("'") else None
        if value is not None:
            values[key[1:]] = value
    if not text.rstrip().endswith("}"):
        return MetricsUnreadable(None, "the block's end is missing")
    step = values.get("trainer/global_step")
    if step is None:
        return MetricsUnreadable(None, "the block has no trainer/global_step")
    return StepMetrics(int(step), "train", values)


def _number(shown: str) -> float | None:
    """The number that is shown; None for words. One NaN object for all, so that equal records compare equal."""
    try:
        value = float(shown)
    except ValueError:
        return None
    return math.nan if math.isnan(value) else value


PATTERNS = (step_metrics, metrics_unreadable)
