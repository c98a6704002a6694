"""Runs a rule and notes how it came to its answer: the return statement that each function of state/ left by.

Only an explanation watches; judging runs the same functions as they are.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

_STATE = str(Path(__file__).parents[1])


@dataclass(slots=True)
class Call:
    """One call as it went: the line of its last statement, its variables then, its answer, and the calls it made."""

    code: CodeType
    line: int = 0
    variables: dict[str, Any] = field(default_factory=dict)
    value: Any = None
    calls: list["Call"] = field(default_factory=list)


def watched(function: Callable[..., Any], *arguments: Any) -> Call:
    """Calls a function; gives how it went, as the one call of an outermost one. Raises what the function raises."""
    outermost = Call(watched.__code__)
    before = sys.gettrace()
    sys.settrace(_noting(outermost))
    try:
        outermost.value = function(*arguments)
    finally:
        sys.settrace(before)
    return outermost


def _noting(outermost: Call) -> Callable[[FrameType, str, Any], Any]:
    running = [outermost]

    def note(frame: FrameType, event: str, answer: Any) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(_STATE) or code.co_name.startswith("<"):
            return None
        if event == "call":
            call = Call(code)
            running[-1].calls.append(call)
            running.append(call)
            frame.f_trace_lines = False
        elif event == "return":
            call = running.pop()
            call.line, call.value = frame.f_lineno, answer
            call.variables = {**frame.f_globals, **frame.f_locals}
        return note

    return note
