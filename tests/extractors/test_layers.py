"""Unwrapping: every prefix of a line comes off, and says who printed it and when."""

# ruff: noqa: E501 (log lines stand as printed)

import pytest

from dataflow.homes import writer_of
from extractors.clocks import SECOND_US, Clock, parse_iso, write_iso
from extractors.layers import Line, Unwrapper
from extractors.polls import SyncPolled
from extractors.record import NOWHERE, Origin
from extractors.sample import read_sample
from extractors.trainer import EvaluationProgress
from tests.extractors.poll_builders import said as sync_said
from tests.extractors.poll_builders import why

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
        ("[pod/rl-9-0/task] 2026-07-01T22:47:31.123456789Z hello", "hello", "2026-07-01T22:47:31.123Z"),
        ("task=/kim/rl-9/0 | hello", "hello", None),
        ("I20260701 22:47:31 4242 iris.client task=/kim/rl-9/0 | hello", "hello", None),
        ("2026-07-01 22:47:31,123 INFO iris.cli task=/kim/rl-9/0:2 | hello", "hello", None),
        ("0: hello", "hello", None),
        ("[default7]:hello", "hello", None),
        ("3: [rank7]: 2026-07-01 22:47:31.123 | INFO     | a.b:run:6 - hello", "hello", "2026-07-01T22:47:31.123Z"),
        ("(Learner pid=1, ip=10.0.0.7) hello", "hello", None),
        ("(Learner pid=1) hello", "hello", None),
        ("(pid=4242) hello", "hello", None),
        ("(raylet) hello", "hello", None),
        ("(raylet, ip=10.0.0.7) hello", "hello", None),
        ("(gcs_server) hello", "hello", None),
        ("(autoscaler +5h5m58s) hello", "hello", None),
        ("\x1b[36m(Learner pid=1)\x1b[0m hello", "hello", None),
        ("INFO 07-01 22:47:31 [v1/metrics/loggers.py:248] hello", "hello", "2026-07-01T22:47:31.000Z"),
        ("\x1b[32mINFO\x1b[0m \x1b[90m07-01 22:47:31\x1b[0m \x1b[90m[core.py:1]\x1b[0m hello", "hello", "2026-07-01T22:47:31.000Z"),
        ("engine-3 INFO 07-01 22:47:31 [core.py:1] hello", "hello", "2026-07-01T22:47:31.000Z"),
        ("(EngineCore_0 pid=71) INFO 07-01 22:47:31 [core.py:1] hello", "hello", "2026-07-01T22:47:31.000Z"),
        ("(EngineCore pid=71) INFO 07-01 22:47:31 [core.py:1] hello", "hello", "2026-07-01T22:47:31.000Z"),
        ("(APIServer pid=10) hello", "hello", None),
        ("(ApiServer_1 pid=10) hello", "hello", None),
        ("(Worker pid=72) hello", "hello", None),
        ("(Worker_TP0 pid=72) hello", "hello", None),
        ("(Worker_DP0_TP1_EP1 pid=72) hello", "hello", None),
        ("(MainProcess pid=70) hello", "hello", None),
        ("[2026-07-01 22:47:31,014 W 4242 4250] logging.cc:113: hello", "hello", "2026-07-01T22:47:31.014Z"),
        ("[rank0]:[W1229 22:47:31.426415540 TCPStore.cpp:106] [c10d] hello", "[c10d] hello", "2026-12-29T22:47:31.426Z"),
        ("[rank3]:[F701 22:47:31.426415540 ProcessGroupNCCL.cpp:1554] [PG ID 0 PG GUID 0 Rank 3] hello", "hello", "2026-07-01T22:47:31.426Z"),
        ("[rank3]:[I701 22:47:31.426415540 ProcessGroupNCCL.cpp:15] [PG ID 0 PG GUID 0(default_pg) Rank 3] hello", "hello", "2026-07-01T22:47:31.426Z"),
        ("22:47:31 INFO hello", "hello", None),
        ("[INFO] hello", "hello", None),
        ("2026-07-01 22:47:31,123 - trainer - WARNING - hello", "hello", "2026-07-01T22:47:31.123Z"),
        ("2026-07-01 22:47:31,123 INFO hello", "hello", "2026-07-01T22:47:31.123Z"),
        ("[INFO|trainer.py:2414] 2026-07-01 22:47:31,123 >> hello", "hello", "2026-07-01T22:47:31.123Z"),
        ("[task-runtime] hello", "[task-runtime] hello", None),
        ("[start_vllm_iris_controller] hello", "[start_vllm_iris_controller] hello", None),
        ("[fd-monitor] [22:47:31] OK: hello", "[fd-monitor] [22:47:31] OK: hello", None),
        ("n7:42:53 [3] NCCL INFO hello", "n7:42:53 [3] NCCL INFO hello", None),
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


