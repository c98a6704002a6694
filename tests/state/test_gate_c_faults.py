"""Gate C, rules 3–8: what fails a job on its attempts, what stays quiet, and what only looks like it."""

import msgspec
import pytest

from extractors.coherence import Coherence
from extractors.harbor import TrajectoryFailed
from extractors.polls import JobState
from extractors.trainer import PhaseStarted
from extractors.vllm_reload import Edge, WeightReload
from state.exceptions import ADD_TESTS
from state.gate import Status
from tests.builders import case_after, polled, saw, us
from tests.state.rollout_cases import MINUTE, SLOT, ended, gate_c, in_time, many, running

HOUR = 60 * MINUTE


def test_twenty_trials_without_a_sandbox_are_a_container_fault_with_a_quoted_file() -> None:
    ruling = gate_c(*running(), *many(20, 1800, 60, exception="AddTestsDirError"))
    assert (ruling.status, ruling.condition) == (Status.FAIL, "CONTAINER_FAULT")
    assert all("AddTestsDirError" in place.quote for place in ruling.evidence)
    assert "creating one sandbox" in ruling.fix
    assert "provider dependencies" in ruling.fix
    assert "not the tasks" in ruling.reason


def test_a_log_line_that_agrees_is_a_second_source() -> None:
    line = saw(2000, TrajectoryFailed("AddTestsDirError", True), quote="failed (type=AddTestsDirError")
    ruling = gate_c(*running(), line, *many(20, 1800, 60, exception="AddTestsDirError"))
    assert {place.source.split("/")[0] for place in ruling.evidence} == {"trace_jobs", "finelog.log"}


def test_container_fault_waits_for_the_twentieth_trial() -> None:
    ruling = gate_c(*running(), *many(19, 1800, 60, exception="AddTestsDirError"))
    assert (ruling.status, ruling.condition) == (Status.PASS, "EARLY")


def test_add_tests_errors_below_95_percent_are_no_container_fault() -> None:
    ruling = gate_c(*running(), *many(27, 1800, 60, exception="AddTestsDirError"), *many(2, 1830, 60, reward=1.0))
    assert ruling.condition == "LEARNING"


def test_a_new_image_is_named_though_the_attempt_was_healthy_for_long() -> None:
    healthy = many(90, 1800, 60, reward=1.0)
    ruling = gate_c(*running(), *healthy, *many(30, 7200, 60, exception="AddTestsDirError"))
    assert ruling.condition == "CONTAINER_FAULT"


def test_a_steady_infrastructure_exception_is_named_from_a_quoted_file() -> None:
    ruling = gate_c(*running(), *many(30, 1800, 60, exception="DaytonaAuthenticationError"))
    assert (ruling.status, ruling.condition) == (Status.FAIL, "INFRA_FAULT")
    assert "30 of 30" in ruling.reason
    assert "DaytonaAuthenticationError" in ruling.reason
    assert ruling.evidence[0].source.startswith("trace_jobs/")


def test_an_infrastructure_exception_in_one_slot_is_not_yet_a_fault() -> None:
    ruling = gate_c(*running(), *many(40, 1800, 10, exception="DaytonaError"))
    assert (ruling.status, ruling.condition) == (Status.PASS, "EARLY")


@pytest.mark.parametrize("name", ["VerifierTimeoutError", "AgentTimeoutError", "SomethingNobodyKnowsError"])
def test_only_infrastructure_is_an_infrastructure_fault(name: str) -> None:
    ruling = gate_c(*running(), *many(30, 1800, 60, exception=name))
    assert ruling.condition != "INFRA_FAULT"


def test_trials_with_both_reward_and_exception_are_scored() -> None:
    ruling = gate_c(*running(), *many(30, 1800, 60, exception="AgentTimeoutError", reward=1.0))
    assert ruling.condition == "LEARNING"
    assert "30 of 30 scored" in ruling.reason


def burst() -> tuple[object, ...]:
    """Fifty-two 401s inside one slot, after an hour of rewards."""
    return many(52, 2 * HOUR + 60, 8, exception="DaytonaAuthenticationError")


