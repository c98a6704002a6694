"""What gates C and D measure, in words."""

from collections.abc import Callable

from state.case import Case
from state.exceptions import ADD_TESTS, is_infrastructure
from state.gates.dynamics import signs_of
from state.gates.rollout_faults import reached_verifier, verifier_hits
from state.gates.rollout_words import unread_gaps
from state.gates.rollouts import first_trial_allowed
from state.gates.slots import Counted, all_ended, burst_of, hits_of
from state.policy import (
    CONTAINER_SHARE,
    DEAD_LOOP_EMPTY,
    DEAD_LOOP_TURNS,
    ENDED_FEWEST,
    INCOHERENT_FEWEST,
    INCOHERENT_SHARE,
    INFRA_SHARE,
    VERIFIER_SHARE,
)
from state.trackers.bursts import CountedFrom
from state.weighed.measured import Measured, absent, measured
from state.wording import clock, plural, span


def mode(case: Case) -> Measured:
    said = case.facts.sources.get("mode")
    return measured(
        f"the job's mode is {case.facts.facts.mode or 'not said'}", said if said is not None and said.quote else None
    )


def attempts_leave_artifacts(case: Case) -> Measured:
    seen = case.rollouts
    said = f"{mode(case).says}; {plural(seen.started, 'trial')} started by the artifacts"
    return measured(said, *mode(case).evidence, seen.newest_started or seen.announced or seen.logged)


def unreadable(case: Case) -> Measured:
    gaps = unread_gaps(case)
    said = "; ".join(f"{gap.what}: {gap.why}" for gap in gaps) if gaps else "no artifact that was read is torn"
    return measured(said, case.rollouts.unreadable_evidence)


def share_of(hits: Counted, word: str, share_needed: float, of: Counted = all_ended) -> Callable[[Case], Measured]:
    """Measures how many attempts an exception ended, against the share that a rule asks for."""

    def share(case: Case) -> Measured:
        if case.bursts.source is not CountedFrom.TRIALS:
            return measured("no trial of this attempt was opened, so no share is known")
        ended, found = sum(map(of, case.bursts.attempt)), sum(map(hits, case.bursts.attempt))
        part = f" ({found / ended:.0%})" if ended else ""
        needed = f"{share_needed:.0%} of at least {ENDED_FEWEST} are needed"
        said = f"{found} of {plural(ended, 'attempt')}{part} {word}; {needed}"
        return measured(said, case.rollouts.newest_ended)

    return share


def commonest(case: Case) -> Measured:
    counted = case.rollouts.exceptions
    names = [name for name in counted if is_infrastructure(name) and name.rpartition(".")[2] != ADD_TESTS]
    name = max(names, key=lambda each: (counted[each].count, each), default=None)
    if name is None:
        return measured("no infrastructure exception was opened", case.rollouts.newest_ended)
    told = share_of(hits_of(name), f"ended in {name}", INFRA_SHARE)(case).says
    burst = burst_of(case.bursts.attempt, name)
    return measured(f"{told}{f'; {burst.said}' if burst else ''}", counted[name].first, counted[name].newest)


def incoherence(case: Case) -> Measured:
    sample = case.rollouts.sample
    needed = f"{INCOHERENT_SHARE:.0%} of at least {INCOHERENT_FEWEST} are needed"
    said = f"{sample.incoherent} of {plural(sample.read, 'output')} that were read are incoherent; {needed}"
    return measured(said, *case.rollouts.incoherent[:1], case.rollouts.coherent)


def turns(case: Case) -> Measured:
    sample = case.rollouts.sample
    mean = "of unknown turns" if sample.turns is None else f"of {sample.turns:.1f} turns on average"
    needed = f"at most {DEAD_LOOP_TURNS} turns or {DEAD_LOOP_EMPTY:.0%} empty over at least {ENDED_FEWEST} are needed"
    said = f"{plural(sample.turned, 'attempt')} {mean}, {sample.empty} of {sample.measured} with empty output; {needed}"
    return measured(said, case.rollouts.newest_ended, *case.rollouts.empty[:1])


def reward_metrics(case: Case) -> Measured:
    seen = case.rollouts.metrics
    if not seen.steps:
        return measured("no step has a reward metric")
    said = f"{seen.positive} of {plural(seen.steps, 'step')} with reward metrics are above 0, {seen.zero} exactly 0"
    return measured(said, seen.newest_positive or seen.newest)


def listing(case: Case) -> Measured:
    seen = case.rollouts
    if seen.listing is None:
        return measured("no listing of trials was read")
    return measured(
        f"the listing counts {seen.listing.started} started and {seen.listing.ended} ended trials",
        seen.listing_evidence,
    )


