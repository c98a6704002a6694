"""Traps of the trainer's lines that a single sample can't show: non-finite and torn metrics, glued and mixed bars,
timers that close on an exception, quoted log lines, and the reasons of the supervisor's uploads."""

import itertools
import math

import pytest

from extractors.catalogue import CATALOGUE
from extractors.extract import Reader
from extractors.facts import GENERATOR_TRIALS, ConfigFact
from extractors.metrics import MetricsUnreadable, StepMetrics
from extractors.pattern import Nature
from extractors.record import NOWHERE, Block, Observation
from extractors.sample import read_sample
from extractors.signal import Fault
from extractors.supervisor import DriverExited
from extractors.trainer import (
    BufferProgress,
    ForwardEntered,
    PhaseFinished,
    PhaseStarted,
    PolicyProgress,
    StepProgress,
)
from state.trackers.facts import FactsTracker

ENTRY = "(skyrl_entrypoint pid=5150) "
LOGURU = "2026-03-04 09:10:11.120 | INFO     | skyrl_train.trainer:_log_metrics_stdout:3180 - "


def signals(text: str) -> list[object]:
    """What a piece of log says, without the patterns' names."""
    return [signal for _, signal in read_sample(text)]


def observed(text: str) -> list[Observation]:
    reader = Reader("sample", NOWHERE, 1_772_600_000_000_000)
    return reader.read(Block("sample", 0, 1, text.encode() + b"\n")) + reader.end()


def mirror(payload: str, step: int = 9) -> str:
    return f"{ENTRY}{LOGURU}WANDB_MIRROR kind=train step={step} metrics={payload}"


def test_a_loss_that_is_not_a_number_keeps_the_record_and_stays_not_a_number() -> None:
    [metrics] = signals(mirror('{"policy/final_loss": NaN, "policy/raw_grad_norm": -Infinity, "trainer/epoch": 0}'))
    assert isinstance(metrics, StepMetrics)
    assert math.isnan(metrics.values["policy/final_loss"])
    assert metrics.values["policy/raw_grad_norm"] == -math.inf
    assert metrics.values["trainer/epoch"] == 0.0


def test_words_flags_and_nested_values_of_a_metrics_record_are_left_out() -> None:
    payload = '{"a/word": "NaN", "a/flag": true, "a/list": [1], "a/none": null, "a/count": 3}'
    assert signals(mirror(payload)) == [StepMetrics(9, "train", {"a/count": 3.0})]


def test_the_step_is_the_one_before_the_object_even_when_the_object_disagrees() -> None:
    [metrics] = signals(mirror('{"trainer/global_step": 8}', step=9))
    assert isinstance(metrics, StepMetrics)
    assert metrics.step == 9


@pytest.mark.parametrize("junk", ["\x1b[0m", " [repeated 2x across cluster]", "\x1b[1m tail", "}"])
def test_what_trails_behind_the_object_does_not_cost_the_record(junk: str) -> None:
    assert signals(mirror('{"policy/policy_entropy": 0.5}' + junk)) == [
        StepMetrics(9, "train", {"policy/policy_entropy": 0.5})
    ]


@pytest.mark.parametrize("kept", range(1, 40, 3))
def test_a_metrics_record_cut_anywhere_is_unreadable_and_never_half_a_record(kept: int) -> None:
    whole = '{"policy/final_loss": 0.5, "policy/raw_grad_norm": 0.125}'
    [cut] = signals(mirror(whole[:kept]))
    assert cut == MetricsUnreadable(9, "the JSON object is cut or torn")


def test_a_metrics_record_longer_than_a_transport_line_is_read_whole() -> None:
    pairs = ", ".join(f'"vllm/engine_{n}/peak_running_reqs": {n}' for n in range(2000))
    [metrics] = signals(mirror("{" + pairs + "}"))
    assert isinstance(metrics, StepMetrics)
    assert len(metrics.values) == 2000


def test_an_array_in_place_of_the_object_is_unreadable() -> None:
    assert signals(mirror("[1, 2]")) == [MetricsUnreadable(9, "the JSON object is cut or torn")]


def test_the_old_console_block_survives_lines_of_other_actors_between_its_own() -> None:
    block = (
        f"{ENTRY}{{'async/staleness_max': 2,\n"
        "(RolloutCoordinator pid=8001) INFO: nothing of interest\n"
        f"{ENTRY} 'policy/final_loss': 'nan',\n"
        "(FSDPPolicyWorkerBase pid=6001) WORKER_FORWARD_ENTER rank=1\n"
        f"{ENTRY} 'trainer/global_step': 4}}"
    )
    found = signals(block)
    metrics = next(signal for signal in found if isinstance(signal, StepMetrics))
    assert metrics.step == 4
    assert math.isnan(metrics.values["policy/final_loss"])
    assert ForwardEntered(1) in found


