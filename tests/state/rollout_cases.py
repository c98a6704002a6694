"""Builders for gates C and D: trials that start and end, and training steps with their metrics."""

from typing import Any

from extractors.coherence import Coherence
from extractors.harbor_trials import TrialEnded, TrialStarted, TrialTiming, TrialUnreadable
from extractors.metrics import StepMetrics
from extractors.polls import JobState
from extractors.record import Observation, SourceKind
from extractors.signal import BringUp
from extractors.trainer import PhaseStarted
from state.gate import Ruling
from state.gates.dynamics import DYNAMICS
from state.gates.rollouts import ROLLOUTS
from state.trackers.facts import JobDeclared, JobFacts
from tests.builders import case_after, polled, reading, saw, us

MINUTE = 60.0
SLOT = 600.0


def declared(**facts: Any) -> Observation:
    """job.toml of an agentic job."""
    return saw(0, JobDeclared(JobFacts(**{"mode": "agentic", **facts})), source="job.toml", quote="[job]")


def coming_up(at: float = 10) -> Observation:
    """A bring-up line."""
    return saw(at, BringUp("Ray nodes alive", done=2, of=4), quote="[task-runtime] Ray nodes alive: 2/4")


def running(**facts: Any) -> tuple[Observation, ...]:
    """A job that came up and generates."""
    return (
        declared(**facts),
        reading(),
        reading(SourceKind.ACTOR, "ray_session_logs/worker-a.out"),
        polled(5, JobState.RUNNING),
        coming_up(),
        saw(300, PhaseStarted("generate"), quote="Started: 'generate'"),
    )


def started(at: float, trial: str) -> Observation:
    """A trial's config is on file, and when it began is known."""
    return saw(
        at,
        TrialStarted(trial, started_us=us(at)),
        source=f"trace_jobs/{trial}/config.json",
        line=2,
        quote=f'"trial_name": "{trial}"',
    )


def ended(
    at: float,
    trial: str,
    *,
    reward: float | None = None,
    exception: str | None = None,
    turns: int | None = 7,
    tokens: int | None = 900,
    coherence: Coherence = Coherence.UNKNOWN,
    timing: TrialTiming | None = None,
    file: str = "result.json",
) -> Observation:
    """A trial's result is on file."""
    quote = f'"exception_type": "{exception}"' if reward is None and exception else f'"reward": {reward}'
    return saw(
        at,
        TrialEnded(trial, reward, exception, turns, tokens, timing, coherence),
        source=f"trace_jobs/{trial}/{file}",
        line=84,
        quote=quote,
    )


def many(count: int, first: float, every: float, **how: Any) -> tuple[Observation, ...]:
    """So many trials that end one after the other; their names tell when."""
    word = how.get("exception") or "task"
    return tuple(ended(first + i * every, f"{word}-{first:.0f}-{i:03d}", **how) for i in range(count))


def unreadable(at: float, trial: str, why: str = "result.json: unexpected end of data at byte 12") -> Observation:
    """A trial's result is there and torn."""
    return saw(at, TrialUnreadable(trial, why), source=f"trace_jobs/{trial}/result.json", line=1, quote="{")


def gate_c(*observations: Observation, now: float | None = None) -> Ruling:
    """What gate C says after these observations, in the order of their times."""
    return ROLLOUTS.judge(case_after(*in_time(observations), now=now))


def gate_d(*observations: Observation, now: float | None = None) -> Ruling:
    """What gate D says after these observations, in the order of their times."""
    return DYNAMICS.judge(case_after(*in_time(observations), now=now))


def in_time(observations: tuple[Observation, ...]) -> list[Observation]:
    """Observations as the merge would order them."""
    return sorted(observations, key=lambda seen: seen.at_us)


HEALTHY = {
    "policy/raw_grad_norm": 0.03,
    "policy/policy_entropy": 1.1,
    "policy/log_ratio_abs_mean": 0.03,
    "policy/final_loss": 0.002,
    "reward/avg_raw_reward": 0.3,
    "timing/step": 1000.0,
    "timing/wait_for_generation_buffer": 600.0,
    "timing/run_training": 350.0,
    "timing/train_critic_and_policy": 300.0,
    "timing/policy_train": 300.0,
    "timing/sync_weights": 40.0,
}


def step(number: int, at: float | None = None, **values: float) -> Observation:
    """A training step's metrics: healthy, but for what is said; `grad_norm` and the like are said for short."""
    names = {
        "grad_norm": "policy/raw_grad_norm",
        "entropy": "policy/policy_entropy",
        "log_ratio": "policy/log_ratio_abs_mean",
        "loss": "policy/final_loss",
        "reward": "reward/avg_raw_reward",
    }
    said = {**HEALTHY, **{names[name]: value for name, value in values.items()}}
    when = 1000.0 * number if at is None else at
    return saw(when, StepMetrics(number, "train", said), quote=f"WANDB_MIRROR kind=train step={number}")


def timed(total: float, setup: float, llm: float, tool: float, teardown: float, verifier: float) -> TrialTiming:
    """A trial's timing without a release race."""
    return TrialTiming(total, setup, llm, tool, teardown, verifier, False)