def first_start(case: Case) -> Measured:
    seen = case.rollouts
    if seen.first_started_us is None:
        return measured("no trial start was read")
    age = span(case.seconds_since(seen.first_started_us))
    return measured(f"the first trial started at {clock(seen.first_started_us)}, {age} before now", seen.newest_started)


def first_trial_allowance(case: Case) -> Measured:
    return measured(f"the first trials may take {span(first_trial_allowed(case))}")


def ended(case: Case) -> Measured:
    seen = case.rollouts
    said = f"{seen.started} started, {seen.ended} ended, {seen.scored} scored, {seen.rewarded} of these with a reward"
    return measured(said, seen.newest_rewarded or seen.newest_scored or seen.newest_ended or seen.newest_started)


def window(case: Case) -> Measured:
    rows = case.dynamics.window
    return measured(f"{plural(len(rows), 'step')} with metrics in the window", rows[-1].evidence if rows else None)


def torn(case: Case) -> Measured:
    seen = case.dynamics
    return measured(f"{plural(seen.unreadable, 'metrics record')} could not be read", seen.unreadable_evidence)


def non_finite(case: Case) -> Measured:
    rows, third = case.dynamics.non_finite, case.dynamics.newest_third
    newest = rows[-1:] or third[-1:]
    said = f"{len(rows)} of the {plural(len(third), 'newest step')} have a loss or gradient that is no finite number"
    return measured(said, *(row.evidence for row in newest))


def signs(case: Case) -> Measured:
    found, rows = signs_of(case), case.dynamics.window
    if found:
        said = "; ".join(sign.says for sign in found)
        return measured(f"{plural(len(found), 'sign')} of collapse: {said}", *(s.evidence[0] for s in found))
    values = rows[-1].measures if rows else {}
    newest = ", ".join(f"{name.replace('_', ' ')} {value:.3g}" for name, value in sorted(values.items()))
    return absent(
        f"no sign of collapse is on record (the newest step: {newest})" if newest else "no step tells of collapse",
        rows[-1].evidence if rows else None,
    )


def agreement(case: Case) -> Measured:
    passes, sample = case.rollouts.passes, case.rollouts.sample
    rate = f"{sum(passes)} of the newest {len(passes)} scored trials pass" if passes else "no trial was scored"
    said = f"{rate}, {sample.incoherent} of {sample.read} outputs are incoherent"
    return measured(f"the trials do not tell of collapse: {said}", case.rollouts.newest_scored)


MEASURES: dict[str, Callable[[Case], Measured]] = {
    "case.facts.facts.mode": mode,
    "agentic(case)": attempts_leave_artifacts,
    "unread_gaps(case)": unreadable,
    "prevalence(case, hits_of(ADD_TESTS), CONTAINER_SHARE)": share_of(
        hits_of(ADD_TESTS), f"ended in {ADD_TESTS}", CONTAINER_SHARE
    ),
    "prevalence(case, verifier_hits, VERIFIER_SHARE, of=reached_verifier)": share_of(
        verifier_hits, "that reached the verifier failed there", VERIFIER_SHARE, reached_verifier
    ),
    "_prevailing_infra(case)": commonest,
    "_incoherent_sample(case)": incoherence,
    "case.rollouts.incoherent": incoherence,
    "case.rollouts.coherent": incoherence,
    "dead_loop(case)": turns,
    "empty_attempts(case)": turns,
    "silent_since_start(case)": turns,
    "case.rollouts.metrics.newest": reward_metrics,
    "case.rollouts.metrics.steps": reward_metrics,
    "case.rollouts.metrics.newest_positive": reward_metrics,
    "case.rollouts.metrics.zero": reward_metrics,
    "case.rollouts.listing": listing,
    "case.rollouts.listing.ended": listing,
    "case.rollouts.listing_evidence": listing,
    "case.rollouts.first_started_us": first_start,
    "first_trial_allowed(case)": first_trial_allowance,
    "case.rollouts.newest_started": ended,
    "case.rollouts.newest_ended": ended,
    "case.rollouts.newest_scored": ended,
    "case.rollouts.newest_rewarded": ended,
    "case.dynamics.window": window,
    "case.dynamics.unreadable_evidence": torn,
    "case.dynamics.non_finite": non_finite,
    "signs_of(case)": signs,
    "trials_agree(case)": agreement,
}
COUNTS = {
    "case.rollouts.started": "started trial",
    "case.rollouts.unreadable": "unreadable trial",
    "case.rollouts.ended": "ended trial",
    "case.rollouts.scored": "scored trial",
    "case.rollouts.rewarded": "rewarded trial",
    "case.rollouts.sample.read": "read output",
    "case.rollouts.sample.incoherent": "incoherent output",
    "case.dynamics.unreadable": "unreadable metrics record",
}
