"""What gate B must have read before it says anything (GATES, Gate B, Needs)."""

from extractors.record import Evidence
from state.case import Case
from state.gate import Gap, Ruling, not_applicable, unjudged
from state.gates.readings import (
    GENERATING,
    engine_lines,
    fleet_cap,
    fresh_polls,
    gap_of,
    gpu_lines,
    newest_first,
    settling,
)
from state.over import job_over
from state.policy import GPU_POLL_MAX_AGE, Stage
from state.trackers.gpus import Separation, TargetPoll, pod_stem
from state.trackers.unanswered import PollFailedSeen

_MOST_GAPS = 4
_WITHOUT_ENGINES = (Stage.BRING_UP, Stage.WEIGHT_SYNC, Stage.CHECKPOINT, Stage.OVER)
"""Stages in which engines are silent by design."""


def over(case: Case) -> Ruling | None:
    """A job that is over holds nothing that could be fed: N/A `OVER`."""
    shown = job_over(case)
    return None if shown is None else not_applicable("OVER", "the job is over", shown)


def the_gpu_poll(case: Case) -> Ruling | None:
    """A GPU poll no older than 15 min; a failed or missing one is ERROR `INCOMPLETE` with command and output."""
    gpus = case.gpus
    fresh = fresh_polls(case, (*gpus.policy, *gpus.engine, *gpus.unknown))
    if case.phases.stage is Stage.BRING_UP and fresh:
        return None
    if not fresh:
        return _no_poll(case, "gpu poll of the policy and engine ranks")
    if gpus.separation is not Separation.KNOWN:
        return None
    roles = (("policy", gpus.policy), ("engine", gpus.engine))
    for role, polls in roles:
        if not fresh_polls(case, polls):
            return _no_poll(case, f"gpu poll of the {role} ranks", polls)
        if not _any_utilization(fresh_polls(case, polls)):
            return _no_cells(role, polls)
    return _unanswered_targets(case)


def _no_poll(case: Case, what: str, polls: tuple[TargetPoll, ...] = ()) -> Ruling:
    failures = newest_first(case.gpus.failures)
    if failures:
        reason = f"the {what} failed: {failures[0].failure.why}"
        gaps = [gap_of(what, failed) for failed in failures[:_MOST_GAPS]]
        return unjudged("INCOMPLETE", reason, *gaps, evidence=_places(failures))
    known = polls or (*case.gpus.policy, *case.gpus.engine, *case.gpus.unknown)
    if not known:
        why = "no GPU poll is on record in this attempt"
        return unjudged("INCOMPLETE", f"{why}, so nothing is known of the GPUs", Gap(what, why))
    newest = max(known, key=lambda poll: poll.at_us)
    minutes = case.seconds_since(newest.at_us) / 60
    why = f"the newest GPU poll is {minutes:.0f} min old, more than {GPU_POLL_MAX_AGE / 60:.0f}"
    return unjudged("INCOMPLETE", why, Gap(what, why), evidence=(newest.evidence,))


def _no_cells(role: str, polls: tuple[TargetPoll, ...]) -> Ruling:
    why = f"the tool filled no utilisation cell of the {role} ranks"
    newest = max(polls, key=lambda poll: poll.at_us)
    return unjudged("INCOMPLETE", why, Gap(f"gpu utilisation of the {role} ranks", why), evidence=(newest.evidence,))


def _any_utilization(polls: tuple[TargetPoll, ...]) -> bool:
    return any(card.utilization_percent is not None for poll in polls for card in poll.gpus)


def _unanswered_targets(case: Case) -> Ruling | None:
    """Targets of the mesh that were asked and have not answered within the time that a poll is good for."""
    facts = case.facts.facts
    meshed = {pod_stem(entry.partition(":")[0]) for entry in (*facts.policy_mesh, *facts.engine_mesh)}
    answered = {poll.target for poll in fresh_polls(case, (*case.gpus.policy, *case.gpus.engine))}
    silent = [
        failed
        for failed in newest_first(case.gpus.failures)
        if failed.failure.target not in answered and pod_stem(failed.failure.target) in meshed
    ]
    if not silent:
        return None
    names = ", ".join(failed.failure.target for failed in silent[:_MOST_GAPS])
    gaps = [gap_of(f"gpu poll of {failed.failure.target}", failed) for failed in silent[:_MOST_GAPS]]
    reason = f"the GPU poll of {names} failed: {silent[0].failure.why}"
    return unjudged("INCOMPLETE", reason, *gaps, evidence=(*_places(silent), *gpu_lines(case)))


def _places(failures: list[PollFailedSeen]) -> tuple[Evidence, ...]:
    return tuple(failed.evidence for failed in failures[:_MOST_GAPS])


def the_ranks_apart(case: Case) -> Ruling | None:
    """Policy ranks apart from engine ranks; ranks that can't be told apart are ERROR `UNSEPARATED`."""
    gpus = case.gpus
    if case.phases.stage is Stage.BRING_UP or gpus.separation is Separation.KNOWN:
        return None
    if gpus.separation is Separation.COLOCATED:
        why = "policy and engines share their GPUs, a poll can't tell them apart"
    else:
        why = "neither [mesh], nor compute-apps, nor an actor class on the polled hosts says who is who"
    gaps = [Gap("policy ranks apart from engine ranks", why)]
    gaps += [gap_of("gpu poll of a further target", failed) for failed in newest_first(gpus.failures)[:_MOST_GAPS]]
    return unjudged(
        "UNSEPARATED", f"{why}, and one number for both would mean nothing", *gaps, evidence=gpu_lines(case)
    )


def the_engine_subscription(case: Case) -> Ruling | None:
    """The engine subscription (running, waiting, cap) of the current stage; without it ERROR `INCOMPLETE`."""
    stage = case.phases.stage
    if stage in _WITHOUT_ENGINES or unheard_yet(case):
        return None
    newest = case.engines.newest
    if newest is None:
        why = "no engine statistics line is on record in this attempt"
        return _unsubscribed(case, f"{why} while the trainer is at {stage}", Gap("engine statistics lines", why))
    if stage not in GENERATING:
        return None
    minutes = case.seconds_since(newest.last.at_us) / 60
    if minutes * 60 > GPU_POLL_MAX_AGE and any(engine.last.busy for engine in case.engines.engines):
        why = f"the newest engine line is {minutes:.0f} min old and not every engine was idle before"
        return _unsubscribed(case, why, Gap("engine statistics lines of the current stage", why))
    if fleet_cap(case) is None:
        why = "neither job.toml nor a configuration line says max_num_seqs"
        gap = Gap("the engines' cap (max_num_seqs)", why)
        return _unsubscribed(case, f"{why}, so the engines' share of their slots is unknown", gap)
    return None


def unheard_yet(case: Case) -> bool:
    """Whether generation has just begun and what engines said before it is too old, or nothing: a matter of seconds."""
    newest = case.engines.newest
    return settling(case) and (newest is None or case.seconds_since(newest.last.at_us) > GPU_POLL_MAX_AGE)


def _unsubscribed(case: Case, reason: str, gap: Gap) -> Ruling:
    return unjudged("INCOMPLETE", reason, gap, evidence=(*gpu_lines(case), *engine_lines(case)))
