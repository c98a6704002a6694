"""The newest training steps by their metrics: gradient, entropy, log ratio, losses, phase times. Serves gate D."""

import math
from typing import Any, ClassVar

import msgspec

from extractors.metrics import MetricsUnreadable, StepMetrics
from extractors.record import Evidence, Observation
from state.policy import NON_FINITE_STEPS, WINDOW_FEWEST
from state.tracker import AttemptStarted, Tracker
from state.trackers.rewards import REWARD, metric

WINDOW_HELD = 30
"""Steps that are remembered."""

_READ: dict[str, tuple[str, ...]] = {
    "grad_norm": ("policy/raw_grad_norm", "raw_grad_norm"),
    "entropy": ("policy/policy_entropy", "policy_entropy"),
    "log_ratio": ("policy/log_ratio_abs_mean", "policy/tis/log_ratio_abs_mean", "tis/log_ratio_abs_mean"),
    "loss": ("policy/final_loss", "final_loss"),
    "policy_loss": ("policy/policy_loss", "policy_loss"),
    "reward": (REWARD,),
}
"""The measures that gate D weighs, and the keys that may hold each (MarinSkyRL, SkyRL; older sinks without prefix)."""
_MUST_BE_FINITE = ("loss", "policy_loss", "grad_norm")

_TIMING = "timing/"
_STEP = "step"
_INSIDE: dict[str, str] = {
    "policy_train": "train_critic_and_policy",
    "critic_train": "train_critic_and_policy",
    "policy_critic_overlap_train": "train_critic_and_policy",
    "train_critic_and_policy": "run_training",
    "fwd_logprobs_values_reward": "run_training",
    "apply_reward_kl_penalty": "run_training",
    "compute_advantages_and_returns": "run_training",
    "dump_data_batch": "run_training",
    "policy_pre_train_drain": "run_training",
    "policy_pre_sync_drain": "sync_weights",
    "policy_post_sync_drain": "sync_weights",
    "weight_broadcast": "sync_weights",
    "weight_pause": "sync_weights",
    "weight_resume": "sync_weights",
    "sync_weights_to_inference_engines": "sync_weights",
    "offload_policy_optimizer_to_cpu": "sync_weights",
    "cleanup_old_checkpoints": "save_checkpoints",
}
"""A phase and the phase that encloses it, where both are timed (MarinSkyRL's trainers): its time counts once."""
_BESIDE = frozenset({"checkpoint_upload"})
"""Timed in the background, no part of the step."""


class StepRow(msgspec.Struct, frozen=True):
    """One training step: the finite measures by name, the names of the non-finite ones, phase times in seconds."""

    step: int
    evidence: Evidence
    measures: dict[str, float]
    non_finite: tuple[str, ...]
    seconds: dict[str, float]


class PhaseTime(msgspec.Struct, frozen=True):
    """The mean seconds of a phase per step, and their share of the step. inner phases are part of another one's."""

    phase: str
    seconds: float
    share: float
    inner: bool


class DynamicsView(msgspec.Struct, frozen=True):
    """window holds the newest training steps of this attempt in order, at most 30 of `steps` in all. table is the
    phase-time table over the window, rest_seconds what no phase of a step accounts for.

    unreadable counts metric lines that could not be read, with the newest of them.
    """

    steps: int = 0
    window: tuple[StepRow, ...] = ()
    table: tuple[PhaseTime, ...] = ()
    step_seconds: float | None = None
    rest_seconds: float | None = None
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
        table = _table(self.rows)
        whole = [row.seconds[_STEP] for row in self.rows if _STEP in row.seconds]
        step_seconds = sum(whole) / len(whole) if whole else None
        attributed = sum(line.seconds for line in table if not line.inner)
        self.shown = msgspec.structs.replace(
            self.shown,
            steps=steps,
            window=tuple(self.rows),
            table=table,
            step_seconds=step_seconds,
            rest_seconds=None if step_seconds is None else max(0.0, step_seconds - attributed),
        )

    FOLDS: ClassVar[dict[type, Any]] = {
        StepMetrics: step_metrics,
        MetricsUnreadable: metrics_unreadable,
        AttemptStarted: attempt_started,
    }


def _row(said: StepMetrics, evidence: Evidence) -> StepRow:
    found = {name: metric(said.values, *keys) for name, keys in _READ.items()}
    measures = {name: value for name, value in found.items() if value is not None}
    return StepRow(
        step=said.step,
        evidence=evidence,
        measures={name: value for name, value in measures.items() if math.isfinite(value)},
        non_finite=tuple(name for name in _MUST_BE_FINITE if not math.isfinite(measures.get(name, 0.0))),
        seconds=_seconds(said.values),
    )


def _seconds(values: dict[str, float]) -> dict[str, float]:
    """Phase times by phase; a sink's prefix before `timing/` is not part of the name."""
    timed = ((key.rpartition(_TIMING)[2], value) for key, value in values.items() if _TIMING in key)
    return {phase: value for phase, value in timed if math.isfinite(value) and phase not in _BESIDE}


def _table(rows: list[StepRow]) -> tuple[PhaseTime, ...]:
    """Mean seconds per step that has timings, longest first; a phase that a step did not have counts 0 there."""
    timed = [row.seconds for row in rows if row.seconds.get(_STEP)]
    if not timed:
        return ()
    whole = sum(seconds[_STEP] for seconds in timed)
    phases = {phase for seconds in timed for phase in seconds} - {_STEP}
    lines = []
    for phase in phases:
        spent = sum(seconds.get(phase, 0.0) for seconds in timed)
        lines.append(PhaseTime(phase, spent / len(timed), spent / whole, _enclosed(phase, phases)))
    return tuple(sorted(lines, key=lambda line: (-line.seconds, line.phase)))


def _enclosed(phase: str, timed: set[str]) -> bool:
    """Whether a phase that encloses it, directly or around others that are not timed, is timed as well."""
    outer = _INSIDE.get(phase)
    while outer is not None and outer not in timed:
        outer = _INSIDE.get(outer)
    return outer is not None
