"""Backpressure and starvation: who waits for whom, and what must be measured before it is said."""

import re
from typing import Any

import msgspec
import pytest

from extractors.metrics import MetricsUnreadable, StepMetrics
from extractors.record import Observation
from extractors.trainer import StaleGroups
from state.gate import Ruling, Status
from state.gates.resources import RESOURCES
from tests.builders import saw, us
from tests.state.resources_cases import (
    ENGINE,
    POLICY,
    all_gpus,
    bar,
    bars,
    declared,
    finished,
    fleet,
    job,
    ps,
    refused,
    rising,
    stack,
    started,
)

COORDINATOR = "ray::RolloutCoordinator.run_batch"
FROZEN = [
    started(100, "step"),
    started(100, "wait_for_generation_buffer"),
    *rising(110, 20, 0, 19),
    *bars(505, 1700, 19),
    *fleet(110, 480, 24),
    *fleet(510, 1700, 1, kv=0.8, rate=90.0),
    *all_gpus(1500, policy=1, engine=4),
]


def metrics(at: float, step: int, waited: float, whole: float, stale: float = 1.0) -> Observation:
    values = {
        "timing/step": whole,
        "timing/wait_for_generation_buffer": waited,
        "async/staleness_mean": stale / 2,
        "async/staleness_max": stale,
    }
    return saw(at, StepMetrics(step, "train", values))


def measured(percent: float = 20.0, stale: float = 1.0, waited: float = 300.0) -> list[Observation]:
    """All that starvation must be shown with."""
    return [
        metrics(90, 2, waited, 900.0, stale),
        ps(1400, ENGINE[0], 15, percent, None, COORDINATOR, lifetime=False),  # type: ignore[arg-type]
        stack(1600, ENGINE[0], 15, COORDINATOR, "get (queue.py:1)"),
        stack(1600, POLICY[0], 11, "ray::FSDPPolicyWorkerBase.forward", "wait (threading.py:1)"),
        stack(1600, ENGINE[0], 7001, "ray::AsyncVLLMInferenceEngine.generate", "select (selectors.py:1)"),
    ]


def without(probe: str, kept: list[Observation]) -> list[Observation]:
    return [seen for seen in kept if seen.evidence.source != f"polls/{probe}.jsonl"]


def judged(*parts: Any, now: float = 1700, **said: Any) -> Ruling:
    ruling = RESOURCES.judge(job(*parts, now=now, **said))
    assert not re.search(r"(?i)sandbox|daytona|duty.?cycle", ruling.reason + ruling.fix)
    return ruling


def test_hungry_engines_behind_a_frozen_buffer_are_starved_once_all_is_measured() -> None:
    ruling = judged(FROZEN, measured())
    assert (ruling.status, ruling.condition) == (Status.FAIL, "STARVED")
    assert "19/48" in ruling.reason
    assert "upstream" in ruling.fix
    cited = {line.source for line in ruling.evidence}
    assert {"polls/gpu.jsonl", "polls/procs.jsonl", "polls/stacks.jsonl", "finelog.log"} <= cited


def test_a_coordinator_at_the_end_of_its_core_names_the_dispatcher() -> None:
    assert "num_coordinators" in judged(FROZEN, measured(percent=98.0)).fix


def test_generation_that_waits_on_a_full_staleness_window_names_training() -> None:
    assert "max_staleness_steps" in judged(FROZEN, measured(stale=3.0, waited=9.0)).fix


def test_groups_thrown_away_as_stale_are_told_beside_the_staleness() -> None:
    stale = saw(600, StaleGroups(32), line=77)
    ruling = judged(FROZEN, measured(), stale)
    assert "of its time for the buffer, 32 groups thrown away as stale" in ruling.reason
    assert 77 in {line.line for line in ruling.evidence}


