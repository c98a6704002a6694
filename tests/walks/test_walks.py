"""500 healthy runs are never killed, and a fault in each of 500 runs is found: in blocks, for the workers of pytest.

A failing seed leaves its capture in the folder that the message names.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.walks import faulty, healthy, noise
from tests.walks.injected import FAULTS
from tests.walks.judged import faulty_fault, healthy_fault
from tests.walks.trainers import TRAINERS

SEEDS = 500
BLOCK = 20
BLOCKS = [range(first, first + BLOCK) for first in range(0, SEEDS, BLOCK)]


def _walked(block: range, fault: Callable[[int, Path], str], home: Path) -> str:
    """What is wrong with the seeds of a block; the captures of the others are not kept."""
    told = []
    for seed in block:
        folder = home / str(seed)
        try:
            why = fault(seed, folder)
        except AssertionError as error:
            why = f"seed {seed}: {error}\n  its capture: {folder}"
        if why:
            told.append(why)
        else:
            shutil.rmtree(folder)
    return "\n".join(told)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"{block.start}-{block.stop - 1}")
def test_a_healthy_run_is_never_killed(block: range, tmp_path: Path) -> None:
    if wrong := _walked(block, healthy_fault, tmp_path):
        pytest.fail(wrong, pytrace=False)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"{block.start}-{block.stop - 1}")
def test_a_fault_at_a_random_time_is_found_and_not_before_its_evidence(block: range, tmp_path: Path) -> None:
    if wrong := _walked(block, faulty_fault, tmp_path):
        pytest.fail(wrong, pytrace=False)


def test_the_seeds_throw_in_every_benign_line_and_every_look_alike_and_error() -> None:
    for pool, count in (
        ((*noise.benign(), *noise.lookalikes()), healthy.NOISE),
        (noise.errors(), healthy.ERRORS),
        (noise.of_a_living_run(), faulty.NOISE),
    ):
        thrown = {said for seed in range(SEEDS) for said in noise.share(pool, seed, count)}
        assert thrown == set(pool)


def test_every_trainer_and_every_fault_has_its_seeds() -> None:
    assert len({seed % len(TRAINERS) for seed in range(SEEDS)}) == len(TRAINERS)
    assert {faulty.fault_of(seed) for seed in range(SEEDS)} == set(FAULTS)


def test_a_seed_alone_makes_the_same_run_twice(tmp_path: Path) -> None:
    for lays in (healthy.lays, faulty.lays):
        for again in ("once", "twice"):
            lays(7, tmp_path / again)
        files = [
            {p.relative_to(tmp_path / again): p.read_bytes() for p in (tmp_path / again).rglob("*") if p.is_file()}
            for again in ("once", "twice")
        ]
        assert files[0] == files[1]
