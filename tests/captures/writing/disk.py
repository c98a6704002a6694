"""How a run's files lie on disk: the sync tool's layout, the watcher's bundle, a peek; compressed or plain."""

import gzip
import io
import json
import shutil
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

import zstandard

from tests.captures.writing.run import Run

Files = Mapping[str, bytes]
LOGS = (".log", ".out", ".err")


def synced(run: Run, ray_logs: bool = True) -> dict[str, bytes]:
    """The sync tool's layout; ray_logs False leaves the per-actor home out."""
    files = {"finelog.log": run.finelog(), **run.artifacts}
    if ray_logs:
        files |= run.actor_logs()
    return files | poll_files(run)


def bundled(run: Run) -> dict[str, bytes]:
    """The watcher's bundle: per-actor logs under ray_vllm_logs/, a manifest."""
    actors = {path.replace("ray_session_logs/", "ray_vllm_logs/"): body for path, body in run.actor_logs().items()}
    manifest = {"job_id": run.job, "cluster": "cw-lab2", "files": sorted(actors)}
    return {"finelog.log": run.finelog(), "manifest.json": _json(manifest)} | actors | run.artifacts | poll_files(run)


def peeked(run: Run) -> dict[str, bytes]:
    """A peek: the aggregated stream and each pod's own stdout under logs/."""
    pods = {}
    for rank in range(4):
        said = [f"{line.text}\n" for line in sorted(run.lines) if line.task == run.task(rank) and not line.speaker]
        pods[f"logs/pod_rank{rank}.log"] = "".join(said).encode()
    note = f"# Peek of {run.job}\n\nTaken while it came up; no Ray logs yet.\n"
    return (
        {"logs/iris_finelog.log": run.finelog(), "MANIFEST.md": note.encode()} | pods | run.artifacts | poll_files(run)
    )


def poll_files(run: Run) -> dict[str, bytes]:
    """polls/<probe>.jsonl, each in order of time."""
    return {
        f"polls/{probe}.jsonl": "".join(
            json.dumps(row) + "\n" for _, row in sorted(rows, key=lambda pair: pair[0])
        ).encode()
        for probe, rows in sorted(run.polls.items())
    }


def gzipped(files: Files) -> dict[str, bytes]:
    """Every log compressed with gzip, without a time stamp."""
    return _packed(files, ".gz", lambda body: gzip.compress(body, mtime=0))


def zstd(files: Files) -> dict[str, bytes]:
    """Every log compressed with zstd."""
    return _packed(files, ".zst", lambda body: zstandard.ZstdCompressor(level=3).compress(body))


def _packed(files: Files, suffix: str, pack: Callable[[bytes], bytes]) -> dict[str, bytes]:
    return {
        (path + suffix if path.endswith(LOGS) else path): (pack(body) if path.endswith(LOGS) else body)
        for path, body in files.items()
    }


def archived(files: Files, archive: str) -> dict[str, bytes]:
    """The trial artifacts as one tar.gz, as they come from object storage."""
    inside = {path: body for path, body in files.items() if path.startswith("trace_jobs/")}
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, body in inside.items():
            member = tarfile.TarInfo(path)
            member.size = len(body)
            tar.addfile(member, io.BytesIO(body))
    rest = {path: body for path, body in files.items() if path not in inside}
    return rest | {archive: gzip.compress(raw.getvalue(), mtime=0)}


def write(folder: Path, files: Files) -> None:
    """Puts the files in place of whatever the folder held."""
    if folder.exists():
        shutil.rmtree(folder)
    for path, body in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(body)


def _json(body: object) -> bytes:
    return (json.dumps(body, indent=1) + "\n").encode()
