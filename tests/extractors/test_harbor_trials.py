"""A trial's files as signals, each with the line that says it; and what counts as junk."""

import json
from typing import Any

import pytest

from extractors.clocks import parse_iso
from extractors.coherence import Coherence, coherence_of
from extractors.harbor_trials import TrialEnded, TrialReading, TrialStarted, TrialUnreadable, read_trial, wanted
from extractors.polls import TrialsListed
from extractors.trial_result import TrialTiming
from tests.builders import us

TRIAL = "sort-logs__aB3dE9x"
CONFIG = json.dumps({"task": {"path": "/t"}, "trial_name": TRIAL}, indent=4).encode()


def at(second: float, zone: str = "Z") -> str:
    """A time so many seconds after 08:00:00."""
    minutes, rest = divmod(second, 60)
    return f"2026-07-20T{8 + int(minutes // 60):02d}:{int(minutes % 60):02d}:{rest:09.6f}{zone}"


def phase(start: float, end: float, zone: str = "Z") -> dict[str, str]:
    return {"started_at": at(start, zone), "finished_at": at(end, zone)}


def result(**changed: Any) -> bytes:
    """A result of terminus-2 that scored 1.0 in 100 s, as Harbor writes it."""
    fields = {
        "task_name": "sort-logs",
        "trial_name": TRIAL,
        "config": {"agent": {"kwargs": {"reward": "none"}}},
        "agent_result": {
            "n_output_tokens": 700,
            "metadata": {"n_episodes": 3, "api_request_times_msec": [10000.0, 20000.5, 9999.5]},
        },
        "verifier_result": {"rewards": {"reward": 1.0}},
        "exception_info": None,
        "started_at": at(0),
        "finished_at": at(100),
        "environment_setup": phase(0, 8),
        "agent_setup": phase(8, 10),
        "agent_execution": phase(10, 70),
        "verifier": phase(70, 98),
    }
    return json.dumps(fields | changed, indent=4).encode()


def raised(name: str, **more: str) -> dict[str, str]:
    info = {"exception_type": name, "exception_message": "m", "exception_traceback": "Traceback\n  x"}
    return info | {"occurred_at": "2026-07-20T10:01:00.000001"} | more


def trajectory(*messages: str, **step: Any) -> bytes:
    steps: list[dict[str, Any]] = [{"step_id": 1, "source": "user", "message": "do it", "timestamp": at(10.5)}]
    steps += [{"source": "agent", "message": m, "metrics": {"completion_tokens": 50}} | step for m in messages]
    return json.dumps({"schema_version": "ATIF-v1.5", "steps": steps}).encode()


def ended(files: dict[str, bytes]) -> TrialEnded:
    found = [reading.signal for reading in read_trial(TRIAL, files) if isinstance(reading.signal, TrialEnded)]
    assert len(found) == 1
    return found[0]


def of_result(**changed: Any) -> TrialEnded:
    return ended({"result.json": result(**changed)})


def quoted(raw: bytes) -> TrialReading:
    """The end's reading, its quote checked against the place it names."""
    reading = read_trial(TRIAL, {"result.json": raw})[-1]
    line = raw.split(b"\n")[reading.line - 1]
    assert raw[reading.offset :].startswith(line)
    assert reading.quote.strip("…") in line.decode()
    assert len(reading.quote) <= 500
    return reading


def test_a_config_alone_is_a_trial_that_started() -> None:
    (reading,) = read_trial(TRIAL, {"config.json": CONFIG})
    assert reading.signal == TrialStarted(TRIAL)
    assert (reading.file, reading.line, reading.quote.strip()) == ("config.json", 5, f'"trial_name": "{TRIAL}"')
    assert reading.at_us is None


def test_a_finished_trial_started_and_ended_at_its_own_times() -> None:
    start, end = read_trial(TRIAL, {"config.json": CONFIG, "result.json": result()})
    assert (start.file, start.at_us, end.file, end.at_us) == ("config.json", us(0), "result.json", us(100))


def test_a_result_without_config_still_tells_its_own_start() -> None:
    start = read_trial(TRIAL, {"result.json": result()})[0]
    assert start.quote.strip() == f'"started_at": "{at(0)}",'


def test_turns_tokens_and_timing_come_from_the_result() -> None:
    signal = of_result()
    assert (signal.reward, signal.exception, signal.turns, signal.output_tokens) == (1.0, None, 3, 700)
    assert signal.timing == TrialTiming(100.0, 8.0, 40.0, 20.0, 2.0, 28.0, release_race=False)
    assert signal.coherence is Coherence.UNKNOWN


