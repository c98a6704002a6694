"""The trainer's reward metrics: what gate C reads in standard mode, and falls back on where no trial was opened.

A part of the rollouts' memory, not a tracker of its own. Also: how a metric's key is found, whichever sink wrote it.
"""

import math
from collections.abc import Iterator, Mapping

import msgspec

from extractors.metrics import StepMetrics
from extractors.record import Evidence, Observation

REWARD = "reward/avg_raw_reward"
PASS_AT = "reward/avg_pass_at_"
STEPS_HELD = 64


class RewardMetricsView(msgspec.Struct, frozen=True):
    """Training steps of this attempt that have a reward metric: how many, in how many it is above 0 and exactly 0.
    newest_reward is the newest mean raw reward."""

    steps: int = 0
    positive: int = 0
    zero: int = 0
    newest_reward: float | None = None
    newest: Evidence | None = None
    newest_positive: Evidence | None = None


class RewardMetrics(msgspec.Struct):
    """Counts per step. Bounded by the newest 64 step numbers, against lines that stand in two homes."""

    shown: RewardMetricsView = RewardMetricsView()
    steps: list[int] = []

    def fold(self, seen: Observation) -> bool:
        """Counts a training step's reward; False where it has none or was counted before."""
        said: StepMetrics = seen.signal
        reward = metric(said.values, REWARD)
        if said.kind != "train" or reward is None or not math.isfinite(reward) or said.step in self.steps:
            return False
        self.steps.append(said.step)
        del self.steps[:-STEPS_HELD]
        positive = reward > 0 or any(value > 0 for value in _pass_rates(said.values))
        self.shown = RewardMetricsView(
            steps=self.shown.steps + 1,
            positive=self.shown.positive + positive,
            zero=self.shown.zero + (reward == 0 and not positive),
            newest_reward=reward,
            newest=seen.evidence,
            newest_positive=seen.evidence if positive else self.shown.newest_positive,
        )
        return True

    def view(self) -> RewardMetricsView:
        """The counts as they stand."""
        return self.shown


def metric(values: Mapping[str, float], *names: str) -> float | None:
    """The first of the names that is there. Sinks may add a prefix, so that a key may also end with `/name`."""
    for name in names:
        if name in values:
            return values[name]
        ending = "/" + name
        for key, value in values.items():
            if key.endswith(ending):
                return value
    return None


def pass_rate(values: Mapping[str, float]) -> float | None:
    """The newest pass rate of a step's metrics, the greatest where it is told for several counts of attempts."""
    return max(_pass_rates(values), default=None)


def _pass_rates(values: Mapping[str, float]) -> Iterator[float]:
    return (value for key, value in values.items() if PASS_AT in key)
