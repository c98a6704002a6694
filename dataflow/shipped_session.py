"""One shipper's reading of a job, as far as it is known to those who judge."""

from collections import deque
from typing import Any

import msgspec

from dataflow.wire_words import Tick
from extractors.clocks import write_iso

NOBODY = ""
"""The host of lines that no shipper of ours sent: they come without ticks."""


class Session(msgspec.Struct):
    """A session. waiting is a tick whose polls have not all come, and what came after it; waited since when (monotonic
    seconds) it waits though all was read that the brokers have. now_us is up to when all of the capture has come; anew
    how often all was sent anew; heard (monotonic seconds) when the shipper was heard last; stopped_us when it said that
    it ends."""

    id: str
    waiting: deque[Any]
    waited: float | None = None
    anew: int = 0
    now_us: int = 0
    heard: float = 0.0
    stopped_us: int = 0

    def ticked(self, tick: Tick) -> None:
        """All up to a tick has come."""
        self.now_us, self.stopped_us = max(self.now_us, tick.now_us), 0

    def silence(self, host: str) -> str:
        """Its silence in words."""
        since = f" since {write_iso(self.now_us)}" if self.now_us else ""
        stopped = f" (it was stopped at {write_iso(self.stopped_us)})" if self.stopped_us else ""
        return f"nothing came from its shipper on {host}{since}{stopped}"
