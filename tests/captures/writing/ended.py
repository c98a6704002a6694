"""Runs that are over, or die on every attempt."""

from datetime import datetime

from tests.captures.writing import deaths, disk, polls
from tests.captures.writing.bring_up import driver_starts, pods_start
from tests.captures.writing.chatter import agents_talk, monitors, workers_wait
from tests.captures.writing.healthy import GENERATING, TRAINING, generating_from, reaches_training
from tests.captures.writing.launch import job_toml
from tests.captures.writing.run import Run
from tests.captures.writing.trainer import (
    Pace,
    buffer_fills,
    finished,
    phase,
    policy_bar,
    started,
    starts_up,
    weight_sync_group,
)
from tests.captures.writing.trials import trials


def _after(run: Run, at: float, word: str, exit: int, failures: int = 0, error: str = "") -> None:
    """What the scheduler shows once it is over."""
    status = "Completed" if exit == 0 else "Error"
    polls.pods(run, at + 45, dict.fromkeys(range(4), status))
    for minute in (1, 2, 3):
        polls.state(run, at + 60 * minute, word, exit, failures, 0, error)


def weight_sync_bootstrap_hang() -> disk.Files:
    """The weight-sync group never forms; after 1800 s the driver says so, and only the driver."""
    run = Run("weight_sync_bootstrap_hang", "/mira/rl-avocet-1", datetime(2026, 3, 20, 9, 0))
    pods_start(run)
    at = driver_starts(run)
    at = phase(run, at, "load_checkpoints", 1.2)
    weight_sync_group(run, at + 0.2)
    end = at + 1800
    monitors(run, 710, end)
    workers_wait(run, at, end)
    polls.watched(run, 60, end, lambda _: (1, 1))
    deaths.bootstrap_times_out(run, end)
    over = deaths.shut_down(run, end + 3, 1)
    _after(run, over, "failed", 1, 1, "Exit code 1")
    return disk.synced(run) | {"job.toml": job_toml(run)}


def engine_death_meta_tensors() -> disk.Files:
    """An engine dies on meta tensors at the first weight sync; only its own log says so, and the job exits 0."""
    run = Run("engine_death_meta_tensors", "/mira/rl-stilt-8", datetime(2026, 3, 20, 16, 0))
    pods_start(run)
    at = driver_starts(run)
    at = phase(run, at, "load_checkpoints", 1.2)
    at = weight_sync_group(run, at + 0.2)
    finished(run, at + 5, "init_weight_sync_state", 5.5, 176)
    started(run, at + 5.1, "sync_weights_to_inference_engines", 189)
    deaths.meta_tensors(run, at + 95, run.engines[2])
    over = deaths.shut_down(run, at + 130, 0)
    monitors(run, 710, over - 20)
    polls.watched(run, 60, over - 10, lambda _: (3, 1))
    _after(run, over, "succeeded", 0)
    return disk.bundled(run) | {"job.toml": job_toml(run)}


def clean_exit_missing_ray_logs() -> disk.Files:
    """The scheduler says succeeded, no line says done, and the per-actor logs were never pulled."""
    run = Run("clean_exit_missing_ray_logs", "/mira/rl-ruff-11", datetime(2026, 3, 21, 9, 0))
    at = reaches_training(run, 2, Pace())
    started(run, at, "step", 210)
    started(run, at + 0.1, "wait_for_generation_buffer")
    over = deaths.shut_down(run, at + 70, 0)
    monitors(run, 710, at)
    trials(run, 6, 1000, at - 60)
    polls.watched(run, 60, over - 10, generating_from(720))
    _after(run, over, "succeeded", 0)
    return disk.synced(run, ray_logs=False) | {"job.toml": job_toml(run)}


