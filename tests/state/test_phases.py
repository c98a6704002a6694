"""Open phases, the stage, the allowance, steps and progress."""

from extractors.facts import ConfigFact, ConfigFacts
from extractors.metrics import StepMetrics
from extractors.signal import BringUp, Fault
from extractors.trainer import (
    BareBar,
    BufferProgress,
    CheckpointPart,
    CheckpointSaved,
    Ending,
    EpochLogged,
    EvaluationProgress,
    ExpertBlocksSynced,
    Marker,
    OptimizerStepped,
    PolicyProgress,
    RankMarker,
    Resumed,
    RolloutBatch,
    StepCompleted,
    StepProgress,
    StepsPlanned,
    TrainingDone,
    WeightsUpdated,
)
from state.policy import MINUTE, Stage
from state.progress import own_us
from state.trackers.facts import JobDeclared, JobFacts
from tests.builders import ACTOR_LOG, case_after, finished, saw, started, us


def phases(*observations):
    return case_after(*observations).phases


def fresh(*observations):
    return case_after(*observations).freshness


def test_before_any_phase_the_stage_is_bring_up():
    seen = phases(saw(0, BringUp("staging")))
    assert (seen.stage, seen.opened, seen.allowance_seconds) == (Stage.BRING_UP, False, 60 * MINUTE)


def test_first_phase_names_the_stage_at_once():
    assert phases(started(0, "load_checkpoints")).stage is Stage.CHECKPOINT


def test_innermost_open_phase_names_the_stage():
    seen = phases(started(0, "step"), started(1, "run_training"), started(2, "policy_train"))
    assert [phase.name for phase in seen.open] == ["step", "run_training", "policy_train"]
    assert seen.stage is Stage.TRAINING


def test_step_alone_keeps_the_stage_of_its_newest_inner_phase():
    seen = phases(started(0, "step"), started(1, "sync_weights"), finished(9, "sync_weights", 8))
    assert seen.innermost.name == "step"
    assert seen.stage is Stage.WEIGHT_SYNC


def test_line_in_both_homes_opens_one_phase():
    seen = phases(
        started(0, "step"),
        started(0.1, "step", source=ACTOR_LOG),
        started(1, "generate"),
        finished(50, "generate", 49),
        finished(50, "generate", 49, source=ACTOR_LOG),
    )
    assert [phase.name for phase in seen.open] == ["step"]
    assert seen.counts == {"generate": 1}


def test_producer_phase_survives_the_end_of_a_step():
    seen = phases(started(0, "step"), started(1, "generate"), started(2, "policy_train"), finished(9, "step", 9))
    assert [phase.name for phase in seen.open] == ["generate"]


def test_trainer_beside_the_producer_keeps_its_own_allowance():
    both = [started(0, "generate"), finished(60, "generate", 60), started(61, "step"), started(62, "policy_train")]
    seen = phases(*both, finished(99, "policy_train", 37), started(100, "policy_train"), started(101, "generate"))
    assert (seen.stage, seen.allowance_seconds) == (Stage.GENERATION, 90 * MINUTE)


def test_step_that_starts_over_closes_what_was_left_open():
    seen = phases(started(0, "step"), started(1, "policy_train"), started(50, "step"))
    assert [phase.name for phase in seen.open] == ["step"]


def test_unseen_phase_has_twice_its_floor():
    assert phases(started(0, "policy_train")).allowance_seconds == 180 * MINUTE


def test_floor_holds_for_a_phase_that_was_short():
    seen = phases(started(0, "generate"), finished(60, "generate", 60), started(61, "generate"))
    assert seen.allowance_seconds == 30 * MINUTE


def test_cadence_lifts_the_allowance_above_the_floor():
    seen = phases(started(0, "generate"), finished(1200, "generate", 1200), started(1201, "generate"))
    assert seen.allowance_seconds == 3600
    assert "20 min" in seen.allowance_source


def test_expectation_of_the_launcher_overrides():
    declared = saw(0, JobDeclared(JobFacts(expect={"phases.generate": 7200.0, "bring_up": 2700.0})), source="job.toml")
    assert phases(declared).allowance_seconds == 2700
    assert phases(declared, started(5, "generate")).allowance_seconds == 7200


def test_phase_that_an_exception_closed_is_no_cadence():
    died = saw(1800.4, Fault("python_exception", exception="ValueError"), pid=77)
    seen = phases(started(0, "generate"), finished(1800, "generate", 1800), died, started(1900, "generate"))
    assert seen.allowance_seconds == 60 * MINUTE
    assert "first time" in seen.allowance_source


