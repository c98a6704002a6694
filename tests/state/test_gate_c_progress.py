"""Gate C, rules 0–2 and 9–12, and the trainer's reward metrics: too early, nothing to learn, learning."""

from extractors.coherence import Coherence
from extractors.harbor import BatchCompleted, RolloutsStarted
from extractors.harbor_trials import TrialStarted
from extractors.polls import JobState, TrialsListed
from extractors.record import Observation, SourceFailed, SourceKind
from extractors.trainer import PhaseStarted
from state.gate import Status
from tests.builders import polled, saw
from tests.state.rollout_cases import (
    MINUTE,
    coming_up,
    declared,
    ended,
    gate_c,
    many,
    running,
    started,
    step,
    timed,
    unreadable,
)


def test_bring_up_is_early_and_quotes_its_line() -> None:
    ruling = gate_c(declared(), polled(5, JobState.RUNNING), coming_up(400))
    assert (ruling.status, ruling.condition) == (Status.PASS, "EARLY")
    assert ruling.reason.startswith("0 started")
    assert "Ray nodes alive" in ruling.evidence[0].quote
    assert ruling.allowance


def test_nothing_started_and_no_bring_up_line_is_incomplete() -> None:
    ruling = gate_c(declared(), polled(5, JobState.RUNNING))
    assert (ruling.status, ruling.condition) == (Status.ERROR, "INCOMPLETE")
    assert ruling.missing


def test_torn_results_alone_are_unread_and_beside_good_ones_a_gap() -> None:
    alone = gate_c(*running(), unreadable(1800, "a__1"), unreadable(1801, "b__2"))
    assert (alone.status, alone.condition) == (Status.ERROR, "UNREAD")
    beside = gate_c(*running(), unreadable(1800, "a__1"), *many(3, 1900, 10, reward=1.0))
    assert beside.condition == "LEARNING"
    assert "unexpected end" in beside.missing[0].why


def test_a_torn_result_that_is_whole_later_is_no_gap() -> None:
    ruling = gate_c(*running(), unreadable(1800, "a__1"), ended(1860, "a__1", reward=1.0))
    assert ruling.condition == "LEARNING"
    assert not ruling.missing


def test_started_trials_are_early_within_the_first_trial_allowance_and_incomplete_past_it() -> None:
    trials = (started(400, "a__1"), started(420, "b__2"))
    young = gate_c(*running(), *trials, now=80 * MINUTE)
    assert (young.condition, young.reason.split(" since")[0]) == ("EARLY", "2 started, 0 completed")
    old = gate_c(*running(), *trials, now=100 * MINUTE)
    assert (old.status, old.condition) == (Status.ERROR, "INCOMPLETE")
    assert gate_c(*running(expect={"first_trial": 3 * 3600.0}), *trials, now=100 * MINUTE).condition == "EARLY"


def test_past_the_allowance_empty_attempts_are_a_dead_loop_and_unscored_ones_incomplete() -> None:
    empty = many(20, 600, 60, exception="AgentTimeoutError", turns=None, tokens=0)
    assert gate_c(*running(), *empty, now=120 * MINUTE).condition == "DEAD_LOOP"
    busy = many(20, 600, 60, exception="AgentTimeoutError")
    ruling = gate_c(*running(), *busy, now=120 * MINUTE)
    assert (ruling.status, ruling.condition) == (Status.ERROR, "INCOMPLETE")


def test_sixty_four_zeros_with_sensible_outputs_are_hard_tasks() -> None:
    zeros = many(63, 1800, 60, reward=0.0)
    ruling = gate_c(*running(), *zeros, ended(9000, "z__1", reward=0.0, coherence=Coherence.COHERENT))
    assert (ruling.status, ruling.condition) == (Status.PASS, "HARD_TASKS")
    assert ruling.allowance


def test_sixty_four_zeros_with_unread_outputs_are_no_signal() -> None:
    assert gate_c(*running(), *many(64, 1800, 60, reward=0.0)).condition == "NO_SIGNAL"
    assert gate_c(*running(), *many(63, 1800, 60, reward=0.0)).condition == "EARLY"


def test_one_reward_is_learning() -> None:
    ruling = gate_c(*running(), *many(80, 1800, 60, reward=0.0), ended(9000, "z__1", reward=0.5))
    assert (ruling.status, ruling.condition) == (Status.PASS, "LEARNING")
    assert "1 of 81 scored" in ruling.reason
    assert '"reward": 0.5' in ruling.evidence[0].quote


def test_earlier_attempts_do_not_count() -> None:
    restarted = polled(9000, JobState.RUNNING, failures=1)
    ruling = gate_c(*running(), *many(80, 1800, 60, reward=1.0), restarted, coming_up(9010))
    assert ruling.condition == "EARLY"
    assert ruling.reason.startswith("0 started")


def test_over_is_not_applicable() -> None:
    ruling = gate_c(*running(), *many(3, 1800, 60, reward=1.0), polled(4000, JobState.FAILED))
    assert (ruling.status, ruling.condition) == (Status.NOT_APPLICABLE, "OVER")


