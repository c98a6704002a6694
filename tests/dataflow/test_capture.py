"""What a capture holds, in each layout, and what of it cannot be read."""

import gzip
import io
import os
import sys
import threading
from pathlib import Path

import pytest

from dataflow.blocks import blocks
from dataflow.capture import Capture, CaptureError, Source, TrialTar, TrialTree, open_capture
from dataflow.feed import anchor, open_feed
from dataflow.homes import NOBODY, Writer
from dataflow.reads import Compression
from extractors.clocks import write_iso
from extractors.record import Block, Origin, SourceFailed, SourceKind
from extractors.signal import Fault

WORKER = "worker-0123abcd-01000000-4321.out"
SESSION = "session_2026-07-20_08-00-00_123456_77"
SESSION_US = 1_784_534_400_000_000
TASK_LINE = "[08:00:01] task=/bob/rl-toy/0 | hello\n"


def put(root: Path, contents: dict[str, str | bytes]) -> Capture:
    for relative, content in contents.items():
        path = root / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return open_capture(str(root))


def kinds(of: Capture) -> dict[str, SourceKind]:
    return {source.relative: source.kind for source in of.sources}


def one(of: Capture, relative: str) -> Source:
    return next(source for source in of.sources if source.relative == relative)


def content(source: Source) -> bytes:
    return b"".join(block.data for block in blocks(source) if isinstance(block, Block))


def test_the_own_layout(tmp_path: Path) -> None:
    folder = f"ray_session_logs/rank0-node7/{SESSION}"
    names = ("raylet.out", "gcs_server.err", "python-core-worker-0123abcd_4321.log", "log_monitor.log", "raylet.out.1")
    of = put(
        tmp_path,
        {
            "finelog.log": TASK_LINE,
            "pod_logs/pod-a.log": "",
            "slurm_logs/step0": "",
            "slurm-99.out": "",
            "toy_991.out": "",
            "polls/state.jsonl": "",
            "job.toml": '[job]\nid = "/bob/rl-declared"\n',
            "toy_trace_jobs.tar.gz": b"",
            "trace_jobs/fix__abcdefg/config.json": "{}",
            f"{folder}/{WORKER}": "",
            f"{folder}/{WORKER.replace('.out', '.err')}": "",
            **{f"{folder}/{name}": "" for name in names},
        },
    )
    assert kinds(of) == {
        "finelog.log": SourceKind.AGGREGATED,
        "pod_logs/pod-a.log": SourceKind.POD,
        "slurm-99.out": SourceKind.SLURM,
        "slurm_logs/step0": SourceKind.SLURM,
        "toy_991.out": SourceKind.SLURM,
        f"{folder}/{WORKER.replace('.out', '.err')}": SourceKind.ACTOR,
        f"{folder}/{WORKER}": SourceKind.ACTOR,
        **{f"{folder}/{name}": SourceKind.DAEMON for name in names},
        "polls/state.jsonl": SourceKind.POLL,
    }
    assert [(type(each), each.relative) for each in of.trials] == [
        (TrialTar, "toy_trace_jobs.tar.gz"),
        (TrialTree, "trace_jobs"),
    ]
    assert (of.job_id, of.job_id_from, of.failures, of.skipped) == ("/bob/rl-declared", "job.toml", (), ())
    assert of.job_toml == str(tmp_path / "job.toml")


def test_the_bundle_layout(tmp_path: Path) -> None:
    of = put(
        tmp_path,
        {
            "finelog.log": TASK_LINE,
            "finelog.stderr": "",
            "manifest.json": '{"job_id": "/bob/rl-bundle", "cluster": "toy"}',
            f"ray_vllm_logs/pod-a/logs/{WORKER}": "",
            "ray_vllm_logs/pod-a/vllm_0.log": "",
            "ray_logs/raylet.out": "",
            "pod_logs/pod-a.log": "",
        },
    )
    assert kinds(of) == {
        "finelog.log": SourceKind.AGGREGATED,
        "pod_logs/pod-a.log": SourceKind.POD,
        f"ray_vllm_logs/pod-a/logs/{WORKER}": SourceKind.ACTOR,
        "ray_vllm_logs/pod-a/vllm_0.log": SourceKind.ACTOR,
        "ray_logs/raylet.out": SourceKind.DAEMON,
    }
    assert (of.job_id, of.job_id_from, of.skipped) == ("/bob/rl-bundle", "manifest.json", ())
    assert one(of, f"ray_vllm_logs/pod-a/logs/{WORKER}").writer.host == "pod-a"


