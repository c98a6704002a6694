"""Messages that span lines, told apart even where two actors' lines interleave."""

import time

import pytest

from extractors.extract import Reader
from extractors.joining import HELD_CHARACTERS, PATIENCE_LINES
from extractors.metrics import StepMetrics
from extractors.record import NOWHERE, Block, Origin
from extractors.sample import read_sample
from extractors.signal import Fault
from extractors.trainer import PhaseFinished, PhaseStarted, StepProgress

TRACEBACK = (
    "(Learner pid=1) Traceback (most recent call last):\n"
    "(Actor pid=2) Traceback (most recent call last):\n"
    '(Learner pid=1)   File "a.py", line 3, in learn\n'
    '(Actor pid=2)   File "b.py", line 9, in act\n'
    "(Learner pid=1)     step()\n"
    "(Actor pid=2)     move()\n"
    "(Actor pid=2) KeyError: 'left'\n"
    "(Learner pid=1) ZeroDivisionError: division by zero\n"
)


def faults(text: str) -> list[Fault]:
    return [signal for _, signal in read_sample(text) if isinstance(signal, Fault)]


def test_interleaved_tracebacks_of_two_actors_are_two_faults() -> None:
    found = faults(TRACEBACK)
    assert [(fault.exception, fault.site) for fault in found] == [("KeyError", "act"), ("ZeroDivisionError", "learn")]


def test_any_split_into_blocks_reads_the_same_faults() -> None:
    data = TRACEBACK.encode()
    whole = faults(TRACEBACK)
    for cut in [n for n, byte in enumerate(data, start=1) if byte == 0x0A][:-1]:
        reader = Reader("log", NOWHERE, 0)
        seen = reader.read(Block("log", 0, 1, data[:cut]))
        seen += reader.read(Block("log", cut, 1 + data.count(b"\n", 0, cut), data[cut:]))
        assert [o.signal for o in seen + reader.end()] == whole


def test_the_evidence_of_a_traceback_is_its_conclusions_line() -> None:
    reader = Reader("log", NOWHERE, 0)
    seen = reader.read(Block("log", 100, 41, TRACEBACK.encode()))
    last = seen[-1].evidence
    assert (last.line, last.quote) == (48, "(Learner pid=1) ZeroDivisionError: division by zero")
    assert last.offset == 100 + TRACEBACK.encode().rfind(b"(Learner")


def test_each_continuation_line_may_repeat_the_speakers_prefix() -> None:
    prefix = "ERROR 07-01 22:47:31 [core.py:1101] "
    text = "".join(
        prefix + line + "\n"
        for line in ("Traceback (most recent call last):", '  File "c.py", line 1, in busy', "OSError: disk is gone")
    )
    assert [fault.exception for fault in faults(text)] == ["OSError"]


def test_a_traceback_whose_end_never_came_is_counted_and_not_lost() -> None:
    reader = Reader("log", NOWHERE, 0)
    text = b'Traceback (most recent call last):\n  File "a.py", line 3, in learn\n'
    reader.read(Block("log", 0, 1, text))
    reader.end()
    assert reader.torn == 1


def test_a_line_a_minute_later_is_neither_the_end_of_a_torn_traceback_nor_quoted_for_it() -> None:
    head = "(Worker pid=9) 2026-03-14 08:00:00.000 | INFO     | a:b:1 - begins\n"
    torn = (
        "(Worker pid=9) ray.exceptions.RayTaskError(OutOfMemoryError): ray::Worker.learn() (pid=9, ip=10.1.0.5)\n"
        '(Worker pid=9)   File "/opt/app/worker.py", line 12, in learn\n'
    )
    later = "(Other pid=3) 2026-03-14 08:05:00.000 | INFO     | a:b:1 - goes on\n(Worker pid=9) The pet is fed\n"
    reader = Reader("log", NOWHERE, 0)
    seen = reader.read(Block("log", 0, 1, (head + torn + later).encode())) + reader.end()
    told = [observation for observation in seen if isinstance(observation.signal, Fault)]
    assert [(observation.evidence.line, observation.evidence.quote[:14]) for observation in told] == [
        (2, "(Worker pid=9)")
    ]
    assert "RayTaskError" in told[0].evidence.quote


