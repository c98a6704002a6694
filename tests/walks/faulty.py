"""A run into which one fault is put: which one, by the seed; all that is around it as in a healthy run."""

from pathlib import Path

from tests.captures.writing import disk
from tests.walks import distortions, noise
from tests.walks.injected import ANYWHERE, BUFFERED, FAULTS, TIMED, Inject, Told, crashes_again
from tests.walks.trainers import FULLY_ASYNC, TRAINERS
from tests.walks.walk import Walk, begins

NOISE = 16
ERRORS = 4
_OURS = tuple(trainer for trainer in TRAINERS if trainer.ours and trainer.agentic)
_TIMED = tuple(trainer for trainer in TRAINERS if trainer.timed and trainer.agentic)
EVERY_PHASE = (
    "generate",
    "wait_for_generation_buffer",
    "policy_train",
    "train_critic_and_policy",
    "run_training",
    "fwd_logprobs_values_reward",
    "sync_weights",
    "step",
)


def fault_of(seed: int) -> Inject:
    """Which fault a seed puts in."""
    return FAULTS[seed % len(FAULTS)]


def lays(seed: int, folder: Path) -> tuple[Walk, Told]:
    """Writes the capture of a seed's faulty run, and gives what must be said of it."""
    inject = fault_of(seed)
    trainers = _OURS if inject in ANYWHERE else _TIMED if inject in TIMED else (FULLY_ASYNC,)
    trainer = trainers[seed // len(FAULTS) % len(trainers)]
    walk = begins(
        seed,
        (trainer,),
        places=("iris",)
        if inject in TIMED or inject in BUFFERED or inject is crashes_again
        else ("iris", "slurm", "kubernetes"),
    )
    walk.facts.setdefault(
        "mesh", {"policy": [walk.run.pod(0), walk.run.pod(1)], "engine": [walk.run.pod(2), walk.run.pod(3)]}
    )
    if walk.rng.random() < 0.5:
        walk.facts["expect"] = {"phases": dict.fromkeys(EVERY_PHASE, f"{walk.rng.randrange(15, 45)}m")}
    walk.long = 0.0
    walk.comes_up()
    walk.takes(walk.rng.randrange(4, 6))
    walk.keeps_its_words()
    first, end = walk.steps[0][0], walk.at
    walk.stumbles(ERRORS, spare=3)
    walk.rolls_out(first, end, 3)
    walk.hears(noise.of_a_living_run(), NOISE, walk.since + 60, end)
    told = inject(walk)
    if walk.rng.random() < 0.3:
        distortions.delays(walk.run, walk.rng, 15.0)
    files = walk.place.files(walk.run, walk.facts)
    if walk.rng.random() < 0.2:
        files = dict(disk.gzipped(files))
    disk.write(folder, files)
    return walk, told
