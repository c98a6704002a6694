"""The newest training steps by their metrics: gradient, entropy, log ratio, losses, phase times. Serves gate D."""

import math
from typing import Any, ClassVar

import msgspec

from extractors.metrics import MetricsUnreadable, StepMetrics
from extractors.record import Evidence, Observation
from state.policy import NON_FINITE_STEPS, WINDOW_FEWEST
from state.tracker import AttemptStarted, Tracker
from state.trackers.phase_table import NO_TIMES, PhaseTable, phase_seconds, phase_table
from state.trackers.rewards import REWARD, metric, pass_rate

WINDOW_HELD = 30
"""Steps that are remembered."""

_READ: dict[str, tuple[str, ...]] = {
    "grad_norm": ("policy/raw_grad_norm", "raw_grad_norm"),
    "entropy": ("policy/policy_entropy", "policy_entropy"),
    "log_ratio": ("policy/log_ratio_abs_mean", "policy/tis/log_ratio_abs_mean", "tis/log_ratio_abs_mean"),
    "loss": ("policy/final_loss", "final_loss"),
    "policy_loss": ("policy/policy_loss", "policy_loss"),
    "reward": (REWARD,),
    "log_ratio_max": ("policy/log_ratio_abs_max",),
    "importance": ("policy/tis/imp_ratio_mean", "tis/imp_ratio_mean"),
    "capped": ("policy/tis/imp_ratio_capped_fraction", "tis/imp_ratio_capped_fraction"),
    "loop_lag": ("inference_bridge/event_loop_lag_seconds/p95", "inference_bridge/event_loop_lag_seconds/mean"),
}
"""The measures that gate D weighs or tells, and the keys that may hold each (MarinSkyRL, SkyRL; older sinks without
prefix). `pass_rate` is found by its family."""
_MUST_BE_FINITE = ("loss", "policy_loss", "grad_norm")


class StepRow(msgspec.Struct, frozen=True):
    """One training step: the finite measures by name, the names of the non-finite ones, phase times in seconds."""

    step: int
    evidence: Evidence
    measures: dict[str, float]
    non_finite: tuple[str, ...]
    seconds: dict[str, float]


class DynamicsView(msgspec.Struct, frozen=True):
    """window holds the newest training steps of this attempt in order, at most 30 of `steps` in all. table says
    where the time of those steps went.

    unreadable counts metric lines that could not be read, with the newest of them.
    """

    steps: int = 0
    window: tuple[StepRow, ...] = ()
    table: PhaseTable = NO_TIMES
    unreadable: int = 0
    unreadable_why: str = ""
    unreadable_evidence: Evidence | None = None

    @property
    def newest_third(self) -> tuple[StepRow, ...]:
        """The newest third of the window."""
        return self.window[len(self.window) - len(self.window) // 3 :]

    @property
    def non_finite(self) -> tuple[StepRow, ...]:
        """The steps of the newest third whose loss or gradient is not a finite number."""
        return tuple(row for row in self.newest_third if row.non_finite)

    @property
    def non_finite_collapse(self) -> bool:
        """Whether non-finite values alone are collapse: two steps of the newest third of a window of ten."""
        return len(self.window) >= WINDOW_FEWEST and len(self.non_finite) >= NON_FINITE_STEPS


class DynamicsTracker(Tracker):
    """Holds the newest 30 training steps of this attempt."""

    rows: list[StepRow] = msgspec.field(default_factory=list)
    torn: list[int] = msgspec.field(default_factory=list)
    shown: DynamicsView = DynamicsView()

    def step_metrics(self, seen: Observation) -> None:
        """A step's metrics record. A step that stands in two homes counts once."""
        said: StepMetrics = seen.signal
        if said.kind != "train" or any(row.step == said.step for row in self.rows):
            return
        if said.step in self.torn:
            self.torn.remove(said.step)
            self.shown = msgspec.structs.replace(self.shown, unreadable=self.shown.unreadable - 1)
        self.rows.append(_row(said, seen.evidence))
        self.rows.sort(key=lambda row: row.step)
        del self.rows[:-WINDOW_HELD]
        self._show(self.shown.steps + 1)

    def metrics_unreadable(self, seen: Observation) -> None:
        """A metrics record that can't be read is missing evidence, never a default; another home may have it whole."""
        step = seen.signal.step
        if step is not None:
            if step in self.torn or any(row.step == step for row in self.rows):
                return
            self.torn.append(step)
            del self.torn[:-WINDOW_HELD]
        self.shown = msgspec.structs.replace(
            self.shown,
            unreadable=self.shown.unreadable + 1,
            unreadable_why=seen.signal.why,
            unreadable_evidence=seen.evidence,
        )

    def attempt_started(self, _: Observation) -> None:
        """A new life of the job: its own window."""
        self.rows, self.torn, self.shown = [], [], DynamicsView()

    def view(self) -> DynamicsView:
        """The window as it stands."""
        return self.shown

    def _show(self, steps: int) -> None:
        table = phase_table([row.seconds for row in self.rows])
        self.shown = msgspec.structs.replace(self.shown, steps=steps, window=tuple(self.rows), table=table)

    FOLDS: ClassVar[dict[type, Any]] = {
        StepMetrics: step_metrics,
        MetricsUnreadable: metrics_unreadable,
        AttemptStarted: attempt_started,
    }


def _row(said: StepMetrics, evidence: Evidence) -> StepRow:
    found = {name: metric(said.values, *keys) for name, keys in _READ.items()}
    found["pass_rate"] = pass_rate(said.values)
    measures = {name: value for name, value in found.items() if value is not None}
    return StepRow(
        step=said.step,
        evidence=evidence,
        measures={name: value for name, value in measures.items() if math.isfinite(value)},
        non_finite=tuple(name for name in _MUST_BE_FINITE if not math.isfinite(measures.get(name, 0.0))),
        seconds=phase_seconds(said.values),
    )
