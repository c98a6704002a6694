"""The catalogue: every pattern of every speaker, from one explicit list of modules, indexed by hint and by name."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module

from extractors.pattern import Pattern

SPEAKERS = (
    "trainer",
    "trainer_steps",
    "trainer_bars",
    "trainer_lifecycle",
    "trainer_faults",
    "trainer_markers",
    "trainer_checkpoints",
    "trainer_notes",
    "metrics",
    "verl",
    "openrlhf",
    "trl",
    "tinker",
    "deepspeed",
    "lightning",
    "supervisor",
    "iris_client",
    "launchers",
    "relaunches",
    "launch_faults",
    "facts",
    "harbor",
    "harbor_setup",
    "harbor_job",
    "vllm",
    "nccl",
    "torch_dist",
    "flight_recorder",
    "ray",
    "python",
    "detached",
    "host",
)


@dataclass(frozen=True)
class Catalogue:
    """All patterns, in the order of their speakers."""

    patterns: tuple[Pattern, ...]

    @cached_property
    def by_name(self) -> dict[str, Pattern]:
        """Patterns by name."""
        return {pattern.name: pattern for pattern in self.patterns}

    @cached_property
    def hints(self) -> tuple[str, ...]:
        """The distinct hints; a scanner's hint number is an index into this."""
        return tuple(dict.fromkeys(hint for pattern in self.patterns for hint in pattern.hints))

    @cached_property
    def by_hint(self) -> tuple[tuple[Pattern, ...], ...]:
        """The patterns that each hint speaks for, by hint number."""
        return tuple(tuple(p for p in self.patterns if hint in p.hints) for hint in self.hints)


def load(speakers: Iterable[str] = SPEAKERS) -> Catalogue:
    """The catalogue of these speakers. Raises ValueError where two patterns share a name."""
    patterns: list[Pattern] = []
    for speaker in speakers:
        patterns.extend(import_module(f"extractors.{speaker}").PATTERNS)
    names = [pattern.name for pattern in patterns]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"patterns share a name: {', '.join(sorted(twice))}")
    return Catalogue(tuple(patterns))


class _InUse:
    """The shipped catalogue, loaded when first asked for, and a user's own patterns behind it. written tells these
    apart: what is kept of one catalogue's reading is nothing for another."""

    def __init__(self) -> None:
        self.written = ""

    @cached_property
    def whole(self) -> Catalogue:
        """All of it."""
        return load()

    @property
    def by_name(self) -> dict[str, Pattern]:
        """Its patterns by name."""
        return self.whole.by_name

    def use(self, whole: Catalogue, written: str) -> None:
        """Another one from here on. Before anything is read."""
        self.whole, self.written = whole, written


CATALOGUE = _InUse()
