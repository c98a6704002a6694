"""Gate C: are the rollouts worth training on? (GATES, Gate C). One function a rule, in the page's order.

«Completed» is a trial with its result on file; a trial with both a reward and an exception is scored.
"""

from state.case import Case
from state.gate import Gap, Gate, Ruling, failed, not_applicable, passed, unjudged
from state.gates.reward_metrics import (
    contradicted_by_metrics,
    early_by_metrics,
    learning_by_metrics,
    no_signal_by_metrics,
    standard_without_metrics,
)
from state.gates.rollout_faults import (
    TRANSIENT_BURST,
    container_fault,
    dead_loop,
    empty_attempts,
    incoherent,
    infra_fault,
    silent_since_start,
    verifier_fault,
)
from state.gates.rollout_words import bursts_said, bursts_shown, notes, rewards_said, unread_gaps
from state.over import job_over
from state.policy import ENDED_FEWEST, FIRST_TRIAL_ALLOWANCE, INCOHERENT_SHARE, MANY_COMPLETED, Stage
from state.wording import clock, plural, span


def over(case: Case) -> Ruling | None:
    """N/A: the job is over."""
    evidence = job_over(case)
    return None if evidence is None else not_applicable("OVER", "the job is over", evidence)


def bringing_up(case: Case) -> Ruling | None:
    """0: no trial has started and the stage is bring-up inside its allowance."""
    bring_up = case.freshness.bring_up
    if case.rollouts.started or case.rollouts.unreadable or bring_up is None or case.phases.stage is not Stage.BRING_UP:
        return None
    since = case.scheduler.running_since_us or case.freshness.first_us or case.freshness.bring_up_us or case.now_us
    if case.seconds_since(since) > case.phases.allowance_seconds:
        return None
    return passed("EARLY", "0 started: the job is still coming up", bring_up, allowance=True)


def unread(case: Case) -> Ruling | None:
    """1: trial artifacts present but unreadable (more of them than could be read, and no reward among these)."""
    seen, gaps = case.rollouts, unread_gaps(case)
    nothing_read = bool(gaps) and not (seen.started or seen.ended)
    if seen.rewarded or not (nothing_read or seen.unreadable > seen.ended):
        return None
    evidence = () if seen.unreadable_evidence is None else (seen.unreadable_evidence,)
    counted = f"of {plural(seen.unreadable, 'trial')} " if seen.unreadable else ""
    return unjudged(
        "UNREAD", f"artifacts {counted}are there and can't be read ({seen.ended} could)", *gaps, evidence=evidence
    )


def listed_only(case: Case) -> Ruling | None:
    """1, too: counts that nobody opened prove nothing."""
    seen = case.rollouts
    if seen.ended or seen.listing is None or not seen.listing.ended or seen.listing_evidence is None:
        return None
    return unjudged(
        "UNREAD",
        f"the listing counts {seen.listing.ended} ended trials and none was opened",
        Gap("result files of trials", "listed but not in the capture"),
        evidence=(seen.listing_evidence,),
    )


def first_trial_awaited(case: Case) -> Ruling | None:
    """2: trials started, none completed: EARLY within the first-trial allowance, past it INCOMPLETE, or DEAD_LOOP where
    every one of them has written nothing."""
    seen = case.rollouts
    listed = seen.listing.started if seen.listing is not None else 0
    evidence = seen.newest_started or seen.listing_evidence
    if seen.ended or not (seen.started or listed) or evidence is None:
        return None
    started = max(seen.started, listed)
    since = max(seen.first_started_us or seen.first_listed_us or case.now_us, _first_phase_us(case))
    said = f"{started} started, 0 completed since {clock(since)}"
    if case.seconds_since(since) <= first_trial_allowed(case):
        return passed("EARLY", said, evidence, missing=unread_gaps(case), allowance=True)
    if silent_attempts := silent_since_start(case):
        return silent_attempts
    gap = Gap("a completed trial", f"none ended within the first-trial allowance of {span(first_trial_allowed(case))}")
    return unjudged("INCOMPLETE", said, gap, evidence=(evidence,))


def first_score_awaited(case: Case) -> Ruling | None:
    """2, past its allowance: attempts ended and not one was scored: DEAD_LOOP if they are empty, else INCOMPLETE."""
    seen = case.rollouts
    if seen.scored or seen.ended < ENDED_FEWEST or seen.newest_ended is None or seen.first_started_us is None:
        return None
    if case.seconds_since(seen.first_started_us) <= first_trial_allowed(case):
        return None
    gap = Gap("a scored attempt", f"none of {seen.ended} ended ones has a reward, and no exception prevails")
    return empty_attempts(case) or unjudged(
        "INCOMPLETE",
        f"{seen.ended} ended, 0 scored since {clock(seen.first_started_us)}{bursts_said(case)}",
        gap,
        evidence=(seen.newest_ended, *bursts_shown(case)),
    )


