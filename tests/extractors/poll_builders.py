"""Builders of poll records as they stand in a capture, and the one signal they come to."""

import json
from typing import Any

from extractors.poll_reading import PollReading, read_poll
from extractors.polls import PollFailed

AT = "2026-07-20T09:15:00.000Z"


def line(probe: str, stdout: str = "", *, command: str = "", **said: Any) -> bytes:
    """One line of a poll file. command is written as in a shell."""
    record = {"at": AT, "probe": probe, "command": command.split(), "exit": 0, "elapsed_ms": 120, "stdout": stdout}
    return json.dumps(record | {"stderr": ""} | said).encode()


def reading(probe: str, stdout: str = "", **said: Any) -> PollReading:
    """The record's reading; every signal must have a quote of at most 500 characters."""
    found = read_poll(line(probe, stdout, **said))
    assert isinstance(found, PollReading), found
    assert len(found.signals) == len(found.quotes) > 0
    assert all(0 < len(quote) <= 500 for quote in found.quotes)
    return found


def said(probe: str, stdout: str = "", **fields: Any) -> Any:
    """The only signal of a record."""
    (signal,) = reading(probe, stdout, **fields).signals
    return signal


def why(probe: str, stdout: str = "", **fields: Any) -> str:
    """Why a record is a failure."""
    signal = said(probe, stdout, **fields)
    assert isinstance(signal, PollFailed), signal
    return signal.why