def test_artifacts_of_an_end_and_flight_recorders_are_homes_of_their_own(tmp_path: Path) -> None:
    of = put(
        tmp_path,
        {
            "finelog.log": TASK_LINE,
            "term_artifacts/_bob_rl-toy_0_1930000000.txt": "",
            "debug_artifacts/node-a/receipts.jsonl": "",
            "debug_artifacts/node-a/sync-manifest.json": "",
            "debug_artifacts/node-a/core.bin": "",
            "flight_recorder/nccl_trace_rank_3.json": "",
            "flight_recorder/nccl_trace_rank_4": "",
            "rank_07.json": "",
        },
    )
    assert kinds(of) == {
        "finelog.log": SourceKind.AGGREGATED,
        "debug_artifacts/node-a/receipts.jsonl": SourceKind.ARTIFACT,
        "term_artifacts/_bob_rl-toy_0_1930000000.txt": SourceKind.ARTIFACT,
        "flight_recorder/nccl_trace_rank_3.json": SourceKind.FLIGHT,
        "rank_07.json": SourceKind.FLIGHT,
    }
    assert one(of, "term_artifacts/_bob_rl-toy_0_1930000000.txt").writer.written_us == 1_930_000_000_000_000
    assert of.skipped == (
        ("debug_artifacts/node-a/core.bin", "not a log by its name"),
        ("flight_recorder/nccl_trace_rank_4", "a pickled flight recorder's dump: its JSON form is read"),
    )


def test_a_kernels_kill_in_a_termination_artifact_is_told_at_the_time_of_its_file(tmp_path: Path) -> None:
    kill = "[82034.120000] Memory cgroup out of memory: Killed process 900 (ray::Policy) total-vm:9kB, anon-rss:8kB"
    put(tmp_path, {"finelog.log": TASK_LINE, "term_artifacts/_bob_rl-toy_0_1930000000.txt": f"--- dmesg ---\n{kill}\n"})
    told = [each for beat in open_feed(str(tmp_path)).beats() for each in beat.observations]
    (seen,) = [each for each in told if isinstance(each.signal, Fault)]
    assert (seen.signal.cause, seen.at_us) == ("host_oom", 1_930_000_000_000_000)


def test_the_peek_layout(tmp_path: Path) -> None:
    of = put(
        tmp_path,
        {
            "logs/iris_finelog.log": TASK_LINE,
            "logs/iris_finelog.stderr": "",
            "logs/pod_rank3.log": "",
            "logs/toy_77.out": "",
            "MANIFEST.md": "",
            "trace_jobs/fix__abcdefg/config.json": "{}",
        },
    )
    assert kinds(of) == {
        "logs/iris_finelog.log": SourceKind.AGGREGATED,
        "logs/pod_rank3.log": SourceKind.POD,
        "logs/toy_77.out": SourceKind.SLURM,
    }
    assert one(of, "logs/pod_rank3.log").writer == Writer(host="pod_rank3", node_rank=3)
    assert (of.job_id, of.job_id_from) == ("/bob/rl-toy", "logs/iris_finelog.log")


def test_a_worker_file_says_node_process_and_session(tmp_path: Path) -> None:
    of = put(tmp_path, {f"ray_session_logs/rank12-node7.lab/{SESSION}/{WORKER}.gz": gzip.compress(b"")})
    assert of.sources[0].writer == Writer("node7.lab", 12, 4321, "0123abcd", SESSION_US)
    assert of.sources[0].origin == Origin(host="node7.lab", pid=4321)


@pytest.mark.parametrize(
    ("relative", "writer"),
    [
        (f"ray_session_logs/{SESSION}/{WORKER}", Writer(pid=4321, worker="0123abcd", session_start_us=SESSION_US)),
        (f"ray_session_logs/node8/{SESSION}/raylet.out", Writer(host="node8", session_start_us=SESSION_US)),
        ("ray_session_logs/session_2026-99-20_08-00-00_1_2/raylet.out", NOBODY),
        ("ray_logs/raylet.out", NOBODY),
        ("ray_logs/python-core-worker-0123abcd_55.log", Writer(pid=55, worker="0123abcd")),
    ],
)
def test_folders_between_are_optional(tmp_path: Path, relative: str, writer: Writer) -> None:
    assert put(tmp_path, {relative: ""}).sources[0].writer == writer


def test_what_is_no_log_is_skipped_and_listed(tmp_path: Path) -> None:
    of = put(
        tmp_path,
        {
            f"ray_session_logs/{SESSION}/ports.json": "{}",
            f"ray_session_logs/{SESSION}/core.4321": b"\x7fELF",
            "ray_session_logs/.synced_from": "",
            "polls/notes.txt": "",
            "pod_logs/pod.yaml": "",
            "checkpoints/a.pt": b"",
            "README": "",
        },
    )
    assert of.sources == ()
    assert [relative for relative, _ in of.skipped] == [
        "README",
        "checkpoints/",
        "pod_logs/pod.yaml",
        "polls/notes.txt",
        f"ray_session_logs/{SESSION}/core.4321",
        f"ray_session_logs/{SESSION}/ports.json",
    ]
    assert all(why for _, why in of.skipped)


