"""What the GPUs do, policy ranks apart from engine ranks, and which polls gave no answer. Serves gate B.

Who is who, in this order: `[mesh]` of job.toml; the process names of a compute-apps poll; the process titles or actor
classes on the target's host. Never an average over both. Bounds: two polls, one failure and one set of roles for each
of 512 targets.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Any, ClassVar

import msgspec

from extractors.facts import ConfigFact, ConfigFacts
from extractors.polls import GpuProcessesPolled, GpuReading, GpusPolled, PodsPolled, PollFailed, ProcessesPolled
from extractors.record import Evidence, Observation
from extractors.signal import BringUp
from extractors.trainer import ForwardEntered, PolicyProgress
from extractors.vllm import EngineConfigured, EngineLoad
from state.tracker import AttemptStarted, Tracker
from state.trackers.facts import JobDeclared
from state.trackers.processes import ProcessRole, process_role
from state.trackers.unanswered import PollFailedSeen

_TARGETS = 512
_GENERATION_SUFFIX = re.compile(r"-(?=[0-9a-z]*[0-9])(?=[0-9a-z]*[a-z])[0-9a-z]{4,10}-\d+$|-[0-9]{5,10}-\d+$")
"""Iris ends a pod's name with a hash and the generation: `iris-⟨user⟩-⟨slug⟩-⟨rank⟩-⟨hash⟩-⟨gen⟩`."""
_RANK_FOLDER = re.compile(r"^rank\d+-")
_FOLDER_RANK = re.compile(r"/(rank\d+)-[^/]+/")
"""The folder of a node's files, `rank3-⟨node⟩`: the rank is that of the pod's name."""


class Separation(StrEnum):
    """Whether policy ranks and engine ranks can be told apart."""

    KNOWN = "known"
    UNKNOWN = "unknown"
    COLOCATED = "colocated"


class TargetPoll(msgspec.Struct, frozen=True):
    """One poll of the GPUs of one target (of those that belong to the role, where a mesh divides a target)."""

    target: str
    at_us: int
    gpus: tuple[GpuReading, ...]
    evidence: Evidence


class GpusView(msgspec.Struct, frozen=True):
    """policy, engine and unknown hold the newest poll of each target; policy_before the polls of policy targets
    before those. separated_by says in words how the roles are known. failures are the newest failed polls of targets
    that have not answered since; unasked are targets of the mesh that no poll names."""

    policy: tuple[TargetPoll, ...] = ()
    engine: tuple[TargetPoll, ...] = ()
    unknown: tuple[TargetPoll, ...] = ()
    policy_before: tuple[TargetPoll, ...] = ()
    separation: Separation = Separation.UNKNOWN
    separated_by: str = ""
    newest_us: int | None = None
    failures: tuple[PollFailedSeen, ...] = ()
    unasked: tuple[str, ...] = ()


