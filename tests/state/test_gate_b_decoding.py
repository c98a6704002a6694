"""Engines that thrash, decode below their floor, or fell silent while busy."""

from typing import Any

import msgspec
import pytest

from extractors.record import Observation
from state.gate import Status
from state.gates.decoding import model_floor
from state.gates.resources import RESOURCES
from state.trackers.facts import JobFacts
from tests.builders import reading
from tests.state.resources_cases import (
    ENGINE,
    all_gpus,
    bars,
    declared,
    finished,
    fleet,
    gpus,
    job,
    load,
    refused,
    rising,
    stack,
    started,
)

WAITING = [started(100, "step"), started(100, "wait_for_generation_buffer")]
BUSY = [*WAITING, *rising(110, 20, 0, 45), *all_gpus(1200)]


def _judged(*parts: Any, now: float = 1290, **said: Any) -> Any:
    return RESOURCES.judge(job(*parts, now=now, **said))


def test_a_fleet_that_queues_four_for_each_it_runs_thrashes() -> None:
    parts = [*WAITING, *rising(110, 12, 0, 30), *bars(480, 1290, 30), *all_gpus(1200)]
    ruling = _judged(parts, fleet(110, 1290, 6, waiting=30, kv=99.0))
    assert (ruling.status, ruling.condition) == (Status.FAIL, "THRASHING")
    assert "lockstep" in ruling.fix


def test_a_fleet_that_queues_from_the_start_behind_a_buffer_that_never_rose_thrashes() -> None:
    ruling = _judged(WAITING, bars(110, 1290, 0), all_gpus(1200), fleet(110, 1290, 6, waiting=30, kv=99.0))
    assert ruling.condition == "THRASHING"


def test_a_bar_of_an_earlier_phase_does_not_make_a_queue_thrash() -> None:
    earlier = [started(10, "step"), started(10, "wait_for_generation_buffer"), *rising(12, 2, 0, 40)]
    parts = [*earlier, finished(95, "wait_for_generation_buffer", 85), started(100, "eval"), *all_gpus(1200)]
    assert _judged(parts, fleet(110, 1290, 6, waiting=30, kv=99.0)).condition == "FED"


def test_a_queue_of_twice_the_running_does_not_thrash() -> None:
    parts = [*WAITING, *rising(110, 12, 0, 30), *bars(480, 1290, 30), *all_gpus(1200)]
    assert _judged(parts, fleet(110, 1290, 12, waiting=24)).condition == "FED"


def test_throughput_that_rises_does_not_thrash() -> None:
    parts = [*WAITING, *rising(110, 12, 0, 30), *bars(480, 1290, 30), *all_gpus(1200)]
    slow, fast = fleet(110, 980, 6, waiting=30, rate=900.0), fleet(1000, 1290, 6, waiting=30, rate=1900.0)
    assert _judged(parts, slow, fast).condition == "FED"


def test_a_long_queue_of_a_batch_without_a_buffer_is_fed() -> None:
    parts = [started(100, "step"), started(100, "generate"), *all_gpus(1200)]
    assert _judged(parts, fleet(110, 1290, 6, waiting=90)).condition == "FED"


def test_engines_below_the_floor_of_their_class_are_floored() -> None:
    ruling = _judged(BUSY, fleet(110, 1290, 20, rate=90.0), facts=declared(model="Mix-14B", architecture="dense"))
    assert (ruling.status, ruling.condition) == (Status.FAIL, "FLOORED")
    assert "400 tokens/s" in ruling.reason


def test_eager_mode_is_said_first() -> None:
    facts = declared(model="Mix-14B", architecture="dense", enforce_eager=True)
    ruling = _judged(BUSY, fleet(110, 1290, 20, rate=90.0), facts=facts)
    assert ruling.reason.startswith("eager mode is on")
    assert "CUDA graphs" in ruling.fix


def test_a_place_without_a_quote_is_not_shown_for_eager_mode() -> None:
    facts = declared(model="Mix-14B", architecture="dense", enforce_eager=True)
    unquoted = msgspec.structs.replace(facts, evidence=msgspec.structs.replace(facts.evidence, quote=""))
    ruling = _judged(BUSY, fleet(110, 1290, 20, rate=90.0), facts=unquoted)
    assert ruling.condition == "FLOORED"
    assert all(line.quote for line in ruling.evidence)


