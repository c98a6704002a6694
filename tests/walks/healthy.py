"""A healthy run: it comes up, takes its steps, is disturbed in every way that does not matter, dies and recovers."""

from pathlib import Path

from tests.captures.writing import deaths, disk
from tests.walks import distortions, noise
from tests.walks.walk import Walk, begins

NOISE = 24
"""Benign lines and look-alikes of one seed, of the whole catalogue in turn."""
ERRORS = 6
"""Errors of one seed that its run moves on from."""


def lays(seed: int, folder: Path) -> Walk:
    """Writes the capture of a seed's healthy run."""
    walk = begins(seed)
    walk.comes_up()
    walk.takes(walk.rng.randrange(2, 7))
    dying = walk.rng.random() < 0.25
    _beside(walk, spare=3 if dying else 2)
    if dying:
        _dies_and_recovers(walk)
    if walk.rng.random() < 0.3:
        distortions.delays(walk.run, walk.rng)
    if walk.rng.random() < 0.2:
        distortions.skews(walk.run, walk.rng)
    files = walk.place.files(walk.run, walk.facts)
    disk.write(folder, distortions.laid_out(files, walk.rng, walk.trainer.ours))
    return walk


def _beside(walk: Walk, spare: int) -> None:
    """All that goes on beside the work of the newest attempt."""
    first, end = walk.steps[0][0], walk.at
    walk.watched(walk.since + walk.rng.uniform(10, 60), end)
    walk.hears((*noise.benign(), *noise.lookalikes()), NOISE, walk.since + 60, end)
    if walk.trainer.ours:
        walk.stumbles(ERRORS, spare)
    walk.rolls_out(first, end, walk.rng.randrange(1, 8))
    if walk.rng.random() < 0.5:
        walk.dumps(first, end)
    if walk.rng.random() < 0.3:
        walk.chats(first, end)


def _dies_and_recovers(walk: Walk) -> None:
    """One death or two of different kinds at a random time, each with a new attempt that goes past it."""
    for death in walk.rng.sample(DEATHS, walk.rng.choice((1, 1, 2))):
        walk.cut(walk.rng.uniform(walk.steps[-1 if len(walk.steps) > 3 else 0][0] + 5, walk.at))
        over = death(walk, walk.at)
        gap = walk.rng.uniform(30, 400)
        walk.place.state(walk.run, over + 20, "pending")
        walk.at, walk.done = over + gap, max(0, walk.done - 1)
        walk.run.cast(walk.run.attempt + 1)
        walk.comes_up()
        walk.takes(walk.rng.randrange(2, 4))
        _beside(walk, spare=3)


def _code_breaks(walk: Walk, at: float) -> float:
    frames = (("skyrl_train/trainer.py", 203, "train"), ("skyrl_train/routing.py", 88, "replay"))
    deaths.train_loop_fails(walk.run, at + 1, walk.done, "ValueError: routed expert map covers 512 of 576", frames)
    walk.place.failures += 1
    return deaths.shut_down(walk.run, at + 5, 1)


def _rank_aborts(walk: Walk, at: float) -> float:
    deaths.watchdog_aborts(walk.run, at + 1, walk.rng.choice(walk.run.policy))
    walk.place.failures += 1
    return deaths.shut_down(walk.run, at + 70, 1)


def _engine_dies(walk: Walk, at: float) -> float:
    deaths.meta_tensors(walk.run, at + 1, walk.rng.choice(walk.run.engines))
    walk.place.failures += 1
    return deaths.shut_down(walk.run, at + 30, 1)


def _is_taken(walk: Walk, at: float) -> float:
    walk.place.preemptions += 1
    return at + 20


def _vanishes(walk: Walk, at: float) -> float:
    walk.place.failures += 1
    return at + 20


DEATHS = (_code_breaks, _rank_aborts, _engine_dies, _is_taken, _vanishes)
