"""The fully asynchronous trainer: start-up phases, steps, their metrics."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.captures.writing.engines import Load, busy, serve
from tests.captures.writing.run import Run

LOOP = "skyrl_train.fully_async_trainer:_train_loop"
GROUPS = 64


@dataclass(frozen=True, slots=True)
class Pace:
    """How long the parts of a step take, in seconds."""

    wait: float = 160.0
    forward: float = 40.0
    train: float = 130.0
    sync: float = 20.0


def started(run: Run, at: float, phase: str, line: int = 658) -> None:
    """The timer's first line."""
    run.log(at, run.entry, f"{LOOP}:{line}", f"Started: '{phase}'")


def finished(run: Run, at: float, phase: str, took: float, line: int = 658) -> None:
    """The timer's last line (also printed while an exception passes)."""
    run.log(at, run.entry, f"{LOOP}:{line}", f"Finished: '{phase}', time cost: {took:.2f}s")


def phase(run: Run, at: float, name: str, took: float) -> float:
    """A whole phase; gives its end."""
    started(run, at, name)
    finished(run, at + took, name, took)
    return at + took


def starts_up(run: Run, at: float, resumed: int = 0) -> float:
    """Checkpoint look-up, weight-sync group and first sync; gives the time of the first step."""
    started(run, at, "load_checkpoints", 161)
    words = (
        "No checkpoint found, starting training from scratch"
        if not resumed
        else f"Resumed training from global_step {resumed}"
    )
    run.log(at + 0.5, run.entry, f"{LOOP}:807", words)
    finished(run, at + 1.2, "load_checkpoints", 1.2, 161)
    at = weight_sync_group(run, at + 1.3)
    finished(run, at + 5, "init_weight_sync_state", 5.5, 176)
    run.log(at + 5.1, run.entry, f"{LOOP}:501", "Initialized weight sync state for policy model and inference engines.")
    return phase(run, at + 5.2, "sync_weights_to_inference_engines", 18.0) + 1


def weight_sync_group(run: Run, at: float) -> float:
    """`init_weight_sync_state` opens and both sides say where they meet."""
    started(run, at, "init_weight_sync_state", 176)
    run.say(at + 0.3, run.policy[0], f"[weight-sync] Using master_addr={run.ip(0)}, master_port=41877", "out")
    world = len(run.engines) + 1
    for engine in run.engines:
        run.say(
            at + 0.4 + engine.rank / 50,
            engine,
            f"torch.distributed.get_rank(): 0, rank_offset: {engine.rank + 1}, rank: {engine.rank + 1},"
            f" world_size: {world}, group_name: skyrl",
            "out",
        )
    return at + 0.5


def buffer_line(run: Run, at: float, held: int, since: float) -> None:
    """The buffer's bar as a log line."""
    share = round(100 * held / GROUPS)
    run.log(
        at,
        run.entry,
        "skyrl_train.utils.progress:_emit:118",
        f"Generation Buffer Progress: {held}/{GROUPS} ({share}%) [{at - since:.0f}s] | buffer qsize={held % 4}",
    )


