"""The trainers of the walk, each with its own way to tell of a step."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from state.policy import STAGE_FLOORS, Stage
from tests.captures.writing import trainer
from tests.captures.writing.engines import Load, busy, report, serve
from tests.captures.writing.run import Run
from tests.captures.writing.trainer import LOOP, Pace, finished, phase, started, tqdm
from tests.walks.pace import part

UNTOLD_MOST = 0.9 * STAGE_FLOORS[Stage.TRAINING]
"""A step of which no line tells may take what its longest part may."""
Step = Callable[[Run, random.Random, float, int, int, Pace], float]
"""Writes a step that begins at a time, with its number and the plan's total; gives its end."""


@dataclass(frozen=True, slots=True)
class Trainer:
    """timed: its phases are told by timers. agentic: it has trials. mode is job.toml's. bar is the title of the bar
    that it draws before its first step; silent, that it shows nothing then."""

    name: str
    step: Step
    mode: str = "agentic"
    timed: bool = False
    ours: bool = True
    bar: str = ""
    silent: bool = False

    @property
    def agentic(self) -> bool:
        """Whether it rolls out in sandboxes."""
        return self.mode == "agentic"


def _load(run: Run, rng: random.Random) -> Callable[[], Load]:
    running = rng.choice((12, 25, 34, 50))
    return lambda: busy(run, running)


def _fully_async(run: Run, rng: random.Random, at: float, number: int, of: int, pace: Pace) -> float:
    return trainer.step(run, at, number, pace, of, _load(run, rng), rng.uniform(0.05, 0.7))


def _sync(run: Run, rng: random.Random, at: float, number: int, of: int, pace: Pace) -> float:
    began = at
    started(run, at, "step", 210)
    started(run, at + 0.1, "generate")
    serve(run, at + 0.2, at + pace.wait, _load(run, rng))
    at += pace.wait
    finished(run, at, "generate", pace.wait)
    at = phase(run, at + 0.1, "postprocess_generator_output", 1.5)
    at = trainer.trains(run, at, pace)
    return _banked(run, at, began, number, of, pace, "Training Batches Processed")


def _one_step_off(run: Run, rng: random.Random, at: float, number: int, of: int, pace: Pace) -> float:
    """A producer task opens `generate` beside the trainer's own stack, one step ahead."""
    began = at
    started(run, at, "step", 210)
    started(run, at + 0.1, "wait_for_generation_buffer")
    if number == 1:
        started(run, at + 0.2, "generate")
    serve(run, at + 0.3, at + pace.wait, _load(run, rng))
    at += pace.wait
    finished(run, at, "generate", pace.wait)
    finished(run, at + 0.1, "wait_for_generation_buffer", pace.wait + 0.1)
    if number < of:
        started(run, at + 0.2, "generate")
    at = trainer.trains(run, at + 0.3, pace)
    return _banked(run, at, began, number, of, pace, "Training Step Progress")


def _banked(run: Run, at: float, began: float, number: int, of: int, pace: Pace, title: str) -> float:
    at = phase(run, at, "sync_weights", pace.sync)
    finished(run, at + 0.1, "step", at - began, 210)
    trainer.mirror(run, at + 0.2, number, pace, at - began, 0.2 + run.rng.random() / 2)
    run.say(at + 0.4, run.entry, tqdm(title, number, of, at - began))
    return at + 1


def _unified(run: Run, rng: random.Random, at: float, number: int, of: int, pace: Pace) -> float:
    """No timers and no buffer bar: a line at each turn of a step."""
    site, mode = "skyrl_train.trainer:_train_loop:1290", rng.choice((" mode=fully_async", ""))
    began = at
    run.log(at, run.entry, site, f"Rollout batch started: step={number}{mode} required_groups=32")
    serve(run, at + 0.2, at + pace.wait, _load(run, rng))
    at += pace.wait
    run.log(
        at,
        run.entry,
        site,
        f"Rollout batch completed: step={number}{mode} groups=32 trajectories=256 response_tokens=884120"
        f" staleness_mean=0.250 staleness_max=2 duration_seconds={pace.wait:.3f}",
    )
    trainer.forward_enters(run, at + 0.5)
    at += pace.forward + pace.train
    run.log(
        at,
        run.entry,
        site,
        f"Optimizer step completed: step={number} epoch=0 sequences=256 duration_seconds={pace.train:.3f}",
    )
    at += pace.sync
    run.log(
        at,
        run.entry,
        site,
        f"Policy weights updated: step={number} reason=training_step duration_seconds={pace.sync:.3f}",
    )
    trainer.mirror(run, at + 0.2, number, pace, at - began, 0.2 + run.rng.random() / 2)
    run.log(
        at + 0.4,
        run.entry,
        site,
        f"Training step completed: step={number} total_steps={of} epoch=0 duration_seconds={at - began:.3f}",
    )
    return at + 1


