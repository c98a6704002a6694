"""How long the parts of a step take: jittered, and now and then nearly as long as GATES allows."""

import random

from state.policy import STAGE_FLOORS, Stage
from tests.captures.writing.trainer import Pace

LONG = 0.06
"""How often a part is a long one."""
NEARLY = (0.5, 0.95)
"""How much of its allowance a long one takes."""


def pace(rng: random.Random, first: bool, long: float = LONG) -> Pace:
    """A step's parts in seconds. The first step is slower, as caches fill and kernels compile."""
    slower = rng.uniform(1.5, 3.0) if first else 1.0
    return Pace(
        wait=_part(rng, (4, 150), slower, Stage.GENERATION, long),
        forward=_part(rng, (5, 60), slower, Stage.TRAINING, long / 3),
        train=_part(rng, (20, 150), slower, Stage.TRAINING, long / 3),
        sync=_part(rng, (3, 40), slower, Stage.WEIGHT_SYNC, long),
    )


def part(rng: random.Random, usual: tuple[float, float], stage: Stage, long: float = LONG) -> float:
    """One phase of a stage, in seconds."""
    return _part(rng, usual, 1.0, stage, long)


def _part(rng: random.Random, usual: tuple[float, float], slower: float, stage: Stage, long: float) -> float:
    if rng.random() < long:
        return round(STAGE_FLOORS[stage] * rng.uniform(*NEARLY), 2)
    return round(rng.uniform(*usual) * slower, 2)