def test_a_worker_file_says_who_runs_in_it_and_again_when_it_is_reused() -> None:
    line = "2026-07-01 22:47:31.123 | INFO     | w:forward:8 - WORKER_FORWARD_ENTER rank=1\n"
    text = f":job_id:01000000\n:actor_name:FSDPPolicyWorkerBase\n{line}:task_name:skyrl_entrypoint\n{line}"
    reader = Reader("worker-1.err", Origin(pid=9, host="n1"), 0)
    actors = [o.origin.actor for o in reader.read(Block("worker-1.err", 0, 1, text.encode()))]
    assert actors == ["FSDPPolicyWorkerBase", "skyrl_entrypoint"]


def test_the_newest_frame_of_a_redrawn_bar_counts() -> None:
    frames = "".join(
        f"\rTraining Step Progress:  {n}%|▎         | {n}/80 [1:02:03<40:21:09, 1862.37s/it]" for n in (1, 2, 3)
    )
    (found,) = [signal for name, signal in read_sample(frames + "\n")]
    assert (found.done, found.total) == (3, 80)


def test_agents_words_are_never_events() -> None:
    inside = 'episode={"content": "Traceback (most recent call last): CUDA out of memory. Tried to allocate 2.50 GiB"}'
    assert read_sample(f"2026-07-01 22:47:31.123 | DEBUG    | harbor.agents.t2:log:9 - {inside}\n") == []


def test_a_printed_trajectory_is_content_until_its_printer_logs_again() -> None:
    prefix = "2026-07-01 22:47:31.123 | INFO     | skyrl_train.trainer:train:227 - "
    text = (
        "2026-07-01 22:47:31.100 | INFO     | skyrl_train.utils.logging_utils:log_example:81 - Example:\n"
        "  Input: [{'role': 'user'}]\n"
        "Traceback (most recent call last):\n"
        "RuntimeError: CUDA out of memory. Tried to allocate 2.50 GiB\n"
        "Segmentation fault (core dumped)\n"
        f"{prefix}Started: 'postprocess_generator_output'\n"
        'Traceback (most recent call last):\n  File "a.py", line 3, in learn\nKeyError: 1\n'
    )
    assert [name for name, _ in read_sample(text)] == ["phase_started", "traceback"]


FRAME = '  File "a.py", line 3, in learn\n    step()\n'


def test_a_header_glued_to_a_bar_opens_its_traceback_and_the_bar_is_read_too() -> None:
    bar = "Training Step Progress:   3%|▎         | 2/80 [1:02:03<40:21:09, 1862.37s/it]"
    read = read_sample(f"{bar}Traceback (most recent call last):\n{FRAME}KeyError: 1\n")
    assert [name for name, _ in read] == ["step_progress", "traceback"]


def test_a_header_behind_a_loggers_own_prefix_opens_its_traceback() -> None:
    text = f"ERROR:2026-07-01 22:47:31,953:Traceback (most recent call last):\n{FRAME}KeyError: 1\n"
    assert [(fault.exception, fault.site) for fault in faults(text)] == [("KeyError", "learn")]


def test_a_quoted_header_at_the_end_of_a_line_opens_nothing() -> None:
    assert read_sample(f'tool said "Traceback (most recent call last):\n{FRAME}KeyError: 1\n') == []


def test_only_the_next_traceback_of_the_same_stream_is_ignored() -> None:
    header = "Traceback (most recent call last):\n"
    text = f"Exception ignored in: <function A.__del__>\n{header}{FRAME}OSError: gone\n{header}{FRAME}KeyError: 1\n"
    assert [fault.exception for fault in faults(text)] == ["KeyError"]
    other = "".join(f"(Learner pid=1) {line}\n" for line in (header + FRAME + "KeyError: 1").splitlines())
    assert [fault.exception for fault in faults(f"Exception ignored in: <A>\n{other}")] == ["KeyError"]


def test_a_line_of_a_message_that_spans_lines_names_no_exception() -> None:
    """Ray's de-duplication can swallow the exception's own line and leave the rest of its message."""
    text = f"Traceback (most recent call last):\n{FRAME}\nAction: click(7, 9)\n"
    assert faults(text) == []


SAVE_FAILED = (
    "2026-07-01 22:47:31.123 | ERROR    | skyrl_train.trainer:save_checkpoints:930 - Checkpoint save failed at global "
    "step 7; continuing from the last complete checkpoint\n"
)


