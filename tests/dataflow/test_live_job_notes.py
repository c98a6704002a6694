"""One capture that is watched: its name, its settings, and what is told of it."""

from pathlib import Path

from dataflow.live_job import LiveJob
from dataflow.probes import ProbePool
from dataflow.probing import Probing

SECOND_US = 1_000_000
NOON_US = 1_784_548_800 * SECOND_US
DECLARED = '[job]\nid = "/kim/rl-demo"\n[probes.state]\ncommand = ["true"]\n'


def watched(capture: Path, names: dict[str, str], told: list[str]) -> LiveJob:
    """A job of a capture; nothing of its probes runs, since its pool is stopped."""
    pool = ProbePool()
    pool.stop(0.0)
    probing = Probing(pool, told.append)
    return LiveJob(str(capture), None, capture.parent, 5 * SECOND_US, probing, lambda: NOON_US, names)


def capture(folder: Path, text: str = DECLARED) -> Path:
    folder.mkdir()
    (folder / "job.toml").write_text(text)
    return folder


def test_a_capture_that_vanishes_names_no_other_probes(tmp_path: Path) -> None:
    told: list[str] = []
    job = watched(capture(tmp_path / "one"), {}, told)
    job.poll(NOON_US)
    (tmp_path / "one" / "job.toml").unlink()
    job.poll(NOON_US + 10 * SECOND_US)
    assert told == []


def test_what_is_told_of_a_file_names_its_job(tmp_path: Path) -> None:
    job = watched(capture(tmp_path / "one"), {}, [])
    job.poll(NOON_US)
    (tmp_path / "one" / "finelog.log").symlink_to(tmp_path / "one" / "finelog.log")
    job.poll(NOON_US + 10 * SECOND_US)
    assert job.notes
    assert all(note.startswith("/kim/rl-demo: ") for note in job.notes)