def test_a_burst_in_one_slot_is_noted_and_no_fault_at_any_moment() -> None:
    healthy = many(60, HOUR, 60, reward=1.0)
    after = many(20, 2 * HOUR + SLOT, 30, reward=0.0)
    for seen in range(1, 53):
        ruling = gate_c(*running(), *healthy, *burst()[:seen])
        assert ruling.condition == "LEARNING"
    ruling = gate_c(*running(), *healthy, *burst(), *after)
    assert ruling.condition == "LEARNING"
    assert "52 DaytonaAuthenticationError sit in 1 slot (10:00–10:10Z), clean before and after" in ruling.reason
    assert "transient burst" in ruling.reason
    assert any("DaytonaAuthenticationError" in place.quote for place in ruling.evidence)


def test_a_burst_at_the_very_start_is_no_fault_while_its_stragglers_end() -> None:
    first = burst()
    for late in range(6):
        stragglers = many(late, 2 * HOUR + SLOT, 4, exception="DaytonaAuthenticationError")
        assert gate_c(*running(), *first, *stragglers).status is Status.PASS


def test_a_burst_over_a_slot_border_is_no_fault_either() -> None:
    healthy = many(60, HOUR, 60, reward=1.0)
    straddling = many(60, 2 * HOUR + SLOT - 200, 8, exception="DaytonaError")
    for seen in (20, 40, 60):
        assert gate_c(*running(), *healthy, *straddling[:seen]).condition == "LEARNING"
    assert "in 2 slots" in gate_c(*running(), *healthy, *straddling).reason


def test_a_large_burst_that_makes_up_90_percent_is_excused_by_clean_trials_before() -> None:
    healthy = many(10, HOUR, 60, reward=1.0)
    flood = many(200, 2 * HOUR, 2, exception="DaytonaError")
    stragglers = many(30, 2 * HOUR + SLOT, 5, exception="DaytonaError")
    ruling = gate_c(*running(), *healthy, *flood, *stragglers)
    assert ruling.condition == "LEARNING"
    assert any("transient-burst" in note for note in ruling.notes)


def test_an_outage_that_fills_three_slots_is_a_fault_though_the_attempt_was_healthy_before() -> None:
    healthy = many(100, HOUR, 30, reward=1.0)
    outage = many(90, 2 * HOUR, 20, exception="DaytonaError")
    assert gate_c(*running(), *healthy, *outage).condition == "INFRA_FAULT"


def test_a_burst_after_which_trials_are_clean_again_stays_a_note() -> None:
    outage = many(90, 2 * HOUR, 20, exception="DaytonaError")
    assert gate_c(*running(), *outage, *many(30, 2 * HOUR + 1900, 20, reward=1.0)).condition == "LEARNING"


def test_verifier_timeouts_in_nearly_every_scored_attempt_are_a_verifier_fault() -> None:
    timeouts = many(19, 1800, 60, exception="VerifierTimeoutError")
    ruling = gate_c(*running(), *timeouts, *many(1, 1850, 1, reward=0.0))
    assert (ruling.status, ruling.condition) == (Status.FAIL, "VERIFIER_FAULT")
    assert "VerifierTimeoutError" in ruling.evidence[0].quote


def test_attempts_that_never_reached_the_verifier_do_not_speak_for_it() -> None:
    timeouts = many(19, 1800, 60, exception="VerifierTimeoutError")
    assert gate_c(*running(), *timeouts, *many(40, 1830, 30, exception="AgentTimeoutError")).condition == "EARLY"


def test_token_salad_in_half_of_five_read_attempts_is_incoherent() -> None:
    salad = many(3, 1800, 60, reward=0.0, coherence=Coherence.INCOHERENT)
    sense = many(3, 2400, 60, reward=0.0, coherence=Coherence.COHERENT)
    assert gate_c(*running(), *salad, *sense).condition == "INCOHERENT"
    assert gate_c(*running(), *salad[:2], *sense).condition == "EARLY"