def test_the_quote_is_the_reward_the_exception_or_the_end() -> None:
    assert quoted(result()).quote.strip() == '"reward": 1.0'
    failed = quoted(result(verifier_result=None, exception_info=raised("AddTestsDirError")))
    assert failed.quote.strip() == '"exception_type": "AddTestsDirError",'
    assert quoted(result(verifier_result=None)).quote.strip() == f'"finished_at": "{at(100)}",'


def test_a_result_on_one_line_is_quoted_around_its_reward() -> None:
    reading = quoted(json.dumps(json.loads(result(padding="x" * 900))).encode())
    assert reading.line == 1
    assert '"reward": 1.0' in reading.quote


def test_both_reward_and_exception_is_scored() -> None:
    signal = of_result(verifier_result={"rewards": {"reward": 0.0}}, exception_info=raised("AgentTimeoutError"))
    assert (signal.reward, signal.exception) == (0.0, "AgentTimeoutError")
    both = result(verifier_result={"rewards": {"reward": 0.0}}, exception_info=raised("AgentTimeoutError"))
    assert quoted(both).quote.strip() == '"reward": 0.0'


@pytest.mark.parametrize("verified", [None, {"rewards": None}, {"rewards": {}}, {"rewards": {"reward": None}}])
def test_null_rewards_are_no_score(verified: Any) -> None:
    assert of_result(verifier_result=verified).reward is None


def test_a_reward_that_is_not_finite_is_no_score() -> None:
    raw = result().replace(b'"reward": 1.0', b'"reward": NaN')
    assert ended({"result.json": raw}).reward is None


def test_rewards_of_other_names_are_averaged() -> None:
    assert of_result(verifier_result={"rewards": {"tests": 1, "style": 0.5}}).reward == 0.75


def test_the_oldest_form_has_unprefixed_keys() -> None:
    assert of_result(verifier_result={"reward": 0.5}).reward == 0.5
    signal = of_result(verifier_result=None, exception_info={"type": "TimeoutError", "message": "m"})
    assert signal.exception == "TimeoutError"


def test_a_multi_step_trial_is_its_steps_together() -> None:
    def step(reward: float, start: float, **more: Any) -> dict[str, Any]:
        agent = {"n_output_tokens": 10, "metadata": {"n_episodes": 2, "api_request_times_msec": [1000]}}
        done = {"agent_result": agent, "verifier_result": {"rewards": {"reward": reward}}}
        return done | {"agent_execution": phase(start, start + 5), "verifier": phase(start + 5, start + 6)} | more

    nothing = dict.fromkeys(("agent_result", "verifier_result", "agent_execution", "verifier"))
    steps = [step(1.0, 10), step(0.0, 20, exception_info=raised("AgentTimeoutError"))]
    signal = of_result(**nothing, step_results=steps)
    assert (signal.reward, signal.exception, signal.turns, signal.output_tokens) == (0.5, "AgentTimeoutError", 4, 20)
    assert signal.timing == TrialTiming(100.0, 8.0, 2.0, 8.0, 74.0, 2.0, release_race=False)
    assert quoted(result(**nothing, step_results=steps)).quote.strip() == '"reward": 1.0'


def test_listed_calls_count_where_a_timed_out_trial_says_0_episodes() -> None:
    agent = {"n_output_tokens": 5, "metadata": {"n_episodes": 0, "api_request_times_msec": [900.0] * 7}}
    assert of_result(agent_result=agent).turns == 7


def test_an_agent_without_metadata_has_the_transcripts_turns() -> None:
    raw = result(agent_result={"n_output_tokens": None, "metadata": None})
    signal = ended({"result.json": raw, "agent/trajectory.json": trajectory("looking", "done")})
    assert (signal.turns, signal.output_tokens) == (2, 100)
    assert signal.timing is not None
    assert (signal.timing.llm, signal.timing.tool) == (None, None)


def test_copied_context_and_calls_without_a_model_are_no_turns() -> None:
    raw = result(agent_result=None)
    for step in ({"is_copied_context": True}, {"llm_call_count": 0}):
        assert ended({"result.json": raw, "agent/trajectory.json": trajectory("old", **step)}).turns == 0


def test_opencode_counts_finished_steps_and_its_silence_is_emptiness() -> None:
    events = [
        {"type": "text", "part": {"type": "text", "text": "I will list the files first."}},
        {"type": "tool_use", "part": {"type": "tool", "state": {"input": {"command": "ls -la"}}}},
        {"type": "step_finish", "part": {"tokens": {"input": 10, "output": 42}}},
    ]
    log = b"starting\n" + b"\n".join(json.dumps(event).encode() for event in events)
    signal = ended({"result.json": result(agent_result=None), "agent/opencode.txt": log})
    assert (signal.turns, signal.output_tokens, signal.coherence) == (1, 42, Coherence.COHERENT)
    silent = ended({"result.json": result(agent_result=None), "agent/opencode.txt": b""})
    assert (silent.turns, silent.output_tokens, silent.coherence) == (0, 0, Coherence.EMPTY)