class GpusTracker(Tracker):
    """Polls of the attempt, and what is known of who runs where."""

    policy_mesh: list[str] = []
    engine_mesh: list[str] = []
    colocated: bool = False
    polls: dict[str, list[TargetPoll]] = {}
    failures: dict[str, PollFailedSeen] = {}
    holders: dict[str, list[ProcessRole]] = {}
    titles: dict[str, list[ProcessRole]] = {}
    actors: dict[str, list[ProcessRole]] = {}
    nodes: dict[str, str] = {}

    def on_attempt(self, seen: Observation) -> None:
        """Forgets the polls and processes of the life before."""
        self.polls, self.failures, self.holders, self.titles, self.actors, self.nodes = {}, {}, {}, {}, {}, {}

    def on_declared(self, seen: Observation) -> None:
        """Takes the mesh from job.toml."""
        declared: JobDeclared = seen.signal
        self.policy_mesh = list(declared.facts.policy_mesh)
        self.engine_mesh = list(declared.facts.engine_mesh)

    def on_config(self, seen: Observation) -> None:
        """Notes that policy and engines share their GPUs (`trainer.placement.colocate_all`)."""
        said: ConfigFact | ConfigFacts = seen.signal
        for fact in (said,) if isinstance(said, ConfigFact) else said.facts:
            if fact.key == "colocate_all":
                self.colocated = fact.value.strip().lower() == "true"

    def on_gpus(self, seen: Observation) -> None:
        """Keeps the newest two polls of a target."""
        polled: GpusPolled = seen.signal
        poll = TargetPoll(polled.target, seen.at_us, polled.gpus, seen.evidence)
        self.polls[polled.target] = [*self.polls.get(polled.target, []), poll][-2:]
        self.failures.pop(polled.target, None)
        _bound(self.polls)

    def on_failure(self, seen: Observation) -> None:
        """Keeps what a GPU poll got instead of an answer."""
        failure: PollFailed = seen.signal
        if failure.probe == "gpu":
            self.failures[failure.target] = PollFailedSeen(failure, seen.at_us, seen.evidence)
            _bound(self.failures)

    def on_holders(self, seen: Observation) -> None:
        """Learns the roles on a target from the names of the processes that hold its GPUs."""
        polled: GpuProcessesPolled = seen.signal
        roles = _gpu_roles(process.name for process in polled.processes)
        if roles:
            self.holders[polled.target] = roles
            _bound(self.holders)

    def on_processes(self, seen: Observation) -> None:
        """Learns the roles on a target from process titles."""
        polled: ProcessesPolled = seen.signal
        roles = _gpu_roles(process.command for process in polled.processes)
        if roles:
            self.titles[polled.target] = roles
            _bound(self.titles)

    def on_pods(self, seen: Observation) -> None:
        """Learns which node a pod runs on."""
        polled: PodsPolled = seen.signal
        self.nodes = {pod.name: pod.node for pod in polled.pods[:_TARGETS] if pod.node}

    def on_actor(self, seen: Observation) -> None:
        """Learns which actor class a host runs, from any line of it that says both."""
        role, places = _told_by(seen.origin.host, seen.origin.actor, seen.evidence.source)
        for place in places:
            known = self.actors.setdefault(place, [])
            if role not in known:
                known.append(role)
                known.sort()
                _bound(self.actors)

    def view(self) -> GpusView:
        """The newest polls by role."""
        newest = {target: polls[-1] for target, polls in sorted(self.polls.items())}
        before = {target: polls[0] for target, polls in sorted(self.polls.items()) if len(polls) > 1}
        failures = tuple(self.failures[target] for target in sorted(self.failures))
        now_us = max((poll.at_us for poll in newest.values()), default=None)
        if self.policy_mesh or self.engine_mesh:
            policy, engine, unknown = self._by_mesh(newest)
            earlier = self._by_mesh(before)[0]
            separated_by = "[mesh] of job.toml"
        else:
            policy, engine, unknown, separated_by = self._by_processes(newest)
            earlier = self._by_processes(before)[0]
        separation = self._separation(policy, engine, newest)
        asked = [*self.polls, *self.failures]
        stems = {pod_stem(name) for target in asked for name in (target, self.nodes.get(target, target))}
        entries = dict.fromkeys(_entry_target(entry) for entry in (*self.policy_mesh, *self.engine_mesh))
        unasked = tuple(entry for entry in entries if pod_stem(entry) not in stems)
        return GpusView(policy, engine, unknown, earlier, separation, separated_by, now_us, failures, unasked)

    def _separation(
        self, policy: tuple[TargetPoll, ...], engine: tuple[TargetPoll, ...], newest: Mapping[str, TargetPoll]
    ) -> Separation:
        if self.policy_mesh and self.engine_mesh:
            shared = any(_share_gpus(mine, theirs) for mine in self.policy_mesh for theirs in self.engine_mesh)
            return Separation.COLOCATED if shared else Separation.KNOWN
        if self.colocated or any(len(self._roles(target)) > 1 for target in newest):
            return Separation.COLOCATED
        return Separation.KNOWN if policy and engine else Separation.UNKNOWN

    def _by_mesh(self, polls: Mapping[str, TargetPoll]) -> tuple[tuple[TargetPoll, ...], ...]:
        policy: list[TargetPoll] = []
        engine: list[TargetPoll] = []
        unknown: list[TargetPoll] = []
        for poll in polls.values():
            of_policy, of_engine = self._entries(poll.target)
            policy += _part(poll, of_policy)
            engine += _part(poll, of_engine)
            unknown += [] if of_policy or of_engine else [poll]
        return tuple(policy), tuple(engine), tuple(unknown)

    def _entries(self, target: str) -> tuple[list[str], list[str]]:
        """The mesh entries of a target: by its own name or node, else by its stem where that names one mesh only
        (a job whose own name ends like a pod's suffix has one stem for all its pods)."""
        names = (target, self.nodes.get(target, target))
        policy = [entry for entry in self.policy_mesh if _entry_target(entry) in names]
        engine = [entry for entry in self.engine_mesh if _entry_target(entry) in names]
        if policy or engine:
            return policy, engine
        policy = [entry for entry in self.policy_mesh if pod_stem(_entry_target(entry)) == pod_stem(target)]
        engine = [entry for entry in self.engine_mesh if pod_stem(_entry_target(entry)) == pod_stem(target)]
        divided = all(":" in entry for entry in (*policy, *engine))
        return ([], []) if policy and engine and not divided else (policy, engine)

    def _by_processes(
        self, polls: Mapping[str, TargetPoll]
    ) -> tuple[tuple[TargetPoll, ...], tuple[TargetPoll, ...], tuple[TargetPoll, ...], str]:
        policy: list[TargetPoll] = []
        engine: list[TargetPoll] = []
        unknown: list[TargetPoll] = []
        places = {ProcessRole.POLICY: policy, ProcessRole.ENGINE: engine}
        for target, poll in polls.items():
            roles = self._roles(target)
            places.get(roles[0] if len(roles) == 1 else ProcessRole.UNKNOWN, unknown).append(poll)
        by_holders = any(target in self.holders for target in polls)
        words = "the processes of a compute-apps poll" if by_holders else "the actor classes on each host"
        return tuple(policy), tuple(engine), tuple(unknown), words

    def _roles(self, target: str) -> list[ProcessRole]:
        """The GPU roles on a target: of the processes that hold its GPUs, else of those that run there."""
        if target in self.holders:
            return self.holders[target]
        node = _RANK_FOLDER.sub("", self.nodes.get(target, target))
        return self.titles.get(target) or self.actors.get(node) or self.actors.get(_rank_of(target), [])

    FOLDS: ClassVar[Mapping[type, Callable[[Any, Observation], None]]] = {
        AttemptStarted: on_attempt,
        JobDeclared: on_declared,
        ConfigFact: on_config,
        ConfigFacts: on_config,
        GpusPolled: on_gpus,
        PollFailed: on_failure,
        GpuProcessesPolled: on_holders,
        ProcessesPolled: on_processes,
        PodsPolled: on_pods,
        EngineLoad: on_actor,
        EngineConfigured: on_actor,
        ForwardEntered: on_actor,
        PolicyProgress: on_actor,
        BringUp: on_actor,
    }