def test_the_traceback_below_a_checkpoint_that_may_fail_is_ignored_and_the_next_one_read() -> None:
    header = "Traceback (most recent call last):\n"
    text = f"{SAVE_FAILED}{header}{FRAME}OSError: storage is slow\n{header}{FRAME}KeyError: 1\n"
    assert [fault.exception for fault in faults(text)] == ["KeyError"]


def test_the_whole_chain_of_an_ignored_traceback_is_ignored() -> None:
    header = "Traceback (most recent call last):\n"
    link = "\nDuring handling of the above exception, another exception occurred:\n\n"
    text = f"{SAVE_FAILED}{header}{FRAME}OSError: slow\n{link}{header}{FRAME}RuntimeError: no storage\n"
    assert faults(text) == []
    assert [fault.exception for fault in faults(f"{text}\n{header}{FRAME}KeyError: 1\n")] == ["KeyError"]


def test_each_traceback_of_a_chain_is_read_in_its_order() -> None:
    header = "Traceback (most recent call last):\n"
    link = "\nThe above exception was the direct cause of the following exception:\n\n"
    text = f"{header}{FRAME}KeyError: 1\n{link}{header}{FRAME}RuntimeError: no policy\n"
    assert [fault.exception for fault in faults(text)] == ["KeyError", "RuntimeError"]


BAR = "Training Step Progress:   3%|▎         | 2/80 [1:02:03<40:21:09, 1862.37s/it]"
LOGGED = "2026-07-01 22:47:31.123 | INFO     | skyrl_train.trainer:train:227 - "


@pytest.mark.parametrize("bar", [BAR, f"\r{BAR}", f"\r{BAR}\r{BAR}", f"\x1b[A\r{BAR}\r{BAR}\x1b[A"])
def test_a_log_line_glued_to_a_bar_is_read_and_the_bar_too(bar: str) -> None:
    read = dict(read_sample(f"(Learner pid=1) {bar}{LOGGED}Started: 'sync_weights'\n"))
    assert read == {"step_progress": StepProgress(2, 80), "phase_started": PhaseStarted("sync_weights")}


def test_a_header_glued_to_redrawn_frames_opens_its_traceback() -> None:
    read = read_sample(f"\r{BAR}\r{BAR}Traceback (most recent call last):\n{FRAME}KeyError: 1\n")
    assert [name for name, _ in read] == ["step_progress", "traceback"]


def test_two_writers_in_one_line_are_both_read_each_with_its_own_time_and_origin() -> None:
    reader = Reader("log", NOWHERE, 0)
    line = (
        f"(Learner pid=1) {LOGGED}Started: 'eval'(Actor pid=2, ip=10.0.0.9) 2026-07-01 22:47:33.000 | INFO     | "
        "skyrl_train.trainer:train:227 - Finished: 'generate', time cost: 3.00s\n"
    )
    first, second = reader.read(Block("log", 0, 1, line.encode()))
    assert (first.signal, first.origin.actor) == (PhaseStarted("eval"), "Learner")
    assert (second.signal, second.origin.actor) == (PhaseFinished("generate", 3.0), "Actor")
    assert second.at_us - first.at_us == 1_877_000


def test_a_whole_message_inside_a_torn_one_is_read_and_the_torn_one_is_not() -> None:
    text = f"{LOGGED}Finished: 'policy_tr{LOGGED}Started: 'eval'\nain', time cost: 9.00s\n"
    assert read_sample(text) == [("phase_started", PhaseStarted("eval"))]


@pytest.mark.parametrize("before", ['{"content": "', 'the tool said "', "`", "it printed\\n", "and then: "])
def test_a_log_line_that_is_quoted_inside_another_is_content(before: str) -> None:
    assert read_sample(f"{LOGGED}agent: {before}{LOGGED}Started: 'eval'\n") == []


def test_frames_inside_an_agents_words_are_content() -> None:
    logger = "2026-07-01 22:47:31.123 | DEBUG    | harbor.agents.terminus_2.terminus_2:run:900 - "
    assert read_sample(f"{logger}episode=\r{BAR}\r{BAR}\n") == []


