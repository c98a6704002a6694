"""Which error came first and what it explains (GATES, Causal roles): pure functions over the events of an attempt."""

import re
from typing import TYPE_CHECKING

from extractors.pattern import Role
from extractors.record import Origin
from extractors.signal import Fault
from state.causes import CAUSES
from state.outlived import dropped, is_detached, survived
from state.policy import SECOND_US

if TYPE_CHECKING:
    from state.trackers.fault_list import FaultEvent

AGAIN_US = 600 * SECOND_US
"""How far back the same line of the same process is still the same error said again."""
BURST_US = 2 * SECOND_US
"""Lines of one process so close together are one error: its headline, its traceback, its end."""
AFTER_SECONDS = 10.0
"""Progress counts as after an error from so many seconds on: the phase timers' `Finished` lines are written while an
exception passes through them."""
CONFIRM_US = 120 * SECOND_US
PODS_CONFIRM_US = 900 * SECOND_US
"""A pod list tells of a kill when it is next asked for, every few minutes."""
CHAIN_US = 300 * SECOND_US
"""A watchdog takes a minute or more to dump before it ends its process."""
DEFAULT_TIMEOUT_US = 1800 * SECOND_US
TIMEOUT_SLACK_US = 60 * SECOND_US

HEADLINES = frozenset(
    {"engine_core_fatal", "engine_dead", "engine_start_failed", "train_loop_failed", "generator_failed"}
)
"""Causes whose line announces a traceback; the traceback is the cause."""
DEATHS = frozenset({"actor_died", "worker_crashed", "node_died", "raylet_died", "engine_worker_died", "engine_dead"})
BARE_DEATHS = frozenset({"actor_died", "worker_crashed", "engine_worker_died", "peer_lost"})
"""Deaths that say nothing of why: a confirmed out-of-memory near them is the why."""
SIGKILLED = 137
"""The exit code of what a SIGKILL ended. It leaves no word of why: the kernel, an operator and a scheduler kill so."""
NEEDS_ABORT = "collective_timeout"
"""A lone watchdog line is no hang signature; one that is followed by an abort is."""
ABORTS = frozenset({"collective_abort", "watchdog_stuck"})
"""Ends that only a torch process group makes, so that the process needs no known class."""

_POLICY = re.compile(r"(?:FSDP|Megatron|DeepSpeed)\w*Worker|Policy\w*Worker|(?:Ref|Critic)Worker")
_VICTIM = re.compile(r"(.+) \(\d+\)")
"""The kernel's victim, as host patterns name it: process name and pid."""
_OURS = re.compile(r"ray|python|pt_|vllm|gcs_server|torchrun|skyrl", re.IGNORECASE)
_OTHER = re.compile(r"Coordinator|Dispatcher|Orchestrator|entrypoint|TaskRunner")
_ENGINE = re.compile(r"vllm|inference|engine", re.IGNORECASE)
_TIMEOUT = re.compile(r"ran for (\d+) milliseconds|wait timeout after (\d+) ?ms|Timeout\(ms\)=(\d+)")


def component(origin: Origin) -> tuple[str, int, str]:
    """Who spoke: actor class and pid; the task, where no prefix names a process."""
    return (origin.actor, origin.pid, "" if origin.pid else origin.task)


def is_policy(actor: str) -> bool | None:
    """Whether an actor class is policy-side. None where the class is not known."""
    if _POLICY.search(actor):
        return True
    return False if is_engine(actor) or _OTHER.search(actor) else None


def is_engine(actor: str) -> bool:
    """Whether an actor class is engine-side."""
    return bool(_ENGINE.search(actor))


def same_process(one: "FaultEvent", other: "FaultEvent") -> bool:
    """Whether two events are of one process: by pid (and actor, where both say it), else by rank."""
    a, b = one.origin, other.origin
    if a.pid and b.pid:
        return a.pid == b.pid and (not a.actor or not b.actor or a.actor == b.actor)
    ranks = (rank_of(one), rank_of(other))
    if None not in ranks:
        return ranks[0] == ranks[1]
    return component(a) == component(b)


def rank_of(event: "FaultEvent") -> int | None:
    """The rank that speaks, by its line or its prefix."""
    return event.fault.rank if event.fault.rank is not None else event.origin.rank


