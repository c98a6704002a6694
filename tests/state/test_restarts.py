"""The restart ledger."""

from extractors.metrics import StepMetrics
from extractors.signal import BringUp, Fault
from extractors.trainer import Ending, Resumed, StepsPlanned, TrainingDone
from state.trackers.facts import JobDeclared, JobFacts
from state.trackers.restarts import RestartPattern
from tests.builders import case_after, polled, saw, started

SHAPE = Fault("python_exception", "shape mismatch in lm_head", "ValueError", "forward")
OTHER = Fault("python_exception", "no such key", "KeyError", "collate")
PORT = Fault("ray_start_failed", "port in use")


def ledger(*observations):
    return case_after(*observations).restarts


def life(number, *, begins, dies_of=None, step=0):
    """One attempt: it comes up, banks a step, and dies."""
    said = [saw(begins, BringUp("staging"), attempt=number), started(begins + 60, "step", attempt=number)]
    if step:
        said.append(saw(begins + 100, StepMetrics(step, "train", {}), attempt=number))
    if dies_of is not None:
        said.append(saw(begins + 200, dies_of, attempt=number, pid=1000 + number))
    return said


def test_first_attempt_burns_nothing():
    seen = ledger(saw(0, JobDeclared(JobFacts(max_retries=2)), source="job.toml"), *life(0, begins=1))
    assert (seen.burned, seen.max, seen.remaining, seen.pattern) == (0, 2, 2, RestartPattern.NONE)


def test_single_death_has_no_pattern():
    seen = ledger(*life(0, begins=0, dies_of=SHAPE), *life(1, begins=600))
    assert (seen.burned, seen.pattern, seen.attempt) == (1, RestartPattern.NONE, 1)


def test_attempt_that_ended_the_job_is_burned():
    seen = ledger(*life(0, begins=0, dies_of=SHAPE), polled(300, "failed", failures=1))
    assert (seen.burned, seen.pattern) == (1, RestartPattern.NONE)


def test_job_that_exits_zero_without_being_done_is_burned():
    assert ledger(*life(0, begins=0), polled(300, "succeeded", failures=0)).burned == 1


def test_completed_job_burned_nothing():
    said = [saw(0, StepsPlanned(5)), *life(0, begins=1, step=5), saw(150, TrainingDone(Ending.DONE))]
    assert ledger(*said, polled(300, "succeeded")).burned == 0


def test_same_death_twice_dooms_the_job():
    seen = ledger(*life(0, begins=0, dies_of=SHAPE), *life(1, begins=600, dies_of=SHAPE), polled(900, "failed"))
    assert (seen.burned, seen.pattern) == (2, RestartPattern.SAME_FAILURE)
    assert len(seen.evidence) == 3


def test_same_death_of_two_ended_attempts_dooms_the_third():
    seen = ledger(
        *life(0, begins=0, dies_of=SHAPE), *life(1, begins=600, dies_of=SHAPE), saw(1200, BringUp("staging"), attempt=2)
    )
    assert seen.pattern is RestartPattern.SAME_FAILURE


def test_transient_death_twice_dooms_nobody():
    seen = ledger(*life(0, begins=0, dies_of=PORT), *life(1, begins=600, dies_of=PORT), polled(900, "failed"))
    assert seen.pattern is RestartPattern.NONE


def test_two_different_deaths():
    seen = ledger(*life(0, begins=0, dies_of=SHAPE), *life(1, begins=600, dies_of=OTHER), polled(900, "failed"))
    assert seen.pattern is RestartPattern.DIFFERENT_FAILURES


def test_unknown_cause_of_an_earlier_attempt_is_neutral():
    seen = ledger(*life(0, begins=0), *life(1, begins=600, dies_of=SHAPE), polled(900, "failed"))
    assert seen.pattern is RestartPattern.UNKNOWN


def test_progress_past_the_point_of_death_is_a_recovery():
    before = life(0, begins=0, dies_of=SHAPE, step=5)
    seen = ledger(*before, *life(1, begins=600, step=6))
    assert seen.pattern is RestartPattern.TRANSIENT_RECOVERED


def test_resuming_at_the_point_of_death_is_no_recovery_yet():
    before = life(0, begins=0, dies_of=SHAPE, step=5)
    seen = ledger(*before, *life(1, begins=600), saw(700, Resumed(5), attempt=1))
    assert seen.pattern is RestartPattern.NONE


