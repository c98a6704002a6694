"""What a watcher says of itself, and what it withholds when it sees nothing."""

from pathlib import Path

import orjson
import pytest

from dataflow.health import Health, lag_of
from dataflow.job_rows import JobLag
from dataflow.lag import Synced
from state.judge import Judge
from state.track import TRACKS, Track, Views
from tests.dataflow.live_feeds import JOB, SECOND_US, START_US, Watched, bars
from tests.dataflow.test_live_job import Job, toml


@pytest.fixture
def job(tmp_path: Path) -> Job:
    (tmp_path / "run").mkdir()
    toml(tmp_path / "run" / "job.toml", f'[job]\nid = "{JOB}"\n')
    (tmp_path / "run" / "finelog.log").write_bytes(bars(0, 60))
    return Job(tmp_path / "run")


HEARTBEAT_US = 600 * SECOND_US


class Judged:
    """What is said of a watched folder, heartbeats included."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._tracks = [Track(step) for step in TRACKS]
        self._judge = Judge(HEARTBEAT_US)

    def verdicts(self, seconds: int) -> int:
        """How many come in so many seconds."""
        count = 0
        for beat in self._watched.poll(times=seconds):
            views: Views = {}
            for track in self._tracks:
                views = track.fold(beat, views)
            count += sum(record["kind"] == "verdict" for record in self._judge.weigh(beat, views))
        return count


def said(folder: Path) -> dict[str, object]:
    return dict(orjson.loads((folder / "health.json").read_bytes()))


def test_it_tells_how_far_each_job_is_judged(tmp_path: Path, job: Job) -> None:
    waits = Job(tmp_path / "none")
    waits.poll(1)
    job.poll(10)
    Health(tmp_path, 4711).write([job.job, waits.job], job.now_us)
    found = said(tmp_path)
    assert (found["now"], found["pid"]) == ("2026-05-04T08:01:10.000Z", 4711)
    assert found["jobs"] == {
        JOB: {
            "captured": str(job.path),
            "released": "2026-05-04T08:01:05.000Z",
            "newest": "2026-05-04T08:00:59.000Z",
            "lag": 5.0,
            "late": 0,
            "sources": 1,
            "unreadable": {},
            "blind": False,
            "sync": None,
        },
        f"{tmp_path}/none": {"captured": f"{tmp_path}/none", "waits": "for its first line, or its name"},
    }
    assert [path.name for path in tmp_path.glob("health*")] == ["health.json"]
    assert lag_of(job.job, job.now_us) == JobLag(JOB, 5.0, newest_us=START_US + 59 * SECOND_US)


@pytest.mark.parametrize(
    ("fares", "says"),
    [
        (Synced(None, "exit 1"), {"good": None, "fails": "exit 1"}),
        (Synced(START_US, ""), {"good": "2026-05-04T08:00:00.000Z", "fails": ""}),
    ],
)
def test_it_tells_how_the_sync_of_a_job_fares(tmp_path: Path, job: Job, fares: Synced, says: dict[str, object]) -> None:
    job.probing.fares = fares
    job.poll(10)
    Health(tmp_path, 4711).write([job.job], job.now_us)
    (of_job,) = dict(said(tmp_path)["jobs"]).values()  # type: ignore[call-overload]
    assert of_job["sync"] == says


def test_a_watcher_that_sees_nothing_leaves_the_file_as_it_is(tmp_path: Path, job: Job) -> None:
    health = Health(tmp_path, 4711)
    job.poll(10)
    health.write([job.job], job.now_us)
    before = (tmp_path / "health.json").read_bytes()
    job.path.rename(tmp_path / "aside")
    job.poll(20)
    health.write([job.job], job.now_us)
    assert (tmp_path / "health.json").read_bytes() == before
    (tmp_path / "aside").rename(job.path)
    job.poll(5)
    health.write([job.job], job.now_us)
    assert (tmp_path / "health.json").read_bytes() != before


def test_files_that_cannot_be_read_are_named(tmp_path: Path, job: Job) -> None:
    job.poll(5)
    (job.path / "finelog.log").rename(job.path / ".aside")
    (job.path / "finelog.log").mkdir()
    (job.path / "pod_logs").mkdir()
    (job.path / "pod_logs" / "a.log").write_bytes(bars(60, 1))
    job.poll(5)
    Health(tmp_path, 4711).write([job.job], job.now_us)
    (of_job,) = dict(said(tmp_path)["jobs"]).values()  # type: ignore[call-overload]
    assert of_job["unreadable"] == {"finelog.log": "neither a file nor a link to one"}
    assert of_job["blind"] is False
    assert lag_of(job.job, job.now_us).unreadable == ("finelog.log",)


def test_any_bytes_may_be_in_the_name_of_a_capture(tmp_path: Path) -> None:
    job = Job(tmp_path / "r\udcffn")
    job.poll(1)
    Health(tmp_path, 4711).write([job.job], START_US + SECOND_US)
    assert [key.endswith("/r�n") for key in dict(said(tmp_path)["jobs"])] == [True]  # type: ignore[call-overload]


def test_a_watch_that_is_blind_repeats_no_verdict_until_it_sees_again(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "finelog.log").write_bytes(bars(0, 60))
    watched = Watched(run, now_us=START_US + 60 * SECOND_US)
    judged = Judged(watched)
    judged.verdicts(5 * 3_600)
    assert judged.verdicts(3_600) >= 6
    run.rename(tmp_path / "aside")
    judged.verdicts(20)
    assert judged.verdicts(3_600) == 0
    (tmp_path / "aside").rename(run)
    assert judged.verdicts(700) >= 1
