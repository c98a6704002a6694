"""What would change a verdict, and when it is found to have come."""

from dataclasses import replace
from typing import Any

import msgspec

from extractors.polls import JobState
from extractors.trainer import ForwardEntered, PhaseStarted, TrainingDone
from state.decision import Decision, decided
from state.flip import FlipOn, Watch, checked, flip_of, watched
from state.gate import Gap, not_applicable, unjudged
from state.policy import SECOND_US
from tests.builders import both_homes, case_after, polled, saw, us
from tests.state.outages import AGAIN, AWAY
from tests.state.rollout_cases import ended, many, running, step

TRAINS = (*both_homes(), polled(0, JobState.RUNNING), saw(10, PhaseStarted("policy_train"), quote="Started"))
DEADLINE = 10 + 3 * 3600
"""Twice the training floor of 90 min after the phase began."""


def watch_of(case: Any, decision: Decision = Decision.NO_KILL, deciding: str = "A") -> Watch:
    """The watch of the flip that a verdict on this case would carry."""
    watch = watched(flip_of(case, decision, deciding, decided(case).rulings), case)
    assert watch is not None
    return watch


def after(watch: Watch | None, *observations: Any, now: float) -> Watch | None:
    """The watch, checked against the case of these observations."""
    case = case_after(*observations, now=now)
    return checked(watch, case, decided(case))


def test_a_kept_job_has_a_time_that_fires_when_it_comes_and_not_before() -> None:
    watch = watch_of(case_after(*TRAINS, now=20))
    assert (watch.flip.signal, watch.flip.before_us) == (FlipOn.PROGRESS, us(DEADLINE))
    assert after(watch, *TRAINS, now=DEADLINE - 0.000001) == watch
    fired = after(watch, *TRAINS, now=DEADLINE)
    assert fired is not None
    assert "fired at 11:00:10Z: no progress came before it" in fired.fired


def test_it_fires_at_its_time_though_it_is_looked_at_later() -> None:
    fired = after(watch_of(case_after(*TRAINS, now=20)), *TRAINS, now=DEADLINE + 25)
    assert fired is not None
    assert "fired at 11:00:10Z" in fired.fired


def test_progress_in_time_sets_the_time_anew_and_is_said_by_the_same_record() -> None:
    watch = watch_of(case_after(*TRAINS, now=20))
    moved = after(watch, *TRAINS, saw(DEADLINE - 1, ForwardEntered(0)), now=DEADLINE)
    assert moved is not None
    assert (moved.fired, moved.said_us) == ("", us(20))
    assert moved.flip.before_us == us(DEADLINE - 1 + 3 * 3600)


def test_what_has_fired_stays_as_it_fired() -> None:
    fired = after(watch_of(case_after(*TRAINS, now=20)), *TRAINS, now=DEADLINE)
    assert after(fired, *TRAINS, saw(DEADLINE + 5, ForwardEntered(0)), now=DEADLINE + 10) == fired


def test_a_wedge_fires_with_progress_that_is_newer_than_the_kill() -> None:
    watch = watch_of(case_after(*TRAINS, now=4 * 3600), Decision.KILL)
    assert (watch.flip.signal, watch.flip.before_us) == (FlipOn.PROGRESS, None)
    assert after(watch, *TRAINS, now=5 * 3600) == watch
    fired = after(watch, *TRAINS, saw(5 * 3600, ForwardEntered(0)), now=5 * 3600 + 10)
    assert fired is not None
    assert "the trainer progressed at 13:00:00Z (finelog.log:" in fired.fired


def test_a_queued_job_waits_for_its_state_to_change() -> None:
    watch = watch_of(case_after(*both_homes(), polled(0, JobState.PENDING), now=20))
    assert (watch.flip.signal, watch.flip.before_us) == (FlipOn.STATE, None)
    assert after(watch, *both_homes(), polled(9000, JobState.PENDING), now=9010) == watch
    fired = after(watch, *both_homes(), polled(9000, JobState.RUNNING), now=9010)
    assert fired is not None
    assert "the state poll says running" in fired.fired