def same_fault(one: "FaultEvent", other: "FaultEvent") -> bool:
    """Whether two events say the same of the same process."""
    a, b = one.fault, other.fault
    if a.cause != b.cause or a.exception != b.exception or a.site != b.site:
        return False
    return a.entity == b.entity and same_process(one, other)


def first_cause(
    events: "tuple[FaultEvent, ...]",
    confirms: "tuple[FaultEvent, ...]",
    teardown_us: int | None,
    done_us: int | None,
) -> "FaultEvent | None":
    """The earliest unhandled root that nothing explains. A cascade stands in only where no root is on file, a
    confirming line where a bare death (or nothing) is. An exception that the run survived before stands back.

    What came after the orderly end of training is noise, and an ambiguous error within a teardown is its consequence.
    """
    standing = [event for event in events if not event.handled and (done_us is None or event.own_us < done_us)]
    causal = [
        event
        for event in standing
        if event.role is Role.ROOT or (event.role is Role.EITHER and _before(event, teardown_us))
    ]
    death = next((e for e in standing if e.fault.cause in DEATHS | HEADLINES and _before(e, teardown_us)), None)
    outlived: list[FaultEvent] = []
    first = _fresh([event for event in causal if not is_detached(event)], standing, events, outlived)
    first = first or dropped(causal, death) or death
    if first is None and causal:
        first = outlived[0] if outlived else causal[0]
    if first is not None:
        first = _headlined(first, causal) if first.fault.cause in HEADLINES else _written_first(first, causal)
    return _confirmed(first, confirms)


def _fresh(
    causal: "list[FaultEvent]",
    standing: "list[FaultEvent]",
    events: "tuple[FaultEvent, ...]",
    outlived: "list[FaultEvent]",
) -> "FaultEvent | None":
    """The earliest error that nothing explains and that the run did not survive before; those before it that it did
    are put into outlived."""
    for event in causal:
        if _explained(event, standing):
            continue
        if not survived(event, events):
            return event
        outlived.append(event)
    return None


def _before(event: "FaultEvent", moment_us: int | None) -> bool:
    return moment_us is None or event.own_us <= moment_us


def _explained(event: "FaultEvent", standing: "list[FaultEvent]") -> bool:
    """An `either` is a cascade where a death or another process' error stands within the timeout before it. A root
    is one link of a chain where its own process' error stands shortly before it."""
    if event.role is not Role.EITHER:
        return any(_linked(earlier, event) for earlier in standing)
    since_us = event.own_us - timeout_us(event) - TIMEOUT_SLACK_US
    return any(
        since_us <= earlier.own_us < event.own_us
        and (earlier.role in (Role.ROOT, Role.EITHER) or earlier.fault.cause in DEATHS)
        for earlier in standing
    )


def _linked(earlier: "FaultEvent", event: "FaultEvent") -> bool:
    """Whether two errors are one chain of one process: watchdog, abort, fatal signal."""
    near = 0 < event.own_us - earlier.own_us <= CHAIN_US
    causal = earlier.role in (Role.ROOT, Role.EITHER) and earlier.fault.cause not in HEADLINES
    return near and causal and not is_detached(earlier) and same_process(earlier, event)


def timeout_us(event: "FaultEvent") -> int:
    """The timeout that a watchdog or store line names, in microseconds; 30 min where it names none."""
    found = _TIMEOUT.search(event.sources[0].quote) or _TIMEOUT.search(event.fault.detail)
    return int(next(group for group in found.groups() if group)) * 1000 if found else DEFAULT_TIMEOUT_US


def _headlined(headline: "FaultEvent", causal: "list[FaultEvent]") -> "FaultEvent":
    """The traceback that a headline announces: the first root of the same process beside it, else the headline."""
    for event in causal:
        near = abs(event.own_us - headline.own_us) <= BURST_US
        if near and event.fault.cause not in HEADLINES and same_process(event, headline):
            return event
    return headline


def _written_first(first: "FaultEvent", causal: "list[FaultEvent]") -> "FaultEvent":
    """The link of the same chain that stands earliest in the same file: within a burst its order is truer than the
    clocks of the libraries that print."""
    place = first.sources[0]
    chain = [
        event
        for event in causal
        if abs(event.own_us - first.own_us) <= BURST_US
        and event.sources[0].source == place.source
        and same_process(event, first)
    ]
    return min(chain, key=lambda event: event.sources[0].offset, default=first)