def test_job_that_completes_after_the_same_death_twice_has_recovered():
    lives = [*life(0, begins=0, dies_of=SHAPE, step=5), *life(1, begins=600, dies_of=SHAPE, step=5)]
    last = [saw(0, StepsPlanned(5)), *life(2, begins=1200), saw(1300, Resumed(5), attempt=2)]
    done = [saw(1400, TrainingDone(Ending.ALREADY_COMPLETE), attempt=2), polled(1500, "succeeded")]
    assert ledger(*lives, *last, *done).pattern is RestartPattern.TRANSIENT_RECOVERED


def test_recovered_job_that_is_pre_empted_stays_recovered():
    lives = [*life(0, begins=0, dies_of=SHAPE, step=5), *life(1, begins=600, step=7)]
    assert ledger(*lives, polled(900, "preempted")).pattern is RestartPattern.TRANSIENT_RECOVERED


def test_recovery_wins_over_different_failures():
    lives = [*life(0, begins=0, dies_of=SHAPE, step=2), *life(1, begins=600, dies_of=OTHER, step=3)]
    assert ledger(*lives, *life(2, begins=1200, step=4)).pattern is RestartPattern.TRANSIENT_RECOVERED


def test_pre_emption_is_no_burn():
    said = [*life(0, begins=0), polled(250, "preempted", preemptions=1), *life(1, begins=600)]
    assert ledger(*said).burned == 0


def test_pre_emption_that_is_counted_after_the_new_attempt_began_is_no_burn():
    said = [polled(0, "running", preemptions=0), *life(0, begins=1), *life(1, begins=600)]
    assert ledger(*said).burned == 1
    assert ledger(*said, polled(700, "running", preemptions=1)).burned == 0


def test_pre_emption_within_an_attempt_says_nothing_of_the_one_before():
    said = [polled(0, "running", preemptions=0), *life(0, begins=1, dies_of=SHAPE), *life(1, begins=600)]
    counted = [polled(700, "running", preemptions=0), polled(800, "running", preemptions=1)]
    assert ledger(*said, *counted).burned == 1


def test_wall_clock_without_a_successor_is_a_burn():
    assert ledger(*life(0, begins=0), polled(300, "timed_out")).burned == 1


def test_eviction_by_a_signal_from_outside_is_no_burn():
    evicted = Fault("external_signal", "signal 15")
    assert ledger(*life(0, begins=0, dies_of=evicted), *life(1, begins=600)).burned == 0


def test_wall_clock_with_a_healthy_successor_is_no_burn():
    said = [*life(0, begins=0), polled(250, "timed_out")]
    assert ledger(*said, *life(1, begins=600)).burned == 0
    assert ledger(*said, saw(600, BringUp("staging"), attempt=1)).burned == 1


def test_a_time_limit_that_the_log_tells_is_a_wall_clock_too():
    limit = Fault("wall_clock", "Slurm cancelled job 4711: time limit")
    said = life(0, begins=0, dies_of=limit)
    seen = ledger(*said, *life(1, begins=600))
    assert (seen.burned, seen.attempts[0].ending, seen.attempts[0].cause) == (0, "timed_out", "wall_clock")
    assert ledger(*said, saw(600, BringUp("staging"), attempt=1)).burned == 1


def test_a_wall_clock_that_ended_the_job_is_burned_however_far_it_came():
    assert ledger(*life(0, begins=0), polled(250, "timed_out")).burned == 1


def test_attempts_before_the_first_line_count_with_unknown_causes():
    seen = ledger(*life(2, begins=0), polled(300, "running", failures=2))
    assert (seen.burned, seen.pattern) == (2, RestartPattern.UNKNOWN)


def test_controller_count_wins_over_what_the_logs_show():
    assert ledger(*life(0, begins=0), polled(300, "running", failures=0), polled(360, "failed", failures=3)).burned == 3


def test_requeues_that_slurm_counts_are_no_burns():
    assert ledger(*life(0, begins=0), polled(300, "running", requeues=0)).burned == 0
    seen = ledger(polled(0, "running", requeues=2), *life(2, begins=1))
    assert (seen.burned, seen.attempt) == (0, 2)
    died = ledger(*life(0, begins=0, dies_of=SHAPE), polled(600, "running", requeues=1), *life(1, begins=601))
    assert (died.burned, died.attempt) == (1, 1)
