"""Gate C, the rules that fail a job on its attempts (GATES, Gate C rules 3–8). One function a rule."""

from extractors.record import Evidence, SourceKind
from state.case import Case
from state.exceptions import ADD_TESTS, FIXES, Trouble, is_infrastructure, trouble_of
from state.gate import Excuse, Ruling, failed
from state.gates.rollout_words import notes
from state.gates.slots import Prevalence, burst_of, hits_of, present_slots, prevalence
from state.policy import (
    CONTAINER_SHARE,
    DEAD_LOOP_EMPTY,
    DEAD_LOOP_TURNS,
    ENDED_FEWEST,
    INCOHERENT_FEWEST,
    INCOHERENT_SHARE,
    INFRA_SHARE,
    INFRA_SLOTS,
    VERIFIER_SHARE,
)
from state.trackers.bursts import Slot
from state.trackers.outcomes import Sample
from state.wording import plural

RELOAD_LINES = "the weight-reload bracket lines (begin and finish of the reload)"


def container_fault(case: Case) -> Ruling | None:
    """3: ≥ 20 ended and ≥ 95 % with the add-tests error: the sandbox was never created. Not the data."""
    prevailing = prevalence(case, hits_of(ADD_TESTS), CONTAINER_SHARE)
    if prevailing is None:
        return None
    return failed(
        "CONTAINER_FAULT",
        f"{prevailing.hits} of {prevailing.of} ended attempts since {prevailing.since} died of {ADD_TESTS}: their "
        "sandbox was never created, so nothing that the model did was ever graded. It is the container image, not "
        "the tasks",
        *_quoted(case, ADD_TESTS),
        fix="compare the image's provider dependencies with the last good image and prove the repaired image by "
        "creating one sandbox; hold the relaunch until that one sandbox comes up",
        notes=notes(case),
    )


def infra_fault(case: Case) -> Ruling | None:
    """4: ≥ 20 ended and ≥ 90 % with one other infrastructure exception, present in ≥ 2 slots."""
    found = _prevailing_infra(case)
    return None if found is None else _infra_fault(case, *found)


def _prevailing_infra(case: Case) -> tuple[str, Prevalence] | None:
    """The exception that prevails; one that is no burst before one that is."""
    found = []
    for name in _commonest(case):
        prevailing = prevalence(case, hits_of(name), INFRA_SHARE)
        if prevailing is not None and present_slots(prevailing, hits_of(name)) >= INFRA_SLOTS:
            found.append((name, prevailing))
    return min(found, key=lambda pair: burst_of(case.bursts.attempt, pair[0]) is not None, default=None)


def _infra_fault(case: Case, name: str, prevailing: Prevalence) -> Ruling:
    trouble = trouble_of(name)
    return failed(
        "INFRA_FAULT",
        f"{prevailing.hits} of {prevailing.of} ended attempts since {prevailing.since} died of {name} (a matter of "
        f"{_MATTERS[trouble]}), in {plural(present_slots(prevailing, hits_of(name)), 'slot')}: it is steady, no burst",
        *_quoted(case, name),
        fix=f"{FIXES[trouble]}; hold the relaunch until then",
        notes=notes(case),
    )


_MATTERS = {
    Trouble.INFRA: "the environments' infrastructure",
    Trouble.ENDPOINT: "the model's endpoint",
    Trouble.CONFIG: "the configuration",
}


def _burst_shown(case: Case) -> Evidence | None:
    """5: the same, but ≥ 80 % of it inside one slot and clean before or after."""
    found = _prevailing_infra(case)
    if found is None or burst_of(case.bursts.attempt, found[0]) is None:
        return None
    return case.rollouts.exceptions[found[0]].first


TRANSIENT_BURST = Excuse(
    "transient-burst",
    mutes=("INFRA_FAULT",),
    shows=_burst_shown,
    why="at least 80 % of the exception sits inside one 10-minute slot, with clean attempts before or after it",
)


def verifier_fault(case: Case) -> Ruling | None:
    """6: verifier errors or timeouts in ≥ 90 % of scored attempts (at least 20 that reached the verifier)."""
    prevailing = prevalence(case, verifier_hits, VERIFIER_SHARE, of=reached_verifier)
    if prevailing is None:
        return None
    names = [name for name in _by_count(case) if trouble_of(name) is Trouble.VERIFIER]
    return failed(
        "VERIFIER_FAULT",
        f"the verifier failed in {prevailing.hits} of {prevailing.of} attempts that reached it since "
        f"{prevailing.since} ({', '.join(names[:3])}), so hardly a reward was given",
        *(evidence for name in names[:3] for evidence in _quoted(case, name)),
        fix="run the verifier of one quoted trial by hand in its own environment, repair it or its time limit; hold "
        "the relaunch until one known-good solution is scored above 0",
        notes=notes(case),
    )


def verifier_hits(slot: Slot) -> int:
    """Attempts of a slot that the verifier failed."""
    return sum(count for name, count in slot.exceptions.items() if trouble_of(name) is Trouble.VERIFIER)


def reached_verifier(slot: Slot) -> int:
    """Attempts of a slot that were scored or that the verifier failed."""
    return slot.ended - sum(slot.exceptions.values()) + verifier_hits(slot)


