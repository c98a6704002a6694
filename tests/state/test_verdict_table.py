"""The verdict's table, over every combination of gate states and ledgers."""

from itertools import product

import pytest

from extractors.record import Evidence
from state.decision import Decision, decide
from state.gate import Gap, Ruling, Status, failed, not_applicable, passed, unjudged
from state.trackers.restarts import RestartPattern

PLACE = Evidence("phase_started", "finelog.log", 1, 0, None, "Started: 'step'")


def ruling(status: Status) -> Ruling:
    match status:
        case Status.PASS:
            return passed("ALIVE", "fresh", PLACE)
        case Status.FAIL:
            return failed("DEAD", "gone", PLACE, fix="look")
        case Status.ERROR:
            return unjudged("INCOMPLETE", "unknown", Gap("the state poll", "none came"))
        case Status.NOT_APPLICABLE:
            return not_applicable("OVER", "over")


@pytest.mark.parametrize("ledger", list(RestartPattern))
@pytest.mark.parametrize("non_finite", [False, True])
def test_every_combination_rules_as_the_page_says(ledger: RestartPattern, non_finite: bool) -> None:
    for states in product(Status, repeat=4):
        rulings = dict(zip("ABCD", map(ruling, states), strict=True))
        decision, deciding = decide(ledger, rulings, non_finite)
        abc, d = states[:3], states[3]
        if ledger is RestartPattern.SAME_FAILURE:
            assert (decision, deciding) == (Decision.KILL, "restarts")
        elif Status.FAIL in abc:
            assert (decision, deciding) == (Decision.KILL, "ABC"[abc.index(Status.FAIL)])
        elif d is Status.FAIL and non_finite:
            assert (decision, deciding) == (Decision.KILL, "D")
        elif Status.ERROR in abc:
            assert (decision, deciding) == (Decision.ERROR, "ABC"[abc.index(Status.ERROR)])
        else:
            assert decision is Decision.NO_KILL


@pytest.mark.parametrize("status", [Status.PASS, Status.FAIL])
def test_a_pass_or_fail_without_evidence_cannot_be_built(status: Status) -> None:
    with pytest.raises(ValueError, match="without evidence"):
        Ruling(status, "ALIVE", "because")


def test_an_error_that_misses_nothing_cannot_be_built() -> None:
    with pytest.raises(ValueError, match="must say what is missing"):
        Ruling(Status.ERROR, "INCOMPLETE", "because", evidence=(PLACE,))


def test_the_shortcuts_cannot_be_talked_out_of_evidence() -> None:
    with pytest.raises(ValueError, match="without evidence"):
        passed("ALIVE", "fresh")
    with pytest.raises(ValueError, match="without evidence"):
        failed("DEAD", "gone", fix="look")
    with pytest.raises(ValueError, match="missing"):
        unjudged("INCOMPLETE", "unknown")
