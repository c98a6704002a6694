"""How gate D tells of the window: its measures, the phase table, and signals that lead a slow-down."""

from collections.abc import Sequence

from state.policy import BACKPRESSURE_WAIT_SHARE, LEADING_FACTOR, LOOP_LAG_SECONDS
from state.trackers.dynamics import DynamicsView
from state.trackers.phase_table import STEP
from state.wording import plural

PHASES_SAID = 6
WAIT = "wait_for_generation_buffer"
_NAMES = {
    "reward": "reward",
    "pass_rate": "pass rate",
    "entropy": "entropy",
    "policy_loss": "policy loss",
    "loss": "final loss",
    "grad_norm": "gradient norm",
    "log_ratio": "log ratio",
    "log_ratio_max": "largest log ratio",
    "importance": "TIS importance ratio",
    "capped": "TIS capped share",
}
"""Measures as they are told, in this order."""


def window_said(seen: DynamicsView) -> str:
    """All that is told of a window beside what was concluded from it; each piece after a semicolon."""
    return f"{measures_said(seen)}{leading_said(seen)}{table_said(seen)}"


def measures_said(seen: DynamicsView) -> str:
    """Each measure's mean before the newest third and in it: `reward 0.31 to 0.29`."""
    said = []
    for measure, name in _NAMES.items():
        before, newest = _means(seen, [row.measures.get(measure) for row in seen.window])
        if before is not None and newest is not None:
            said.append(f"{name} {before:.3g} to {newest:.3g}")
    return f"; means before the newest third and in it: {', '.join(said)}" if said else ""


def leading_said(seen: DynamicsView) -> str:
    """What slows a run down before its rewards show it: a wait for the buffer that grows, an event loop that lags."""
    said = [sign for sign in (_growing_wait(seen), _lagging_loop(seen)) if sign]
    return f"; leading signals: {', '.join(said)}" if said else ""


def _growing_wait(seen: DynamicsView) -> str:
    """Not before the trainer waits for a share of its steps that is worth the name."""
    before, newest = _means(seen, [row.seconds.get(WAIT) for row in seen.window])
    _, step = _means(seen, [row.seconds.get(STEP) for row in seen.window])
    if before is None or newest is None or not step:
        return ""
    if newest < BACKPRESSURE_WAIT_SHARE * step or newest < LEADING_FACTOR * before:
        return ""
    return f"the wait for the buffer grows ({before:.0f} s to {newest:.0f} s a step)"


def _lagging_loop(seen: DynamicsView) -> str:
    before, newest = _means(seen, [row.measures.get("loop_lag") for row in seen.window])
    if newest is None or newest < LOOP_LAG_SECONDS:
        return ""
    was = "" if before is None else f", {before:.2g} s before"
    return f"the event loop of the inference bridge lags ({newest:.2g} s at p95{was})"


def _means(seen: DynamicsView, values: Sequence[float | None]) -> tuple[float | None, float | None]:
    """The means of a window's values before its newest third and in it; None where none is known."""
    cut = len(seen.window) - len(seen.newest_third)
    return _mean(values[:cut]), _mean(values[cut:])


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def table_said(seen: DynamicsView) -> str:
    """The phase-time table: mean seconds per phase and share of the step, what no phase accounts for, what phases that
    run beside one another count twice. The seconds add up to the step's."""
    table = seen.table
    if not table.step_seconds:
        return ""
    shown, others = table.outer[:PHASES_SAID], table.outer[PHASES_SAID:]
    rows = [("unattributed", table.unattributed_seconds)]
    rows += [(row.phase, row.seconds) for row in shown]
    if others:
        rows.append((plural(len(others), "other phase"), sum(row.seconds for row in others)))
    if round(table.overlap_seconds):
        rows.append(("overlap", -table.overlap_seconds))
    whole = adding_up([seconds for _, seconds in rows], round(table.step_seconds))
    said = [
        f"{name} {seconds} s ({exact / table.step_seconds:.0%})"
        for (name, exact), seconds in zip(rows, whole, strict=True)
    ]
    return f"; mean step {sum(whole)} s: {', '.join([*said[1:], said[0]])}"


def adding_up(parts: Sequence[float], total: int) -> list[int]:
    """The parts rounded, what rounding leaves of the total put to the first, or to the greatest if the first is too
    small for it."""
    whole = [round(part) for part in parts]
    left = total - sum(whole)
    whole[0 if whole[0] + left >= 0 else max(range(len(whole)), key=whole.__getitem__)] += left
    return whole
