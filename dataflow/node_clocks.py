"""By which clocks a live job's files are read: a moment near their beginning, and how far the nodes' ones run ahead."""

from collections.abc import Iterable

from dataflow.capture import Source
from dataflow.feed import anchor
from dataflow.merge import ACTOR_KINDS
from dataflow.skew import measured
from extractors.extract import NO_SKEW, Skew

AGAIN_US = (60_000_000, 600_000_000, 3_600_000_000)
"""When after the start the nodes' clocks are measured again; then every hour."""


class NodeClocks:
    """What is known of the clocks. anchor_us is 0 while no file shows a date; known is what a later one must know."""

    def __init__(self, known: tuple[int, dict[str, Skew]] = (0, {})) -> None:
        self.anchor_us, self._skews = known
        self._again: list[int] = []

    @property
    def known(self) -> tuple[int, dict[str, Skew]]:
        """What was measured last."""
        return self.anchor_us, self._skews

    def look(self, listed: Iterable[Source], now_us: int) -> None:
        """Measures, as far as what is there shows, at first and when it is time again."""
        sources = sorted(listed, key=lambda each: each.rank)
        self.anchor_us = self.anchor_us or anchor(sources)
        if not self._again:
            self._again = [now_us + after_us for after_us in AGAIN_US]
        elif now_us < self._again[0]:
            return
        else:
            self._again = self._again[1:] or [now_us + AGAIN_US[-1]]
        self._skews = measured(sources, self.anchor_us) or self._skews

    def skew_of(self, source: Source) -> Skew:
        """How far the clock of a source's node runs ahead."""
        return self._skews.get(source.writer.host, NO_SKEW) if source.kind in ACTOR_KINDS else NO_SKEW
