"""result.json of one Harbor trial: its reward, exception, turns, times and phases.

Times without a zone (Harbor up to 0.20 writes local ones) are brought to UTC by the agent's first transcript step,
which has a zone; without a transcript they are taken for UTC.
"""

import json
import math
import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec
import orjson

from extractors.clocks import SECOND_US, parse_iso
from extractors.transcripts import Transcript

QUARTER_US = 900 * SECOND_US
"""Zones differ by multiples of a quarter of an hour."""
ZONE_SLACK_US = 120 * SECOND_US
FARTHEST_ZONE_US = 14 * 3600 * SECOND_US


class TrialTiming(msgspec.Struct, frozen=True):
    """Seconds of a trial's phases, None where its result does not say. teardown is the gap after the last phase.

    release_race: the verifier finished after the trial was given as finished (expected never).
    """

    total: float | None
    setup: float | None
    llm: float | None
    tool: float | None
    teardown: float | None
    verifier: float | None
    release_race: bool


class Phase(msgspec.Struct):
    started_at: str | None = None
    finished_at: str | None = None


class ExceptionInfo(msgspec.Struct):
    """type is the key of the oldest results, before the keys had a prefix."""

    exception_type: str = ""
    type: str = ""
    occurred_at: str | None = None


class AgentResult(msgspec.Struct):
    n_output_tokens: int | None = None
    metadata: dict[str, msgspec.Raw] | None = None


class VerifierResult(msgspec.Struct):
    """reward alone is the form of the oldest results."""

    rewards: dict[str, float | None] | None = None
    reward: float | None = None


class StepResult(msgspec.Struct):
    agent_result: AgentResult | None = None
    verifier_result: VerifierResult | None = None
    exception_info: ExceptionInfo | None = None
    agent_execution: Phase | None = None
    verifier: Phase | None = None


class TrialResult(StepResult):
    """A trial's result; of a multi-step trial the single steps' results too. A job's file has counts instead."""

    trial_name: str | None = None
    task_name: str | None = None
    n_total_trials: int | None = None
    started_at: str | None = None
    finished_at: str | None = None
    environment_setup: Phase | None = None
    agent_setup: Phase | None = None
    step_results: list[StepResult] | None = None

    @property
    def is_job(self) -> bool:
        """Whether this is the file of a whole job, which has the same name."""
        return self.n_total_trials is not None and self.trial_name is None

    @property
    def parts(self) -> tuple[StepResult, ...]:
        """The trial's own fields and its steps'."""
        return (self, *(self.step_results or ()))


_DECODER = msgspec.json.Decoder(TrialResult)


class BadResult(msgspec.Struct, frozen=True):
    """A result that can't be read: why in words with the key and the line, and the byte of that place."""

    why: str
    byte: int = 0


def read_result(raw: bytes) -> TrialResult | BadResult:
    """The result, or why it is none."""
    if not raw.strip():
        return BadResult("the file is empty")
    try:
        result = _decode(raw)
    except msgspec.ValidationError as error:
        keys = re.findall(r"\w+", str(error).rpartition(" - at ")[2])
        key = keys[-1] if keys else "$"
        at = max(raw.find(f'"{key}"'.encode()), 0)
        return BadResult(f"{str(error).partition(' - at ')[0]} at key {key} (line {_line(raw, at)})", at)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError, RecursionError) as error:
        found = re.search(r"byte (\d+)", str(error))
        at = int(found[1]) if found else len(raw.rstrip())
        why = str(error).removeprefix("JSON is malformed: ")
        return BadResult(f"malformed JSON: {why} (line {_line(raw, at)})", at)
    known = (result.trial_name, result.task_name, result.started_at, result.n_total_trials)
    return result if any(value is not None for value in known) else BadResult("it holds none of a trial result's keys")


def _decode(raw: bytes) -> TrialResult:
    """Strict JSON first; then Python's, which writes NaN and Infinity: those become null."""
    try:
        return _DECODER.decode(raw)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        if b"NaN" not in raw and b"Infinity" not in raw:
            raise
        return _DECODER.decode(orjson.dumps(json.loads(raw)))


def _line(raw: bytes, at: int) -> int:
    return raw.count(b"\n", 0, at) + 1


def reward_of(result: TrialResult) -> float | None:
    """The trial's reward; of a multi-step trial that has none of its own, its steps' mean (Harbor's default)."""
    own = _reward(result.verifier_result)
    if own is not None:
        return own
    rewards = [reward for step in result.step_results or () if (reward := _reward(step.verifier_result)) is not None]
    return sum(rewards) / len(rewards) if rewards else None


def _reward(verified: VerifierResult | None) -> float | None:
    """`reward` of the rewards, else the mean of what they are; null and non-finite ones are no scores."""
    if verified is None:
        return None
    rewards = verified.rewards or {}
    main = rewards.get("reward", verified.reward)
    values = [main] if main is not None else list(rewards.values())
    finite = [value for value in values if value is not None and math.isfinite(value)]
    return sum(finite) / len(finite) if finite else None