def test_a_followed_log_names_its_task_and_attempt() -> None:
    line = unwrap("I20260701 22:47:31 4242 iris.client task=/kim/rl-9/3:2 | (Learner pid=1) hello")
    assert line.origin == Origin("/kim/rl-9/3", 2, "Learner", 1)


@pytest.mark.parametrize(
    "words",
    [
        "the task=/kim/rl-9/0 | is mine",
        "[INFO] [launch.py:3:main] hello",
        "INFO worker.py:12 -- hello",
        "22:47:31 hello",
        "it said INFO 07-01 22:47:31 [core.py:1] hello",
        "[rank-0]: hello",
        "[speaker|x] hello",
    ],
)
def test_words_that_only_resemble_a_prefix_stay(words: str) -> None:
    assert unwrap(words).text == words


def test_the_tools_own_chatter_before_the_first_line_costs_nothing() -> None:
    chatter = "Tunnel to controller established\nFetching logs ...\n\n"
    read = read_sample(f"{chatter}[22:47:31] task=/kim/rl-9/0 | Training done!\n")
    assert [name for name, _ in read] == ["training_done"]


def test_a_transport_clock_without_a_date_goes_on_past_midnight() -> None:
    unwrapper = Unwrapper(Clock(ANCHOR), NOWHERE)
    times = [unwrapper.unwrap(f"[{at}] task=/kim/rl-9/0 | x").at_us or 0 for at in ("23:59:59", "00:00:01", "11:30:00")]
    assert [write_iso(at) for at in times] == [
        "2026-07-01T23:59:59.000Z",
        "2026-07-02T00:00:01.000Z",
        "2026-07-02T11:30:00.000Z",
    ]


def test_a_worker_tag_of_old_vllm_names_the_rank() -> None:
    line = unwrap("(VllmWorker rank=3 pid=72) INFO 07-01 22:47:31 [worker.py:1] up")
    assert (line.text, line.origin.actor, line.origin.rank, line.origin.pid) == ("up", "VllmWorker", 3, 72)


@pytest.mark.parametrize(
    ("suffix", "times"),
    [
        (" [repeated 31x across cluster]", 31),
        ("\x1b[32m [repeated 2x across cluster]\x1b[0m", 2),
        (
            " [repeated 4x across cluster] (Ray deduplicates logs by default. Set RAY_DEDUP_LOGS=0 to disable log "
            "deduplication, or see https://docs.ray.io for more options.)",
            4,
        ),
        ("", 1),
    ],
)
def test_rays_copies_are_counted_and_their_suffix_comes_off(suffix: str, times: int) -> None:
    line = unwrap(f"(Learner pid=1) hello{suffix}")
    assert (line.text, line.repeated) == ("hello", times)


@pytest.mark.parametrize(
    ("tag", "rank"), [("[Rank 0] ", 0), ("[PG 0 Rank 1] ", 1), ("[PG ID 2 PG GUID 77(TP) Rank 3] ", 3)]
)
def test_a_process_groups_tag_of_each_torch_names_the_rank(tag: str, rank: int) -> None:
    line = unwrap(f"[E ProcessGroupNCCL.cpp:458] {tag}hello")
    assert (line.text, line.origin.rank, line.group) == ("hello", rank, tag)


@pytest.mark.parametrize("frames", ["\r{bar}\r{bar}", "\x1b[A\r{bar}", "{bar}\x1b[A", "\r{bar}\r\x1b[A", "\n\r{bar}"])
def test_cursor_codes_and_redrawn_frames_leave_the_newest_bar(frames: str) -> None:
    bar = "Evaluation Progress:  25%|██▌       | 2/8 [10:20<31:00, 310.00s/it]"
    assert read_sample(f"(Learner pid=1) {frames.format(bar=bar)}\n") == [
        ("evaluation_progress", EvaluationProgress(2, 8))
    ]


def test_a_folder_of_a_nodes_ray_logs_names_the_node_its_rank_and_the_sessions_start() -> None:
    writer = writer_of(
        "ray_session_logs/rank3-quartz-07/session_2026-07-01_22-47-31_123456_4242/worker-ab-01000000-77.err"
    )
    assert (writer.node_rank, writer.host, writer.pid) == (3, "quartz-07", 77)
    assert write_iso(writer.session_start_us or 0) == "2026-07-01T22:47:31.000Z"


