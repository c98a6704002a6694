"""Where the time of a training step goes: phases, what none of them accounts for, and what they overlap. Serves gate D.

Rows that are no part of another one, unattributed time added and overlap taken off, add up to the step time.
"""

import math
from collections.abc import Mapping, Sequence

import msgspec

_TIMING = "timing/"
STEP = "step"
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


class PhaseTime(msgspec.Struct, frozen=True):
    """The mean seconds of a phase per step, and their share of the step. inner phases are part of another one's."""

    phase: str
    seconds: float
    share: float
    inner: bool


class PhaseTable(msgspec.Struct, frozen=True):
    """Mean seconds per step that has timings, longest phase first. unattributed_seconds are of no phase;
    overlap_seconds those that phases which run beside one another (or are not known to be nested) count twice.
    step_seconds is None where no step has timings."""

    rows: tuple[PhaseTime, ...] = ()
    step_seconds: float | None = None
    unattributed_seconds: float = 0.0
    overlap_seconds: float = 0.0

    @property
    def outer(self) -> tuple[PhaseTime, ...]:
        """The phases that are part of no other one."""
        return tuple(row for row in self.rows if not row.inner)


NO_TIMES = PhaseTable()


def phase_table(steps: Sequence[Mapping[str, float]]) -> PhaseTable:
    """The table over the steps that have timings; a phase that a step did not have counts 0 there."""
    timed = [seconds for seconds in steps if seconds.get(STEP)]
    if not timed:
        return NO_TIMES
    whole = sum(seconds[STEP] for seconds in timed)
    phases = {phase for seconds in timed for phase in seconds} - {STEP}
    rows = []
    for phase in phases:
        spent = sum(seconds.get(phase, 0.0) for seconds in timed)
        rows.append(PhaseTime(phase, spent / len(timed), spent / whole, _enclosed(phase, phases)))
    outer = [row.phase for row in rows if not row.inner]
    left = [seconds[STEP] - sum(seconds.get(phase, 0.0) for phase in outer) for seconds in timed]
    return PhaseTable(
        rows=tuple(sorted(rows, key=lambda row: (-row.seconds, row.phase))),
        step_seconds=whole / len(timed),
        unattributed_seconds=sum(each for each in left if each > 0) / len(timed),
        overlap_seconds=-sum(each for each in left if each < 0) / len(timed),
    )


def phase_seconds(values: dict[str, float]) -> dict[str, float]:
    """Phase times by phase; a sink's prefix before `timing/` is not part of the name."""
    timed = ((key.rpartition(_TIMING)[2], value) for key, value in values.items() if _TIMING in key)
    return {phase: value for phase, value in timed if math.isfinite(value) and phase not in _BESIDE}


def _enclosed(phase: str, timed: set[str]) -> bool:
    """Whether a phase that encloses it, directly or around others that are not timed, is timed as well."""
    outer = _INSIDE.get(phase)
    while outer is not None and outer not in timed:
        outer = _INSIDE.get(outer)
    return outer is not None