def test_few_running_requests_have_no_floor() -> None:
    facts = declared(model="Mix-14B", architecture="dense")
    assert _judged(BUSY, fleet(110, 1290, 6, rate=90.0), facts=facts).condition == "FED"


def test_smaller_cards_have_no_floor() -> None:
    cards = [gpus(1201, pod, 80) for pod in ENGINE]
    small = [_smaller(poll) for poll in cards]
    facts = declared(model="Mix-14B", architecture="dense")
    assert _judged(BUSY, small, fleet(110, 1290, 20, rate=90.0), facts=facts).condition == "FED"


def _smaller(poll: Observation) -> Observation:
    import msgspec

    cards = tuple(msgspec.structs.replace(card, memory_total_mib=40_960.0) for card in poll.signal.gpus)
    return msgspec.structs.replace(poll, signal=msgspec.structs.replace(poll.signal, gpus=cards))


def test_an_unknown_model_has_no_floor() -> None:
    assert _judged(BUSY, fleet(110, 1290, 20, rate=90.0)).condition == "FED"


@pytest.mark.parametrize(
    ("facts", "floor"),
    [
        (JobFacts(model="Qwen3-8B", architecture="dense"), 500),
        (JobFacts(model="org/Mix-14B-Instruct"), 400),
        (JobFacts(model="Mix-32B", architecture="dense"), 200),
        (JobFacts(model="Coder-30B-A3B-Instruct"), 500),
        (JobFacts(model="Big", architecture="moe", active_params_b=22.0), 200),
        (JobFacts(model="Mix-70B", architecture="dense"), None),
        (JobFacts(model="demo"), None),
    ],
)
def test_the_floor_follows_the_model_class(facts: JobFacts, floor: float | None) -> None:
    assert model_floor(facts) == floor


def _lost() -> list[Observation]:
    lines = [seen for seen in fleet(110, 1290, 20) if seen.origin.pid != 7002]
    return [*BUSY, *lines, load(400, 7002, 17, waiting=3)]


def test_a_busy_engine_that_fell_silent_is_lost_once_a_stack_shows_it() -> None:
    dump = stack(900, ENGINE[0], 7002, "ray::AsyncVLLMInferenceEngine.generate", "execute_model (model.py:1)")
    ruling = _judged(_lost(), dump)
    assert (ruling.status, ruling.condition) == (Status.FAIL, "ENGINE_LOST")
    assert "7002" in ruling.reason
    assert {line.source for line in ruling.evidence} >= {"polls/stacks.jsonl", "ray_session_logs/worker-7002.out"}


def test_a_silent_engine_without_a_stack_is_unmeasured() -> None:
    denied = refused(900, "stacks", ENGINE[0], "py-spy", "dump", "--pid", "7002", output="Permission Denied: no")
    ruling = _judged(_lost(), denied)
    assert (ruling.status, ruling.condition) == (Status.ERROR, "UNMEASURED")
    assert "Permission Denied" in ruling.missing[0].output


def test_an_engine_whose_last_line_was_all_zero_is_idle() -> None:
    idle = load(460, 7002, 0, kv=0.0, prompt=0.0, rate=0.0)
    assert _judged(_lost(), idle).condition == "FED"


def test_silence_in_a_sampled_log_loses_no_engine() -> None:
    lines = [seen for seen in fleet(110, 1290, 20, source="finelog.log") if seen.origin.pid != 7002]
    assert _judged(reading(), BUSY, lines, load(400, 7002, 17, source="finelog.log")).condition == "FED"


def test_silence_is_counted_from_the_phase_on() -> None:
    parts = [started(1000, "step"), started(1000, "generate"), *all_gpus(1200)]
    lines = [seen for seen in fleet(110, 1290, 20) if seen.origin.pid != 7002]
    assert _judged(parts, lines, load(400, 7002, 17)).condition == "FED"