def test_refused_stacks_keep_starvation_unmeasured_with_command_and_output() -> None:
    denied = refused(1600, "stacks", POLICY[0], "py-spy", "dump", "--pid", "11", output="Permission Denied: try sudo")
    ruling = judged(FROZEN, without("stacks", measured()), denied)
    assert (ruling.status, ruling.condition) == (Status.ERROR, "UNMEASURED")
    assert [gap.what.startswith("live stacks") for gap in ruling.missing] == [True]
    assert "py-spy" in ruling.missing[0].command
    assert "Permission Denied" in ruling.missing[0].output


@pytest.mark.parametrize(("probe", "what"), [("procs", "coordinator CPU"), ("stacks", "live stacks")])
def test_each_missing_measurement_is_named(probe: str, what: str) -> None:
    ruling = judged(FROZEN, without(probe, measured()))
    assert ruling.condition == "UNMEASURED"
    assert [gap.what for gap in ruling.missing if gap.what.startswith(what)]


def test_missing_staleness_is_named() -> None:
    ruling = judged(FROZEN, measured()[1:])
    assert [gap.what for gap in ruling.missing] == ["staleness throttling (metrics)"]


def test_stacks_from_before_generation_began_do_not_count() -> None:
    old = stack(50, ENGINE[0], 15, COORDINATOR, "get (queue.py:1)")
    ruling = judged(FROZEN, without("stacks", measured()), old)
    assert any("coordinators" in gap.what for gap in ruling.missing)


def test_ten_minutes_must_pass_first() -> None:
    early = [seen for seen in FROZEN if seen.at_us <= us(1000)]
    assert judged(early, all_gpus(900), now=1000).condition == "FED"


def test_a_buffer_that_still_rises_at_its_pace_is_fed() -> None:
    parts = [
        *FROZEN[:2],
        *rising(110, 40, 0, 40),
        *fleet(110, 1700, 3, kv=1.0, rate=300.0),
        *all_gpus(1500, policy=1, engine=30),
    ]
    assert judged(parts, measured()).condition == "FED"


def test_a_buffer_at_a_tenth_of_its_pace_is_starved() -> None:
    parts = [
        *FROZEN[:2],
        *rising(110, 20, 0, 30),
        bar(1000, 31, elapsed=890),
        bar(1400, 32, elapsed=1290),
        bar(1690, 32, elapsed=1580),
        *fleet(110, 700, 24),
        *fleet(730, 1700, 1, kv=0.8, rate=90.0),
        *all_gpus(1500, policy=1, engine=4),
    ]
    assert judged(parts, measured()).condition == "STARVED"


def test_requests_that_wait_are_no_starvation() -> None:
    parts = [seen for seen in FROZEN if seen.evidence.signal != "engine_load"]
    assert judged(parts, fleet(110, 1700, 1, waiting=1, kv=0.8, rate=90.0), measured()).condition == "FED"


def test_engines_of_a_sampled_log_are_weighed_against_those_that_spoke() -> None:
    parts = [seen for seen in FROZEN if seen.evidence.signal != "engine_load"]
    one = [seen for seen in fleet(110, 1700, 12, source="finelog.log") if seen.origin.pid == 7001]
    assert judged(parts, one, measured(), facts=declared(engine_count=16)).condition == "FED"


def test_stragglers_of_a_synchronous_batch_are_fed() -> None:
    parts = [started(100, "step"), started(100, "generate"), *fleet(110, 1700, 1, kv=0.5, rate=60.0), *all_gpus(1500)]
    assert judged(parts).condition == "FED"


def test_a_trainer_that_waits_for_a_buffer_which_no_line_shows_is_unmeasured() -> None:
    parts = [seen for seen in FROZEN if seen.evidence.signal != "buffer_progress"]
    ruling = judged(parts, measured())
    assert (ruling.condition, ruling.missing[0].what) == ("UNMEASURED", "progress of the generation buffer")


