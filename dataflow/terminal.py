"""What may be drawn where: only a terminal that can redraw is drawn on."""

import os
from typing import Any


def can_redraw(stream: Any) -> bool:
    """Whether a stream is a terminal on which something can be drawn anew."""
    return stream is not None and stream.isatty() and os.environ.get("TERM", "") not in ("dumb", "unknown")
