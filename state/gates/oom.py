"""Memory that ran out and took its component with it (GATES, Gate B rules 1 and 2)."""

from collections.abc import Iterable

from extractors.pattern import Role
from extractors.polls import Pod
from extractors.record import Evidence
from state.case import Case
from state.causality import AFTER_SECONDS
from state.causes import CAUSES
from state.gate import Ruling, failed
from state.gates.readings import gpu_lines
from state.policy import MINUTE, OOM_FATAL_AT_LEAST, OOM_FATAL_SHARE, RAM_WARNING_SHARE, SECOND_US
from state.trackers.fault_list import FaultEvent
from state.trackers.processes import ProcessRole, process_role

DEATHS = frozenset(
    {
        "actor_died",
        "worker_crashed",
        "engine_dead",
        "engine_core_fatal",
        "engine_worker_died",
        "engine_start_failed",
        "fatal_signal",
        "node_died",
        "raylet_died",
    }
)
"""Causes whose line says that a process has ended."""
TRAINER_DEATHS = frozenset({"train_loop_failed", "generator_failed", "model_init_timeout"})
"""Causes whose line says that the trainer has."""


def oom_gpu(case: Case) -> Ruling | None:
    """GPU out-of-memory in this attempt that was fatal: the component died, the train loop failed, or a quarter of
    the open phase's allowance (≥ 5 min) passed without its progress."""
    for event in ooms_of(case, "gpu"):
        shown = _fatal(case, event)
        if shown is None:
            continue
        why, lines = shown
        cause = CAUSES[event.fault.cause]
        reason = f"{_who(event)} ran out of GPU memory and {why}"
        fix = f"{cause.fix}; {cause.relaunch}"
        return failed("OOM_GPU", reason, *event.sources[:2], *lines, *gpu_lines(case), fix=fix)
    return None


def oom_host(case: Case) -> Ruling | None:
    """Host out-of-memory confirmed (pod reason, kernel line, memory monitor), and fatal likewise."""
    fix = f"{CAUSES['host_oom'].fix}; {CAUSES['host_oom'].relaunch}"
    for event in ooms_of(case, "host"):
        shown = _fatal(case, event)
        if shown is None:
            continue
        why, lines = shown
        reason = f"the host or container of {_who(event)} ran out of memory and {why}"
        return failed("OOM_HOST", reason, *event.sources[:2], *lines, *gpu_lines(case), fix=fix)
    killed = [pod for pod in case.scheduler.pods or () if _killed_for_memory(pod)]
    if killed and case.scheduler.pods_evidence is not None:
        names = ", ".join(pod.name for pod in killed)
        reason = f"Kubernetes killed {names} for memory (OOMKilled) and it does not run"
        return failed("OOM_HOST", reason, case.scheduler.pods_evidence, *gpu_lines(case), fix=fix)
    return None


def ram_notes(case: Case) -> tuple[str, ...]:
    """Warnings for nodes whose host RAM is at 95 % of its limit or above, at most three, fullest first."""
    full = [
        (memory.used_gib / memory.limit_gib, node, memory)
        for node, memory in case.heartbeat.host_memory.items()
        if memory.limit_gib and memory.used_gib / memory.limit_gib >= RAM_WARNING_SHARE
    ]
    return tuple(
        f"warning: host RAM of {node} at {share:.0%} of its limit ({memory.used_gib:.0f} of {memory.limit_gib:.0f} GiB)"
        for share, node, memory in sorted(full, key=lambda row: (-row[0], row[1]))[:3]
    )


def ram_lines(case: Case) -> tuple[Evidence, ...]:
    """The lines behind `ram_notes`."""
    return tuple(
        memory.evidence
        for memory in case.heartbeat.host_memory.values()
        if memory.limit_gib and memory.used_gib / memory.limit_gib >= RAM_WARNING_SHARE
    )[:3]


def ooms_of(case: Case, where: str) -> Iterable[FaultEvent]:
    """The attempt's out-of-memory errors that nobody handled, in time."""
    seen = dict.fromkeys((event.fault, event.own_us) for event in case.faults.events)
    extra = [event for event in case.faults.confirms if (event.fault, event.own_us) not in seen]
    return [
        event
        for event in sorted((*case.faults.events, *extra), key=lambda event: event.own_us)
        if _memory_of(event) == where and not event.handled and event.role is not Role.BENIGN
    ]


def _memory_of(event: FaultEvent) -> str:
    cause = CAUSES.get(event.fault.cause)
    return "" if cause is None else cause.oom


def _fatal(case: Case, event: FaultEvent) -> tuple[str, tuple[Evidence, ...]] | None:
    """What made an out-of-memory error fatal, in words, with its lines."""
    for later in case.faults.events:
        if later.own_us < event.own_us or later.handled:
            continue
        if later.fault.cause in TRAINER_DEATHS:
            return "the trainer failed after it", later.sources[:1]
        if later.fault.cause in DEATHS and _same_component(event, later):
            return "its process died", later.sources[:1]
    if _kernel_killed_a_rank(event):
        return "the kernel killed it", ()
    return _no_progress_since(case, event)


def _no_progress_since(case: Case, event: FaultEvent) -> tuple[str, tuple[Evidence, ...]] | None:
    if case.freshness.progress is not None and case.freshness.known_us is None:
        return None
    progress_us = case.freshness.known_us or case.freshness.bring_up_us
    if progress_us is not None and progress_us > event.own_us + AFTER_SECONDS * SECOND_US:
        return None
    engine = next((engine for engine in case.engines.engines if engine.pid == event.origin.pid and engine.pid), None)
    if engine is not None and engine.last.at_us > event.own_us and engine.last.generation_rate > 0:
        return None
    silent = case.seconds_since(event.own_us)
    limit = max(OOM_FATAL_AT_LEAST, OOM_FATAL_SHARE * case.phases.allowance_seconds)
    if silent < limit:
        return None
    lines = () if case.freshness.progress is None else (case.freshness.progress,)
    return f"nothing has progressed for {silent / 60:.0f} min since (limit {limit / 60:.0f} min)", lines


def _same_component(event: FaultEvent, later: FaultEvent) -> bool:
    """Whether a death is that of the process which ran out of memory: the same pid, else the same actor class. A
    death that names neither is taken for it within ten minutes, since nobody else is named."""
    if event.origin.pid and later.origin.pid:
        return event.origin.pid == later.origin.pid
    mine = event.origin.actor or event.fault.entity
    theirs = later.fault.entity or later.origin.actor
    if mine and theirs:
        return process_role(mine) is process_role(theirs) and (mine in theirs or theirs in mine)
    return later.own_us - event.own_us <= 10 * MINUTE * SECOND_US


def _kernel_killed_a_rank(event: FaultEvent) -> bool:
    """A kernel line that names a policy or engine process; the kernel cuts names to 15 characters."""
    role = process_role(event.fault.entity)
    return event.role is Role.CONFIRMS and role in (ProcessRole.POLICY, ProcessRole.ENGINE)


def _killed_for_memory(pod: Pod) -> bool:
    return pod.status == "OOMKilled" or (pod.reason == "OOMKilled" and pod.status in ("Error", "Failed"))


def _who(event: FaultEvent) -> str:
    name = event.origin.actor or event.fault.entity or "a process"
    rank = event.fault.rank if event.fault.rank is not None else event.origin.rank
    words = name if rank is None else f"{name} rank {rank}"
    return f"{words} on {event.origin.host}" if event.origin.host else words
