"""What can be kept of a signal: a number of more than 64 bits, or a text that is no Unicode, can't be written anywhere."""

from typing import Any

import msgspec

_ENCODER = msgspec.msgpack.Encoder()
_BUFFER = bytearray(65_536)


def check(signal: Any) -> None:
    """Raises (OverflowError, UnicodeEncodeError, TypeError) where a signal could not be written down."""
    _ENCODER.encode_into(signal, _BUFFER)