def test_vllms_continuation_lines_may_end_in_a_carriage_return() -> None:
    prefix = "(EngineCore_DP0 pid=71) ERROR 07-01 22:47:31 [core.py:1101] "
    lines = ("Traceback (most recent call last):", '  File "c.py", line 1, in busy', "OSError: disk is gone")
    found = faults("".join(f"{prefix}{line}\r\n" for line in lines))
    assert [(fault.exception, fault.detail) for fault in found] == [("OSError", "disk is gone")]


def test_dicts_of_two_actors_that_interleave_are_two_records() -> None:
    text = (
        "(Learner pid=1) {'async/staleness_max': 1,\n"
        "(Other pid=2) {'generate/avg_num_tokens': '8.0000',\n"
        "(Learner pid=1)  'trainer/global_step': 4}\n"
        "(Other pid=2)  'trainer/global_step': 5}\n"
    )
    assert [signal.step for _, signal in read_sample(text) if isinstance(signal, StepMetrics)] == [4, 5]


def test_a_hundred_thousand_tracebacks_that_never_end_take_no_time_and_little_memory() -> None:
    reader = Reader("log", NOWHERE, 0)
    began = time.process_time()
    for block in range(10):
        rows = [f"(Actor pid={block * 10_000 + n}) Traceback (most recent call last):\n" for n in range(1, 10_000)]
        reader.read(Block("log", 0, 1, "".join(rows).encode()))
    assert time.process_time() - began < 20
    assert len(reader._joiner.open) <= PATIENCE_LINES + 1


def test_open_tracebacks_of_long_lines_hold_no_more_than_a_few_megabytes() -> None:
    reader = Reader("log", NOWHERE, 0)
    for pid in range(1, 60):
        row = f"(Actor pid={pid}) Traceback (most recent call last):{'x' * 500_000}\n"
        reader.read(Block("log", 0, 1, row.encode()))
    assert reader._joiner.held <= HELD_CHARACTERS + 1_100_000
    reader.end()
    assert reader._joiner.held == 0


DROPPED = (
    "[2031-03-14 09:12:00,310 | asyncio | ERROR]:\tTask exception was never retrieved\n"
    "future: <Task finished name='Task-7' coro=<ask() done> exception=KeyError('grade')>\n"
    "Traceback (most recent call last):\n"
    '  File "/opt/app/judge.py", line 24, in ask\n'
    "    return answer[name]\n"
    "KeyError: 'grade'\n"
)


def patterns_of(text: str) -> list[str]:
    return [name for name, _ in read_sample(text)]


def test_a_chain_of_tracebacks_of_a_dropped_task_is_all_of_that_task() -> None:
    chained = (
        "\nDuring handling of the above exception, another exception occurred:\n\n"
        "Traceback (most recent call last):\n"
        '  File "/opt/app/judge.py", line 31, in grade\n'
        '    raise ValueError("no grade")\n'
        "ValueError: no grade\n"
    )
    assert patterns_of(DROPPED + chained) == ["detached_exception", "detached_exception"]


def test_a_traceback_after_that_of_a_dropped_task_is_its_own() -> None:
    own = 'Traceback (most recent call last):\n  File "/opt/app/main.py", line 3, in main\nOSError: gone\n'
    assert patterns_of(DROPPED + own) == ["detached_exception", "traceback"]


def test_torch_messages_that_are_glued_to_another_writers_line_are_read() -> None:
    watchdog = (
        "[rank3]:[E314 09:00:00.426415540 ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=77, OpType=ALLREDUCE, NumelIn=9, NumelOut=9, Timeout(ms)=600000) ran for 600013 ms"
    )
    reader = Reader("log", NOWHERE, 0)
    text = f"Loading shards:  50%|█████     | 1/2{watchdog}[rank1]:[E ProcessGroupNCCL.cpp:583] [Rank 1] To avoid data "
    text += "inconsistency, we are taking the entire process down.\n"
    seen = reader.read(Block("log", 0, 1, text.encode())) + reader.end()
    assert [(each.pattern, each.origin.rank) for each in seen] == [("collective_timeout", 3), ("collective_abort", 1)]


def test_a_torch_message_that_is_quoted_on_another_line_is_content() -> None:
    quoted = '{"said": "x[rank1]:[E ProcessGroupNCCL.cpp:583] [Rank 1] To avoid data inconsistency, we are taking the '
    assert patterns_of(quoted + 'entire process down."}\n') == []
