"""Gate C by the trainer's reward metrics, which speak for standard mode.

Where attempts leave artifacts, these must be opened; a metric may then only keep a job from being failed for want of
reward.
"""

from state.case import Case
from state.gate import Ruling, failed, not_applicable, passed
from state.gates.rollout_words import bursts_said, bursts_shown, notes, unread_gaps
from state.policy import MANY_COMPLETED, NO_REWARD_STEPS
from state.wording import plural

STANDARD = "standard"


def agentic(case: Case) -> bool:
    """Whether attempts leave artifacts: by job.toml, else by what the generator's log and the listings tell."""
    mode, seen = case.facts.facts.mode, case.rollouts
    if mode:
        return mode != STANDARD
    return bool(seen.started or seen.unreadable or seen.announced or seen.logged or seen.listing)


def standard_without_metrics(case: Case) -> Ruling | None:
    """Standard mode: N/A only if there are no reward metrics."""
    seen = case.rollouts
    if case.facts.facts.mode != STANDARD or seen.metrics.steps or seen.started:
        return None
    return not_applicable("OVER", "standard mode without reward metrics: there is nothing to judge rollouts by")


def learning_by_metrics(case: Case) -> Ruling | None:
    """Standard mode: a reward metric above 0 is LEARNING."""
    return None if agentic(case) else _rewarded_by_metrics(case)


def contradicted_by_metrics(case: Case) -> Ruling | None:
    """Opened trials that all have reward 0, and a reward metric above 0: they are a sample that missed the rewarded
    ones, and no want of signal is concluded from it."""
    return _rewarded_by_metrics(case) if case.rollouts.scored >= MANY_COMPLETED else None


def _rewarded_by_metrics(case: Case) -> Ruling | None:
    seen, trials = case.rollouts.metrics, case.rollouts
    if seen.newest_positive is None or trials.rewarded:
        return None
    opened = f"; {plural(trials.ended, 'trial')} opened, none of them rewarded" if trials.ended else ""
    shown = dict.fromkeys(place for place in (seen.newest, trials.newest_ended) if place is not None)
    return passed(
        "LEARNING",
        f"the trainer's reward metrics are above 0 in {seen.positive} of {seen.steps} steps (newest mean "
        f"{seen.newest_reward:.3g}){opened}{bursts_said(case)}",
        seen.newest_positive,
        *(place for place in shown if place != seen.newest_positive),
        *bursts_shown(case),
        missing=unread_gaps(case),
        notes=notes(case),
        allowance=bool(opened),
    )


def no_signal_by_metrics(case: Case) -> Ruling | None:
    """Standard mode: ten steps whose reward metrics are all 0 are NO_SIGNAL."""
    seen = case.rollouts.metrics
    if agentic(case) or seen.newest is None or seen.steps < NO_REWARD_STEPS or seen.zero < seen.steps:
        return None
    said = f"the trainer's mean reward is 0 in all {seen.steps} steps"
    return failed(
        "NO_SIGNAL",
        f"{said}: nothing tells a good answer from a bad one",
        seen.newest,
        fix="score a known-good answer by hand with the reward function; hold the relaunch until it is above 0",
    )


def early_by_metrics(case: Case) -> Ruling | None:
    """Standard mode: fewer steps without reward are EARLY."""
    seen = case.rollouts.metrics
    if agentic(case) or seen.newest is None:
        return None
    return passed(
        "EARLY",
        f"{plural(seen.steps, 'step')} with reward metrics, none above 0 yet (newest mean {seen.newest_reward:.3g})",
        seen.newest,
        allowance=True,
    )