@lru_cache(maxsize=4096)
def _told_by(host: str, actor: str, source: str) -> tuple[ProcessRole, tuple[str, ...]]:
    """(what an actor of this class does, the names by which a poll may ask for its host); no names where a line of it
    in this file tells nothing of a host's GPUs."""
    role = process_role(actor)
    if not host or role not in (ProcessRole.POLICY, ProcessRole.ENGINE):
        return role, ()
    folder = _FOLDER_RANK.search(source)
    return role, (_RANK_FOLDER.sub("", host), *(folder.groups() if folder else ()))


def pod_stem(name: str) -> str:
    """A pod's name without its hash and generation."""
    return _GENERATION_SUFFIX.sub("", name)


def _rank_of(name: str) -> str:
    """`rank3` of a pod's whole name; empty where the name is not of that form."""
    stem = pod_stem(name)
    return f"rank{stem.rpartition('-')[2]}" if stem != name else ""


def _share_gpus(entry: str, other: str) -> bool:
    """Whether two entries of a mesh name the same GPU. An entry without indexes names all of its target."""
    (target, _, span), (other_target, _, other_span) = entry.partition(":"), other.partition(":")
    if target != other_target:
        return False
    return not span or not other_span or bool(_indexes(span) & _indexes(other_span))


def _part(poll: TargetPoll, entries: list[str]) -> list[TargetPoll]:
    """What of a poll the entries of a mesh name: all of it, some of its GPUs, or nothing."""
    indexes: set[int] = set()
    for entry in entries:
        _, _, span = entry.partition(":")
        if not span:
            return [poll]
        indexes |= _indexes(span)
    chosen = tuple(gpu for gpu in poll.gpus if gpu.index in indexes)
    return [msgspec.structs.replace(poll, gpus=chosen)] if chosen else []


def _indexes(span: str) -> set[int]:
    """GPU indexes of `0-3`, `5` or `0-1,4`; parts that are none of these name no GPU."""
    found: set[int] = set()
    for part in span.split(","):
        first, _, last = part.strip().partition("-")
        if first.isdecimal() and (not last or last.isdecimal()):
            found |= set(range(int(first), int(last or first) + 1))
    return found


def _entry_target(entry: str) -> str:
    return entry.partition(":")[0]


def _gpu_roles(titles: Iterable[str]) -> list[ProcessRole]:
    roles = {process_role(title) for title in titles}
    return sorted(roles & {ProcessRole.POLICY, ProcessRole.ENGINE})


def _bound(kept: dict[str, Any]) -> None:
    while len(kept) > _TARGETS:
        del kept[next(iter(kept))]