def test_steps_that_hardly_waited_are_backpressure_however_low_the_engines_are() -> None:
    steps = [metrics(60 + step, step, 6.0, 800.0) for step in (1, 2, 3)]
    parts = [started(100, "step"), started(100, "wait_for_generation_buffer"), bar(110, 5)]
    ruling = judged(steps, parts, fleet(90, 200, 1, kv=0.5), all_gpus(150), now=200)
    assert (ruling.status, ruling.condition) == (Status.PASS, "BACKPRESSURE")
    assert any(line.source == "polls/gpu.jsonl" for line in ruling.evidence)


def test_two_steps_are_too_few_for_backpressure() -> None:
    steps = [metrics(60 + step, step, 6.0, 800.0) for step in (1, 2)]
    parts = [started(100, "step"), started(100, "wait_for_generation_buffer"), bar(110, 5)]
    assert judged(steps, parts, fleet(90, 200, 1, kv=0.5), all_gpus(150), now=200).condition == "FED"


def test_steps_of_timers_show_backpressure_as_well() -> None:
    steps: list[Observation] = []
    for at in (10, 30, 50):
        steps += [finished(at, "wait_for_generation_buffer", 1.0), finished(at + 9, "step", 700.0)]
    parts = [started(100, "step"), started(100, "wait_for_generation_buffer"), bar(110, 5)]
    assert judged(steps, parts, fleet(90, 200, 1), all_gpus(150), now=200).condition == "BACKPRESSURE"


def test_a_full_buffer_is_backpressure() -> None:
    parts = [started(100, "step"), started(100, "wait_for_generation_buffer"), bar(104, 48)]
    assert judged(parts, fleet(90, 200, 0, rate=0.0, kv=0.0), all_gpus(150), now=200).condition == "BACKPRESSURE"


def test_a_full_buffer_of_the_step_before_is_none() -> None:
    parts = [bar(80, 48), started(100, "step"), started(100, "wait_for_generation_buffer")]
    assert judged(parts, fleet(90, 200, 20), all_gpus(150), now=200).condition == "FED"


def test_a_wait_that_has_outlasted_the_steps_before_ends_their_backpressure() -> None:
    steps = [metrics(60 + step, step, 6.0, 800.0) for step in (1, 2, 3)]
    assert judged(FROZEN, steps, measured()[1:]).condition == "STARVED"


def test_a_full_bar_of_the_step_before_neither_excuses_nor_is_said() -> None:
    full = [*rising(110, 2, 0, 48), finished(207, "wait_for_generation_buffer", 97), finished(207, "step", 97)]
    again = [started(207.3, "step"), started(207.4, "wait_for_generation_buffer")]
    parts = [started(100, "step"), started(100, "wait_for_generation_buffer"), *full, *again, *fleet(110, 210, 24)]
    fresh = judged(parts, all_gpus(190), now=220)
    assert (fresh.condition, "48/48" in fresh.reason) == ("FED", False)
    assert not any(line.quote.endswith("48/48") for line in fresh.evidence)
    assert "0/48" in judged(parts, bar(207.4, 0, elapsed=0.0), all_gpus(190), now=220).reason


def test_a_single_row_of_ps_shows_the_command_that_was_not_enough() -> None:
    row = ps(1400, ENGINE[0], 15, 20.0, 5000.0, COORDINATOR)
    row = msgspec.structs.replace(row, signal=msgspec.structs.replace(row.signal, command=("ps", "-eo", "pid,pcpu")))
    gap = judged(FROZEN, without("procs", measured()), row).missing[0]
    assert (gap.what, gap.command, gap.exit) == ("coordinator CPU (procs)", ("ps", "-eo", "pid,pcpu"), 0)
    assert COORDINATOR in gap.output


def test_metrics_that_could_not_be_read_are_named_where_staleness_is_missing() -> None:
    torn = saw(95, MetricsUnreadable(2, "the JSON breaks off"))
    assert "breaks off" in judged(FROZEN, measured()[1:], torn).missing[0].why