def hard_tasks(case: Case) -> Ruling | None:
    """9: ≥ 64 completed, every reward 0, outputs coherent and multi-turn."""
    seen = case.rollouts
    if not _all_zero(case) or not _coherent(case) or seen.newest_scored is None or seen.coherent is None:
        return None
    turns = f", {seen.sample.turns:.1f} turns on average" if seen.sample.turns is not None else ""
    return passed(
        "HARD_TASKS",
        f"{rewards_said(case)}, but the outputs are coherent{turns}: the tasks are hard, the machinery "
        f"works{bursts_said(case)}",
        seen.newest_scored,
        seen.coherent,
        *bursts_shown(case),
        missing=unread_gaps(case),
        notes=notes(case),
        allowance=True,
    )


def no_signal(case: Case) -> Ruling | None:
    """10: ≥ 64 completed, every reward 0, coherence unknown."""
    seen = case.rollouts
    if not _all_zero(case) or seen.newest_scored is None:
        return None
    return failed(
        "NO_SIGNAL",
        f"{rewards_said(case)} and no output was read that would show coherent work{bursts_said(case)}",
        seen.newest_scored,
        fix="open five of the quoted trials' transcripts: if they are sensible, the tasks or the verifier are at "
        "fault, else the weights; hold the relaunch until one attempt scores above 0",
        notes=notes(case),
    )


def early(case: Case) -> Ruling | None:
    """11: fewer completed (at least one), none rewarded yet, outputs coherent or unread."""
    seen = case.rollouts
    evidence = seen.newest_scored or seen.newest_ended
    if seen.rewarded or evidence is None:
        return None
    return passed(
        "EARLY",
        f"{seen.started} started, {seen.ended} completed, {seen.scored} scored, none rewarded yet{bursts_said(case)}",
        evidence,
        *bursts_shown(case),
        missing=unread_gaps(case),
        notes=notes(case),
        allowance=True,
    )


def learning(case: Case) -> Ruling | None:
    """12: any reward above 0."""
    seen = case.rollouts
    if seen.newest_rewarded is None:
        return None
    newest = () if seen.newest_scored in (None, seen.newest_rewarded) else (seen.newest_scored,)
    return passed(
        "LEARNING",
        f"{rewards_said(case)}{bursts_said(case)}",
        seen.newest_rewarded,
        *(place for place in newest if place is not None),
        *bursts_shown(case),
        missing=unread_gaps(case),
        notes=notes(case),
    )


def nothing_started(case: Case) -> Ruling | None:
    """11, with nothing started: EARLY with a bring-up line to quote, for the first-trial allowance."""
    bring_up, seen = case.freshness.bring_up, case.rollouts
    since = case.freshness.first_us or case.scheduler.running_since_us
    if bring_up is None or since is None or seen.metrics.steps or case.seconds_since(since) > first_trial_allowed(case):
        return None
    shown = tuple(place for place in (seen.logged, seen.announced, bring_up) if place is not None)
    return passed("EARLY", "0 started by the artifacts: rollouts have left none yet", *shown, allowance=True)


def incomplete(case: Case) -> Ruling:
    """Else: no trial was opened; what a log line or a metric tells of them proves nothing."""
    seen = case.rollouts
    shown = tuple(place for place in (seen.logged, seen.announced, seen.metrics.newest) if place is not None)
    why = "log lines tell of attempts, their files were not read" if shown else "none is in the capture"
    metrics = (
        f"; the trainer's reward metrics are above 0 in {seen.metrics.positive} of {seen.metrics.steps} steps, which "
        "does not say what the attempts are worth"
        if seen.metrics.steps
        else ""
    )
    return unjudged(
        "INCOMPLETE",
        f"no trial was opened{metrics}",
        Gap("result files of trials", why),
        *unread_gaps(case),
        evidence=shown,
    )


def first_trial_allowed(case: Case) -> float:
    """The seconds that the first trials may take."""
    return case.facts.facts.expect.get("first_trial", FIRST_TRIAL_ALLOWANCE)


def _first_phase_us(case: Case) -> int:
    """When the trainer's first phase opened, while its first step lasts: no trial began before. Later, long ago."""
    phases = case.phases
    return phases.open[0].started_us if phases.open and not phases.counts.get("step") else 0


def _all_zero(case: Case) -> bool:
    return case.rollouts.scored >= MANY_COMPLETED and not case.rollouts.rewarded


def _coherent(case: Case) -> bool:
    seen = case.rollouts.sample
    return seen.read > 0 and seen.incoherent < INCOHERENT_SHARE * seen.read


ROLLOUTS = Gate(
    "C",
    "rollouts",
    clauses=(
        over,
        bringing_up,
        unread,
        standard_without_metrics,
        container_fault,
        infra_fault,
        verifier_fault,
        incoherent,
        dead_loop,
        learning_by_metrics,
        no_signal_by_metrics,
        listed_only,
        first_trial_awaited,
        first_score_awaited,
        hard_tasks,
        contradicted_by_metrics,
        no_signal,
        early,
        learning,
        early_by_metrics,
        nothing_started,
        incomplete,
    ),
    excuses=(TRANSIENT_BURST,),
)