def test_attempts_that_never_wrote_a_word_are_a_dead_loop_past_the_allowance() -> None:
    def silent(count: int, known: bool | None) -> list[Observation]:
        return [saw(400 + n, TrialStarted(f"t__{n:07d}", known), source=f"trace_jobs/t{n}") for n in range(count)]

    assert gate_c(*running(), *silent(8, True), now=80 * MINUTE).condition == "EARLY"
    ruling = gate_c(*running(), *silent(8, True), now=100 * MINUTE)
    assert (ruling.status, ruling.condition) == (Status.FAIL, "DEAD_LOOP")
    assert ruling.evidence[0].source.startswith("trace_jobs/")
    assert gate_c(*running(), *silent(8, None), now=100 * MINUTE).condition == "INCOMPLETE"
    assert gate_c(*running(), *silent(8, False), now=100 * MINUTE).condition == "INCOMPLETE"


def test_the_first_trials_allowance_begins_with_the_trainers_first_phase() -> None:
    begun = saw(0, TrialStarted("t__0000001"), source="trace_jobs/t", quote="{")
    late = saw(40 * MINUTE, PhaseStarted("step"), quote="Started: 'step'")
    up = (declared(), polled(5, JobState.RUNNING), coming_up())
    assert gate_c(*up, begun, late, now=120 * MINUTE).condition == "EARLY"
    assert gate_c(*up, begun, late, now=131 * MINUTE).condition == "INCOMPLETE"


def test_a_listing_that_nobody_opened_proves_nothing() -> None:
    listed = saw(2000, TrialsListed(started=90, ended=70, newest_us=None), source="polls/trials.jsonl")
    assert gate_c(*running(), listed).condition == "UNREAD"
    begun = saw(2000, TrialsListed(started=90, ended=0, newest_us=None), source="polls/trials.jsonl")
    assert gate_c(*running(), begun).condition == "EARLY"


def test_log_lines_of_attempts_without_their_files_are_early_and_incomplete_past_the_allowance() -> None:
    said = (saw(400, RolloutsStarted(64)), saw(2000, BatchCompleted(successful=6, total=8, failed=1, masked=1)))
    assert gate_c(*running(), *said).condition == "EARLY"
    ruling = gate_c(*running(), *said, now=100 * MINUTE)
    assert (ruling.status, ruling.condition) == (Status.ERROR, "INCOMPLETE")
    assert len(ruling.evidence) == 2


def test_reward_metrics_do_not_stand_in_for_trials_that_nobody_opened() -> None:
    unopened = gate_c(*running(), step(1, 1700))
    assert (unopened.status, unopened.condition) == (Status.ERROR, "INCOMPLETE")
    assert "1 of 1 steps" in unopened.reason
    assert gate_c(*running(), step(1, 1700), started(1800, "a__1")).condition == "EARLY"
    assert gate_c(*running(), step(1, 1700), *many(5, 1800, 10, reward=0.0)).condition == "EARLY"
    listed = saw(2000, TrialsListed(started=90, ended=70, newest_us=None), source="polls/trials.jsonl")
    assert gate_c(*running(), step(1, 1700), listed).condition == "UNREAD"


def test_trials_without_reward_beside_positive_reward_metrics_are_no_want_of_signal() -> None:
    zeros = many(64, 1800, 10, reward=0.0)
    ruling = gate_c(*running(), step(1, 1700), *zeros)
    assert (ruling.condition, ruling.allowance) == ("LEARNING", True)
    assert "none of them rewarded" in ruling.reason
    assert gate_c(*running(), step(1, 1700, reward=0.0), *zeros).condition == "NO_SIGNAL"


def test_an_archive_that_could_not_be_read_is_unread() -> None:
    torn = saw(1800, SourceFailed(SourceKind.TRIAL, "the gzip tail is damaged"), source="job_trace_jobs.tar.gz")
    ruling = gate_c(*running(), torn)
    assert (ruling.status, ruling.condition) == (Status.ERROR, "UNREAD")
    assert "gzip tail" in ruling.missing[0].why
    beside = gate_c(*running(), *many(3, 1700, 10, reward=1.0), torn)
    assert (beside.condition, len(beside.missing)) == ("LEARNING", 1)


def test_standard_mode_learns_by_its_reward_metrics() -> None:
    ruling = gate_c(*running(mode="standard"), step(1, 2000), step(2, 4000, reward=0.4))
    assert (ruling.status, ruling.condition) == (Status.PASS, "LEARNING")
    assert "2 of 2 steps" in ruling.reason


def test_standard_mode_without_any_reward_is_early_then_no_signal() -> None:
    zeros = [step(n, reward=0.0) for n in range(1, 11)]
    assert gate_c(*running(mode="standard"), *zeros[:9]).condition == "EARLY"
    assert gate_c(*running(mode="standard"), *zeros).condition == "NO_SIGNAL"
    assert gate_c(*running(), *zeros).status is Status.ERROR


def test_standard_mode_is_not_applicable_only_without_metrics() -> None:
    assert gate_c(*running(mode="standard")).status is Status.NOT_APPLICABLE
    assert gate_c(declared(mode="standard"), polled(5, JobState.RUNNING), coming_up(400)).condition == "EARLY"


def test_the_duty_cycle_is_said_with_numbers_and_without_numbers_there_is_no_churn() -> None:
    bare = gate_c(*running(), *many(3, 1800, 60, reward=1.0))
    assert not any("duty" in note or "churn" in note for note in bare.notes)
    slow = many(30, 1800, 120, reward=1.0, timing=timed(100, 20, 50, 10, 5, 10))
    assert any("LLM 50%" in note and "sandbox churn" in note for note in gate_c(*running(), *slow).notes)
