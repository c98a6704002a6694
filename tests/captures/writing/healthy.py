"""Runs that are well, or will be: nothing to kill."""

from collections.abc import Callable
from datetime import datetime

from tests.captures.writing import deaths, disk, polls
from tests.captures.writing.bring_up import driver_starts, pods_start
from tests.captures.writing.chatter import agents_talk, monitors, workers_wait
from tests.captures.writing.engines import Load, fall_silent, report, serve
from tests.captures.writing.launch import job_toml
from tests.captures.writing.run import Run
from tests.captures.writing.trainer import (
    Pace,
    buffer_fills,
    buffer_line,
    checkpoint,
    forward_enters,
    phase,
    started,
    starts_up,
    step,
)
from tests.captures.writing.trials import REFUSED_401, started_trial, trial, trials

GENERATING = (2, 78)
TRAINING = (96, 11)


def generating_from(ready: float) -> Callable[[float], tuple[int, int]]:
    """Idle cards before a time, those of a generation stage after it."""
    return lambda now: GENERATING if now > ready else (0, 0)


def reaches_training(run: Run, steps: int, pace: Pace, of: int = 60) -> float:
    """Bring-up, start-up and so many good steps; gives the end."""
    pods_start(run)
    at = starts_up(run, driver_starts(run, steps=of))
    for number in range(1, steps + 1):
        at = step(run, at, number, pace, of)
    return at


def lone_watchdog_line() -> disk.Files:
    """One watchdog line inside the second policy update, no abort, and the run goes on for two more steps."""
    run = Run("lone_watchdog_line", "/mira/rl-plover-3", datetime(2026, 3, 14, 9, 0))
    at = reaches_training(run, 1, Pace())
    slow = Pace(train=720.0)
    deaths.watchdog_barks(run, at + slow.wait + slow.forward + 650, run.policy[2])
    for number, pace in ((2, slow), (3, Pace()), (4, Pace())):
        at = step(run, at, number, pace)
    started(run, at, "step", 210)
    started(run, at + 0.1, "wait_for_generation_buffer")
    buffer_line(run, at + 60, 21, at)
    serve(run, at, at + 90, lambda: Load(31, 1, 44.0, 1100.0, 2350.0))
    monitors(run, 710, at + 90)
    agents_talk(run, 900, at)
    trials(run, 8, 1000, at - 60)
    polls.watched(run, 60, at + 95, generating_from(720))
    return disk.synced(run) | {"job.toml": job_toml(run)}


def long_quiet_forward() -> disk.Files:
    """A first forward that says nothing for two hours, across midnight, while cards are hot and engines idle."""
    run = Run("long_quiet_forward", "/mira/rl-bittern-80b", datetime(2026, 3, 14, 22, 15), model="Bittern-80B-A3B")
    pods_start(run)
    at = starts_up(run, driver_starts(run, steps=30))
    started(run, at, "step", 210)
    at = buffer_fills(run, at + 0.1, 420.0)
    at = phase(run, at + 0.1, "convert_to_training_input", 3.0)
    started(run, at, "run_training")
    started(run, at + 0.1, "fwd_logprobs_values_reward")
    forward_enters(run, at + 0.2)
    began, end = at, at + 2 * 3600
    fall_silent(run, began + 240)
    monitors(run, 710, end, every=900)
    workers_wait(run, began + 300, end, every=1500)
    trials(run, 6, 950, began)
    polls.watched(run, 60, end, lambda now: (TRAINING[0], 0) if now > began else GENERATING, every=360)
    expect = 'phases = { fwd_logprobs_values_reward = "4h" }'
    return disk.synced(run) | {"job.toml": job_toml(run, steps=30, expect=expect)}