def test_ranks_follow_home_and_name_the_same_packed_or_not(tmp_path: Path) -> None:
    plain = {"polls/gpu.jsonl": "", "finelog.log": "", "pod_logs/b.log": "", "pod_logs/a.log": ""}
    packed = {"polls/gpu.jsonl": "", "finelog.log.gz": b"", "pod_logs/b.log": "", "pod_logs/a.log.zst": b""}
    of_plain, of_packed = put(tmp_path / "plain", plain), put(tmp_path / "packed", packed)
    assert [s.relative for s in of_plain.sources] == [
        "finelog.log",
        "pod_logs/a.log",
        "pod_logs/b.log",
        "polls/gpu.jsonl",
    ]
    assert [s.relative for s in of_packed.sources] == [
        "finelog.log.gz",
        "pod_logs/a.log.zst",
        "pod_logs/b.log",
        "polls/gpu.jsonl",
    ]
    assert [s.rank for s in of_packed.sources] == [0, 1, 2, 3]
    assert [s.compression for s in of_packed.sources[:3]] == [Compression.GZ, Compression.ZST, Compression.NONE]


def test_a_packed_copy_beside_the_file_is_not_read_twice(tmp_path: Path) -> None:
    of = put(tmp_path, {"finelog.log": TASK_LINE, "finelog.log.gz": gzip.compress(TASK_LINE.encode())})
    assert list(kinds(of)) == ["finelog.log"]
    assert of.skipped[0][0] == "finelog.log.gz"


def test_links_are_followed_inside_the_capture_only(tmp_path: Path) -> None:
    root, outside = tmp_path / "capture", tmp_path / "outside.log"
    outside.write_text("secret\n")
    session = root / "ray_session_logs" / SESSION
    put(root, {f"ray_session_logs/{SESSION}/raylet.out": "x\n", "store/deep.log": TASK_LINE})
    (root / "ray_session_logs" / "session_latest").symlink_to(session)
    (root / "finelog.log").symlink_to("store/deep.log")
    (root / "pod_logs").mkdir()
    (root / "pod_logs" / "leaving.log").symlink_to(outside)
    (root / "pod_logs" / "self.log").symlink_to("self.log")
    (root / "pod_logs" / "nowhere.log").symlink_to("gone")
    (root / "pod_logs" / "up").symlink_to(root)
    (root / "slurm_logs").symlink_to(tmp_path)
    of = open_capture(str(root))
    assert list(kinds(of)) == ["finelog.log", f"ray_session_logs/{SESSION}/raylet.out"]
    assert content(of.sources[0]) == TASK_LINE.encode()
    assert dict(of.failures) == {
        "pod_logs/leaving.log": "a link that leaves the capture: not followed",
        "pod_logs/nowhere.log": "a link that leads nowhere: No such file or directory",
        "pod_logs/self.log": "a link that leads nowhere: too many symbolic links",
        "pod_logs/up": "a link that leaves the capture: not followed",
        "slurm_logs": "a link that leaves the capture: not followed",
    }
    assert (
        "ray_session_logs/session_latest",
        f"a link to ray_session_logs/{SESSION}, which is read there",
    ) in of.skipped


def test_a_link_to_a_folder_above_it_is_named(tmp_path: Path) -> None:
    put(tmp_path, {"pod_logs/a/b.log": ""})
    (tmp_path / "pod_logs" / "a" / "up").symlink_to("..")
    assert open_capture(str(tmp_path)).failures == (
        ("pod_logs/a/up", "a link to a folder that holds it: not followed"),
    )


def test_a_pipe_in_a_folder_of_logs_does_not_block(tmp_path: Path) -> None:
    (tmp_path / "pod_logs").mkdir()
    os.mkfifo(tmp_path / "pod_logs" / "a.log")
    assert open_capture(str(tmp_path)).failures == (("pod_logs/a.log", "neither a file nor a folder"),)


def test_a_name_that_is_no_utf8_can_be_written(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path) + b"/pod_logs"
    os.mkdir(folder)
    with open(folder + b"/\xff.log", "wb") as file:
        file.write(b"read\n")
    source = open_capture(str(tmp_path)).sources[0]
    assert source.relative == "pod_logs/\ufffd.log"
    assert content(source) == b"read\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
def test_an_unreadable_file_is_a_failure_when_it_is_read(tmp_path: Path) -> None:
    of = put(tmp_path, {"finelog.log": TASK_LINE})
    (tmp_path / "finelog.log").chmod(0)
    failed = [each for each in blocks(of.sources[0]) if isinstance(each, SourceFailed)]
    assert (failed[0].whole, "Permission denied" in failed[0].why) == (True, True)