def incoherent(case: Case) -> Ruling | None:
    """7: outputs incoherent in ≥ 50 % of ≥ 5 read attempts. After a weight sync of a mixture-of-experts model the
    reload bracket lines are looked at first."""
    seen = _incoherent_sample(case)
    if seen is None or not case.rollouts.incoherent:
        return None
    said, shown = _reload_bracket(case)
    return failed(
        "INCOHERENT",
        f"{seen.incoherent} of the newest {seen.read} attempts whose output was read are incoherent (mixed scripts, "
        f"repetition or unbroken junk){said}",
        *case.rollouts.incoherent,
        *shown,
        fix="look first at the reload of the engines' weights after the sync (its begin and finish bracket), then "
        "compare one completion before and after a sync; hold the relaunch until an engine answers sensibly again",
        notes=notes(case),
    )


def _incoherent_sample(case: Case) -> Sample | None:
    """The attempts of which half and more are incoherent: all that are remembered, else the newest 20, since a weight
    sync may have begun it."""
    whole, recent = case.rollouts.sample, case.rollouts.recent
    if whole.read >= INCOHERENT_FEWEST and whole.incoherent >= INCOHERENT_SHARE * whole.read:
        return whole
    late = recent.read >= ENDED_FEWEST and recent.incoherent >= INCOHERENT_SHARE * recent.read
    return recent if late else None


def _reload_bracket(case: Case) -> tuple[str, tuple[Evidence, ...]]:
    """Whether the bracket lines are there, in words, with the lines or the place up to which they were looked for."""
    if case.facts.facts.architecture != "moe":
        return "", ()
    bracket = case.rollouts.reload_bracket
    edges = (("begin", bracket.begin), ("finish", bracket.finish))
    lines = tuple(evidence for _, evidence in edges if evidence is not None)
    looked = [case.coverage.absence(kind, RELOAD_LINES) for kind in (SourceKind.ACTOR, SourceKind.AGGREGATED)]
    places = () if len(lines) == len(edges) else tuple(place for place in looked if place is not None)[:1]
    if not lines and not places:
        return f"; no engine log was read in which {RELOAD_LINES} could stand", ()
    states = ", ".join(f"{edge} {'present' if evidence else 'absent'}" for edge, evidence in edges)
    return f"; {RELOAD_LINES} of this mixture-of-experts model: {states}", (*lines, *places)


def dead_loop(case: Case) -> Ruling | None:
    """8: average turns ≤ 1.2 over ≥ 20, or empty output in ≥ 80 %."""
    for seen in (case.rollouts.sample, case.rollouts.recent):
        if seen.turned >= ENDED_FEWEST and seen.turns is not None and seen.turns <= DEAD_LOOP_TURNS:
            return _dead_loop(case, f"the newest {seen.turned} attempts took {seen.turns:.1f} turns on average")
        if seen.measured >= ENDED_FEWEST and seen.empty >= DEAD_LOOP_EMPTY * seen.measured:
            return _dead_loop(case, f"{seen.empty} of the newest {seen.measured} attempts have empty output")
    return None


def _dead_loop(case: Case, said: str, *shown: Evidence) -> Ruling:
    evidence = shown or case.rollouts.empty or (case.rollouts.newest_ended,)
    return failed(
        "DEAD_LOOP",
        f"{said}: the agents give up at once, nothing is learnt from such attempts",
        *(place for place in evidence if place is not None),
        fix="send one request by hand through the agents' own route (endpoint address, chat template, stop tokens, "
        "parser) and read the first reply; hold the relaunch until an agent takes a second turn",
        notes=notes(case),
    )


def empty_attempts(case: Case) -> Ruling | None:
    """2, its second half: past the first-trial allowance, nothing scored and every known output empty."""
    seen = case.rollouts.sample
    if not seen.measured or seen.empty < seen.measured:
        return None
    return _dead_loop(case, f"all {seen.measured} attempts that ended in the first-trial allowance have empty output")


def silent_since_start(case: Case) -> Ruling | None:
    """2, its second half: past the first-trial allowance nothing completed, and every transcript on file is empty."""
    seen = case.rollouts
    if seen.started < INCOHERENT_FEWEST or seen.silent < seen.started or seen.newest_started is None:
        return None
    return _dead_loop(case, f"all {seen.started} attempts that started have written nothing", seen.newest_started)


def _by_count(case: Case) -> list[str]:
    counted = case.rollouts.exceptions
    return sorted(counted, key=lambda name: (-counted[name].count, name))


def _commonest(case: Case) -> list[str]:
    """The infrastructure exceptions other than the add-tests error, commonest first."""
    return [name for name in _by_count(case) if is_infrastructure(name) and name.rpartition(".")[2] != ADD_TESTS]


def _quoted(case: Case, name: str) -> tuple[Evidence, ...]:
    """The first and the newest file that was opened and says this exception, and the newest log line that agrees. Of a
    type beyond those that are remembered by name, the newest file that was opened."""
    counted, logged = case.rollouts.exceptions.get(name), case.rollouts.logged_exceptions.get(name)
    files = (counted.first, counted.newest) if counted is not None else (case.rollouts.newest_ended,)
    return tuple(dict.fromkeys(place for place in (*files, logged) if place is not None))
