"""Sinks of a process that is killed at random times and gives all its records again: each stands once."""

import json
import random
import subprocess
import sys
from pathlib import Path

from state.report import encode
from tests.dataflow.said_records import gate, verdict

ROOT = Path(__file__).resolve().parents[2]
RECORDS = 3_000
WRITER = """
import sys
from pathlib import Path
from dataflow.appended import Appended, Pages
from dataflow.dated import DatedReports
from dataflow.kept_store import KeptStore
from dataflow.patient import Patient
from dataflow.resumed import ResumedLines, Told
from dataflow.sinks import Every, JsonLines
from dataflow.state_folder import held
from tests.dataflow.test_killed_sinks import stream
folder = Path(sys.argv[1])
with held(folder, "v1") as state:
    def patient(name, sink):
        return Patient(name, sink, sys.exit, state)
    descriptor = Appended(Path("standard output"), fd=1)
    descriptor.end_line()
    stdout = Told(JsonLines(Pages(descriptor)), state.told / "stdout")
    lines = ResumedLines(folder / "out", {"/a", "/b"})
    every = Every(
        patient("out", lines),
        patient("log", DatedReports(folder / "log", resumes=True)),
        patient("store", KeptStore(folder, sys.exit, state)),
        patient("stdout", stdout),
    )
    print("begun", file=sys.stderr, flush=True)
    for record in stream():
        every.write(record)
"""


def stream() -> list[dict]:
    """Records of two jobs; every tenth verdict says something else."""
    records = []
    for second in range(RECORDS // 3):
        job = ("/a", "/b")[second % 2]
        says = ("WEDGED", "KILL") if second % 20 < 2 else ("ALIVE", "NO-KILL")
        records += [gate(job, second, "A"), gate(job, second, "B"), verdict(job, second, *says, "words " * 200)]
    return records


def go(folder: Path, grown: int | None) -> int:
    """Runs the writer, and kills it when its file has grown by so many bytes, however fast the machine is; its exit
    code."""
    out = folder / "out"
    before = out.stat().st_size if out.exists() else 0
    with (folder / "stdout").open("ab") as stdout:
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder)], cwd=ROOT, stdout=stdout, stderr=subprocess.PIPE, text=True
        )
    assert writer.stderr is not None
    assert writer.stderr.readline() == "begun\n"
    while grown is not None and writer.poll() is None and out.stat().st_size - before < grown:
        pass
    if grown is not None:
        writer.kill()
    assert writer.communicate()[1] == ""
    return writer.returncode


def test_whatever_is_killed_when_each_record_stands_once(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    chance = random.Random(5)
    whole = sum(len(encode(record)) + 1 for record in stream())
    killed = sum(go(tmp_path, chance.randrange(1, whole // 8)) == -9 for _ in range(5))
    assert killed >= 2
    assert go(tmp_path, None) == 0
    wanted = [record["id"] for record in stream()]
    assert [json.loads(line)["id"] for line in (tmp_path / "out").read_bytes().splitlines()] == wanted
    lines = (tmp_path / "stdout").read_bytes().splitlines()
    told = [json.loads(line)["id"] for line in lines if line.endswith(b'"}')]
    assert len(lines) - len(told) <= killed, "a kill tears one line at most"
    assert list(dict.fromkeys(told)) == wanted
    assert len(told) <= len(wanted) + killed
    headings = [
        line for path in (tmp_path / "log").iterdir() for line in path.read_text().splitlines() if line[:3] == "## "
    ]
    assert len(headings) == len(set(headings)) > 100