def exception_of(result: TrialResult) -> str | None:
    """The exception's type. Multi-step trials keep handled failures on the step, so the newest step's stands in."""
    for part in (result, *reversed(result.step_results or ())):
        if part.exception_info is not None:
            return part.exception_info.exception_type or part.exception_info.type or "UnknownError"
    return None


def output_tokens_of(result: TrialResult) -> int | None:
    """Output tokens of all steps."""
    counts = [part.agent_result.n_output_tokens for part in result.parts if part.agent_result is not None]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def turns_of(result: TrialResult, transcript: Transcript | None) -> int | None:
    """Model calls: terminus-2's episodes, else the transcript's turns.

    A trial that timed out may say 0 episodes while its calls are listed; then the calls count.
    """
    episodes = [_whole(_metadata(part, "n_episodes")) for part in result.parts]
    counted = sum(count for count in episodes if count is not None)
    if counted:
        return counted
    calls = sum(len(times) for part in result.parts if (times := _call_times(part)))
    if calls:
        return calls
    if transcript is not None:
        return transcript.turns
    return 0 if any(count == 0 for count in episodes) else None


def trial_times(result: TrialResult, transcript: Transcript | None) -> tuple[int | None, int | None]:
    """When the trial started and ended, in microseconds. Without a finish the last phase's end stands in."""
    shift = _zone_shift(result, transcript)
    start = _moment(result.started_at, shift)
    end = _moment(result.finished_at, shift)
    if end is None:
        ends = [_moment(phase.finished_at, shift) for phase in _phases(result)]
        happened = [part.exception_info.occurred_at for part in result.parts if part.exception_info]
        # A naive occurred_at is local even where the other times are UTC: of no use.
        ends += [_moment(text, None) for text in happened]
        end = max((at for at in ends if at is not None), default=None)
    return start, end


def timing_of(result: TrialResult) -> TrialTiming | None:
    """The seconds of its phases; None where the result has no times at all."""
    total = _span(result.started_at, result.finished_at)
    execution = _sum(_span_of(part.agent_execution) for part in result.parts)
    verifier = _sum(_span_of(part.verifier) for part in result.parts)
    calls = [times for part in result.parts if (times := _call_times(part)) is not None]
    llm = sum(sum(times) for times in calls) / 1000 if calls else None
    finished = _moment(result.finished_at, 0)
    ends = [at for phase in _phases(result) if (at := _moment(phase.finished_at, 0)) is not None]
    verified = [at for part in result.parts if part.verifier and (at := _moment(part.verifier.finished_at, 0))]
    if total is None and execution is None and not ends:
        return None
    return TrialTiming(
        total=total,
        setup=_span_of(result.environment_setup),
        llm=llm,
        tool=None if execution is None or llm is None else max(0.0, execution - llm),
        teardown=None if finished is None or not ends else max(0.0, (finished - max(ends)) / SECOND_US),
        verifier=verifier,
        release_race=finished is not None and max(verified, default=finished) > finished,
    )


def _phases(result: TrialResult) -> list[Phase]:
    phases = [result.environment_setup, result.agent_setup]
    for part in result.parts:
        phases += [part.agent_execution, part.verifier]
    return [phase for phase in phases if phase is not None]


def _zone_shift(result: TrialResult, transcript: Transcript | None) -> int:
    """Microseconds from the result's naive clock to UTC, by the agent's first step; 0 where that can't be told."""
    began = next((part.agent_execution.started_at for part in result.parts if part.agent_execution), None)
    began = began or result.started_at
    local = parse_iso(began) if began else None
    if local is None or transcript is None or transcript.first_us is None:
        return 0
    shift = round((transcript.first_us - local) / QUARTER_US) * QUARTER_US
    told = abs(transcript.first_us - local - shift) <= ZONE_SLACK_US and abs(shift) <= FARTHEST_ZONE_US
    return shift if told else 0


def _moment(text: str | None, shift: int | None) -> int | None:
    """A time in microseconds; a naive one moved by shift, or refused where shift is None."""
    at_us = parse_iso(text) if text else None
    if at_us is None or text is None:
        return None
    if datetime.fromisoformat(text.strip()).tzinfo is not None:
        return at_us
    return None if shift is None else at_us + shift


def _span(start: str | None, end: str | None) -> float | None:
    first, last = _moment(start, 0), _moment(end, 0)
    return None if first is None or last is None else max(0.0, (last - first) / SECOND_US)


def _span_of(phase: Phase | None) -> float | None:
    return None if phase is None else _span(phase.started_at, phase.finished_at)


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _metadata(part: StepResult, key: str) -> Any:
    """One entry of the agent's own metadata, whose form is the agent's affair."""
    raw = ((part.agent_result.metadata if part.agent_result else None) or {}).get(key)
    try:
        return None if raw is None else orjson.loads(bytes(raw))
    except orjson.JSONDecodeError:
        return None


def _call_times(part: StepResult) -> list[float] | None:
    """Milliseconds of each model call (terminus-2)."""
    times = _metadata(part, "api_request_times_msec")
    if not isinstance(times, list):
        return None
    return [float(ms) for ms in times if isinstance(ms, int | float) and not isinstance(ms, bool)]


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
