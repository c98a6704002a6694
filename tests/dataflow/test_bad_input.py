"""Bad input (CONTRACT §6) through the real command line: each kind gives a message that names file and position, keeps
all other evidence, and never ends in a traceback."""

import gzip
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
WELL = ROOT / "tests/captures/lone_watchdog_line"
PLACE = r"[^\n]*\b(byte|line|offset|member)\b"
MIB = 1 << 20


@dataclass(frozen=True)
class Said:
    """What a command gave back."""

    code: int
    out: str
    err: str

    @property
    def final(self) -> dict[str, Any]:
        """The final verdict."""
        records = [json.loads(line) for line in self.out.splitlines()]
        return next(r for r in records if r["kind"] == "verdict" and r["final"])

    def names(self, file: str, place: str = PLACE) -> bool:
        """Whether standard error names the file and where in it."""
        return re.search(re.escape(file) + place, self.err) is not None


def replay(*paths: Path | str, stdin: bytes = b"") -> Said:
    """`wedgewatch replay --format jsonl`, as a process of its own."""
    command = [sys.executable, "-m", "dataflow.cli", "replay", "--format", "jsonl", *map(str, paths)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, input=stdin, timeout=300, check=False)
    said = Said(done.returncode, done.stdout.decode(), done.stderr.decode())
    assert "Traceback" not in said.err
    assert "panicked" not in said.err
    return said


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """A capture of a healthy run, to be damaged."""
    return Path(shutil.copytree(WELL, tmp_path / "capture"))


def keeps_the_rest(said: Said) -> None:
    """The other evidence still gives the verdict that the undamaged capture gives."""
    assert said.code == 0
    assert said.final["verdict"] == "NO-KILL"
    assert said.final["gates"]["A"]["condition"] == "ALIVE"
    assert said.final["step"]["done"] == 4


def insert(path: Path, after: int, line: bytes) -> None:
    """Puts bytes as a line of its own behind a 1-based line."""
    lines = path.read_bytes().split(b"\n")
    lines.insert(after, line)
    path.write_bytes(b"\n".join(lines))


def test_missing_directory_is_exit_2_and_named(tmp_path: Path) -> None:
    said = replay(tmp_path / "not-there")
    assert said.code == 2
    assert "not-there" in said.err
    assert said.out == ""


def test_file_that_cannot_be_opened_is_named_and_the_rest_is_kept(capture: Path) -> None:
    loop = capture / "ray_session_logs/rank9-quartz-77/worker-ab-01000000-77.err"
    loop.parent.mkdir()
    loop.symlink_to(loop.name)
    said = replay(capture)
    keeps_the_rest(said)
    assert said.names("worker-ab-01000000-77.err", "[^\n]*(cannot|link)")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_file_without_read_permission_is_named_and_the_rest_is_kept(capture: Path) -> None:
    (capture / "polls/pods.jsonl").chmod(0)
    said = replay(capture)
    keeps_the_rest(said)
    assert said.names("polls/pods.jsonl", "[^\n]*ermission")


@pytest.mark.parametrize("junk", [b"\xff\xfe caf\xe9 \xc3\x28 bytes", b"nul \x00\x00 bytes", b"\x00" * 900])
def test_line_that_is_no_text_does_not_disturb_the_rest(capture: Path, junk: bytes) -> None:
    insert(capture / "finelog.log", 40, b"[09:05:30] task=/mira/rl-plover-3/0 | " + junk)
    keeps_the_rest(replay(capture))


def test_bytes_that_are_no_utf8_inside_a_signal_line_are_quoted_with_replacement(capture: Path) -> None:
    log = capture / "finelog.log"
    log.write_bytes(log.read_bytes().replace(b"Watchdog caught collective", b"Watchdog caught\xff collective", 1))
    said = replay(capture)
    assert said.code == 0
    said.out.encode()


