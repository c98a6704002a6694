"""A feed that is stopped after any look and goes on from its snapshot gives the beats of one that ran on, and both give
those of the finished capture, read by the journal."""

import gzip
import random
from pathlib import Path

import pytest
import zstandard

from dataflow.capture import Source
from dataflow.live_source import LiveSource
from dataflow.reads import Compression
from extractors.extract import NO_SKEW
from extractors.record import Beat, Observation, SourceKind
from tests.dataflow.live_feeds import SECOND_US, START_US, Player, Watched, bars, places, said
from tests.live.recorded import recorded

CAPTURES = Path(__file__).resolve().parents[1] / "captures"
LONGER = "crash_loop_same_failure"
ENOUGH = 15
"""Seconds after the last line in which all of it is judged."""


def same(first: list[Beat], second: list[Beat]) -> None:
    """Compares beats one by one, so that a failure can be read."""
    for one, other in zip(first, second, strict=False):
        assert (one.tick, one.fresh, one.partial, one.blind) == (other.tick, other.fresh, other.partial, other.blind)
        assert one.observations == other.observations
    assert len(first) == len(second)


@pytest.mark.parametrize(
    ("name", "seed"),
    [*((name, seed) for name in ("bring_up", "engine_death_meta_tensors") for seed in range(3)), (LONGER, 0)],
)
def test_snapshots_at_any_look_change_no_beat(tmp_path: Path, name: str, seed: int) -> None:
    chance, schedule = random.Random(seed), recorded(CAPTURES / name)
    (tmp_path / "run").mkdir()
    player = Player(tmp_path / "run", schedule, chance)
    begun_us = schedule.begin_us - 3 * SECOND_US
    on, off = (Watched(tmp_path / "run", tmp_path / name, now_us=begun_us) for name in ("on", "off"))
    while on.now_us < schedule.end_us + ENOUGH * SECOND_US:
        step = chance.uniform(0.2, 4)
        player.write(on.now_us + int(step * SECOND_US))
        on.poll(step)
        off.poll(step)
        if chance.random() < 0.25:
            off.restart()
    same(off.beats, on.beats)
    assert on.feed.lag.late == off.feed.lag.late
    finished = Watched(tmp_path / "run", on.journal, now_us=on.now_us)
    finished.poll(0, times=2)
    same(finished.beats, on.beats)


