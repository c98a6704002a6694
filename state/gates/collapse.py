"""The signs of collapse that gate D weighs, each over a window of training steps (GATES, Gate D).

A sign counts while the newest third of the window does not recover from it: most of its steps show it, the last too.
"""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from extractors.record import Evidence
from state.case import Case
from state.policy import (
    BLOWN_STEPS,
    ENTROPY_OFF,
    GRAD_NORM_CEILING,
    INCOHERENT_FEWEST,
    INCOHERENT_SHARE,
    MEDIAN_FACTOR,
    PASS_FEWEST,
    PASS_RATE_FLOOR,
    PASS_WINDOW,
    REWARDS_FEWEST,
    TREND_FEWEST,
    TREND_STEPS,
)
from state.trackers.dynamics import DynamicsView, StepRow


@dataclass(frozen=True, slots=True)
class Sign:
    """One sign in words, with the lines that show it."""

    says: str
    evidence: tuple[Evidence, ...]


def gradient_blown(view: DynamicsView) -> Sign | None:
    """Raw gradient norm > 1 or > 2 × its window median for ≥ 2 steps."""
    values = _values(view.window, "grad_norm")
    if not values:
        return None
    ceiling = min(GRAD_NORM_CEILING, MEDIAN_FACTOR * median(values))
    return _sign(
        view,
        "grad_norm",
        lambda value: value > ceiling,
        f"the raw gradient norm is above {ceiling:.3g} (1, or twice its window median {median(values):.3g})",
    )


def entropy_off(view: DynamicsView) -> Sign | None:
    """Entropy off its 10-step trend by > 30 %: the level of the ten steps before the newest third."""
    before = view.window[: len(view.window) - len(view.newest_third)][-TREND_STEPS:]
    values = _values(before, "entropy")
    if len(values) < TREND_FEWEST or not (trend := median(values)):
        return None
    return _sign(
        view,
        "entropy",
        lambda value: abs(value - trend) > ENTROPY_OFF * abs(trend),
        f"the entropy is off its 10-step trend of {trend:.3g} by more than 30 %",
    )


def log_ratio_blown(view: DynamicsView) -> Sign | None:
    """Mean absolute log ratio > 2 × its window median."""
    values = _values(view.window, "log_ratio")
    if not values:
        return None
    ceiling = MEDIAN_FACTOR * median(values)
    return _sign(
        view,
        "log_ratio",
        lambda value: value > ceiling,
        f"the mean absolute log ratio is above twice its window median {median(values):.3g}",
    )


def pass_rate_fallen(case: Case) -> Sign | None:
    """Trial pass rate < 10 % over the last 100 after having been above it."""
    seen = case.rollouts
    newest = seen.passes[-PASS_WINDOW:]
    if len(newest) < PASS_FEWEST or seen.best_pass_rate is None or seen.newest_scored is None:
        return None
    rate = sum(newest) / len(newest)
    if rate >= PASS_RATE_FLOOR or seen.best_pass_rate < PASS_RATE_FLOOR:
        return None
    return Sign(
        f"the trials' pass rate fell from {seen.best_pass_rate:.0%} to {rate:.0%} over the last {len(newest)}",
        (seen.newest_scored,),
    )


def trials_agree(case: Case) -> bool:
    """Whether the trials tell of collapse too: fewer pass, or what they write is incoherent. Where no trial was
    scored, the trainer's mean reward speaks for them. No evidence is no agreement."""
    sample = case.rollouts.sample
    if pass_rate_fallen(case) is not None:
        return True
    if sample.read >= INCOHERENT_FEWEST and sample.incoherent >= INCOHERENT_SHARE * sample.read:
        return True
    passes = [float(passed) for passed in case.rollouts.passes]
    if passes:
        return len(passes) >= REWARDS_FEWEST and _halved(passes)
    return _halved(_values(case.dynamics.window, "reward"))


def _halved(values: list[float]) -> bool:
    """Whether the newest third's mean is below half of the mean before it, and that was worth the name."""
    third = len(values) // 3
    if not third:
        return False
    before, newest = values[:-third], values[-third:]
    level = sum(before) / len(before)
    return level >= PASS_RATE_FLOOR and sum(newest) / third < level / 2


def _values(rows: tuple[StepRow, ...], measure: str) -> list[float]:
    return [row.measures[measure] for row in rows if measure in row.measures]


def _sign(view: DynamicsView, measure: str, bad: Callable[[float], bool], says: str) -> Sign | None:
    """The sign where at least two steps of the window show it and the newest third does not recover from it."""
    rows = [row for row in view.window if measure in row.measures and bad(row.measures[measure])]
    known = [row for row in view.newest_third if measure in row.measures]
    lasting = [row for row in known if bad(row.measures[measure])]
    recovers = 2 * len(lasting) <= len(known) or lasting[-1] is not known[-1]
    if len(rows) < BLOWN_STEPS or recovers:
        return None
    steps = ", ".join(str(row.step) for row in rows[-5:])
    return Sign(f"{says} in {len(rows)} steps (newest {steps})", (rows[0].evidence, rows[-1].evidence))