def buffer_fills(run: Run, at: float, wait: float, load: Callable[[], Load] | None = None) -> float:
    """`wait_for_generation_buffer` from 0 to full, engines at work."""
    started(run, at, "wait_for_generation_buffer")
    ticks = max(1, min(6, int(wait // 20)))
    for tick in range(1, ticks + 1):
        buffer_line(run, at + wait * tick / ticks - 0.1, GROUPS * tick // ticks, at)
    serve(run, at, at + wait, load or (lambda: busy(run)))
    finished(run, at + wait, "wait_for_generation_buffer", wait)
    return at + wait


def forward_enters(run: Run, at: float) -> None:
    """Every policy rank says that it is in the forward."""
    actors = [f"(dp={actor.rank},sp=0,tp=0,pp=0)" for actor in run.policy]
    run.log(
        at,
        run.entry,
        "skyrl_train.distributed.dispatch:dispatch:201",
        f"MESH_DISPATCH method=forward issued forward.remote() to {len(actors)} actors: {actors}",
    )
    for actor in run.policy:
        run.log(
            at + 0.4 + actor.rank / 100,
            actor,
            "skyrl_train.workers.worker:forward:812",
            f"WORKER_FORWARD_ENTER rank={actor.rank}",
        )


def tqdm(title: str, done: int, of: int, elapsed: float, postfix: str = "") -> str:
    """One frame of a terminal progress bar."""
    per = elapsed / max(done, 1)
    left = per * (of - done)
    bar = "█" * (10 * done // of)
    times = f"{_span(elapsed)}<{_span(left)}, {per:5.2f}s/it{postfix}"
    return f"\r{title}: {100 * done // of:>3}%|{bar:<10}| {done}/{of} [{times}]"


def _span(seconds: float) -> str:
    whole = int(seconds)
    minutes = f"{whole // 60 % 60:02d}:{whole % 60:02d}"
    return f"{whole // 3600}:{minutes}" if whole >= 3600 else minutes


def policy_bar(run: Run, at: float, done: int, since: float) -> None:
    """Rank 0's bar, frames parted by carriage returns."""
    title, postfix = "Policy Train epoch [1/1]", ", pg=-0.0011, glen=806, policy_lr=1e-6, ent=1.14, grad_norm=0.021"
    frames = [tqdm(title, n, 4, (at - since) * n / max(done, 1), postfix) for n in range(done + 1)]
    run.say(at, run.policy[0], "".join(frames))


def trains(run: Run, at: float, pace: Pace) -> float:
    """Conversion, forward, advantages and the policy update; gives the end of `run_training`."""
    at = phase(run, at + 0.1, "convert_to_training_input", 2.0)
    began = at
    started(run, at, "run_training")
    started(run, at + 0.1, "fwd_logprobs_values_reward")
    forward_enters(run, at + 0.2)
    at += pace.forward
    finished(run, at, "fwd_logprobs_values_reward", pace.forward)
    at = phase(run, at + 0.1, "compute_advantages_and_returns", 1.0)
    started(run, at, "train_critic_and_policy")
    started(run, at + 0.1, "policy_train")
    policy_bar(run, at + pace.train / 2, 2, at)
    policy_bar(run, at + pace.train - 1, 4, at)
    at += pace.train
    finished(run, at, "policy_train", pace.train)
    finished(run, at + 0.1, "train_critic_and_policy", pace.train + 0.2)
    finished(run, at + 0.2, "run_training", at - began)
    return at + 0.3


def step(
    run: Run,
    at: float,
    number: int,
    pace: Pace,
    of: int = 60,
    load: Callable[[], Load] | None = None,
    reward: float = 0.31,
    changed: Mapping[str, float] | None = None,
) -> float:
    """One whole step; gives its end. load is what engines report while the buffer fills, changed are metrics."""
    began = at
    started(run, at, "step", 210)
    at = buffer_fills(run, at + 0.1, pace.wait, load)
    run.log(
        at + 0.05,
        run.entry,
        f"{LOOP}:629",
        f"reward/avg_pass_at_8: {reward + 0.2:.3f}, reward/avg_raw_reward: {reward:.3f} (effective_batch=512 samples)",
    )
    at = trains(run, at, pace)
    at = phase(run, at, "sync_weights", pace.sync)
    finished(run, at + 0.1, "step", at - began, 210)
    mirror(run, at + 0.2, number, pace, at - began, reward, changed)
    run.log(
        at + 0.3,
        run.entry,
        f"{LOOP}:625",
        f"Step {number}: effective_batch=512 samples (64/64 groups), discard_rate=0.0%",
    )
    run.say(at + 0.4, run.entry, tqdm("Training Step Progress", number, of, at - 730))
    return at + 1


def mirror(
    run: Run,
    at: float,
    number: int,
    pace: Pace,
    took: float,
    reward: float,
    changed: Mapping[str, float] | None = None,
) -> None:
    """The per-step metrics line. changed replaces or adds metrics."""
    noise = run.rng.random()
    metrics = {
        "async/discard_rate": 0.0,
        "async/staleness_max": 2,
        "async/staleness_mean": round(0.4 + noise / 5, 4),
        "generate/avg_num_tokens": round(6100 + 900 * noise, 1),
        "generate/errors/AgentTimeoutError": run.rng.randrange(12),
        "generate/errors/DaytonaError": 0,
        "loss/avg_final_rewards": round(reward, 4),
        "policy/final_loss": round(0.002 * noise, 6),
        "policy/log_ratio_abs_mean": round(0.024 + noise / 300, 5),
        "policy/policy_entropy": round(1.12 + noise / 40, 4),
        "policy/raw_grad_norm": round(0.019 + noise / 200, 5),
        "policy/rollout_train_prob_diff_mean": 4117204.5,
        "reward/avg_pass_at_8": round(reward + 0.2, 4),
        "reward/avg_raw_reward": round(reward, 4),
        "timing/fwd_logprobs_values_reward": pace.forward,
        "timing/policy_train": pace.train,
        "timing/run_training": pace.forward + pace.train + 1.3,
        "timing/step": round(took, 2),
        "timing/sync_weights": pace.sync,
        "timing/wait_for_generation_buffer": pace.wait,
        "trainer/global_step": number,
        "vllm/latency_queued_mean": 0.04,
        "vllm/num_engines": len(run.engines),
    } | dict(changed or {})
    run.log(
        at,
        run.entry,
        "skyrl_train.trainer:_log_metrics_stdout:3180",
        f"WANDB_MIRROR kind=train step={number} metrics={json.dumps(metrics)}",
    )


def checkpoint(run: Run, at: float, number: int) -> float:
    """A saved checkpoint; gives its end."""
    started(run, at, "save_checkpoints", 226)
    run.log(
        at + 24,
        run.entry,
        "skyrl_train.trainer:save_checkpoints:911",
        f"Successfully saved checkpoint for global_step_{number} to: /ckpt/global_step_{number}",
    )
    finished(run, at + 25, "save_checkpoints", 25.0, 226)
    return at + 26
