"""The engines' tracker: one engine from two homes, and a fleet's sums."""

from typing import Any

import pytest

from extractors.extract import Reader
from extractors.record import NOWHERE, Block, SourceKind
from extractors.vllm import AGGREGATED, EngineLoad
from state.trackers.engines import EnginesTracker, EnginesView
from tests.builders import T0, reading, saw, us
from tests.state.resources_cases import load


def _after(*observations: Any) -> EnginesView:
    tracker = EnginesTracker()
    for seen in observations:
        tracker.FOLDS[type(seen.signal)](tracker, seen)
        tracker.tick(seen.at_us)
    return EnginesTracker.restore(tracker.snapshot()).view()


def _echo(at: float, pid: int, running: int, host: str = "10.4.0.7", **said: Any) -> Any:
    return load(at, pid, running, source="finelog.log", host=host, **said)


def test_the_same_line_in_two_homes_counts_once() -> None:
    view = _after(reading(), load(10, 7001, 9), _echo(12, 7001, 9), load(40, 7001, 11))
    assert len(view.engines) == 1
    assert [sample.running for sample in view.engines[0].window] == [9, 11]


def test_an_echo_that_comes_first_joins_the_actors_own_file() -> None:
    view = _after(reading(), _echo(10, 7001, 9), load(11, 7001, 9), load(40, 7001, 12))
    assert [(engine.host, engine.complete) for engine in view.engines] == [("node-c", True)]
    assert view.engines[0].last.running == 12


def test_one_pid_on_two_hosts_is_two_engines() -> None:
    view = _after(
        reading(),
        load(10, 7001, 9),
        load(11, 7001, 20, host="node-d", source="ray_session_logs/other.out"),
        _echo(12, 7001, 20),
        _echo(50, 7001, 3),
    )
    assert {engine.host: engine.last.running for engine in view.engines} == {"node-c": 9, "node-d": 20}


def test_an_engine_read_only_in_the_aggregated_log_is_not_complete() -> None:
    view = _after(reading(), _echo(10, 7001, 9))
    assert [engine.complete for engine in view.engines] == [False]


def test_tags_in_one_process_are_engines_of_their_own() -> None:
    lines = [saw(10 + tag, EngineLoad(f"00{tag}", tag, 0, 1.0, 1.0, 1.0), pid=41, host="n") for tag in range(3)]
    assert sorted(engine.last.running for engine in _after(*lines).engines) == [0, 1, 2]


def test_lines_without_a_process_are_told_apart_by_their_files() -> None:
    said = EngineLoad("", 3, 0, 1.0, 1.0, 1.0)
    lines = [saw(10, said, source=name) for name in ("pod_logs/engine-0.log", "pod_logs/engine-1.log")]
    assert len(_after(*lines).engines) == 2


@pytest.mark.parametrize(
    ("tag", "engine"),
    [
        ("(AsyncVLLMInferenceEngine pid=287, ip=10.1.0.9) ", ("AsyncVLLMInferenceEngine", 287)),
        ("(EngineCore_0 pid=71) ", ("EngineCore_0", 71)),
        ("(EngineCore_DP0 pid=71) ", ("EngineCore_DP0", 71)),
        ("(EngineCore pid=71) ", ("EngineCore", 71)),
        ("(APIServer pid=10) ", ("APIServer", 10)),
        ("(ApiServer_1 pid=11) ", ("ApiServer_1", 11)),
        ("(MainProcess pid=9) ", ("MainProcess", 9)),
        ("(Worker_DP0_TP1_EP1 pid=80) ", ("Worker_DP0_TP1_EP1", 80)),
        ("(VllmWorker rank=0 pid=80) ", ("VllmWorker", 80)),
        ("(AsyncVLLMInferenceEngine pid=287) (EngineCore_DP0 pid=71) ", ("AsyncVLLMInferenceEngine", 287)),
        ("", ("", 0)),
    ],
)
def test_every_process_tag_of_vllm_names_its_engine(tag: str, engine: tuple[str, int]) -> None:
    line = (
        "INFO 03-14 09:26:53 [loggers.py:248] Engine 003: Avg prompt throughput: 1.0 tokens/s, Avg generation "
        "throughput: 2.0 tokens/s, Running: 4 reqs, Waiting: 0 reqs, GPU KV cache usage: 1.0%\n"
    )
    reader = Reader("sample", NOWHERE, T0)
    (seen,) = reader.read(Block("sample", 0, 1, (tag + line).encode())) + reader.end()
    (told,) = _after(seen).engines
    assert (told.actor, told.pid, told.tag) == (*engine, "003")


def test_a_line_that_sums_a_server_gives_way_to_its_engines() -> None:
    lines = [
        saw(10, EngineLoad(AGGREGATED, 8, 0, 1.0, 1.0, 1.0), pid=41, host="n"),
        saw(11, EngineLoad("000", 8, 0, 1.0, 1.0, 1.0), pid=41, host="n"),
    ]
    assert [engine.tag for engine in _after(*lines).engines] == ["000"]
    assert [engine.tag for engine in _after(lines[0]).engines] == [AGGREGATED]


def test_a_silent_engine_counts_with_its_last_line() -> None:
    view = _after(load(10, 7001, 9), load(20, 7002, 0, rate=0.0), load(300, 7001, 4, waiting=2))
    assert (view.load(us(30)).running, view.load(us(301)).running, view.load(us(301)).waiting) == (9, 4, 2)


def test_the_last_busy_line_outlives_the_zeros_after_it() -> None:
    engine = _after(load(10, 7001, 9), load(40, 7001, 0, rate=0.0)).engines[0]
    assert engine.last_busy is not None
    assert (engine.last.busy, engine.last_busy.running) == (False, 9)


def test_the_window_is_bounded_and_keeps_the_line_before_it() -> None:
    view = _after(*[load(turn, 7001, 1 + turn % 50, rate=float(turn)) for turn in range(3000)])
    window = view.engines[0].window
    assert len(window) < 160
    assert window[0].at_us <= us(3000 - 600)


def test_a_new_source_kind_does_not_make_an_actor_file_a_sample() -> None:
    view = _after(reading(SourceKind.ACTOR, "ray_session_logs/worker-7001.out"), load(10, 7001, 9))
    assert view.engines[0].complete
