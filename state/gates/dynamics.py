"""Gate D: does training still learn? Advisory and permissive (GATES, Gate D). A plateau is never a failure."""

from collections.abc import Callable

from extractors.record import Evidence
from state.case import Case
from state.gate import Gap, Gate, Ruling, failed, not_applicable, passed, unjudged
from state.gates.collapse import Sign, entropy_off, gradient_blown, log_ratio_blown, pass_rate_fallen, trials_agree
from state.gates.dynamics_words import leading_said, table_said, window_said
from state.over import job_over
from state.policy import NON_FINITE_STEPS, SIGNS_NEEDED, WINDOW_FEWEST, Stage
from state.trackers.dynamics import DynamicsView
from state.wording import plural

_LOOKS: tuple[Callable[[DynamicsView], Sign | None], ...] = (gradient_blown, entropy_off, log_ratio_blown)


def over(case: Case) -> Ruling | None:
    """N/A: the job is over."""
    evidence = job_over(case)
    return None if evidence is None else not_applicable("OVER", "the job is over", evidence)


def metrics_torn(case: Case) -> Ruling | None:
    """A window that would be there, were its records readable: ERROR, never a default."""
    seen = case.dynamics
    enough = len(seen.window) >= WINDOW_FEWEST
    if enough or seen.unreadable_evidence is None or len(seen.window) + seen.unreadable < WINDOW_FEWEST:
        return None
    gap = Gap(f"the metrics of {plural(seen.unreadable, 'step')}", seen.unreadable_why)
    return unjudged(
        "INCOMPLETE",
        f"{plural(seen.unreadable, 'metrics record')} can't be read, {len(seen.window)} could",
        gap,
        evidence=(seen.unreadable_evidence,),
    )


def insufficient(case: Case) -> Ruling | None:
    """Needs a window of ≥ 10 completed steps, else PASS INSUFFICIENT, quoting what there is."""
    seen = case.dynamics
    if len(seen.window) >= WINDOW_FEWEST:
        return None
    evidence = seen.window[-1].evidence if seen.window else _quotable(case)
    if evidence is None:
        gap = Gap("per-step metrics", "no metrics line, no trainer line, no bring-up line and no state poll was read")
        return unjudged("INCOMPLETE", "nothing was read that could be quoted", gap)
    counted = f"{plural(len(seen.window), 'step')} with metrics, {WINDOW_FEWEST} are needed"
    window = f"{counted}{leading_said(seen)}{table_said(seen)}"
    return passed("INSUFFICIENT", window, evidence, missing=_torn(seen))


def non_finite(case: Case) -> Ruling | None:
    """Non-finite loss or gradient in ≥ 2 steps of the newest third is enough by itself."""
    rows = case.dynamics.non_finite
    if len(rows) < NON_FINITE_STEPS:
        return None
    names = sorted({name.replace("_", " ") for row in rows for name in row.non_finite})
    steps = ", ".join(str(row.step) for row in rows)
    return failed(
        "COLLAPSED",
        f"the {' and '.join(names)} of {plural(len(rows), 'step')} (newest {steps}) are not finite "
        f"numbers{window_said(case.dynamics)}",
        *(row.evidence for row in rows[:1] + rows[-1:]),
        fix=f"relaunch from the last checkpoint before step {rows[0].step}; hold until the batch and the ratio that "
        "gave the non-finite value are known (clip the ratio, lower the learning rate)",
    )


def collapsed(case: Case) -> Ruling | None:
    """At least two signs hold in the window, trial evidence agrees, and the newest third does not recover."""
    signs = signs_of(case)
    if len(signs) < SIGNS_NEEDED or not trials_agree(case):
        return None
    return failed(
        "COLLAPSED",
        f"{'; '.join(sign.says for sign in signs)}; the trials agree and the newest third of the window does not "
        f"recover{window_said(case.dynamics)}",
        *dict.fromkeys(evidence for sign in signs for evidence in sign.evidence),
        fix="watch the next steps closely; if they do not recover, go back to the checkpoint before the first quoted "
        "step with a lower learning rate or a tighter ratio clip",
    )


def steady(case: Case) -> Ruling:
    """Else STEADY. Signs that stand alone, or against the trials, are noted."""
    seen = case.dynamics
    signs = signs_of(case)
    lone = f"; {'; '.join(sign.says for sign in signs)}, which alone is no collapse" if signs else ""
    first, newest = seen.window[0], seen.window[-1]
    return passed(
        "STEADY",
        f"{plural(len(seen.window), 'step')} in the window ({first.step}–{newest.step}), no collapse{lone}"
        f"{window_said(seen)}",
        newest.evidence,
        first.evidence,
        missing=_torn(seen),
    )


def signs_of(case: Case) -> list[Sign]:
    """The signs of collapse that hold in the window."""
    found = [look(case.dynamics) for look in _LOOKS] + [pass_rate_fallen(case)]
    return [sign for sign in found if sign is not None]


def _quotable(case: Case) -> Evidence | None:
    """What there is: in bring-up its newest line, else the newest trainer line, else the state poll."""
    bring_up, trainer = case.freshness.bring_up, case.phases.newest or case.freshness.progress
    in_bring_up = case.phases.stage is Stage.BRING_UP
    places = (bring_up, trainer) if in_bring_up else (trainer, bring_up)
    return next((place for place in (*places, case.scheduler.state_evidence) if place is not None), None)


def _torn(seen: DynamicsView) -> tuple[Gap, ...]:
    if not seen.unreadable:
        return ()
    return (Gap(f"the metrics of {plural(seen.unreadable, 'step')}", seen.unreadable_why),)


DYNAMICS = Gate("D", "dynamics", clauses=(over, metrics_torn, insufficient, non_finite, collapsed, steady))
