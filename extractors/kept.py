"""What can be kept of a signal: numbers over 64 bits, and texts that are no Unicode, can be written nowhere."""

from typing import Any

import msgspec

_ENCODER = msgspec.msgpack.Encoder()
_BUFFER = bytearray(65_536)


def check(signal: Any) -> None:
    """Raises (OverflowError, UnicodeEncodeError, TypeError) where a signal could not be written down."""
    _ENCODER.encode_into(signal, _BUFFER)
