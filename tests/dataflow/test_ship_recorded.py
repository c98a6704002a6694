"""A recorded capture is sent so that, laid out elsewhere, it says all that it says where it lies."""

import gzip
import io
import os
import tarfile
from pathlib import Path

import pytest

from dataflow.feed import open_feed
from dataflow.ship_recorded import LONG_BYTES, Recorded
from dataflow.trial_files import most_of
from dataflow.wire import Part, PollLine
from dataflow.wire_words import Begun, Ended, LinkSeen
from extractors.record import Block, Observation
from tests.dataflow.live_feeds import bars, said
from tests.dataflow.shipments import Sent, mirrored
from tests.dataflow.test_trials import trial

POLL = (
    b'{"at":"2026-05-04T08:00:%02dZ","probe":"state","target":"","command":["s"],'
    b'"exit":0,"elapsed_ms":9,"stdout":"","stderr":""}'
)


def sent(path: Path) -> tuple[list[Sent], Ended]:
    recorded = Recorded(open_feed(str(path)))
    pieces = list(recorded.pieces(None))
    assert isinstance(pieces[0], Begun)
    assert isinstance(pieces[-1], Ended)
    return pieces, pieces[-1]


def write(root: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return root


def trials(root: Path, names: list[str]) -> None:
    for minute, name in enumerate(names):
        for file, content in trial(name, minute, minute + 2).items():
            write(root, {file: content if isinstance(content, bytes) else content.encode()})


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """One with everything that a capture may hold."""
    root = tmp_path / "rl-curlew-3"
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        member = tarfile.TarInfo("trace_jobs/late__Ab3dE9x/exception.txt")
        member.size = 6
        tar.addfile(member, io.BytesIO(b"Error\n"))
    write(
        root,
        {
            "job.toml": b'[job]\nid = "/ines/rl-curlew-3"\n',
            "manifest.json": b'{"job_id": "/ines/rl-other"}',
            "finelog.log": bars(0, 9_000) + b"2026-05-04 11:00:00.000 | torn",
            "logs/finelog.log.1.gz": gzip.compress(bars(0, 50)),
            "pod_logs/pod_rank0.log": b"x" * 3_000_000 + b"\n" + bars(3, 9) + b"y" * 2_000_000,
            "pod_logs/pod_rank1.log": b"",
            "polls/state.jsonl": POLL % 1 + b"\n\n  \r\n" + POLL % 2 + b"\r\n{broken\n" + POLL % 3 + b"\n\n",
            "polls/pods.jsonl": POLL % 4 + b"\n" + POLL % 5,
            "polls/gpu.jsonl.gz": gzip.compress(POLL % 6 + b"\n"),
            "flight_recorder/rank_0.json": b'{"entries": []}',
            "ray_logs/raylet.out": bars(0, 3),
            "notes.md": b"not read",
            "secrets/key": b"not read",
            "toy_trace_jobs.tar.gz": archive.getvalue(),
        },
    )
    os.symlink(root / "ray_logs" / "raylet.out", root / "logs" / "finelog.log.2")
    os.symlink("/etc/passwd", root / "logs" / "finelog.log.3")
    trials(root / "trace_jobs" / "nightly", ["sum__Ab3dE9x", "sort__Zz3dE9y"])
    write(
        root / "trace_jobs",
        {"nightly/result.json": b"{}", "stray.txt": b"no trial's", "nightly/sum__Ab3dE9x/big.bin": b"0"},
    )
    (root / "trace_jobs" / "nightly" / "idle__Ab3dE9z").mkdir()
    os.symlink("sum__Ab3dE9x", root / "trace_jobs" / "nightly" / "link__Ab3dE9x")
    return root


def observed(path: Path) -> list[Observation]:
    feed = open_feed(str(path), job_toml=path / "job.toml")
    found = said(feed.beats())
    assert type(found[0].signal).__name__ == "JobDeclared"
    return found[1:]


def test_what_was_sent_says_elsewhere_what_the_capture_says(capture: Path, tmp_path: Path) -> None:
    pieces, ended = sent(capture)
    mirror = mirrored(pieces, ended.files, tmp_path / "mirror")
    for name in ended.files:
        assert (mirror / name).read_bytes() == (capture / name).read_bytes(), name
    assert observed(mirror) == [each for each in observed(capture) if "finelog.log.3" not in each.evidence.source]
    assert ended.failures == [("logs/finelog.log.3", "a link that leaves the capture: not followed")]


def test_only_what_is_read_is_sent(capture: Path) -> None:
    _, ended = sent(capture)
    assert not [
        name for name in ended.files if "secrets" in name or "notes" in name or "stray" in name or "big" in name
    ]
    assert "logs/finelog.log.3" not in ended.files
    assert "job.toml" in ended.files
    assert "manifest.json" in ended.files


def test_logs_go_as_whole_lines_and_polls_line_by_line(capture: Path) -> None:
    pieces, _ = sent(capture)
    log = [each for each in pieces if isinstance(each, Block) and each.source == "finelog.log"]
    assert all(each.data.endswith(b"\n") for each in log[:-1])
    assert log[-1].data.endswith(b"torn")
    assert [each.line for each in log[:2]] == [1, 1 + log[0].data.count(b"\n")]
    polls = [each for each in pieces if isinstance(each, PollLine) and each.source == "polls/state.jsonl"]
    assert [each.line for each in polls] == [1, 4, 5, 6]
    assert all(len(each.data) <= LONG_BYTES + 262_144 for each in pieces if isinstance(each, Block | Part))


def test_bare_log_is_a_capture(tmp_path: Path) -> None:
    write(tmp_path, {"run.log": bars(0, 5)})
    pieces, ended = sent(tmp_path / "run.log")
    assert isinstance(pieces[0], Begun)
    assert pieces[0].bare
    assert ended.files == {"run.log": len(bars(0, 5))}


def test_of_a_file_that_is_read_in_part_so_much_is_sent_that_this_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dataflow.trial_files.TEXT_BYTES", 1_000)
    write(tmp_path, {"finelog.log": bars(0, 5), "trace_jobs/sum__Ab3dE9x/exception.txt": b"e" * 9_000})
    _, ended = sent(tmp_path)
    assert ended.files["trace_jobs/sum__Ab3dE9x/exception.txt"] == most_of("exception.txt") + 1 == 1_001


def test_what_is_no_file_among_trials_is_told_as_a_link(tmp_path: Path) -> None:
    write(tmp_path, {"finelog.log": bars(0, 5)})
    (tmp_path / "trace_jobs" / "sum__Ab3dE9x").mkdir(parents=True)
    os.mkfifo(tmp_path / "trace_jobs" / "sum__Ab3dE9x" / "config.json")
    pieces, _ = sent(tmp_path)
    assert [each.relative for each in pieces if isinstance(each, LinkSeen)] == ["trace_jobs/sum__Ab3dE9x/config.json"]


def test_file_that_goes_while_it_is_sent_is_told(tmp_path: Path) -> None:
    write(tmp_path, {"finelog.log": bars(0, 5), "pod_logs/pod_rank0.log": bars(0, 5)})
    recorded = Recorded(open_feed(str(tmp_path)))
    (tmp_path / "pod_logs" / "pod_rank0.log").unlink()
    ended = list(recorded.pieces(None))[-1]
    assert isinstance(ended, Ended)
    assert ended.failures == [("pod_logs/pod_rank0.log", "cannot be opened: No such file or directory")]
