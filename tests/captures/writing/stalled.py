"""Runs that live and do not move: wedges, starvation, sandboxes that were never built."""

from datetime import datetime

from tests.captures.writing import deaths, disk, polls
from tests.captures.writing.chatter import agents_talk, monitors
from tests.captures.writing.engines import Load, busy, nearly_empty, serve
from tests.captures.writing.healthy import GENERATING, TRAINING, generating_from, reaches_training
from tests.captures.writing.launch import job_toml
from tests.captures.writing.processes import (
    DISPATCHING,
    IN_COLLECTIVE,
    STEPPING,
    WAITING,
    ps,
    stack,
    stack_refused,
)
from tests.captures.writing.run import Run
from tests.captures.writing.trainer import (
    Pace,
    buffer_fills,
    buffer_line,
    finished,
    forward_enters,
    phase,
    policy_bar,
    started,
)
from tests.captures.writing.trials import ADD_TESTS, trial, trials


def policy_wedge_behind_live_engines() -> disk.Files:
    """Rank 3's watchdog aborts inside policy_train; the engines go on serving for 26 min."""
    run = Run("policy_wedge_behind_live_engines", "/mira/rl-heron-9", datetime(2026, 3, 17, 10, 0))
    at = reaches_training(run, 3, Pace())
    started(run, at, "step", 210)
    at = buffer_fills(run, at + 0.1, 160.0)
    at = phase(run, at + 0.1, "convert_to_training_input", 2.0)
    began = at
    started(run, at, "run_training")
    started(run, at + 0.1, "fwd_logprobs_values_reward")
    forward_enters(run, at + 0.2)
    finished(run, at + 40, "fwd_logprobs_values_reward", 40.0)
    at = phase(run, at + 40.1, "compute_advantages_and_returns", 1.0)
    started(run, at, "train_critic_and_policy")
    started(run, at + 0.1, "policy_train")
    policy_bar(run, at + 36, 1, at)
    barked = at + 36 + 604
    deaths.watchdog_aborts(run, barked, run.policy[3])
    end = barked + 60 + 26 * 60
    serve(run, began, end, lambda: busy(run, 24))
    for late in (1200, 1290):
        for actor in run.policy[:3]:
            stack(run, barked + late + 4 * actor.rank, actor, "ppo_train", IN_COLLECTIVE)
        stack(run, barked + late + 20, run.engines[0], "generate", STEPPING)
    monitors(run, 710, end, every=600)
    agents_talk(run, 900, end, every=480)
    trials(run, 8, 1000, began)
    polls.watched(run, 60, end, lambda now: (TRAINING[0], 71) if now > began else GENERATING, every=180)
    return disk.synced(run) | {"job.toml": job_toml(run)}


def _frozen_buffer(name: str, job: str, start: datetime) -> tuple[Run, float]:
    """Three good steps, then a buffer that stops at 27 of 64 while nearly empty engines wait; gives the run and
    the time of the freeze."""
    run = Run(name, job, start)
    at = reaches_training(run, 3, Pace(wait=240.0))
    started(run, at, "step", 210)
    started(run, at + 0.1, "wait_for_generation_buffer")
    for tick, held in enumerate((9, 18, 27), start=1):
        buffer_line(run, at + 40 * tick, held, at)
    serve(run, at, at + 120, lambda: busy(run))
    frozen, end = at + 120, at + 120 + 27 * 60
    for tick in range(1, 28):
        buffer_line(run, frozen + 60 * tick - 2, 27, at)
    serve(run, frozen, end, lambda: nearly_empty(run))
    monitors(run, 710, end)
    agents_talk(run, 900, frozen)
    trials(run, 9, 1000, frozen)
    polls.watched(run, 60, end, lambda now: (2, 9) if now > frozen else GENERATING)
    return run, frozen


def frozen_buffer_without_stacks() -> disk.Files:
    """The engines starve, but py-spy may not trace: unmeasured."""
    run, frozen = _frozen_buffer("frozen_buffer_without_stacks", "/mira/rl-curlew-2", datetime(2026, 3, 18, 8, 0))
    for again in (0, 120):
        at = frozen + 900 + again
        ps(run, at - 300, 0.21 * (at - 610))
        for actor in (run.policy[0], run.coordinators[0], run.engines[0]):
            stack_refused(run, at + actor.rank, actor)
    return disk.synced(run) | {"job.toml": job_toml(run)}


def frozen_buffer_with_stacks() -> disk.Files:
    """The same, measured: both coordinators spend a whole core each on dispatch, requests drain at once."""
    run, frozen = _frozen_buffer("frozen_buffer_with_stacks", "/mira/rl-curlew-4", datetime(2026, 3, 18, 14, 0))
    used = 0.35 * (frozen + 300 - 310)
    ps(run, frozen + 300, used)
    ps(run, frozen + 900, used + 0.97 * 600)
    for again in (0, 90):
        at = frozen + 960 + again
        for actor in run.policy[:2]:
            stack(run, at + actor.rank, actor, "idle", WAITING)
        for actor in run.coordinators:
            stack(run, at + 10 + actor.rank, actor, "run_batch", DISPATCHING)
        stack(run, at + 20, run.engines[0], "generate", STEPPING)
    ps(run, frozen + 1500, used + 0.97 * 1200)
    return disk.synced(run) | {"job.toml": job_toml(run)}


def add_tests_error() -> disk.Files:
    """Every one of 24 trials ends with the add-tests error: the sandbox was never built."""
    run = Run("add_tests_error", "/mira/rl-knot-6", datetime(2026, 3, 19, 9, 0))
    at = reaches_training(run, 0, Pace())
    started(run, at, "step", 210)
    started(run, at + 0.1, "wait_for_generation_buffer")
    end = at + 27 * 60
    buffer_line(run, at + 300, 2, at)
    buffer_line(run, at + 900, 4, at)
    buffer_line(run, at + 1500, 6, at)
    serve(run, at, end, lambda: Load(29 + run.rng.randrange(8), 1, 41.0, 1180.0, 2280.0))
    for number in range(24):
        ended = at + 240 + 52 * number
        trial(run, number, ended, None, ADD_TESTS)
        run.log(
            ended + 1,
            run.coordinators[number % 2],
            "examples.terminal_bench.terminal_bench_generator:_process_result:866",
            f"Trajectory TrajectoryID(instance_id='/data/tasks/lint-schema-{number:04d}', repetition_id=0) failed with"
            f" Harbor exception: {ADD_TESTS.message} (type={ADD_TESTS.kind}, exclude_from_baseline=True)",
            "WARNING",
        )
    monitors(run, 710, end)
    polls.watched(run, 60, end, generating_from(720))
    return disk.synced(run) | {"job.toml": job_toml(run)}