def test_an_old_console_block_without_its_end_is_unreadable() -> None:
    assert signals(f"{ENTRY}{{'async/staleness_max': 2,\n{ENTRY} 'trainer/global_step': 4,") == [
        MetricsUnreadable(None, "the block's end is missing")
    ]


def test_of_many_frames_in_one_physical_line_the_newest_counts() -> None:
    frames = "".join(
        f"\rGeneration Buffer Progress:  {n}%|▎         | {n}/64 [{n:02d}:00<1:00:00, 60.00s/it, buffer qsize=0]"
        for n in range(1, 33)
    )
    assert signals(ENTRY + frames) == [BufferProgress(32, 64, 1920.0)]


def test_frames_glued_without_a_carriage_return_give_the_newest_too() -> None:
    glued = (
        "Policy Train epoch [1/1]:  25%|██▌       | 1/4 [02:40<08:00, 160.00s/it, pg=-0.01]"
        "Policy Train epoch [1/1]:  50%|█████     | 2/4 [05:20<05:20, 160.00s/it, pg=-0.02]"
    )
    assert signals(glued) == [PolicyProgress(2, 4)]


def test_two_bars_redrawn_in_one_physical_line_are_both_read() -> None:
    line = (
        "\rTraining Step Progress:   3%|▎         | 2/80 [1:02:03<40:21:09, 1862.37s/it]"
        "\rGeneration Buffer Progress:  25%|██▌       | 16/64 [31:02<1:33:06, 116.38s/it]\x1b[A"
    )
    assert sorted(map(type, signals(line)), key=str) == sorted([StepProgress, BufferProgress], key=str)


def test_a_bar_beyond_a_day_keeps_its_clock() -> None:
    line = "Generation Buffer Progress:  25%|██▌       | 16/64 [40:21:09<1:33:06, 116.38s/it]"
    assert signals(line) == [BufferProgress(16, 64, 145_269.0)]


def test_a_timer_that_closes_on_an_exception_says_nothing_of_success() -> None:
    text = (
        f"{ENTRY}{LOGURU}Finished: 'policy_train', time cost: 17.14s\n"
        f"{ENTRY}{LOGURU}Finished: 'step', time cost: 90.00s\n"
    )
    assert signals(text) == [PhaseFinished("policy_train", 17.14), PhaseFinished("step", 90.0)]


@pytest.mark.parametrize("phase", ["policy_pre_sync_drain", "a_phase_of_next_year"])
def test_a_phase_need_not_be_known_to_be_read(phase: str) -> None:
    assert signals(f"{ENTRY}{LOGURU}Started: '{phase}'") == [PhaseStarted(phase)]


@pytest.mark.parametrize(
    "quoted",
    [
        "Training done!",
        "Generation Buffer Progress: 64/64 (100%) [1s]",
        "Finished: 'step', time cost: 1.00s",
        "Train loop failed at global_step 3: boom",
        "[task-runtime] Received signal 15; terminating training driver and stopping Ray...",
        "WANDB_MIRROR kind=train step=1 metrics={}",
    ],
)
def test_a_log_line_quoted_by_an_agent_is_content_and_says_nothing(quoted: str) -> None:
    logger = "2026-03-04 09:10:11.120 | DEBUG    | harbor.agents.terminus_2.terminus_2:run:900 - "
    assert signals(f'{logger}episode={{"content": "{quoted}"}}') == []
    assert signals(f'{logger}episode={{"content": "$ tail -1 train.log\\n{quoted}"}}') == []


def test_copies_that_ray_swallowed_are_counted_on_the_one_that_is_left() -> None:
    [observation] = observed(
        "(FSDPPolicyWorkerBase pid=6001) WORKER_FORWARD_ENTER rank=30 [repeated 31x across cluster]"
    )
    assert observation.signal == ForwardEntered(30)
    assert observation.repeated == 31


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("driver exit_code=0 (head)", [DriverExited(0)]),
        ("driver exit_code=137 (head)", [DriverExited(137)]),
        ("signal 15 (head)", [Fault("external_signal", detail="signal 15 to a supervisor", entity="task rank 0")]),
        (
            "signal 2 (worker rank 7)",
            [Fault("external_signal", detail="signal 2 to a supervisor", entity="task rank 7")],
        ),
    ],
)
@pytest.mark.parametrize("tag", ["", "[task-runtime] "])
def test_an_upload_line_says_its_reason_and_nothing_else(tag: str, reason: str, said: list[object]) -> None:
    line = f"[ray-log-sync] uploaded 4 file(s) / 0.01 GiB (unchanged=0, failed=0) -> s3://b/run/rank0-h [{reason}]"
    assert signals(tag + line) == said


