"""Unwrapping: every prefix of a line comes off, and says who printed it and when."""

# ruff: noqa: E501 (log lines stand as printed)

import pytest

from extractors.clocks import Clock, parse_iso, write_iso
from extractors.layers import Line, Unwrapper
from extractors.record import NOWHERE, Origin

ANCHOR = parse_iso("2026-07-01T22:00:00Z") or 0


def unwrap(raw: str, base: Origin = NOWHERE) -> Line:
    return Unwrapper(Clock(ANCHOR), base).unwrap(raw)


@pytest.mark.parametrize(
    ("raw", "text", "at"),
    [
        ("[22:47:31] task=/kim/rl-9/0 | hello", "hello", "2026-07-01T22:47:31.000Z"),
        ("2026-07-01T22:47:31.123456789Z hello", "hello", "2026-07-01T22:47:31.123Z"),
        ("[pod/rl-9-0/task] hello", "hello", None),
        (" 7: hello", "hello", None),
        ("[rank7]: hello", "hello", None),
        ("INFO 07-01 22:47:31 [loggers.py:248] hello", "hello", "2026-07-01T22:47:31.000Z"),
        ("ERROR 07-01 22:47:31 metrics.py:455] hello", "hello", "2026-07-01T22:47:31.000Z"),
        ("2026-07-01 22:47:31.123 | INFO     | a.b:run:6 - hello", "hello", "2026-07-01T22:47:31.123Z"),
        ("\x1b[32m2026-07-01 22:47:31.123\x1b[0m | \x1b[1mINFO    \x1b[0m | \x1b[36ma.b\x1b[0m:\x1b[36mrun\x1b[0m:\x1b[36m6\x1b[0m - \x1b[1mhello\x1b[0m", "hello", "2026-07-01T22:47:31.123Z"),
        ("[2026-07-01 22:47:31,014 E 99 99] (raylet) node_manager.cc:3277: hello", "hello", "2026-07-01T22:47:31.014Z"),
        ("2026-07-01 22:47:31,238\tWARNING worker.py:1416 -- hello", "hello", "2026-07-01T22:47:31.238Z"),
        ("[rank5]:[E701 22:47:31.426415540 ProcessGroupNCCL.cpp:629] [PG ID 2 PG GUID 7(TP) Rank 5] hello", "hello", "2026-07-01T22:47:31.426Z"),
        ("[rank1]:[E ProcessGroupNCCL.cpp:1316] [PG 0 Rank 1] hello", "hello", None),
        ("[E ProcessGroupNCCL.cpp:458] [Rank 0] hello", "hello", None),
        ("ERROR:asyncio:hello", "hello", None),
        ("WARNING:torch.distributed.elastic.agent.server.api:hello", "hello", None),
        ("ERROR:2026-07-01 22:47:31,953:hello", "hello", "2026-07-01T22:47:31.953Z"),
        ("W0701 22:47:31.426000 800 torch/distributed/run.py:792] hello", "hello", "2026-07-01T22:47:31.426Z"),
        ("[2026-07-01 22:47:31] n7:42:53 [3] net.cc:12 NCCL WARN hello", "n7:42:53 [3] net.cc:12 NCCL WARN hello", "2026-07-01T22:47:31.000Z"),
    ],
)  # fmt: skip
def test_each_prefix_comes_off(raw: str, text: str, at: str | None) -> None:
    line = unwrap(raw)
    assert line.text == text
    assert (None if line.at_us is None else write_iso(line.at_us)) == at


def test_all_layers_come_off_in_their_order_and_name_the_origin() -> None:
    line = unwrap(
        "[22:47:31] task=/kim/rl-9/3:2 | \x1b[36m(FSDPPolicyWorkerBase pid=77, ip=10.0.0.9)\x1b[0m "
        "[rank5]:[E701 22:47:29.500000000 ProcessGroupNCCL.cpp:629] [PG ID 1 PG GUID 1(mesh) Rank 5] gone"
        "\x1b[32m [repeated 31x across cluster]\x1b[0m"
    )
    assert line.text == "gone"
    assert line.origin == Origin("/kim/rl-9/3", 2, "FSDPPolicyWorkerBase", 77, "10.0.0.9", 5)
    assert line.repeated == 31
    assert write_iso(line.at_us or 0) == "2026-07-01T22:47:29.500Z"
    assert write_iso(line.transport_us or 0) == "2026-07-01T22:47:31.000Z"


def test_the_newer_attempt_form_of_the_task_prefix_is_read() -> None:
    line = unwrap("[22:47:31] task=/kim/rl-9/0 attempt=1 | hello")
    assert (line.text, line.origin.task, line.origin.attempt) == ("hello", "/kim/rl-9/0", 1)


def test_a_line_of_an_actors_own_file_keeps_the_files_origin() -> None:
    base = Origin(actor="RolloutCoordinator", pid=5, host="n1")
    assert unwrap("hello", base).origin == base


def test_words_in_parentheses_are_no_ray_tag() -> None:
    assert unwrap("(see the notes) hello").text == "(see the notes) hello"
    assert unwrap("(most recent call last) hello").text == "(most recent call last) hello"


def test_an_engine_process_tag_inside_a_ray_tag_comes_off_and_the_actor_stays() -> None:
    line = unwrap("(AsyncVLLMInferenceEngine pid=91) (EngineCore_DP0 pid=71) INFO 07-01 22:47:31 [core.py:1] up")
    assert (line.text, line.origin.actor, line.origin.pid) == ("up", "AsyncVLLMInferenceEngine", 91)


def test_a_named_actors_tag_names_its_class() -> None:
    line = unwrap("(k3PqWorkerDict_0:1 WorkerDict pid=77, ip=10.0.0.9) hello")
    assert (line.text, line.origin.actor, line.origin.pid) == ("hello", "WorkerDict", 77)
    assert unwrap("(see pid=3) hello").origin.actor != "pid"


def test_a_logger_of_content_stays_named_by_pythons_own_prefix() -> None:
    assert unwrap("INFO:LiteLLM:the agent said hello").logger == "LiteLLM"
    assert unwrap("INFO:asyncio:hello").logger == ""
