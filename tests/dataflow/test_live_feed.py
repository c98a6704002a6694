"""What comes and goes in a capture that is watched, and what is hostile in it."""

import io
import os
import tarfile
import time
from pathlib import Path

import orjson
import pytest

from dataflow.capture import shown
from dataflow.live_source import LiveSource
from dataflow.polls import PATTERN
from tests.dataflow.live_feeds import SECOND_US, START_US, Watched, bar, bars, places, said
from tests.dataflow.tails import append, replace

TRIAL = "sort-a-list__0000001"
RESULT = {
    "trial_name": TRIAL,
    "started_at": "2026-05-04T08:00:05Z",
    "finished_at": "2026-05-04T08:00:20Z",
    "verifier_result": {"rewards": {"reward": 1.0}},
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


@pytest.fixture
def watched(run: Path) -> Watched:
    return Watched(run, now_us=START_US + 30 * SECOND_US)


def put(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_files_and_folders_that_appear_later_are_read_from_their_beginning(run: Path, watched: Watched) -> None:
    put(run / "finelog.log", bars(0, 30))
    watched.poll(times=10)
    put(run / "pod_logs" / "a.log", bars(31, 10))
    put(run / "ray_session_logs" / "rank0-n1" / "worker-aa-01000000-7.out", bars(33, 8))
    watched.now_us = START_US + 41 * SECOND_US
    watched.poll(times=20)
    assert len(places(watched.beats)) == 48
    seen = [each.evidence.source for each in said(watched.beats, "SourceSeen")]
    assert sorted(seen) == ["finelog.log", "pod_logs/a.log", "ray_session_logs/rank0-n1/worker-aa-01000000-7.out"]
    assert watched.feed.lag.sources == 3


def test_a_log_that_is_replaced_by_longer_copies_of_itself_is_read_once(run: Path, watched: Watched) -> None:
    content = bars(0, 90)
    for size in range(500, len(content) + 500, 500):
        replace(run / "finelog.log", content[:size])
        watched.poll(times=2)
    watched.now_us = START_US + 90 * SECOND_US
    watched.poll(times=10)
    assert len(places(watched.beats)) == len(set(places(watched.beats))) == 90


def test_trials_are_told_when_they_begin_and_when_they_end(run: Path, watched: Watched) -> None:
    put(run / "finelog.log", bars(0, 30))
    put(run / "trace_jobs" / TRIAL / "config.json", b"{}")
    watched.poll(times=20)
    assert [each.signal.trial for each in said(watched.beats, "TrialStarted")] == [TRIAL]
    assert said(watched.beats, "TrialEnded") == []
    put(run / "trace_jobs" / TRIAL / "result.json", orjson.dumps(RESULT))
    watched.poll(times=20)
    assert [each.signal.trial for each in said(watched.beats, "TrialEnded")] == [TRIAL]
    watched.restart()
    watched.poll(times=10)
    assert len(said(watched.beats, "TrialEnded")) == 1


def archive(path: Path, *trials: str) -> None:
    with tarfile.open(path, "w") as tar:
        for trial in trials:
            content = orjson.dumps(RESULT | {"trial_name": trial})
            member = tarfile.TarInfo(f"trace_jobs/{trial}/result.json")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


def test_an_archive_that_is_written_again_tells_only_what_is_new_in_it(run: Path, watched: Watched) -> None:
    put(run / "finelog.log", bars(0, 30))
    archive(run / "trace_jobs.tar", TRIAL)
    watched.poll(times=10)
    archive(run / "trace_jobs.tar", TRIAL, "sort-a-list__0000002")
    watched.poll(times=2)
    watched.restart()
    watched.poll(times=10)
    ended = [each.signal.trial for each in said(watched.beats, "TrialEnded")]
    assert ended == [TRIAL, "sort-a-list__0000002"]


def test_a_dump_is_read_once_when_it_stands_still(run: Path, watched: Watched) -> None:
    put(run / "finelog.log", bars(0, 30))
    dump = put(run / "flight_recorder" / "nccl_trace_rank_0.json", b'{"entries": [')
    watched.poll(times=1)
    dump.write_bytes(orjson.dumps({"version": "2.10", "pg_config": {}, "entries": []}))
    watched.poll(times=10)
    watched.restart()
    watched.poll(times=10)
    told = [each for each in said(watched.beats) if each.evidence.source == f"flight_recorder/{dump.name}"]
    assert len(said(watched.beats, "SourceSeen")) == 2
    assert len({type(each.signal) for each in told}) == len(told)


def test_a_capture_that_vanishes_makes_the_watch_blind_until_it_is_back(run: Path, watched: Watched) -> None:
    put(run / "finelog.log", bars(0, 30))
    watched.poll(times=10)
    assert not watched.feed.lag.blind
    aside = run.rename(run.with_name("aside"))
    blind = watched.poll(times=20)
    assert watched.feed.lag.blind
    assert blind
    assert all(beat.blind for beat in blind[1:])
    aside.rename(run)
    append(run / "finelog.log", bars(61, 20))
    watched.now_us = START_US + 85 * SECOND_US
    seeing = watched.poll(times=10)
    assert not watched.feed.lag.blind
    assert not any(beat.blind for beat in seeing[1:])
    assert len(places(watched.beats)) == len(set(places(watched.beats))) == 50


def test_a_log_that_becomes_a_folder_is_unreadable_and_read_on_when_it_is_back(run: Path, watched: Watched) -> None:
    log = put(run / "finelog.log", bars(0, 30))
    watched.poll(times=10)
    log.rename(run / ".aside")
    log.mkdir()
    watched.poll(times=3)
    assert watched.feed.lag.unreadable == {"finelog.log": "neither a file nor a link to one"}
    assert watched.feed.lag.blind
    log.rmdir()
    (run / ".aside").rename(log)
    append(log, bars(60, 10))
    watched.now_us = START_US + 70 * SECOND_US
    watched.poll(times=10)
    assert watched.feed.lag.unreadable == {}
    failures = [type(each.signal).__name__ for each in said(watched.beats) if each.pattern.startswith("source_")]
    assert failures == ["SourceSeen", "SourceFailed", "SourceResumed"]
    assert len(places(watched.beats)) == 40


def test_what_is_no_file_begins_no_job_in_1970_and_is_told_with_the_first_line(run: Path, watched: Watched) -> None:
    os.mkfifo(run / "finelog.log")
    (run / "pod_logs").mkdir()
    (run / "pod_logs" / "b.log").symlink_to("/etc/hostname")
    (run / "pod_logs" / "c.log").symlink_to("c.log")
    assert watched.poll(times=20) == []
    put(run / "pod_logs" / "a.log", bars(30, 20))
    watched.poll(times=20)
    assert watched.beats[0].tick.at_us == START_US + 40 * SECOND_US
    failed = [each.evidence.source for each in said(watched.beats, "SourceFailed")]
    assert sorted(failed) == ["finelog.log", "pod_logs/b.log", "pod_logs/c.log"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_log_that_may_not_be_read_begins_no_job_and_makes_the_watch_blind(run: Path, watched: Watched) -> None:
    put(run / "finelog.log", bars(0, 30)).chmod(0)
    assert watched.poll(times=20) == []
    assert watched.feed.lag.blind
    (run / "finelog.log").chmod(0o644)
    watched.poll(times=20)
    assert len(places(watched.beats)) == 30
    assert watched.feed.lag.late == 0


def test_names_and_contents_of_any_bytes_are_read(run: Path, watched: Watched) -> None:
    (run / "pod_logs").mkdir()
    name = os.fsdecode(os.fsencode(run / "pod_logs") + b"/n\xff\n\x1b[31m.log")
    Path(name).write_bytes(bars(0, 10) + b"\0\xff\xfe\x1b]0;x\x07\r\n" * 50 + bars(10, 10))
    watched.poll(times=10)
    watched.restart()
    watched.poll(times=3)
    assert len(places(watched.beats)) == 20
    assert {source for source, _ in places(watched.beats)} == {shown(f"pod_logs/{os.path.basename(name)}")}


def test_a_line_of_a_hundred_megabytes_costs_itself_alone(run: Path, watched: Watched) -> None:
    log = put(run / "finelog.log", bars(0, 10))
    with log.open("ab") as file:
        for _ in range(100):
            file.write(b"x" * 1_000_000)
            watched.poll(0.05)
        file.write(b"\n" + bars(10, 10))
    watched.poll(times=10)
    assert len(places(watched.beats)) == 20
    assert max(offset for _, offset in places(watched.beats)) > 100_000_000
    assert len(watched.feed.snapshot()) < 3_000_000


def test_thousands_of_quiet_files_cost_little_at_each_look(run: Path, watched: Watched) -> None:
    (run / "pod_logs").mkdir()
    for number in range(2_000):
        (run / "pod_logs" / f"n{number}.log").write_bytes(bar(number % 30, number % 60))
    watched.poll(times=25)
    assert len(places(watched.beats)) == 2_000
    began = time.process_time()
    watched.poll(0.25, times=40)
    assert time.process_time() - began < 4
    append(run / "pod_logs" / "n77.log", bar(64, 64))
    watched.now_us = START_US + 64 * SECOND_US
    watched.poll(times=20)
    assert len(places(watched.beats)) == 2_001


def test_what_a_probe_that_runs_will_say_is_waited_for(run: Path, watched: Watched) -> None:
    put(run / "finelog.log", bars(0, 60))
    watched.holds = lambda now_us: START_US + 15 * SECOND_US
    watched.now_us = START_US + 60 * SECOND_US
    watched.poll(times=10)
    assert watched.feed.lag.released_us == START_US + 15 * SECOND_US
    record = {"at": "2026-05-04T08:00:16.000Z", "probe": "state", "target": "", "command": ["state"], "exit": 1}
    put(run / "polls" / "state.jsonl", orjson.dumps({**record, "elapsed_ms": 9, "stdout": "", "stderr": "no"}) + b"\n")
    watched.holds = lambda now_us: None
    watched.poll(times=10)
    polled = [each for each in said(watched.beats) if each.pattern == PATTERN]
    assert [each.at_us for each in polled] == [START_US + 16 * SECOND_US]
    assert watched.feed.lag.late == 0


def test_an_error_of_the_reader_costs_its_piece_and_is_told(
    run: Path, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: LiveSource, piece: object) -> None:
        raise RuntimeError("no such piece")

    put(run / "finelog.log", bars(0, 10))
    put(run / "pod_logs" / "a.log", bars(0, 10))
    watched.poll(times=3)
    monkeypatch.setattr(LiveSource, "_said", broken)
    append(run / "finelog.log", bars(31, 2))
    watched.poll(times=2)
    monkeypatch.undo()
    assert "no such piece" in watched.feed.lag.unreadable["finelog.log"]
    append(run / "finelog.log", bars(33, 2))
    watched.now_us = START_US + 35 * SECOND_US
    watched.poll(times=20)
    assert len(places(watched.beats)) == 22
    assert watched.feed.lag.unreadable == {}