def _confirmed(first: "FaultEvent | None", confirms: "tuple[FaultEvent, ...]") -> "FaultEvent | None":
    """The confirming line that tells why, where `first` is a bare death near it, or there is no first at all."""
    memory = [event for event in confirms if _ran_out(event.fault)]
    if first is None:
        return memory[0] if memory else None
    if not _is_bare(first.fault):
        return first
    return next((event for event in memory if _is_near(event, first)), first)


def _is_near(confirming: "FaultEvent", death: "FaultEvent") -> bool:
    after_us = confirming.own_us - death.own_us
    polled = confirming.sources[0].source.startswith("polls/")
    return -CONFIRM_US <= after_us <= (PODS_CONFIRM_US if polled else CONFIRM_US)


def _is_bare(fault: Fault) -> bool:
    """Whether a death, or an error that names no exception (a remote call nobody waited for), says nothing of why."""
    return fault.cause in BARE_DEATHS or (fault.cause == "python_exception" and not fault.exception)


def _ran_out(fault: Fault) -> bool:
    """Whether a confirming line says that memory ran out for a process of the job, not for a neighbour on its node."""
    known = CAUSES.get(fault.cause)
    victim = _VICTIM.fullmatch(fault.entity)
    return known is not None and bool(known.oom) and (victim is None or _OURS.match(victim[1]) is not None)


def by_unknown_hand(first: "FaultEvent", exit_code: int | None) -> bool:
    """Whether the first cause is nothing but a death, in a job that a SIGKILL ended: who sent it is not known."""
    return exit_code == SIGKILLED and first.fault.cause in (*BARE_DEATHS, "engine_dead")


def explained_by(first: "FaultEvent", events: "tuple[FaultEvent, ...]", aggregated: frozenset[str]) -> int:
    """How many later errors follow from the first cause, de-duplicated copies included. What two homes tell of one
    cause is counted once: as often as the home that tells more of it."""
    heard: dict[str, list[int]] = {}
    for event in events:
        if event is first or event.handled:
            continue
        if event.own_us < first.own_us and event.own_us < first.own_us - _told_late(first, event):
            continue
        counts = heard.setdefault(event.fault.cause, [0, 0])
        homes = {source.source in aggregated for source in event.sources}
        for home in homes:
            counts[home] += event.count
    return sum(max(counts) for counts in heard.values())


def _told_late(first: "FaultEvent", event: "FaultEvent") -> int:
    """How long before the first cause's own time an error may stand and still follow from it, in microseconds."""
    if first.sources[0].source.startswith("polls/"):
        return PODS_CONFIRM_US
    return BURST_US if same_process(event, first) else 0


def newest_hang(events: "tuple[FaultEvent, ...]") -> "FaultEvent | None":
    """The newest unhandled signature of a hang (gate A rule 5)."""
    return next((event for event in reversed(events) if not event.handled and _is_hang(event, events)), None)


def _is_hang(event: "FaultEvent", events: "tuple[FaultEvent, ...]") -> bool:
    known = CAUSES.get(event.fault.cause)
    if known is None or not known.hang:
        return False
    if event.fault.cause == NEEDS_ABORT:
        return any(ends_policy(later) and later.own_us >= event.own_us for later in events)
    if event.fault.cause in DEATHS or known.fatal:
        return _of_policy(event) or event.fault.cause in ("node_died", "raylet_died")
    return True


def _of_policy(event: "FaultEvent") -> bool:
    """Whether a death is of a policy process: by the dead actor's class, else the speaker's; not known counts."""
    known = is_policy(event.fault.entity) if _names_class(event.fault) else is_policy(event.origin.actor)
    return known is not False


def _names_class(fault: Fault) -> bool:
    return bool(fault.entity) and fault.entity.isidentifier()


def newest_abort(events: "tuple[FaultEvent, ...]") -> "FaultEvent | None":
    """The newest unhandled error that itself ended a policy process."""
    return next((event for event in reversed(events) if not event.handled and ends_policy(event)), None)


def ends_policy(event: "FaultEvent") -> bool:
    """Whether the line itself ended a policy process: its class is policy-side, or not known and a torch process
    group aborted."""
    known = CAUSES.get(event.fault.cause)
    if known is None or not known.fatal:
        return False
    policy = is_policy(event.origin.actor)
    return event.fault.cause in ABORTS if policy is None else policy
