"""`replay --store`, `status` and `report`, as processes."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from state.store import Store
from tests.dataflow.disks import remount, small_disk
from tests.dataflow.said_records import gate

ROOT = Path(__file__).resolve().parents[2]
CAPTURES = ROOT / "tests" / "captures"


def wedgewatch(*words: Path | str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "dataflow.cli", *map(str, words)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store") / "s"
    done = wedgewatch("replay", "--store", folder, CAPTURES / "healthy_sawtooth", CAPTURES / "add_tests_error")
    assert (done.returncode, done.stderr) == (0, "")
    return folder


def test_status_has_a_line_for_each_job_with_its_gates(store: Path) -> None:
    rows = [json.loads(line) for line in wedgewatch("status", "--store", store).stdout.splitlines()]
    assert {row["captured"].rsplit("/", 1)[-1]: (row["verdict"], row["gates"]["C"]) for row in rows} == {
        "healthy_sawtooth": ("NO-KILL", "PASS LEARNING"),
        "add_tests_error": ("KILL", "FAIL CONTAINER_FAULT"),
    }
    table = wedgewatch("status", "--store", store, "--format", "text").stdout
    assert "\x1b" not in table
    assert all(row["job"] in table for row in rows)
    assert "CONTAINER_FAULT" in table


def test_report_is_the_text_that_the_replay_ended_with(store: Path) -> None:
    replayed = wedgewatch("replay", "--format", "text", CAPTURES / "add_tests_error").stdout
    job = json.loads(wedgewatch("replay", CAPTURES / "add_tests_error").stdout.splitlines()[-1])["job"]
    assert wedgewatch("report", job, "--store", store, "--format", "text").stdout.strip() in replayed


def test_a_relaunch_is_reported_with_how_the_run_before_it_ended(tmp_path: Path) -> None:
    runs = {"weight_sync_bootstrap_hang": "/mira/rl-kno-20260320", "completed_run": "/mira/rl-kno-20260321-r2"}
    for capture, job in runs.items():
        toml = tmp_path / "job.toml"
        toml.write_text(f'[job]\nid = "{job}"\n')
        done = wedgewatch("replay", "--store", tmp_path / "s", "--job", toml, CAPTURES / capture)
        assert (done.returncode, done.stderr) == (0, "")
    told = wedgewatch("report", job, "--store", tmp_path / "s", "--format", "text").stdout
    assert (
        "Earlier runs of this configuration (/mira/rl-kno): 1, last ended 2026-03-20T09:41:41.000Z: weight_sync" in told
    )
    rows = [json.loads(line) for line in wedgewatch("status", "--store", tmp_path / "s").stdout.splitlines()]
    assert [row["earlier"] and row["earlier"]["runs"] for row in rows] == [None, 1]


def test_a_job_that_is_not_known_is_told_with_near_names(store: Path) -> None:
    done = wedgewatch("report", "/mira/rl-kno", "--store", store)
    assert done.returncode == 2
    assert "nothing is known of this job" in done.stderr
    assert "/mira/rl-" in done.stderr.split("for instance:")[1]


def test_a_store_without_a_verdict_is_told_to_have_none(tmp_path: Path) -> None:
    Store(tmp_path / "s").close()
    shown = wedgewatch("status", "--store", tmp_path / "s")
    reported = wedgewatch("report", "/a", "--store", tmp_path / "s")
    assert (shown.returncode, shown.stdout, reported.returncode) == (0, "", 2)
    assert "no verdict was said yet" in shown.stderr
    assert "no verdict was said yet" in reported.stderr


def test_without_a_store_the_commands_say_what_begins_one(tmp_path: Path) -> None:
    for words in (("status",), ("report", "/a")):
        done = wedgewatch(*words, "--store", tmp_path / "none")
        assert done.returncode == 2
        assert "wedgewatch watch --store" in done.stderr


def test_a_store_that_is_damaged_ends_the_replay_before_it_reads(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "CURRENT").write_text("torn")
    done = wedgewatch("replay", "--store", tmp_path / "s", CAPTURES / "bring_up")
    assert (done.returncode, done.stdout) == (2, "")
    assert "the store is damaged" in done.stderr


@pytest.mark.parametrize("below", ["", "polls", "new/store"])
def test_no_store_is_begun_in_a_capture(tmp_path: Path, below: str) -> None:
    capture = tmp_path / "rl-demo"
    capture.mkdir()
    (capture / "finelog.log").write_text("[06:00:01] task=/alice/rl/0 | Started: 'step'\n")
    done = wedgewatch("replay", "--store", capture / below, capture)
    assert (done.returncode, done.stdout) == (2, "")
    assert "lies in the capture" in done.stderr
    assert [entry.name for entry in capture.iterdir()] == ["finelog.log"]


def test_a_store_on_a_read_only_disk_is_answered_from(store: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 4_096) as disk:
        shutil.copytree(store, disk / "s")
        remount(disk, "ro")
        shown = wedgewatch("status", "--store", disk / "s")
        assert (shown.returncode, shown.stderr) == (0, "")
        assert shown.stdout == wedgewatch("status", "--store", store).stdout
        job = json.loads(shown.stdout.splitlines()[0])["job"]
        for words in (("report", job), ("explain", job, "C")):
            done = wedgewatch(*words, "--store", disk / "s")
            assert (done.returncode, done.stderr, json.loads(done.stdout)["job"]) == (0, "", job)


def test_a_job_of_the_store_is_explained_from_the_capture_where_it_was_judged(store: Path) -> None:
    rows = [json.loads(line) for line in wedgewatch("status", "--store", store).stdout.splitlines()]
    row = next(row for row in rows if row["verdict"] == "KILL")
    done = wedgewatch("explain", row["job"], "C", "--store", store)
    said = json.loads(done.stdout)
    assert (done.returncode, said["job"], said["condition"]) == (0, row["job"], "CONTAINER_FAULT")


def watched(store: Path, job: str, captured: Path | str, **more: object) -> None:
    """What a watch leaves that has said no verdict yet."""
    (store / "watch").mkdir(parents=True)
    Store(store).close()
    health = {"now": "2026-05-04T08:00:00.000Z", "pid": 1, "jobs": {job: {"captured": str(captured), **more}}}
    (store / "watch" / "health.json").write_text(json.dumps(health))


def test_a_watched_job_without_a_verdict_is_explained_from_its_capture(tmp_path: Path) -> None:
    watched(tmp_path / "s", "/any/name", CAPTURES / "bring_up")
    done = wedgewatch("explain", "/any/name", "--store", tmp_path / "s")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == wedgewatch("explain", CAPTURES / "bring_up").stdout


def test_the_report_of_a_watched_job_without_a_verdict_says_what_tells_more(tmp_path: Path) -> None:
    watched(tmp_path / "s", "/any/name", CAPTURES / "bring_up")
    done = wedgewatch("report", "/any/name", "--store", tmp_path / "s")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "is watched, and has no verdict yet" in done.stderr
    assert "`wedgewatch explain` tells what lacks" in done.stderr


def test_what_keeps_a_job_from_its_first_verdict_stands_in_status(tmp_path: Path) -> None:
    watched(tmp_path / "s", "/kim/rl", tmp_path, lag=400.0, sync={"good": None, "fails": "exit 1"})
    shown = wedgewatch("status", "--store", tmp_path / "s", "--format", "text").stdout
    assert "/kim/rl: is judged 6 min behind the clock; its sync fails (exit 1), none was good yet" in shown


def test_status_tells_that_no_watch_runs_any_more(tmp_path: Path) -> None:
    watched(tmp_path / "s", "/kim/rl", tmp_path)
    health = tmp_path / "s" / "watch" / "health.json"
    assert "no watch runs" not in wedgewatch("status", "--store", tmp_path / "s").stderr
    os.utime(health, (1_777_881_600, 1_777_881_600))
    told = wedgewatch("status", "--store", tmp_path / "s").stderr
    assert "no watch runs here since 2026-05-04T08:00:00Z: what came later is not judged" in told


def test_the_newest_line_of_a_job_is_the_watchs_between_two_verdicts(tmp_path: Path) -> None:
    wedgewatch("replay", "--store", tmp_path / "s", CAPTURES / "bring_up")
    row = json.loads(wedgewatch("status", "--store", tmp_path / "s").stdout)
    watched(tmp_path / "s", row["job"], tmp_path, newest="2036-05-04T08:00:00.000Z")
    later = json.loads(wedgewatch("status", "--store", tmp_path / "s").stdout)
    assert row["newest_line"] < later["newest_line"] == "2036-05-04T08:00:00.000Z"


@pytest.mark.parametrize(
    ("exists", "says"),
    [(True, "and nothing of it has come yet"), (False, "which is not there; nothing of it has come")],
)
def test_a_watched_job_of_which_nothing_has_come_is_told_so_in_a_line(tmp_path: Path, exists: bool, says: str) -> None:
    if exists:
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "job.toml").write_text('[job]\nid = "/kim/rl"\n')
    watched(tmp_path / "s", "/kim/rl", tmp_path / "run", waits="for its first line, or its name")
    done = wedgewatch("explain", "/kim/rl", "--store", tmp_path / "s")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"wedgewatch: /kim/rl: is watched in {tmp_path}/run, {says}")
    assert done.stderr.count("\n") == 1


def test_gates_that_were_said_without_a_verdict_are_told(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    store.write({**gate("/kim/rl", 10, "B", "FED"), "status": "PASS"})
    store.close()
    done = wedgewatch("explain", "/kim/rl", "--store", tmp_path / "s")
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        "wedgewatch: /kim/rl: no verdict was said of it yet, only B PASS FED; "
        "name its capture to have that explained\n",
    )


def test_a_job_whose_capture_is_gone_is_told_so(tmp_path: Path) -> None:
    capture = tmp_path / "run"
    shutil.copytree(CAPTURES / "bring_up", capture)
    job = json.loads(wedgewatch("replay", capture, "--store", tmp_path / "s").stdout.splitlines()[-1])["job"]
    shutil.rmtree(capture)
    done = wedgewatch("explain", job, "--store", tmp_path / "s")
    assert (done.returncode, "which is not there; name the capture itself" in done.stderr) == (2, True)