def test_a_verifier_that_outlives_its_trial_is_a_release_race() -> None:
    timing = of_result(verifier=phase(70, 101)).timing
    assert timing is not None
    assert (timing.release_race, timing.teardown) == (True, 0.0)


def test_naive_times_are_brought_to_utc_by_the_transcript() -> None:
    """The host's clock runs two hours ahead of UTC and says no zone."""
    local = {
        "started_at": "2026-07-20T10:00:00",
        "finished_at": "2026-07-20T10:01:40",
        "agent_execution": {"started_at": "2026-07-20T10:00:10", "finished_at": "2026-07-20T10:01:10"},
    }
    files = {"result.json": result(**local), "agent/trajectory.json": trajectory("a first look")}
    assert [reading.at_us for reading in read_trial(TRIAL, files)] == [us(0), us(100)]


def test_a_naive_occurred_at_does_not_date_a_trial() -> None:
    raw = result(finished_at=None, exception_info=raised("CancelledError"))
    assert read_trial(TRIAL, {"result.json": raw})[-1].at_us == us(98)
    aware = result(finished_at=None, exception_info=raised("CancelledError", occurred_at=at(99, "+00:00")))
    assert read_trial(TRIAL, {"result.json": aware})[-1].at_us == us(99)


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"", "the file is empty"),
        (b"{}", "none of a trial result's keys"),
        (result()[:300], "malformed JSON"),
        (result().replace(b'"rewards": {', b'"rewards": {,'), "(line 23)"),
        (result(verifier_result={"rewards": {"reward": "high"}}), "key reward"),
        (result(exception_info="boom"), "at key exception_info"),
    ],
)
def test_a_result_that_cannot_be_read_names_the_place(raw: bytes, why: str) -> None:
    readings = read_trial(TRIAL, {"config.json": CONFIG, "result.json": raw})
    assert isinstance(readings[0].signal, TrialStarted)
    assert isinstance(readings[1].signal, TrialUnreadable)
    assert why in readings[1].signal.why
    assert readings[1].signal.why.startswith("result.json: ")


def test_an_unreadable_result_leaves_the_exception_file_to_tell() -> None:
    trace = b"Traceback (most recent call last):\n  File x\nharbor.trial.trial.AddTestsDirError: Failed to add\n"
    readings = read_trial(TRIAL, {"config.json": CONFIG, "result.json": b"{", "exception.txt": trace})
    assert [type(reading.signal) for reading in readings] == [TrialStarted, TrialUnreadable, TrialEnded]
    last = readings[2]
    assert isinstance(last.signal, TrialEnded)
    assert (last.signal.exception, last.file, last.line) == ("AddTestsDirError", "exception.txt", 3)


@pytest.mark.parametrize(("file", "silent"), [("", True), ('{"type": "text", "part": {"text": "ls"}}', False)])
def test_a_trial_that_runs_says_whether_its_agent_wrote_anything(file: str, silent: bool) -> None:
    (begun,) = read_trial(TRIAL, {"config.json": CONFIG, "agent/opencode.txt": file.encode()})
    assert begun.signal == TrialStarted(TRIAL, silent)
    assert read_trial(TRIAL, {"config.json": CONFIG})[0].signal == TrialStarted(TRIAL, None)


def test_a_trial_that_left_only_its_exception_ended_at_its_last_step() -> None:
    steps = [{"source": "agent", "message": "ls", "timestamp": at(second)} for second in (30, 75)]
    files = {
        "config.json": CONFIG,
        "exception.txt": b"Traceback\nharbor.x.AgentSetupTimeoutError: after 360 s\n",
        "agent/trajectory.json": json.dumps({"steps": steps}).encode(),
    }
    assert [reading.at_us for reading in read_trial(TRIAL, files)] == [us(30), us(75)]


@pytest.mark.parametrize(
    ("stats", "counted"),
    [
        ({"n_trials": 3, "n_errors": 2}, (3, 3)),
        ({"n_completed_trials": 3, "n_errored_trials": 2, "n_running_trials": 8, "n_pending_trials": 53}, (11, 3)),
    ],
    ids=["up to 0.6", "0.26"],
)
def test_a_jobs_own_result_is_a_count_and_no_trial(stats: dict[str, int], counted: tuple[int, int]) -> None:
    raw = json.dumps({"id": "x", "started_at": at(0), "updated_at": at(60), "n_total_trials": 64, "stats": stats})
    (found,) = read_trial("job", {"result.json": raw.encode()})
    assert (found.signal, found.at_us) == (TrialsListed(*counted, found.at_us), parse_iso(at(60)))
    assert '"stats"' in found.quote


