"""`wedgewatch explain` as a process: captures and causes, both layouts, at a time, and what it can't explain."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

ROOT = Path(__file__).parents[2]
CAPTURES = ROOT / "tests/captures"
WEDGE = CAPTURES / "policy_wedge_behind_live_engines"


def run(*words: Path | str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "dataflow.cli", "explain", *map(str, words)]
    environment = {**os.environ, "COLUMNS": "140"}
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, input=stdin, timeout=120, check=False, env=environment
    )


def records(*words: Path | str, stdin: bytes = b"") -> list[dict[str, Any]]:
    done = run(*words, stdin=stdin)
    assert (done.returncode, done.stderr) == (0, b"")
    return [orjson.loads(line) for line in done.stdout.splitlines()]


def text(*words: Path | str) -> str:
    done = run("--format", "text", *words)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


def test_gate_is_explained_rule_by_rule_with_places_and_quotes() -> None:
    said = text(WEDGE, "A")
    words = " ".join(said.split())
    assert said.startswith("GATE A (liveness) — /mira/rl-heron-9, stage training, at 2026-03-17T11:10:")
    assert "FAIL — WEDGED: The policy ranks are wedged: no progress for 36 min" in said
    assert "> fired       wedged" in said
    assert "finelog.log:358  " in said
    assert "quiet       stale" in said
    assert "36 min before now, against the allowance of 90 min (training floor of 90 min)" in words


def test_all_four_gates_are_explained_without_a_gate() -> None:
    told = records(WEDGE)
    assert [(record["kind"], record["gate"]) for record in told] == [("explanation", letter) for letter in "ABCD"]
    assert [told[0]["status"], told[0]["condition"], told[0]["fired"]] == ["FAIL", "WEDGED", "wedged"]


def test_letter_of_a_gate_may_be_small() -> None:
    assert [record["gate"] for record in records(WEDGE, "c")] == ["C"]


def test_gate_is_explained_as_things_stood_at_a_time() -> None:
    early = records("--as-of", "2026-03-17T10:40:00Z", WEDGE, "A")[0]
    assert (early["at"], early["condition"]) == ("2026-03-17T10:40:00.000Z", "ALIVE")
    stale = next(rule for rule in early["rules"] if rule["rule"] == "stale")
    assert "6 min before now" in stale["why"]


def test_bare_log_and_standard_input_are_captures_too() -> None:
    log = WEDGE / "finelog.log"
    by_name, piped = records(log, "A")[0], records("-", "A", stdin=log.read_bytes())[0]
    assert by_name["condition"] == piped["condition"] == "INCOMPLETE"
    fired = next(rule for rule in by_name["rules"] if rule["came"] == "fired")
    assert fired["missing"][0]["evidence"] == "the state poll"


def test_job_toml_is_read_instead_of_the_captures_own(tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text('[job]\nid = "/mira/other"\n')
    assert records("--job", tmp_path / "job.toml", WEDGE, "A")[0]["job"] == "/mira/other"


def test_records_go_where_they_are_sent(tmp_path: Path) -> None:
    out = tmp_path / "why.jsonl"
    assert run("--out", out, WEDGE, "D").stdout == b""
    assert orjson.loads(out.read_bytes())["gate"] == "D"


def test_capture_is_not_overwritten() -> None:
    log = WEDGE / "finelog.log"
    before = log.read_bytes()
    assert run("--out", log, WEDGE).returncode == 2
    assert log.read_bytes() == before


def test_same_capture_is_explained_in_the_same_bytes() -> None:
    assert run(WEDGE).stdout == run(WEDGE).stdout


def test_cause_is_printed_with_fix_source_and_true_lines() -> None:
    said = text("weight_sync_bootstrap_timeout")
    assert said.startswith("CAUSE weight_sync_bootstrap_timeout: the weight-sync bootstrap that timed out")
    for head in ("role", "transient", "weighs as", "fix", "then", "known from"):
        assert f"\n  {head} " in said
    assert "      | " in said


def test_cause_is_a_record_too() -> None:
    told = records("cuda_oom")[0]
    assert (told["kind"], told["code"], told["transient"]) == ("cause", "cuda_oom", "no")
    assert all(pattern["sample"] for pattern in told["patterns"])


NEITHER = "neither a capture (a folder, a log file, or -), nor a job of the store, nor the code of a cause"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("collective_abrt",), f"collective_abrt: {NEITHER}; near it: collective_abort, collective_timeout"),
        (("no/such/capture",), f"no/such/capture: {NEITHER}"),
        (("cuda_oom", "B"), "cuda_oom: a cause is the same for every gate, job and time; name it alone"),
    ],
)
def test_what_can_not_be_explained_is_unusable_input(words: tuple[str, ...], says: str) -> None:
    done = run(*words)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode() == f"wedgewatch: {says}\n"


def test_unknown_gate_is_refused_with_the_gates_that_there_are() -> None:
    done = run(WEDGE, "E")
    assert done.returncode == 2
    assert b"'E' is no gate; name A, B, C or D" in done.stderr


def test_input_that_tells_of_no_job_says_so(tmp_path: Path) -> None:
    done = run(tmp_path, "A")
    assert b"tells of a job; is it a capture, or a log of one?" in done.stderr


def test_a_gate_may_be_named_by_its_letter_or_its_word() -> None:
    by_letter, by_word = run(WEDGE, "a", "--format", "jsonl"), run(WEDGE, "liveness", "--format", "jsonl")
    assert by_letter.returncode == 0
    assert by_word.stdout == by_letter.stdout
