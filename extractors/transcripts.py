"""What an agent wrote and how often it was asked: ATIF's trajectory.json, and opencode's JSON lines.

A transcript that can't be read is None: its trial's result stands without it.
"""

from typing import Any

import msgspec

from extractors.clocks import parse_iso


class Transcript(msgspec.Struct, frozen=True):
    """texts are the agent's own messages, reasoning and tool arguments. first_us and last_us are the first and the last
    step's time."""

    texts: tuple[str, ...] = ()
    turns: int = 0
    output_tokens: int | None = None
    first_us: int | None = None
    last_us: int | None = None


class _Metrics(msgspec.Struct):
    completion_tokens: int | None = None


class _Step(msgspec.Struct):
    source: str = ""
    timestamp: str | None = None
    message: Any = ""
    reasoning_content: str | None = None
    tool_calls: Any = None
    metrics: _Metrics | None = None
    is_copied_context: bool | None = None
    llm_call_count: int | None = None


class _Trajectory(msgspec.Struct):
    steps: list[_Step]


_TRAJECTORY = msgspec.json.Decoder(_Trajectory)


def read_trajectory(content: bytes) -> Transcript | None:
    """An ATIF trajectory (v1.0–1.7). Steps copied from an earlier one, and agent steps without a model, don't count."""
    try:
        steps = _TRAJECTORY.decode(content).steps
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    own = [s for s in steps if s.source == "agent" and not s.is_copied_context and s.llm_call_count != 0]
    tokens = [s.metrics.completion_tokens for s in own if s.metrics and s.metrics.completion_tokens is not None]
    times = [s.timestamp for s in steps if s.timestamp and not s.is_copied_context]
    return Transcript(
        texts=tuple(_text_of(step) for step in own),
        turns=len(own),
        output_tokens=sum(tokens) if tokens else None,
        first_us=parse_iso(times[0]) if times else None,
        last_us=parse_iso(times[-1]) if times else None,
    )


def _text_of(step: _Step) -> str:
    parts = [step.reasoning_content or "", _plain(step.message)]
    for call in step.tool_calls if isinstance(step.tool_calls, list) else []:
        arguments = call.get("arguments") if isinstance(call, dict) else None
        parts += (
            [value for value in arguments.values() if isinstance(value, str)] if isinstance(arguments, dict) else []
        )
    return "\n".join(part for part in parts if part)


def _plain(message: Any) -> str:
    """A message as text: since ATIF 1.6 it may be a list of parts."""
    if isinstance(message, str):
        return message
    parts = message if isinstance(message, list) else []
    return "\n".join(str(part.get("text") or "") for part in parts if isinstance(part, dict))


class _Tokens(msgspec.Struct):
    output: int | None = None


class _Part(msgspec.Struct):
    text: str | None = None
    tokens: _Tokens | None = None
    state: Any = None


class _Event(msgspec.Struct):
    type: str = ""
    timestamp: float | None = None
    part: _Part | None = None


_EVENT = msgspec.json.Decoder(_Event)


def read_opencode(content: bytes) -> Transcript:
    """opencode's JSON lines, other lines passed over. A file of 0 bytes means that the model was never reached."""
    texts: list[str] = []
    turns, tokens, first_us, last_us = 0, 0, None, None
    for line in content.splitlines():
        event = _event(line)
        if event is None:
            continue
        if event.timestamp:
            last_us = int(event.timestamp * 1000)
            first_us = last_us if first_us is None else first_us
        part = event.part or _Part()
        if event.type == "step_finish":
            turns += 1
            tokens += (part.tokens.output or 0) if part.tokens else 0
        elif event.type in ("text", "reasoning"):
            texts.append(part.text or "")
        elif event.type == "tool_use":
            texts.append(_tool_input(part.state))
    return Transcript(tuple(texts), turns, tokens, first_us, last_us)


def _event(line: bytes) -> _Event | None:
    if not line.startswith(b"{"):
        return None
    try:
        return _EVENT.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _tool_input(state: Any) -> str:
    given = state.get("input") if isinstance(state, dict) else None
    return "\n".join(v for v in given.values() if isinstance(v, str)) if isinstance(given, dict) else ""