@pytest.mark.parametrize("raw", [b"", b"{", b'{"n_total_trials": 4, "stats": {}}', b'{"trial_name": "a"}'])
def test_a_jobs_own_result_that_says_nothing_is_passed_over(raw: bytes) -> None:
    assert read_trial("", {"result.json": raw}) == ()


def test_an_empty_config_alone_is_unreadable() -> None:
    (reading,) = read_trial(TRIAL, {"config.json": b""})
    assert isinstance(reading.signal, TrialUnreadable)


def test_a_damaged_transcript_leaves_the_result_standing() -> None:
    signal = ended({"result.json": result(), "agent/trajectory.json": b'{"steps": [{"source"'})
    assert (signal.reward, signal.coherence) == (1.0, Coherence.UNKNOWN)


def test_files_of_steps_are_wanted_and_pictures_are_not() -> None:
    assert wanted("steps/one/agent/trajectory.json")
    assert not wanted("agent/recording.cast")


PROSE = (
    "The tests fail because the parser drops the last row, so I will read the loop again and add the missing flush. "
    "Then I run pytest on the two modules that import it, and compare the output with the expected file."
)
CHINESE = "我先查看日志文件，然后运行 pytest 来确认解析器是否丢失了最后一行数据，接着修复循环并重新测试整个模块。" * 3
TRANSLATIONS = PROSE * 3 + ' {"ru": "привет", "ar": "مرحبا", "zh": "你好", "ko": "안녕하세요", "el": "γεια"}'
SALAD = "ance的 кот lookup مرحبا ##ing 안녕 loop τους 数据 бег return שלום ty 関数 пример fmt كتاب 하다 tion на 的" * 4
TABLE = "\n".join(f"| row {n} | {n * 37 % 91} | ok |" for n in range(40))
SHORT = ("привет and 你好 are the two greetings", '{"plan": "run it", "commands": ["ls", "ls", "ls"]}', "." * 12)
CODE = "cat > a.py <<'EOF'\n" + "\n".join(f"def f{n}(x):\n    return x[{n}] + {{'a': {n}}}.get('a')" for n in range(30))


@pytest.mark.parametrize(
    "text", [PROSE, CHINESE, TRANSLATIONS, TABLE, CODE, "ok", "=" * 80 + "\n" + PROSE, "yes " * 8, *SHORT]
)
def test_odd_but_readable_output_is_coherent(text: str) -> None:
    assert coherence_of([text]) is Coherence.COHERENT


@pytest.mark.parametrize(
    "text",
    [
        SALAD,
        "!" * 1500,
        "!" * 24,
        "the " * 40,
        '{"analysis": "' + "ba " * 60 + '", "plan": "x", "task_complete": false}',
        "ness的 кот fmt مرحبا loop 数据 бег return",
        "".join("qwertzuiopasdfghjklyxcvbnm"[(n * n + n // 3) % 26] for n in range(230)),
        PROSE + " and then" * 400,
        '{"analysis": "' + "I will check the file again. " * 120 + '"}',
        "ingationsternessoftheretoward" + "qwertzuiopasdfghjklyxcvbnm" * 5 + "anoldwordthatneverendsandgoeson" * 12,
        "\ufffd" * 60,
        "}{)(;:%&$#@!~^*+=<>?/|]" + "[};,:(%$)#&{*@!^~" * 12,
    ],
)
def test_clear_junk_is_incoherent(text: str) -> None:
    assert coherence_of([text]) is Coherence.INCOHERENT


def test_one_loop_among_good_turns_is_not_an_incoherent_trial() -> None:
    assert coherence_of([PROSE, PROSE + " x", "again " * 400, PROSE + " y"]) is Coherence.COHERENT


def test_encoded_data_is_not_junk() -> None:
    encoded = "".join("QmFzZTY0IGlz9fX3aGF0K1"[(n * 7) % 22] + str(n % 10) for n in range(400))
    assert coherence_of(["echo " + encoded + " | base64 -d"]) is Coherence.COHERENT


def test_messages_that_were_not_kept_are_unknown_and_blank_ones_are_empty() -> None:
    assert coherence_of(["", "  "]) is Coherence.EMPTY
    raw = result(agent_result={"n_output_tokens": 12})
    assert ended({"result.json": raw, "agent/trajectory.json": trajectory()}).coherence is Coherence.UNKNOWN
    assert ended({"result.json": raw, "agent/trajectory.json": trajectory("", "")}).coherence is Coherence.EMPTY
