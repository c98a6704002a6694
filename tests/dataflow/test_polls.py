"""Poll files as observations: one broken line or clock costs nothing else, and no number of them fills the memory."""

import json
from pathlib import Path

import pytest

import extractors.poll_reading
from dataflow.capture import Source
from dataflow.notes import MOST
from dataflow.polls import poll_observations
from dataflow.reads import Compression
from extractors.clocks import parse_iso, write_iso
from extractors.record import Observation, SourceEnded, SourceFailed, SourceKind

ANCHOR = parse_iso("2026-05-04T10:00:00Z") or 0


def sync(minute: int, year: int = 2026) -> bytes:
    """A log sync that worked."""
    record = {"at": f"{year}-05-04T10:{minute:02d}:00.000Z", "probe": "sync", "exit": 0, "elapsed_ms": 9, "stdout": ""}
    return json.dumps(record).encode()


def observed(folder: Path, *rows: bytes) -> tuple[list[Observation], list[str]]:
    path, told = folder / "sync.jsonl", list[str]()
    path.write_bytes(b"".join(row + b"\n" for row in rows))
    source = Source("polls/sync.jsonl", str(path), SourceKind.POLL, Compression.NONE)
    return list(poll_observations(source, 4_096, told, ANCHOR)), told


@pytest.mark.parametrize("year", [2025, 2027, 2099])
def test_a_record_whose_clock_is_years_away_does_not_move_the_others(tmp_path: Path, year: int) -> None:
    found, _ = observed(tmp_path, sync(1), sync(2), sync(3, year), sync(4), sync(5))
    minutes = [write_iso(each.at_us)[:16] for each in found]
    assert minutes == [f"2026-05-04T10:0{n}" for n in (1, 2, 2, 4, 5, 5)]


def test_a_late_record_after_a_long_silence_is_believed(tmp_path: Path) -> None:
    found, _ = observed(tmp_path, sync(1), sync(2), sync(3, 2027))
    assert write_iso(found[-1].at_us)[:4] == "2027"


def test_records_out_of_order_do_not_run_backwards(tmp_path: Path) -> None:
    found, _ = observed(tmp_path, sync(5), sync(1), sync(5), sync(9))
    times = [each.at_us for each in found]
    assert times == sorted(times)


def test_thousands_of_bad_lines_are_all_counted_and_a_few_are_told(tmp_path: Path) -> None:
    found, told = observed(tmp_path, sync(1), *[b"junk"] * 3_000, sync(2))
    ended = found[-1].signal
    assert isinstance(ended, SourceEnded)
    assert ended.unparsed == 3_000
    assert sum(isinstance(each.signal, SourceFailed) for each in found) == MOST
    assert len(told) == MOST + 1


def test_a_reader_that_fails_makes_an_unreadable_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: object) -> tuple[()]:
        raise ZeroDivisionError("a test")

    monkeypatch.setitem(extractors.poll_reading.READERS, "sync", fails)
    _, told = observed(tmp_path, sync(1))
    assert told == ["polls/sync.jsonl: line 1: its reader failed (ZeroDivisionError: a test)"]