def _quietly(run: Run, rng: random.Random, at: float, pace: Pace) -> float:
    """The engines at work, then training; no line of the trainer."""
    load = _load(run, rng)
    for turn in range(max(1, int(pace.wait // 60))):
        for engine in run.engines:
            report(run, at + 60 * turn + engine.rank / 7, engine, load())
    return at + min(pace.wait + pace.forward + pace.train + pace.sync, UNTOLD_MOST)


def _verl(run: Run, rng: random.Random, at: float, number: int, of: int, pace: Pace) -> float:
    began, at = at, _quietly(run, rng, at, pace)
    measures = (
        f"step:{number} - global_seqlen/min:{rng.randrange(9000, 30000)} - actor/entropy:{rng.uniform(0.5, 1.2):.4f}"
        f" - actor/pg_loss:{rng.uniform(-0.1, 0.1):.5f} - actor/grad_norm:{rng.uniform(0.1, 0.6):.4f}"
        f" - critic/score/mean:{rng.random():.3f} - critic/rewards/mean:{rng.random():.3f}"
        f" - timing_s/gen:{pace.wait:.2f} - timing_s/step:{at - began:.2f}"
    )
    run.say(at, run.entry, measures, "out")
    run.say(at + 0.2, run.entry, tqdm("Training Progress", number, of, at - began))
    return at + 1


def _openrlhf(run: Run, rng: random.Random, at: float, number: int, of: int, pace: Pace) -> float:
    began, at = at, _quietly(run, rng, at, pace)
    run.say(at - pace.sync - 0.5, run.policy[0], tqdm("Train epoch [1/1]", 16, 16, pace.train, ", pg=-0.02, ret=0.4"))
    run.say(at, run.entry, f"✨ Global step {number}: {{'policy_loss': {rng.uniform(-0.1, 0.1):.4f}, 'reward': 0.4}}")
    run.say(at + 0.2, run.entry, tqdm("Episode [1/1]", number, of, at - began))
    return at + 1


def _trl(run: Run, rng: random.Random, at: float, number: int, of: int, pace: Pace) -> float:
    began, at = at, _quietly(run, rng, at, pace)
    epoch, loss = round(number / of, 4), rng.uniform(0.0, 0.6)
    run.say(
        at,
        run.entry,
        f"{{'loss': {loss:.4f}, 'grad_norm': {rng.random():.4f}, 'learning_rate': 1e-06, 'reward': 0.25, 'kl': 0.001,"
        f" 'epoch': {epoch}}}",
        "out",
    )
    run.say(at + 0.2, run.entry, tqdm("", number, of, at - began).replace("\r: ", "\r"))
    return at + 1


FULLY_ASYNC = Trainer("fully async", _fully_async, timed=True)
TRAINERS = (
    FULLY_ASYNC,
    Trainer("one step off", _one_step_off, timed=True),
    Trainer("sync", _sync, timed=True),
    Trainer("standard", _sync, mode="standard", timed=True),
    Trainer("unified", _unified),
    Trainer("verl", _verl, mode="standard", ours=False, bar="Training Progress"),
    Trainer("OpenRLHF", _openrlhf, mode="standard", ours=False, bar="Episode [1/1]"),
    Trainer("TRL", _trl, mode="standard", ours=False, silent=True),
)


def evaluates(run: Run, rng: random.Random, at: float) -> float:
    """An evaluation, with its bar; gives its end."""
    took = part(rng, (40, 400), Stage.EVALUATION, 0.1)
    started(run, at, "eval", 255)
    for done in range(1, 5):
        bar = tqdm("Evaluation Progress", done, 4, took * done / 4)
        run.say(at + took * done / 4 - 0.2, run.entry, bar)
    serve(run, at, at + min(took, 300), _load(run, rng))
    finished(run, at + took, "eval", took, 255)
    return at + took + 1


def saves(run: Run, rng: random.Random, at: float, number: int) -> float:
    """A checkpoint; gives its end."""
    took = part(rng, (8, 90), Stage.CHECKPOINT)
    started(run, at, "save_checkpoints", 226)
    words = f"Successfully saved checkpoint for global_step_{number} to: /ckpt/global_step_{number}"
    run.log(at + took - 0.2, run.entry, f"{LOOP}:911", words)
    finished(run, at + took, "save_checkpoints", took, 226)
    return at + took + 1
