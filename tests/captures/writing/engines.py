"""Engine statistics and the traffic that reaches the engines."""

from collections.abc import Callable
from typing import NamedTuple

from tests.captures.writing.run import Actor, Run

INTERVAL = 60.0


class Load(NamedTuple):
    """What an engine reports: requests, KV use in percent, prompt and generation tokens per second."""

    running: int
    waiting: int = 0
    kv: float = 0.0
    prompt: float = 0.0
    generation: float = 0.0


IDLE = Load(0)


def busy(run: Run, running: int = 34) -> Load:
    """An engine in good work, about `running` requests."""
    swing = run.rng.random()
    now = max(1, round(running * (0.85 + 0.3 * swing)))
    return Load(now, run.rng.randrange(3), 20 + now, 900 + 700 * swing, 70.0 * now + 200 * swing)


def nearly_empty(run: Run) -> Load:
    """An engine that gets a request now and then and drains it at once."""
    now = 1 + run.rng.randrange(2)
    return Load(now, 0, 1.0 + run.rng.random(), 40 + 60 * run.rng.random(), 60.0 * now)


def report(run: Run, at: float, engine: Actor, load: Load) -> None:
    """One statistics line (vLLM 0.20.2)."""
    run.say(
        at,
        engine,
        f"INFO {run.clock.vllm(at)} [loggers.py:271] Engine 000: Avg prompt throughput: {load.prompt:.1f} tokens/s,"
        f" Avg generation throughput: {load.generation:.1f} tokens/s, Running: {load.running} reqs,"
        f" Waiting: {load.waiting} reqs, GPU KV cache usage: {load.kv:.1f}%, Prefix cache hit rate: 61.4%",
        "out",
    )


def serve(run: Run, start: float, end: float, load: Callable[[], Load]) -> None:
    """Every engine reports each minute of [start, end)."""
    at = start + 4
    while at < end:
        for engine in run.engines:
            report(run, at + engine.rank / 7, engine, load())
        run.say(
            at + 2,
            run.entry,
            f'INFO:     10.4.0.{run.rng.randrange(3, 5)}:{run.rng.randrange(30000, 60000)} - "POST /v1/chat/completions'
            ' HTTP/1.1" 200 OK',
            "out",
        )
        at += INTERVAL


def fall_silent(run: Run, at: float) -> None:
    """vLLM's idle silence: one all-zero line, then none at this level."""
    for engine in run.engines:
        report(run, at + engine.rank / 7, engine, IDLE)