def test_a_share_of_the_trials_is_not_taken_for_the_jobs_figure() -> None:
    text = (
        "(RolloutCoordinator pid=8001) [RolloutCoordinator] scaled n_concurrent_trials 192 -> 48 (// 4)\n"
        "(RolloutCoordinator pid=8001) QueueOrchestrator created and started with n_concurrent_trials=48, rollback "
        "hook registered for none\n"
    )
    assert signals(text) == [ConfigFact("n_concurrent_trials", "192"), ConfigFact(GENERATOR_TRIALS, "48")]
    tracker = FactsTracker()
    for seen in reversed(observed(text)):
        tracker.on_config(seen)
    assert tracker.view().facts.n_concurrent_trials == 192


@pytest.mark.parametrize(
    "line", ["  TENSOR_PARALLEL_SIZE=<unset>", "  max_steps: null", "  extra_max_steps: 3", "  max_steps: 3 of them"]
)
def test_what_is_unset_or_only_similar_is_no_fact(line: str) -> None:
    assert signals(line) == []


def test_bars_are_heartbeats_and_timers_are_progress() -> None:
    natures = {name: CATALOGUE.by_name[name].nature for name in ("buffer_progress", "step_progress", "phase_finished")}
    assert natures == {
        "buffer_progress": Nature.HEARTBEAT,
        "step_progress": Nature.HEARTBEAT,
        "phase_finished": Nature.PROGRESS,
    }


def split(text: str, *at: int, between: str = "") -> str:
    """A line as a transport splits it: each piece behind the stream's own tag, other lines between them."""
    ends = [0, *at, len(text)]
    pieces = [text[start:end] for start, end in itertools.pairwise(ends)]
    return f"\n{between}".join(ENTRY + piece for piece in pieces)


@pytest.mark.parametrize("at", range(len(LOGURU) + 45, len(LOGURU) + 100, 6))
def test_a_metrics_line_that_the_transport_split_is_read_whole_from_its_head(at: int) -> None:
    whole = mirror('{"policy/final_loss": NaN, "trainer/global_step": 9, "a/b": 1.5}').removeprefix(ENTRY)
    foreign = f"(RolloutCoordinator pid=8001) hello\n{ENTRY}{LOGURU}Started: 'eval'\n"
    for between in ("", foreign):
        found = observed(split(whole, at, between=between))
        metrics = next(seen for seen in found if isinstance(seen.signal, StepMetrics))
        assert metrics.signal.step == 9
        assert sorted(metrics.signal.values) == ["a/b", "policy/final_loss", "trainer/global_step"]
        assert metrics.evidence.line == 1


def test_a_metrics_line_split_into_three_is_read_whole() -> None:
    pairs = ", ".join(f'"vllm/engine_{n}/peak_running_reqs": {n}' for n in range(900))
    whole = LOGURU + "WANDB_MIRROR kind=train step=9 metrics={" + pairs + "}"
    [metrics] = signals(split(whole, 16_384, 32_768))
    assert isinstance(metrics, StepMetrics)
    assert len(metrics.values) == 900


def test_the_head_of_a_split_metrics_line_whose_tail_never_came_is_unreadable() -> None:
    head = f'{ENTRY}{LOGURU}WANDB_MIRROR kind=train step=9 metrics={{"policy/final_loss": 0.5, "poli'
    text = f"{head}\n{ENTRY}unrelated words\n" + mirror('{"a/b": 1.5}', step=10)
    assert signals(text) == [
        MetricsUnreadable(9, "the JSON object is cut or torn"),
        StepMetrics(10, "train", {"a/b": 1.5}),
    ]


def test_the_tail_of_a_split_metrics_line_alone_says_nothing() -> None:
    assert signals(f'{ENTRY}y/raw_grad_norm": 0.5, "generate/errors/AgentTimeoutError": 3}}') == []


@pytest.mark.parametrize(
    "noise",
    [
        "Retry config: max_retries=3, backoff=1.0-60.0s",
        "mask_exceptions: [DaytonaError, AgentTimeoutError, CUDA out of memory]",
        "policy/rollout_train_prob_diff_mean: 7.5e6",
        "[EPDIAG] ts=12.5 rank=3/16 sel_rows=64",
        "[GRPMM] rank=3 m=64",
        '{"tool": "bash", "output": "Killed\\nerror: tests failed, timeout"}',
    ],
)
def test_noise_of_a_trainer_is_no_event(noise: str) -> None:
    assert signals(f"{ENTRY}{noise}") == []


@pytest.mark.parametrize("marker", ["WORKER_DRAIN_BARRIER rank=3", "R3_RESIDENT_SET rank=3 nbytes=9 dtype=torch.uint8"])
def test_a_marker_of_a_rank_is_a_heartbeat_and_the_forward_marker_progress(marker: str) -> None:
    [seen] = observed(marker)
    assert CATALOGUE.by_name[seen.pattern].nature is Nature.HEARTBEAT
    assert CATALOGUE.by_name["forward_entered"].nature is Nature.PROGRESS
