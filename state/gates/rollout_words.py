"""How gate C says its counts: rewards, exceptions, bursts, and the duty cycle with its numbers."""

from extractors.record import Evidence, SourceKind
from state.case import Case
from state.gate import Gap
from state.gates.slots import burst_evidence, noted_bursts
from state.wording import plural

EXCEPTIONS_SAID = 3
GAPS_SAID = 5
_PARTS = {
    "llm": "LLM",
    "tool": "tools",
    "lifecycle": "sandbox life cycle",
    "verifier": "verifier",
    "idle": "idle",
}


def rewards_said(case: Case) -> str:
    """The attempts' rewards in words."""
    seen = case.rollouts
    return f"{seen.rewarded} of {seen.scored} scored attempts have a reward above 0 ({seen.ended} ended)"


def bursts_said(case: Case) -> str:
    """The transient bursts, each a half sentence after a semicolon; empty where there is none."""
    return "".join(f"; {burst.said}" for burst in noted_bursts(case))


def bursts_shown(case: Case) -> tuple[Evidence, ...]:
    """A quoted file for each burst that `bursts_said` names."""
    return burst_evidence(case, noted_bursts(case))


def notes(case: Case) -> tuple[str, ...]:
    """What stands beside the ruling: the commonest exceptions, the duty cycle."""
    return tuple(note for note in (_exceptions(case), _duty_cycle(case)) if note)


def unread_gaps(case: Case) -> tuple[Gap, ...]:
    """The artifacts that could not be read, beside a ruling that stands without them."""
    seen = case.rollouts
    torn = {path: case.coverage.sources[path] for path in case.coverage.incomplete}
    gaps = [
        Gap(f"the trials in {path}", "; ".join(source.gaps) or "not read to the end")
        for path, source in torn.items()
        if source.kind is SourceKind.TRIAL
    ]
    if seen.unreadable:
        where = f" ({seen.unreadable_evidence.source})" if seen.unreadable_evidence else ""
        gaps.insert(0, Gap(f"the artifacts of {plural(seen.unreadable, 'trial')}", f"{seen.unreadable_why}{where}"))
    return tuple(gaps[:GAPS_SAID])


def _exceptions(case: Case) -> str:
    counted = sorted(case.rollouts.exceptions.items(), key=lambda item: (-item[1].count, item[0]))
    if not counted:
        return ""
    said = ", ".join(f"{name} {count.count}" for name, count in counted[:EXCEPTIONS_SAID])
    more = "" if len(counted) <= EXCEPTIONS_SAID else f" and {len(counted) - EXCEPTIONS_SAID} more types"
    return f"exceptions among {case.rollouts.ended} ended: {said}{more}"


def _duty_cycle(case: Case) -> str:
    """The median shares with their numbers; the word churn only where the numbers carry it."""
    duty = case.duty_cycle
    if not duty.trials:
        return ""
    shares = ", ".join(f"{word} {duty.shares[part].median:.0%}" for part, word in _PARTS.items() if part in duty.shares)
    setup = (
        f", setup {duty.setup_seconds.median:.0f} s (p90 {duty.setup_seconds.p90:.0f} s)" if duty.setup_seconds else ""
    )
    races = f", {duty.release_races} verifiers finished after their trial (release race)" if duty.release_races else ""
    churn = f"; sandbox churn: {duty.churn}" if duty.churn else ""
    return f"duty cycle over {plural(duty.trials, 'trial')} (medians): {shares}{setup}{races}{churn}"