def completed_run() -> disk.Files:
    """Five steps were planned and five were done; no launcher's facts on file."""
    run = Run("completed_run", "/mira/rl-teal-2", datetime(2026, 3, 21, 18, 0))
    at = reaches_training(run, 5, Pace(), of=5)
    run.log(at, run.entry, "skyrl_train.fully_async_trainer:train:231", "Reached max training steps (5)")
    at = phase(run, at + 0.1, "save_checkpoints", 25.0)
    run.log(at + 1, run.entry, "skyrl_train.fully_async_trainer:train:240", "Training done!")
    over = deaths.shut_down(run, at + 15, 0)
    monitors(run, 710, at)
    agents_talk(run, 900, at)
    trials(run, 8, 1000, at - 60)
    polls.watched(run, 60, over - 10, generating_from(720))
    _after(run, over, "succeeded", 0)
    return disk.zstd(disk.synced(run))


def crash_loop_same_failure() -> disk.Files:
    """Two attempts die in the first policy update of the same error; a third is coming up."""
    run = Run("crash_loop_same_failure", "/mira/rl-smew-3", datetime(2026, 3, 22, 8, 0))
    launch = job_toml(run, retries=3)
    at = 0.0
    for attempt in (0, 1):
        run.cast(attempt)
        over = _dies_in_first_update(run, at)
        polls.watched(run, at + 60, over - 10, generating_from(at + 720), failures=attempt)
        polls.state(run, over + 20, "pending", failures=attempt + 1, pods=0)
        at = over + 60
    run.cast(2)
    pods_start(run, at)
    end = at + 285
    polls.watched(run, at + 30, end, lambda _: (0, 0), every=60, failures=2)
    return disk.synced(run) | {"job.toml": launch}


def _dies_in_first_update(run: Run, at: float) -> float:
    pods_start(run, at)
    at = starts_up(run, driver_starts(run, at))
    started(run, at, "step", 210)
    at = buffer_fills(run, at + 0.1, 150.0 + 30 * run.attempt)
    at = phase(run, at + 0.1, "convert_to_training_input", 2.0)
    started(run, at, "run_training")
    started(run, at + 0.1, "train_critic_and_policy")
    started(run, at + 0.2, "policy_train")
    at += 11 + 4 * run.attempt
    for name, took in (
        ("policy_train", 11.0),
        ("train_critic_and_policy", 11.1),
        ("run_training", 11.2),
        ("step", 170.0),
    ):
        finished(run, at, name, took)
    sequences = 512 - 64 * run.attempt
    deaths.train_loop_fails(
        run,
        at + 0.1,
        1,
        f"ValueError: routed expert map covers {sequences} of 576 sequences",
        (
            ("skyrl_train/fully_async_trainer.py", 203, "train"),
            ("skyrl_train/fully_async_trainer.py", 1121, "train_critic_and_policy"),
            ("skyrl_train/workers/routing.py", 88, "replay_routes"),
        ),
    )
    return deaths.shut_down(run, at + 3, 1)


def host_oom_killed() -> disk.Files:
    """The kernel kills a policy worker whose pod is over its memory limit; the job still shows as running."""
    run = Run("host_oom_killed", "/mira/rl-pochard-4", datetime(2026, 3, 22, 20, 0))
    at = reaches_training(run, 2, Pace())
    started(run, at, "step", 210)
    at = buffer_fills(run, at + 0.1, 160.0)
    at = phase(run, at + 0.1, "convert_to_training_input", 2.0)
    began = at
    started(run, at, "run_training")
    started(run, at + 0.1, "train_critic_and_policy")
    started(run, at + 0.2, "policy_train")
    policy_bar(run, at + 34, 1, at)
    killed = at + 95
    deaths.kernel_kills(run, killed, run.policy[2])
    monitors(run, 710, killed)
    trials(run, 6, 1000, began)
    polls.watched(run, 60, killed, lambda now: TRAINING if now > began else GENERATING)
    for late in range(60, 481, 60):
        polls.state(run, killed + late, pods=3)
    for late in (70, 250, 430):
        polls.pods_json(run, killed + late, 1)
        polls.gpu(run, killed + late + 10, 97, 24)
    return disk.synced(run) | {"job.toml": job_toml(run)}