def test_line_of_100_mb_is_cut_named_and_offsets_after_it_stay_true(capture: Path) -> None:
    huge = b"[09:05:30] task=/mira/rl-plover-3/0 | " + b"x" * (100 * MIB)
    insert(capture / "finelog.log", 40, huge)
    said = replay(capture)
    keeps_the_rest(said)
    assert said.names("finelog.log", r"[^\n]*\bline 41\b")
    later = [e for e in said.final["gates"]["A"]["evidence"] if e["source"] == "finelog.log" and e["line"] > 41]
    data = (capture / "finelog.log").read_bytes()
    assert all(data[e["offset"] - 1 : e["offset"] + 1] == b"\n[" for e in later)


def test_partial_last_line_is_read_as_far_as_it_goes(capture: Path) -> None:
    log = capture / "finelog.log"
    log.write_bytes(log.read_bytes() + b"[09:47:01] task=/mira/rl-plover-3/0 | (skyrl_entrypoint pid=50")
    keeps_the_rest(replay(capture))


def test_damaged_gzip_tail_keeps_what_comes_before_it(capture: Path) -> None:
    packed = gzip.compress((capture / "finelog.log").read_bytes(), mtime=0)
    (capture / "finelog.log").unlink()
    (capture / "finelog.log.gz").write_bytes(packed[: len(packed) - len(packed) // 5])
    said = replay(capture)
    assert said.code == 0
    assert said.names("finelog.log.gz")
    assert said.final["coverage"]["finelog.log.gz"]["complete"] is False
    assert said.final["coverage"]["finelog.log.gz"]["lines"] > 100


def archive(path: Path, folder: Path, evil: Callable[[tarfile.TarFile], None]) -> None:
    """The capture's trials as an archive, with evil members among them."""
    with tarfile.open(path, "w:gz") as tar:
        evil(tar)
        tar.add(folder, "trace_jobs")
    shutil.rmtree(folder)


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> Callable[[tarfile.TarFile], None]:
    """Adds one member of this name; a link where `target` says to what."""

    def add(tar: tarfile.TarFile) -> None:
        info = tarfile.TarInfo(name)
        info.type, info.linkname = kind, target
        info.size = 0 if target else 2
        tar.addfile(info, None if target else io.BytesIO(b"{}"))

    return add


EVIL = {
    "absolute": ("/etc/trace_jobs/x__aaaaaaa/result.json", member("/etc/trace_jobs/x__aaaaaaa/result.json")),
    "parent": ("trace_jobs/../../x__aaaaaaa/result.json", member("trace_jobs/../../x__aaaaaaa/result.json")),
    "link": (
        "trace_jobs/x__aaaaaaa/result.json",
        member("trace_jobs/x__aaaaaaa/result.json", tarfile.SYMTYPE, "/etc/passwd"),
    ),
    "hard-link": (
        "trace_jobs/x__aaaaaaa/result.json",
        member("trace_jobs/x__aaaaaaa/result.json", tarfile.LNKTYPE, "trace_jobs/y__bbbbbbb/result.json"),
    ),
}


@pytest.mark.parametrize("kind", EVIL)
def test_tar_member_that_leaves_the_archive_is_skipped_and_named(capture: Path, kind: str) -> None:
    name, evil = EVIL[kind]
    archive(capture / "run_trace_jobs.tar.gz", capture / "trace_jobs", evil)
    before = set(capture.parent.rglob("*"))
    said = replay(capture)
    keeps_the_rest(said)
    assert said.final["gates"]["C"]["condition"] == "LEARNING"
    assert said.names("run_trace_jobs.tar.gz", f"[^\n]*{re.escape(name)}")
    assert set(capture.parent.rglob("*")) == before


def test_decompression_bomb_is_bounded_and_named(capture: Path) -> None:
    with gzip.GzipFile(capture / "ray_session_logs/rank0-quartz-11/gcs_server.out.gz", "wb", 9, mtime=0) as bomb:
        for _ in range(300):
            bomb.write(bytes(MIB))
    said = replay(capture)
    keeps_the_rest(said)
    assert said.names("gcs_server.out.gz")


@pytest.mark.parametrize(
    "row",
    [b'{"at": "2026-03-14T09:30:00.000Z", "probe": "gpu", "exit"', b"[1, 2]", b'{"probe": "gpu"}', b"not json at all"],
)
def test_malformed_poll_record_is_named_and_the_others_are_read(capture: Path, row: bytes) -> None:
    insert(capture / "polls/gpu.jsonl", 3, row)
    said = replay(capture)
    keeps_the_rest(said)
    assert said.names("polls/gpu.jsonl", r"[^\n]*\b4\b")


def test_malformed_newest_state_poll_is_missing_evidence(capture: Path) -> None:
    state = capture / "polls/state.jsonl"
    rows = state.read_text().splitlines()
    newest = [{**json.loads(row), "stdout": "upgrade me\n"} for row in rows[-8:]]
    state.write_text("\n".join([*rows[:-8], *map(json.dumps, newest)]) + "\n")
    said = replay(capture)
    assert said.code == 0
    gate = said.final["gates"]["A"]
    assert (gate["status"], gate["condition"]) == ("ERROR", "INCOMPLETE")
    assert any("upgrade me" in (entry.get("output") or "") for entry in gate["missing"])


def test_malformed_trial_result_is_counted_as_missing_and_named(capture: Path) -> None:
    result = sorted(capture.glob("trace_jobs/*/result.json"))[2]
    result.write_text(result.read_text()[:200])
    said = replay(capture)
    keeps_the_rest(said)
    name = result.parent.name
    assert name in said.err or any(name in json.dumps(e) for e in said.final["gates"]["C"]["missing"])


def test_malformed_metric_line_is_counted_as_missing(capture: Path) -> None:
    whole, torn = b'step=2 metrics={"async/discard_rate": 0.0, ', b'step=2 metrics={"async'
    for log in (capture / "finelog.log", *capture.glob("ray_session_logs/rank0-*/*/*.err")):
        log.write_bytes(log.read_bytes().replace(whole, torn))
    said = replay(capture)
    keeps_the_rest(said)
    assert re.search(r"metrics of 1 step|step[ =]2\b", json.dumps(said.final["gates"]["D"]["missing"]))


def test_clock_that_runs_backwards_does_not_move_the_job_back(capture: Path) -> None:
    log = capture / "finelog.log"
    rows = log.read_bytes().split(b"\n")
    middle = len(rows) // 2
    rows[middle : middle + 4] = [row.replace(b"[09:", b"[08:", 1) for row in rows[middle : middle + 4]]
    log.write_bytes(b"\n".join(rows))
    said = replay(capture)
    keeps_the_rest(said)
    times = [json.loads(line)["at"] for line in said.out.splitlines()]
    assert times == sorted(times)


def test_terminal_control_sequences_never_reach_a_quote(capture: Path) -> None:
    log = capture / "finelog.log"
    evil = b"\x1b[31m\x1b]0;owned\x07\x9b2JWatchdog caught collective"
    log.write_bytes(log.read_bytes().replace(b"Watchdog caught collective", evil, 1))
    said = replay(capture)
    keeps_the_rest(said)
    control = re.compile(r"\\u00[01][0-9a-f]|\\u009b|[\x00-\x09\x0b-\x1f\x7f\x9b]")
    assert not control.search(said.out)


def test_bare_log_of_nothing_but_junk_still_gives_a_verdict(tmp_path: Path) -> None:
    junk = tmp_path / "junk.log"
    junk.write_bytes(bytes(range(256)) * 400)
    said = replay(junk)
    assert said.code == 0
    assert said.final["verdict"] == "ERROR"


def test_empty_capture_and_empty_input_give_error_with_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for said in (replay(tmp_path / "empty"), replay("-")):
        assert said.code == 0
        assert said.final["verdict"] == "ERROR"
        assert said.final["gates"]["A"]["missing"]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[job]\nname = 'x'\n", "name"),
        ("[engines]\ncount = 'many'\n", "count"),
        ("[training]\nmax_steps = -3\n", "max_steps"),
    ],
)
def test_job_toml_with_a_wrong_key_or_value_names_file_key_and_line(capture: Path, text: str, key: str) -> None:
    (capture / "job.toml").write_text(text)
    said = replay(capture)
    assert said.code == 2
    assert re.search(rf"job\.toml: line 2: [^\n]*{key}", said.err)