def test_cadence_of_an_earlier_attempt_counts_under_the_same_configuration():
    first = [started(0, "generate"), finished(1200, "generate", 1200)]
    assert phases(*first, started(2000, "generate", attempt=1)).allowance_seconds == 3600


def test_cadence_of_another_configuration_is_forgotten():
    def configured(at, seqs, attempt=0):
        return saw(at, ConfigFacts((ConfigFact("max_num_seqs", seqs),)), attempt=attempt)

    first = [configured(0, "64"), started(1, "generate"), finished(1200, "generate", 1200)]
    seen = phases(*first, configured(1900, "32", attempt=1), started(2000, "generate", attempt=1))
    assert seen.allowance_seconds == 60 * MINUTE


def test_new_attempt_begins_in_bring_up():
    seen = phases(started(0, "generate"), saw(900, BringUp("staging"), attempt=1))
    assert (seen.stage, seen.open, seen.opened) == (Stage.BRING_UP, (), False)


def test_bar_in_a_log_without_its_head_tells_the_stage():
    assert phases(saw(60, BufferProgress(16, 64, 900.0))).stage is Stage.GENERATION
    assert phases(saw(60, PolicyProgress(2, 4))).stage is Stage.TRAINING
    assert phases(saw(60, PolicyProgress(2, 4))).opened
    assert phases(started(10, "sync_weights"), saw(60, PolicyProgress(2, 4))).stage is Stage.WEIGHT_SYNC


def test_step_lines_in_a_log_without_its_head_are_no_bring_up():
    begun = saw(60, RolloutBatch(7, False, 64, None))
    assert phases(begun).stage is Stage.GENERATION
    assert phases(saw(60, StepCompleted(7, 80, 1800.0))).stage is Stage.GENERATION
    assert phases(started(10, "policy_train"), begun).stage is Stage.TRAINING


def test_training_done_ends_the_stages():
    seen = phases(started(0, "step"), saw(9, TrainingDone(Ending.DONE)))
    assert seen.stage is Stage.OVER
    assert seen.done_us == us(9)


def test_buffer_that_stands_still_is_a_heartbeat():
    def bar(at, held):
        return saw(at, BufferProgress(held, 64, float(at)))

    assert fresh(started(0, "generate"), bar(60, 16), bar(120, 16)).progress_us == us(0)
    assert fresh(started(0, "generate"), bar(60, 16), bar(120, 17)).progress_us == us(120)
    assert fresh(started(0, "generate"), bar(60, 64), bar(120, 2)).progress_us == us(0)


def test_second_home_copy_of_a_bar_is_no_rise():
    first = saw(60, PolicyProgress(2, 4))
    newer = saw(120, PolicyProgress(3, 4))
    late = saw(180, PolicyProgress(2, 4), source=ACTOR_LOG, own_seconds=60)
    again = saw(181, PolicyProgress(3, 4), source=ACTOR_LOG, own_seconds=120)
    assert fresh(first, newer, late, again).progress_us == us(120)


def test_an_undated_copy_of_a_bar_in_an_actor_s_file_does_not_date_its_progress():
    before = saw(10, PolicyProgress(4, 4))
    early = saw(60, PolicyProgress(2, 4), source=ACTOR_LOG)
    dated = saw(900, PolicyProgress(2, 4))
    assert fresh(before, early, dated).progress_us == us(900)
    assert fresh(before, early, dated, saw(960, PolicyProgress(2, 4))).progress_us == us(900)


def test_a_clock_that_runs_ahead_dates_no_line_after_it_was_heard():
    ahead = saw(60, PolicyProgress(2, 4), own_seconds=300)
    assert own_us(ahead) == us(60)
    assert own_us(saw(60, PolicyProgress(2, 4), own_seconds=10)) == us(10)


def test_a_step_that_no_line_parts_may_take_what_training_may_and_learns_from_its_steps():
    first = phases(saw(60, StepMetrics(1, "train", {})))
    assert first.allowance_seconds == 180 * MINUTE
    steps = [saw(60 + 3000 * number, StepMetrics(number, "train", {})) for number in range(3)]
    assert phases(*steps).allowance_seconds == 3 * 3000