def test_a_done_trainer_has_a_quarter_of_an_hour_until_its_job_ends() -> None:
    done = (*TRAINS, saw(100, TrainingDone("done")))
    watch = watch_of(case_after(*done, now=110))
    assert (watch.flip.signal, watch.flip.before_us) == (FlipOn.STATE, us(100 + 900))
    assert after(watch, *done, polled(700, JobState.SUCCEEDED), now=710) is not watch
    fired = after(watch, *done, polled(990, JobState.RUNNING), now=1000)
    assert fired is not None
    assert "the job had not ended before it" in fired.fired


def test_an_error_waits_for_all_that_its_gate_missed_whatever_the_count_of_it() -> None:
    case = case_after(*TRAINS, now=20)
    come = decided(case)
    missing = (Gap("the artifacts of 3 trials", "torn"), Gap("live stacks", "none"))
    torn = {**come.rulings, "C": unjudged("UNREAD", "unknown", *missing)}
    watch = watched(flip_of(case, Decision.ERROR, "C", torn), case)
    assert watch is not None
    assert watch.flip.says == "gate C no longer misses: the artifacts of 3 trials; live stacks"
    fewer = {**come.rulings, "C": unjudged("UNREAD", "unknown", Gap("the artifacts of 2 trials", "torn"))}
    assert checked(watch, case, replace(come, rulings=fewer)) == watch
    over = {**come.rulings, "C": not_applicable("OVER", "the job is over")}
    assert checked(watch, case, replace(come, rulings=over)) == watch
    other = {**come.rulings, "C": unjudged("INCOMPLETE", "unknown", Gap("result files of trials", "none"))}
    fired = checked(watch, case, replace(come, rulings=other))
    assert fired is not None
    assert "gate C misses it no more" in fired.fired


def test_nothing_fires_while_the_job_is_not_heard_though_its_gate_misses_other_things_then() -> None:
    case = case_after(*TRAINS, now=20)
    come = decided(case)
    asking = {**come.rulings, "B": unjudged("UNMEASURED", "unknown", Gap("a GPU poll", "none"))}
    watch = watched(flip_of(case, Decision.ERROR, "B", asking), case)
    silent = case_after(*TRAINS, saw(25, AWAY), now=25)
    assert checked(watch, silent, decided(silent)) == watch
    heard = case_after(*TRAINS, saw(25, AWAY), saw(26, AGAIN), now=26)
    assert checked(watch, heard, replace(decided(heard), rulings=asking)) == watch


def test_a_kill_for_dynamics_waits_until_its_gate_passes() -> None:
    bad = [step(n, loss=float("nan")) for n in range(10, 13)]
    broken = (*running(), *(step(n) for n in range(1, 10)), *bad)
    watch = watch_of(case_after(*broken), Decision.KILL, "D")
    assert (watch.flip.signal, watch.flip.gate) == (FlipOn.GATE, "D")
    assert after(watch, *broken, now=12_100) == watch
    fired = after(watch, *broken, *(step(n) for n in range(13, 25)), now=25_000)
    assert fired is not None
    assert "gate D says STEADY" in fired.fired


def test_a_kill_for_want_of_rewards_waits_for_the_first_one() -> None:
    none = (*running(), *many(64, 400, 5, reward=0.0))
    watch = watch_of(case_after(*none), Decision.KILL, "C")
    assert watch.flip.signal is FlipOn.REWARD
    assert after(watch, *none, now=900) == watch
    fired = after(watch, *none, ended(900, "late__1", reward=0.5), now=910)
    assert fired is not None
    assert "trace_jobs/late__1/result.json" in fired.fired


def test_a_kill_of_trials_that_earn_rewards_waits_for_its_gate() -> None:
    some = (*running(), *many(5, 400, 5, reward=1.0))
    assert watch_of(case_after(*some), Decision.KILL, "C").flip.signal is FlipOn.GATE


def test_a_job_that_is_over_has_no_watch() -> None:
    case = case_after(*TRAINS)
    assert watched(None, case) is None
    assert checked(None, case, decided(case)) is None


def test_a_watch_outlives_a_snapshot() -> None:
    watch = watch_of(case_after(*running(), *many(3, 400, 5, reward=1.0)))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(watch), type=Watch) == watch
    assert watch.said_us % SECOND_US == 0
