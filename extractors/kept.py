"""What can be kept of a signal: numbers over 64 bits, and texts that are no Unicode, can be written nowhere."""

from typing import Any

import msgspec

BUFFER = bytearray(65_536)
write = msgspec.msgpack.Encoder().encode_into
"""Writes a signal into the buffer; raises as `check` does."""


def check(signal: Any) -> None:
    """Raises (OverflowError, UnicodeEncodeError, TypeError) where a signal could not be written down."""
    write(signal, BUFFER)
