"""What the launcher and the logs said of the job (job.toml first, then config lines), and where each was said."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import msgspec

from extractors.facts import GENERATOR_TRIALS, ConfigFact, ConfigFacts
from extractors.record import Evidence, Observation
from extractors.supervisor import RoleAssigned
from extractors.vllm import EngineConfigured
from state.tracker import AttemptStarted, Tracker

_COORDINATOR = "RolloutCoordinator"
_NOT_SAID: tuple[Any, ...] = (None, (), {})


class JobFacts(msgspec.Struct, frozen=True):
    """The launcher's facts (CONTRACT §1, job.toml). None and empty mean not said. Durations are seconds.

    policy_mesh and engine_mesh hold entries as written: "pod" or "pod:0-3". expect maps `bring_up`, `first_trial`
    and `phases.<phase>` to an allowance. nodes and policy_nodes are only said by logs.
    """

    id: str | None = None
    cluster: str | None = None
    model: str | None = None
    architecture: str | None = None
    active_params_b: float | None = None
    geometry: str | None = None
    mode: str | None = None
    untested: str | None = None
    max_retries: int | None = None
    policy_mesh: tuple[str, ...] = ()
    engine_mesh: tuple[str, ...] = ()
    engine_count: int | None = None
    tensor_parallel_size: int | None = None
    max_num_seqs: int | None = None
    enforce_eager: bool | None = None
    n_concurrent_trials: int | None = None
    num_parallel_generation_workers: int | None = None
    num_coordinators: int | None = None
    max_staleness_steps: int | None = None
    max_steps: int | None = None
    expect: dict[str, float] = {}
    nodes: int | None = None
    policy_nodes: int | None = None


class JobDeclared(msgspec.Struct, frozen=True):
    """job.toml was read. Made by the shard, first of the stream. captured is the capture's path as given."""

    facts: JobFacts
    captured: str = ""


class FactsView(msgspec.Struct, frozen=True):
    """facts merges what is known; sources says where a fact (by field name) was read."""

    facts: JobFacts
    sources: dict[str, Evidence]
    captured: str = ""


class FactsTracker(Tracker):
    """job.toml's word stands; below it the first word of the attempt's logs (what is said later is often derived, as
    the trials of one coordinator are). One value a field, so the memory is bounded by JobFacts."""

    declared: JobFacts = JobFacts()
    captured: str = ""
    declared_at: dict[str, Evidence] = {}
    logged: dict[str, int | float | str | bool] = {}
    logged_at: dict[str, Evidence] = {}

    def on_attempt(self, seen: Observation) -> None:
        """Lets what logs said go: a new life may be configured anew."""
        self.logged, self.logged_at = {}, {}

    def on_declared(self, seen: Observation) -> None:
        """Takes job.toml."""
        self.declared, self.captured = seen.signal.facts, seen.signal.captured
        said = [field for field in JobFacts.__struct_fields__ if getattr(self.declared, field) not in _NOT_SAID]
        self.declared_at = dict.fromkeys(said, seen.evidence)

    def on_config(self, seen: Observation) -> None:
        """Takes a configuration line of a key that matters; a coordinator's trials are only its share."""
        if seen.signal.key == GENERATOR_TRIALS and seen.origin.actor == _COORDINATOR:
            return
        self._configure(seen.signal, seen.evidence)

    def on_configs(self, seen: Observation) -> None:
        """Takes a line that holds several."""
        for fact in seen.signal.facts:
            self._configure(fact, seen.evidence)

    def _configure(self, fact: ConfigFact, line: Evidence) -> None:
        named = _KEYS.get(fact.key)
        if named is None:
            return
        field, read = named
        value = read(fact.value)
        if value is not None:
            self._learn(field, value, line)

    def on_engine(self, seen: Observation) -> None:
        """Takes what an engine says of itself at its start."""
        said: EngineConfigured = seen.signal
        if said.tensor_parallel is not None:
            self._learn("tensor_parallel_size", said.tensor_parallel, seen.evidence)
        if said.enforce_eager is not None:
            self._learn("enforce_eager", said.enforce_eager, seen.evidence)

    def on_role(self, seen: Observation) -> None:
        """Takes the number of nodes from a node's role line (`rank=5/16`)."""
        said: RoleAssigned = seen.signal
        self._learn("nodes", said.ranks, seen.evidence)

    def _learn(self, field: str, value: int | float | str | bool, line: Evidence) -> None:
        if field not in self.logged:
            self.logged[field] = value
            self.logged_at[field] = line

    def view(self) -> FactsView:
        """The merged facts."""
        added = {field: value for field, value in self.logged.items() if field not in self.declared_at}
        lines = {field: line for field, line in self.logged_at.items() if field in added}
        facts = msgspec.structs.replace(self.declared, **added)
        return FactsView(facts, {**self.declared_at, **lines}, self.captured)

    FOLDS: ClassVar[Mapping[type, Callable[[Any, Observation], None]]] = {
        AttemptStarted: on_attempt,
        JobDeclared: on_declared,
        ConfigFact: on_config,
        ConfigFacts: on_configs,
        EngineConfigured: on_engine,
        RoleAssigned: on_role,
    }


def _number(text: str) -> int | None:
    text = text.strip().strip("'\"")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _count(text: str) -> int | None:
    """A whole number above zero, or None."""
    return _number(text) or None


def _flag(text: str) -> bool | None:
    return {"true": True, "false": False, "1": True, "0": False}.get(text.strip().strip("'\"").lower())


_KEYS: dict[str, tuple[str, Callable[[str], int | bool | None]]] = {
    "max_num_seqs": ("max_num_seqs", _count),
    "num_inference_engines": ("engine_count", _count),
    "NUM_INFERENCE_ENGINES": ("engine_count", _count),
    "inference_engine_tensor_parallel_size": ("tensor_parallel_size", _count),
    "TENSOR_PARALLEL_SIZE": ("tensor_parallel_size", _count),
    "enforce_eager": ("enforce_eager", _flag),
    "n_concurrent_trials": ("n_concurrent_trials", _count),
    GENERATOR_TRIALS: ("n_concurrent_trials", _count),
    "num_coordinators": ("num_coordinators", _count),
    "max_staleness_steps": ("max_staleness_steps", _number),
    "num_parallel_generation_workers": ("num_parallel_generation_workers", _count),
    "policy_num_nodes": ("policy_nodes", _count),
    "POLICY_NUM_NODES": ("policy_nodes", _count),
    "max_steps": ("max_steps", _count),
    "max_retries": ("max_retries", _number),
    "IRIS_NUM_TASKS": ("nodes", _count),
}
"""Configuration keys (leafs of Hydra paths, environment names) to the field they fill and how they are read."""