def test_salad_that_began_late_is_incoherent_by_the_newest_twenty() -> None:
    sense = many(60, 1800, 30, reward=1.0, coherence=Coherence.COHERENT)
    salad = many(10, 4000, 30, reward=0.0, coherence=Coherence.INCOHERENT)
    ruling = gate_c(*running(), *sense, *salad)
    assert (ruling.condition, "10 of the newest 20" in ruling.reason) == ("INCOHERENT", True)
    assert gate_c(*running(), *sense, *salad[:9]).condition == "LEARNING"


def test_incoherence_of_a_mixture_of_experts_says_whether_the_reload_bracket_is_there() -> None:
    salad = many(6, 1800, 60, reward=0.0, coherence=Coherence.INCOHERENT)
    absent = gate_c(*running(architecture="moe"), *salad)
    assert "begin absent, finish absent" in absent.reason
    assert any(place.searched for place in absent.evidence)
    begun = saw(
        1700, WeightReload(Edge.BEGIN), source="ray_session_logs/worker-a.out", quote="initialize_layerwise_reload"
    )
    assert "begin present, finish absent" in gate_c(*running(architecture="moe"), begun, *salad).reason
    assert "bracket" not in gate_c(*running(architecture="dense"), *salad).reason


def test_agents_that_give_up_after_one_turn_are_a_dead_loop() -> None:
    assert gate_c(*running(), *many(20, 1800, 60, reward=0.0, turns=1)).condition == "DEAD_LOOP"
    assert gate_c(*running(), *many(20, 1800, 60, reward=0.0, turns=2)).condition == "EARLY"


def test_a_dead_loop_that_began_late_shows_in_the_newest_twenty() -> None:
    healthy = many(60, 1800, 30, reward=1.0)
    assert gate_c(*running(), *healthy, *many(20, 4000, 30, reward=0.0, turns=1)).condition == "DEAD_LOOP"
    assert gate_c(*running(), *healthy, *many(19, 4000, 30, reward=0.0, turns=1)).condition == "LEARNING"


def test_empty_outputs_are_a_dead_loop_and_unknown_ones_are_not() -> None:
    assert gate_c(*running(), *many(20, 1800, 60, reward=0.0, turns=None, tokens=0)).condition == "DEAD_LOOP"
    assert gate_c(*running(), *many(20, 1800, 60, reward=0.0, turns=None, tokens=None)).condition == "EARLY"


def test_attempts_that_infrastructure_ended_are_no_dead_loop() -> None:
    ruling = gate_c(*running(), *many(25, 1800, 10, exception="DaytonaError", turns=0, tokens=0))
    assert ruling.condition == "EARLY"


def test_a_trial_seen_by_exception_and_then_by_result_counts_once() -> None:
    twice = (
        ended(1800, "fix-a__1", exception="AgentTimeoutError", file="exception.txt"),
        ended(1810, "fix-a__1", exception="AgentTimeoutError", reward=1.0),
    )
    ruling = gate_c(*running(), *twice)
    assert ruling.condition == "LEARNING"
    assert "1 of 1 scored attempts have a reward above 0 (1 ended)" in ruling.reason


def test_late_files_of_the_attempt_before_are_nobody_s_fault_now() -> None:
    died = many(25, 1000, 5, exception=ADD_TESTS)
    late = tuple(msgspec.structs.replace(seen, at_us=us(4000 + n)) for n, seen in enumerate(died))
    restart = (polled(3600, JobState.RUNNING, failures=1), saw(3600, PhaseStarted("generate"), attempt=1))
    assert gate_c(*running(), *died, now=3000).condition == "CONTAINER_FAULT"
    assert gate_c(*running(), *restart, *late, now=5000).status is not Status.FAIL
    case = case_after(*in_time((*running(), *restart, *late)), now=5000)
    assert (case.bursts.slots, case.duty_cycle.trials, case.rollouts.ended) == ((), 0, 0)


def test_an_exception_beyond_the_names_that_are_remembered_is_still_quoted() -> None:
    others = tuple(ended(1000 + n, f"other__{n}", exception=f"Odd{n}Error") for n in range(48))
    ruling = gate_c(*running(), *others, *many(600, 1800, 3, exception=ADD_TESTS))
    assert ruling.condition == "CONTAINER_FAULT"
    assert ruling.evidence