def test_the_step_lines_of_a_trainer_without_timers_name_stage_and_allowance():
    began = saw(60, RolloutBatch(1, False, 32, None))
    ended = saw(120, RolloutBatch(1, True, 32, 60.0))
    stepped, synced = saw(400, OptimizerStepped(1)), saw(420, WeightsUpdated(1, "training_step", 20.0))
    told = [phases(*(began, ended, stepped, synced)[: count + 1]) for count in range(4)]
    assert [seen.stage for seen in told] == [Stage.GENERATION, Stage.TRAINING, Stage.WEIGHT_SYNC, Stage.GENERATION]
    assert [seen.allowance_seconds for seen in told] == [60 * MINUTE, 180 * MINUTE, 60 * MINUTE, 180 * MINUTE]
    again = saw(500, RolloutBatch(2, False, 32, None))
    assert phases(began, ended, stepped, synced, again).allowance_seconds == 30 * MINUTE


def test_timers_rule_where_there_are_any():
    seen = phases(started(10, "policy_train"), saw(60, RolloutBatch(1, False, 32, None)))
    assert (seen.stage, seen.allowance_seconds) == (Stage.TRAINING, 180 * MINUTE)


def test_a_step_bar_at_nought_ends_the_bring_up():
    seen = phases(saw(0, BringUp("staging")), saw(60, StepProgress(0, 60)))
    assert (seen.stage, seen.opened) == (Stage.GENERATION, True)


def test_policy_bar_that_begins_anew_is_progress():
    first = [saw(60, PolicyProgress(3, 4)), saw(120, PolicyProgress(4, 4))]
    assert fresh(*first, saw(400, PolicyProgress(1, 4))).progress_us == us(400)
    assert fresh(*first, saw(400, PolicyProgress(4, 4))).progress_us == us(120)


def test_first_frame_of_a_policy_bar_is_progress():
    assert fresh(started(0, "policy_train"), saw(60, PolicyProgress(0, 4))).progress_us == us(60)


def test_metrics_count_steps_and_the_rejecting_bar_does_not():
    seen = fresh(saw(0, StepProgress(9, 80)), saw(5, StepMetrics(7, "train", {})), saw(9, StepProgress(10, 80)))
    assert (seen.step_done, seen.step_of) == (7, 80)


def test_bar_counts_where_nothing_better_does():
    assert fresh(saw(0, StepProgress(9, 80))).step_done == 9


def test_resumed_steps_are_done():
    seen = fresh(saw(0, StepsPlanned(80)), saw(1, Resumed(5)))
    assert (seen.step_done, seen.step_of) == (5, 80)


def test_evaluation_metrics_bank_no_step():
    assert fresh(saw(0, StepMetrics(12, "eval", {}))).step_done == 0


def test_step_line_brings_the_plan_along():
    seen = fresh(saw(0, StepCompleted(3, 40, 12.0)), saw(1, CheckpointSaved(3)))
    assert (seen.step_done, seen.step_of) == (3, 40)


def test_new_attempt_forgets_progress():
    seen = fresh(started(0, "step"), saw(900, BringUp("staging"), attempt=1))
    assert seen.progress is None
    assert seen.bring_up_us == us(900)


def test_an_evaluations_bar_is_progress_when_it_moves_and_none_when_it_stands():
    bars = [saw(at, EvaluationProgress(done, 8)) for at, done in ((0, 1), (600, 2), (1200, 2))]
    assert fresh(*bars).progress_us == us(600)
    assert phases(bars[0]).stage is Stage.EVALUATION


def test_parts_of_a_checkpoint_and_expert_blocks_are_progress():
    assert fresh(saw(5, CheckpointPart("trainer state"))).progress_us == us(5)
    assert fresh(saw(5, CheckpointPart("trainer state")), saw(9, ExpertBlocksSynced(3, 12.0))).progress_us == us(9)


def test_a_barrier_that_a_rank_reached_is_no_progress():
    assert fresh(started(0, "policy_train"), saw(60, RankMarker(Marker.DRAIN_BARRIER, 3))).progress_us == us(0)


def test_a_bare_bar_comes_up_until_its_trainer_logs_an_epoch():
    seen = fresh(saw(5, BareBar(1, 100)), saw(60, BareBar(2, 100)))
    assert (seen.progress_us, seen.bring_up_us) == (None, us(60))


def test_a_bare_bar_that_moves_is_progress_of_a_trainer_that_logs_epochs():
    seen = fresh(
        saw(0, EpochLogged(0.1)), saw(60, BareBar(11, 100)), saw(90, BareBar(12, 100)), saw(99, BareBar(12, 100))
    )
    assert seen.progress_us == us(90)
    assert phases(saw(0, EpochLogged(0.1))).opened


def test_a_bare_bar_beside_a_trainer_with_timers_says_nothing():
    seen = fresh(started(0, "generate"), saw(60, BareBar(1, 3)), saw(90, BareBar(2, 3)))
    assert (seen.progress_us, seen.bring_up_us) == (us(0), None)
