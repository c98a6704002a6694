"""The quote law finds a quote that is not there, in every kind of file that evidence may name."""

import gzip
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.captures.quotes import misquotes

POLL = json.dumps({"at": "2026-03-14T10:00:00.000Z", "probe": "state", "stdout": "state=running\nexit=0\n"})


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """A folder with a log, a packed log, a poll and an archive of one trial."""
    (tmp_path / "finelog.log").write_bytes(b"first\n\x1b[32msecond\tline\x1b[0m of two\nkey=s3cr3t end\n")
    (tmp_path / "pod.log.gz").write_bytes(gzip.compress(b"one\ntwo\n"))
    (tmp_path / "polls").mkdir()
    (tmp_path / "polls/state.jsonl").write_text(f"{POLL}\n{POLL}\n")
    with tarfile.open(tmp_path / "trace_jobs.tar.gz", "w:gz") as tar:
        member = tarfile.TarInfo("trace_jobs/a__b/result.json")
        member.size = 8
        tar.addfile(member, io.BytesIO(b'{\n"r": 1'))
    return tmp_path


def evidence(source: str, line: int, offset: int, quote: str) -> list[dict[str, Any]]:
    """One record with one piece of evidence."""
    return [{"gates": {"A": {"evidence": [{"source": source, "line": line, "offset": offset, "quote": quote}]}}}]


TRUE = [
    ("finelog.log", 1, 0, "first"),
    ("finelog.log", 2, 6, "second line of two"),
    ("finelog.log", 2, 6, "…line of…"),
    ("finelog.log", 3, 34, "key=[masked] end"),
    ("pod.log.gz", 2, 4, "two"),
    ("polls/state.jsonl", 2, len(POLL) + 1, "exit=0"),
    ("polls/state.jsonl", 1, 0, POLL),
    ("trace_jobs.tar.gz!/trace_jobs/a__b/result.json", 2, 2, '"r": 1'),
]

FALSE = [
    ("finelog.log", 1, 1, "first"),
    ("finelog.log", 1, 0, "firs"),
    ("finelog.log", 2, 6, "third line"),
    ("finelog.log", 9, 0, "first"),
    ("other.log", 1, 0, "first"),
    ("pod.log.gz", 2, 3, "two"),
    ("polls/state.jsonl", 1, 0, "state=failed"),
    ("trace_jobs.tar.gz!/trace_jobs/none/result.json", 1, 0, "{"),
]


@pytest.mark.parametrize("place", TRUE)
def test_quote_that_stands_at_its_place_keeps_the_law(capture: Path, place: tuple[str, int, int, str]) -> None:
    assert misquotes(capture, evidence(*place)) == []


@pytest.mark.parametrize("place", FALSE)
def test_quote_that_does_not_stand_at_its_place_breaks_the_law(capture: Path, place: tuple[str, int, int, str]) -> None:
    assert len(misquotes(capture, evidence(*place))) == 1
