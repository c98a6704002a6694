"""What counts as progress of the trainer, and the same line seen in two homes (GATES, Words)."""

from typing import ClassVar

import msgspec

from extractors.metrics import StepMetrics
from extractors.record import Observation
from extractors.trainer import (
    BareBar,
    BufferProgress,
    CheckpointPart,
    CheckpointSaved,
    EpochLogged,
    EvaluationProgress,
    ExpertBlocksSynced,
    ForwardEntered,
    OptimizerStepped,
    PhaseFinished,
    PhaseStarted,
    PolicyProgress,
    RolloutBatch,
    StepCompleted,
    StepProgress,
    TrainingDone,
    WeightsUpdated,
)
from state.policy import SECOND_US

ADVANCES: tuple[type, ...] = (
    PhaseStarted,
    StepCompleted,
    ForwardEntered,
    RolloutBatch,
    OptimizerStepped,
    WeightsUpdated,
    ExpertBlocksSynced,
    CheckpointPart,
    CheckpointSaved,
    EpochLogged,
    StepMetrics,
    TrainingDone,
)
"""Signals that prove that their component moved on. `PhaseFinished` is progress too, but it is also printed while an
exception propagates, so it proves no recovery."""

PROGRESS: tuple[type, ...] = (*ADVANCES, PhaseFinished)
BARS: tuple[type, ...] = (BufferProgress, StepProgress, PolicyProgress, EvaluationProgress, BareBar)
"""Bars whose rise is progress and whose repetition is a heartbeat."""

ECHO_SECONDS = 2.0
"""The same line's own times in two homes differ by less: prefixes are cut to whole seconds."""


HEARD_WITHIN = 2.0
"""The transport's clock is cut to whole seconds."""


def own_us(observation: Observation) -> int:
    """The line's own time, or the effective one where it has none, or where its own lies after it: no line is heard
    before it is said, so that the clock which wrote it runs ahead."""
    own = observation.evidence.at_us
    if own is None or own > observation.at_us + HEARD_WITHIN * SECOND_US:
        return observation.at_us
    return own


class Bar(msgspec.Struct):
    """The newest count of a progress bar, by its lines' own time.

    source is the file whose line moved it, empty when none did or its copy was heard in another file too: bars wear no
    clock, so that the copy in an actor's file is read as early as its last dated line, long before it was drawn.
    """

    count: int
    own_us: int
    source: str = ""

    def rises(self, count: int, at_us: int, source: str = "") -> bool:
        """Folds a line of the bar; true when the count has risen, or when this is the first copy in another file of
        the line by which it did. An older line (a late copy) says nothing."""
        return self._newer(at_us) and self._told(count, at_us, source, redrawn=False)

    def moves(self, count: int, at_us: int, source: str = "") -> bool:
        """The same for a bar that is drawn anew for each round: a lower count is a new bar, and progress."""
        return self._newer(at_us) and self._told(count, at_us, source, redrawn=True)

    def _told(self, count: int, at_us: int, source: str, redrawn: bool) -> bool:
        later = at_us - self.own_us > ECHO_SECONDS * SECOND_US
        risen = self._turns(count, at_us)
        if risen > 0 or (redrawn and risen < 0):
            self.source = source
            return True
        copied = risen == 0 and self.source not in ("", source)
        if copied or risen < 0:
            self.source = ""
        return copied and later

    def _newer(self, at_us: int) -> bool:
        return at_us >= self.own_us

    def _turns(self, count: int, at_us: int) -> int:
        risen = count - self.count
        self.count, self.own_us = count, at_us
        return risen


class _Heard(msgspec.Struct):
    key: str
    own_us: int
    sources: dict[str, bool]


class Echoes(msgspec.Struct):
    """Tells a second home's copy of a line from a second line. Bound: the newest 32 lines."""

    KEPT: ClassVar[int] = 32
    heard: list[_Heard] = []

    def repeats(self, key: str, observation: Observation) -> bool:
        """Whether this line (by its key) was already heard in another home; remembers it."""
        at_us, source = own_us(observation), observation.evidence.source
        for line in reversed(self.heard):
            if line.key != key or source in line.sources:
                continue
            if abs(line.own_us - at_us) <= ECHO_SECONDS * SECOND_US:
                line.sources[source] = True
                return True
        self.heard.append(_Heard(key, at_us, {source: True}))
        if len(self.heard) > self.KEPT:
            del self.heard[0]
        return False