@pytest.mark.parametrize(
    "said",
    [
        "[ray] REFUSING to mirror into ./ray_session_logs: it holds another job's",
        "[sync] cannot read iris-task-env/rl-9 (KUBECONFIG=/home/kim/.kube/config)",
        "[finelog] could not be fetched (rc=1: deadline exceeded)",
        "⚠ hit the --finelog-lines cap (500000)",
    ],
)
def test_a_sync_that_left_something_out_is_a_failure_whatever_its_exit(said: str) -> None:
    assert said in why("sync", f"[ray] 12 new / 6123 total -> x\n{said}\n")


def test_a_sync_that_pulled_all_is_none() -> None:
    told = "[ray] 6123 objects under iris/rl-9/run-1/ray_session_logs/\n[ray] (none yet)\n[finelog] 81234 lines -> x\n"
    assert isinstance(sync_said("sync", told), SyncPolled)


@pytest.mark.parametrize(
    "raw",
    [
        "[22:47:31] task=/kim/rl-9/0:² | hello",
        "[22:47:31] task=/kim/rl-9/0 attempt=99999999999999999999 | hello",
        "(Actor pid=99999999999999999999) hello",
        f"[rank{'9' * 5_000}]: hello",
        f"hello [repeated {'9' * 5_000}x across cluster]",
    ],
)
def test_numbers_that_no_counter_reaches_are_words(raw: str) -> None:
    line = unwrap(raw)
    assert (line.origin.attempt, line.origin.pid, line.origin.rank, line.repeated) == (0, 0, None, 1)


def test_a_task_longer_than_a_path_is_none() -> None:
    assert unwrap(f"[22:47:31] task=/{'x' * 100_000} | hello").origin.task == ""


@pytest.mark.parametrize("time", ["-1:-2:-3", "99:99:99", "24:00:00", "12:60:00", " 1: 2: 3"])
def test_a_time_of_day_that_is_none_gives_no_time(time: str) -> None:
    assert unwrap(f"[{time}] task=/kim/rl-9/0 | hello").transport_us is None


@pytest.mark.parametrize(
    "raw",
    [
        "[22:47:31] task=/kim/rl-9/0 | (AsyncVLLMInferenceEngine pid=91, ip=10.0.0.4) INFO 07-01 22:47:31 [loggers.py:248] hello",
        "[22:47:31] task=/kim/rl-9/0 | (skyrl_entrypoint pid=5) 2026-07-01 22:47:31.123 | INFO     | a.b:run:6 - hello",
        "[22:47:31] task=/kim/rl-9/0 | hello",
        "[22:47:31] task=/kim/rl-9/0 | (see the notes) hello",
        "[22:47:31] task=/kim/rl-9/0 | (Dispatcher pid=4) (Coordinator pid=5) hello",
        "(Coordinator pid=5) 2026-07-01 22:47:31,123 | INFO | a.b:run:6 - hello",
        "INFO 07-01 22:47:31 [loggers.py:248] hello",
    ],
)  # fmt: skip
def test_a_prefix_that_was_seen_before_comes_off_as_at_first(raw: str) -> None:
    unwrapper = Unwrapper(Clock(ANCHOR), NOWHERE)
    first = unwrapper.unwrap(raw)
    assert first.text.endswith("hello")
    assert unwrapper.unwrap(raw) == first
    assert unwrapper.unwrap(raw.replace(":31", ":32")).at_us == first.at_us + SECOND_US if first.at_us else True


def test_what_follows_a_known_head_is_still_peeled() -> None:
    unwrapper = Unwrapper(Clock(ANCHOR), NOWHERE)
    unwrapper.unwrap("[22:47:31] task=/kim/rl-9/0 | (Dispatcher pid=4) hello")
    line = unwrapper.unwrap("[22:47:31] task=/kim/rl-9/0 | (Dispatcher pid=4) (Coordinator pid=5) hello")
    assert (line.text, line.origin.actor) == ("hello", "Dispatcher")


def test_a_known_head_is_forgotten_with_who_runs_in_the_worker() -> None:
    unwrapper = Unwrapper(Clock(ANCHOR), NOWHERE)
    unwrapper.unwrap("[22:47:31] task=/kim/rl-9/0 | hello")
    unwrapper.rebase(Origin(actor="RolloutCoordinator"))
    assert unwrapper.unwrap("[22:47:31] task=/kim/rl-9/0 | hello").origin.actor == "RolloutCoordinator"