def one_slot_401_burst() -> disk.Files:
    """Every trial of one ten-minute slot is refused with a 401; before and after all is well."""
    run = Run("one_slot_401_burst", "/mira/rl-dunlin-12", datetime(2026, 3, 15, 6, 0))
    at = reaches_training(run, 6, Pace(wait=230.0))
    started(run, at, "step", 210)
    started(run, at + 0.1, "wait_for_generation_buffer")
    buffer_line(run, at + 55, 18, at)
    serve(run, at, at + 60, lambda: Load(33, 0, 47.0, 1240.0, 2410.0))
    slot = 1800.0
    for number in range(12):
        trial(run, number, 1140 + 50 * number, float(number % 2 == 0))
    for number in range(12, 40):
        ended = slot + 20 + 19 * (number - 12)
        trial(run, number, ended, None, REFUSED_401)
        run.log(
            ended,
            run.coordinators[number % 2],
            "examples.terminal_bench.terminal_bench_generator:_process_result:866",
            f"Trajectory TrajectoryID(instance_id='/data/tasks/fold-archive-{number:04d}', repetition_id=1) failed with"
            f" Harbor exception: {REFUSED_401.message} (type={REFUSED_401.kind}, exclude_from_baseline=True)",
            "WARNING",
        )
    for number in range(40, 56):
        trial(run, number, slot + 660 + 55 * (number - 40), float(number % 3 == 0))
    monitors(run, 710, at + 60, every=600)
    polls.watched(run, 60, at + 65, generating_from(720), every=180)
    return disk.archived(disk.synced(run) | {"job.toml": job_toml(run)}, "rl-dunlin-12_trace_jobs.tar.gz")


def bring_up() -> disk.Files:
    """Seven minutes old, three of four nodes joined, cards read: a peek."""
    run = Run("bring_up", "/mira/rl-siskin-1", datetime(2026, 3, 15, 12, 0))
    pods_start(run, joined=3)
    run.supervisor(270, 0, "[task-runtime] Ray nodes alive: 3/4")
    for again in range(1, 8):
        run.supervisor(270 + 20 * again, 0, "[task-runtime] Ray nodes alive: 3/4")
    polls.watched(run, 30, 420, lambda _: (0, 0), every=60)
    return disk.peeked(run) | {"job.toml": job_toml(run)}


def healthy_sawtooth() -> disk.Files:
    """The policy is the slow phase: the buffer is full when asked for, engines swing between full and empty."""
    run = Run("healthy_sawtooth", "/mira/rl-godwit-7", datetime(2026, 3, 16, 7, 30), colour=True)
    pods_start(run)
    at = starts_up(run, driver_starts(run))
    pace = Pace(wait=6.0, forward=90.0, train=240.0, sync=20.0)
    for number in range(1, 7):
        saws = at + 10
        at = step(run, at, number, pace)
        for tooth, running in enumerate((58, 41, 22, 9, 2)):
            load = Load(running, 0, 12.0 + running, 420.0, 62.0 * running)
            for engine in run.engines:
                report(run, saws + 66 * tooth + engine.rank / 7, engine, load)
        if number == 5:
            at = checkpoint(run, at, number)
    started(run, at, "step", 210)
    started(run, at + 0.1, "wait_for_generation_buffer")
    buffer_line(run, at + 2, 64, at)
    for engine in run.engines:
        report(run, at + 3 + engine.rank / 7, engine, Load(3, 0, 15.0, 60.0, 190.0))
    monitors(run, 710, at, every=600)
    agents_talk(run, 900, at, every=400)
    trials(run, 9, 1000, at - 100)
    polls.watched(run, 60, at + 6, lambda now: TRAINING if now > 760 else (0, 0), every=180)
    return disk.gzipped(disk.synced(run)) | {"job.toml": job_toml(run)}


def gpu_poll_failed() -> disk.Files:
    """A good run whose cards can't be read: the container of that name is not there."""
    run = Run("gpu_poll_failed", "/mira/rl-whimbrel-5", datetime(2026, 3, 16, 15, 0))
    at = reaches_training(run, 3, Pace())
    started(run, at, "step", 210)
    started(run, at + 0.1, "wait_for_generation_buffer")
    buffer_line(run, at + 60, 21, at)
    serve(run, at, at + 90, lambda: Load(31, 1, 44.0, 1100.0, 2350.0))
    monitors(run, 710, at + 90)
    trials(run, 6, 1000, at - 60)
    started_trial(run, 90, at - 30)
    polls.watched(run, 60, at + 95, lambda _: None)
    for when in range(90, int(at), 480):
        polls.gpu_refused(run, when)
    polls.gpu_refused(run, at + 80)
    return disk.synced(run) | {"job.toml": job_toml(run)}