def test_a_snapshot_before_the_first_beat_keeps_that_the_stream_begins(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    (tmp_path / "finelog.log").write_bytes(bars(0, 30))
    watched.poll(times=3)
    assert watched.beats == []
    watched.restart()
    watched.poll(times=40)
    assert [beat.fresh for beat in watched.beats[:2]] == [True, False]


def source(path: Path) -> LiveSource:
    given = Source(path.name, str(path), SourceKind.AGGREGATED, Compression.NONE)
    return LiveSource(given, START_US, NO_SKEW, [], 4_096)


def read(source: LiveSource, now_us: int) -> list[Observation]:
    out: list[Observation] = []
    while True:
        out += [each for _, run in source.poll(now_us) for each in run]
        if not source.tail.more:
            return out


@pytest.mark.parametrize("seed", range(6))
def test_a_source_that_is_restored_between_any_two_bytes_says_what_one_that_ran_on_says(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    content = content_of("engine_death_meta_tensors")
    path = tmp_path / "finelog.log"
    path.touch()
    on, off = source(path), source(path)
    said_on: list[Observation] = []
    said_off: list[Observation] = []
    at, now_us = 0, START_US
    while at < len(content):
        end = at + chance.choice((1, 7, 300, 5_000, 20_000))
        with path.open("ab") as file:
            file.write(content[at:end])
        at, now_us = end, now_us + 3 * SECOND_US
        said_on += read(on, now_us)
        said_off += read(off, now_us)
        if chance.random() < 0.6:
            snapshot = off.snapshot()
            off.tail.close()
            off = source(path)
            off.restore(snapshot, 4_096)
    assert said_off == said_on
    assert len(said_on) > 50
    whole = source(path)
    assert [each.evidence for each in read(whole, now_us)] == [each.evidence for each in said_on]


def content_of(name: str) -> bytes:
    """The longest log of a capture."""
    return max((file.data for file in recorded(CAPTURES / name).files if file.relative.endswith(".log")), key=len)


def test_a_trouble_that_is_over_is_over_after_a_restart_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: LiveSource, piece: object) -> None:
        raise RuntimeError("no such piece")

    watched = Watched(tmp_path)
    (tmp_path / "finelog.log").write_bytes(bars(0, 30))
    watched.poll(times=3)
    with monkeypatch.context() as patched:
        patched.setattr(LiveSource, "_said", broken)
        (tmp_path / "finelog.log").write_bytes(bars(0, 32))
        watched.poll(times=2)
    assert "no such piece" in watched.feed.lag.unreadable["finelog.log"]
    watched.restart()
    (tmp_path / "finelog.log").write_bytes(bars(0, 34))
    watched.poll(times=2)
    assert watched.feed.lag.unreadable == {}


@pytest.mark.parametrize("mended", [True, False])
def test_a_file_that_could_not_be_read_is_told_again_only_when_it_can_be(tmp_path: Path, mended: bool) -> None:
    log = tmp_path / "finelog.log"
    log.write_bytes(bars(0, 30))
    watched = Watched(tmp_path)
    watched.poll(times=40)
    log.rename(tmp_path / ".aside")
    log.mkdir()
    watched.poll(times=3)
    assert watched.feed.lag.unreadable == {"finelog.log": "neither a file nor a link to one"}
    watched.beats.clear()
    if mended:
        log.rmdir()
        (tmp_path / ".aside").rename(log)
    watched.restart()
    watched.poll(times=20)
    troubles = [type(each.signal).__name__ for each in said(watched.beats) if each.pattern.startswith("source_")]
    assert (watched.feed.lag.unreadable == {}, troubles) == (
        mended,
        ["SourceFailed", "SourceResumed"] if mended else ["SourceFailed"],
    )


@pytest.mark.parametrize("name", ["finelog.log.gz", "finelog.log.zst"])
def test_a_packed_file_that_is_damaged_still_is_told_once_whatever_restarts(tmp_path: Path, name: str) -> None:
    pack = gzip.compress if name.endswith("gz") else zstandard.compress
    packed = pack(bars(0, 30)) + pack(bars(30, 5))
    (tmp_path / name).write_bytes(packed[:-6])
    watched = Watched(tmp_path)
    watched.poll(times=20)
    why = watched.feed.lag.unreadable[name]
    for _ in range(3):
        watched.restart()
        watched.poll(times=20)
    assert watched.feed.lag.unreadable == {name: why}
    assert troubles(watched) == ["SourceFailed"]
    assert len(watched.notes) == 1
    (tmp_path / name).write_bytes(packed)
    watched.restart()
    watched.poll(times=20)
    assert watched.feed.lag.unreadable == {}
    assert troubles(watched) == ["SourceFailed", "SourceResumed"]
    assert len(places(watched.beats)) == 35


def troubles(watched: Watched) -> list[str]:
    """How the reading of the files fared, in order."""
    return [type(each.signal).__name__ for each in said(watched.beats) if each.pattern in _FARES]


_FARES = ("source_failed", "source_resumed")


def test_a_bare_log_that_went_is_not_looked_for_where_another_watch_is_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "one" / "finelog.log").write_bytes(bars(0, 30))
    (tmp_path / "two" / "finelog.log").write_bytes(bars(0, 60))
    monkeypatch.chdir(tmp_path / "one")
    watched = Watched(Path("finelog.log"))
    watched.poll(times=40)
    monkeypatch.chdir(tmp_path / "two")
    (tmp_path / "one" / "finelog.log").unlink()
    watched.path = tmp_path / "one" / "finelog.log"
    watched.restart()
    watched.poll(times=40)
    assert len(places(watched.beats)) == 30