@pytest.mark.parametrize(
    ("contents", "job_id", "where"),
    [
        ({"finelog.log": TASK_LINE}, "/bob/rl-toy", "finelog.log"),
        ({"finelog.log": "chatter\n[08:00:01] task=/bob/rl-toy/12:3 | hello\n"}, "/bob/rl-toy", "finelog.log"),
        ({"finelog.log": "[08:00:01] task=/bob/rl-toy/0 attempt=2 | hello\n"}, "/bob/rl-toy", "finelog.log"),
        ({"finelog.log": "no prefix\n", "logs/iris_finelog.log": TASK_LINE}, "/bob/rl-toy", "logs/iris_finelog.log"),
        ({"finelog.log": "no prefix\n"}, "capture", "name"),
        ({"job.toml": "[job\n", "finelog.log": TASK_LINE}, "/bob/rl-toy", "finelog.log"),
        ({"job.toml": "[job]\nid = 3\n", "manifest.json": '{"job_id": "/bob/m"}'}, "/bob/m", "manifest.json"),
        ({"manifest.json": "[]", "finelog.log": TASK_LINE}, "/bob/rl-toy", "finelog.log"),
        ({"manifest.json": "{", "finelog.log": TASK_LINE}, "/bob/rl-toy", "finelog.log"),
        ({}, "capture", "name"),
    ],
)
def test_the_jobs_name_is_taken_from_the_first_that_says_it(
    tmp_path: Path, contents: dict[str, str | bytes], job_id: str, where: str
) -> None:
    root = tmp_path / "capture"
    root.mkdir()
    of = put(root, contents)
    assert (of.job_id, of.job_id_from) == (job_id, where)


def test_a_bare_file_is_an_aggregated_stream(tmp_path: Path) -> None:
    path = tmp_path / "toy.log.gz"
    path.write_bytes(gzip.compress(TASK_LINE.encode()))
    of = open_capture(str(path))
    assert kinds(of) == {"toy.log.gz": SourceKind.AGGREGATED}
    assert (of.job_id, of.job_id_from) == ("/bob/rl-toy", "toy.log.gz")
    assert content(of.sources[0]) == TASK_LINE.encode()


def test_a_bare_file_without_prefix_is_named_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "toy.log"
    path.write_text("nothing\n")
    assert open_capture(str(path)).job_id == "toy.log"


def test_standard_input_is_read_once_and_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "chatter\n" + TASK_LINE + "more\n" * 100_000
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    of = open_capture("-")
    assert (of.job_id, of.job_id_from, of.sources[0].relative) == ("/bob/rl-toy", "-", "-")
    assert content(of.sources[0]) == text.encode()


def test_a_named_pipe_is_read_like_standard_input(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.log"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(TASK_LINE + "more\n",))
    writer.start()
    of = open_capture(str(pipe))
    assert (of.job_id, content(of.sources[0])) == ("/bob/rl-toy", TASK_LINE.encode() + b"more\n")
    writer.join()


def test_nothing_at_the_path_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"gone: cannot be read: No such file"):
        open_capture(str(tmp_path / "gone"))


def test_a_path_with_a_nul_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="null byte"):
        open_capture(str(tmp_path) + "\0")


@pytest.mark.parametrize("piece", [1_000, 70_000, 10_000_000])
def test_what_is_found_in_a_pipe_does_not_depend_on_its_pieces(monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    text = b"x\n" * 40_000 + b"[09:00:00] task=/kim/rl/0 | hello\n" + b"y\n" * 40_000 + b"2026-03-14 09:00:00 z\n"

    class Pipe(io.BytesIO):
        def read1(self, size: int | None = -1, /) -> bytes:
            return self.read(piece if size is None or size < 0 else min(piece, size))

    stdin = io.TextIOWrapper(Pipe(text))
    monkeypatch.setattr(sys, "stdin", stdin)
    capture = open_capture("-")
    assert capture.job_id == "/kim/rl"
    assert write_iso(anchor(capture.sources)) == "2026-03-14T09:00:00.000Z"


def test_a_folder_in_the_place_of_job_toml_is_told(tmp_path: Path) -> None:
    (tmp_path / "job.toml").mkdir()
    assert open_capture(str(tmp_path)).failures == (("job.toml", "a folder: no facts are read from it"),)


@pytest.mark.parametrize("content", [b"a=" + b"[" * 100_000, b"a=" + b"9" * 5_000, b"\xff"])
def test_a_job_toml_that_no_parser_reads_names_no_job(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "job.toml").write_bytes(content)
    assert open_capture(str(tmp_path)).job_id_from == "name"
