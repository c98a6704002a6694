"""Where a watch's records go: each place waits for its disk, and repeats nothing after a restart."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dataflow.appended import Appended, Pages
from dataflow.dated import DatedReports
from dataflow.ending import tell
from dataflow.job_rows import JobLag
from dataflow.kept_store import KeptStore
from dataflow.patient import Patient
from dataflow.resumed import ResumedLines, Told
from dataflow.sinks import Every, JsonLines, Sink, TextReports
from dataflow.state_folder import StateFolder

if TYPE_CHECKING:
    from dataflow.verdict_topic import VerdictTopic

STDOUT = "standard output"
_HEAD_BYTES = 65_536


class Outputs:
    """The places as one sink. mended says which was damaged, so that records are gone from it; it is empty where none
    was."""

    def __init__(self, patients: list[Patient], shown: list[Sink], mended: str) -> None:
        self._patients = patients
        self.sink = Every(*patients, *shown)
        self.mended = mended

    def force(self) -> None:
        """Has the disk keep all that was written."""
        for patient in self._patients:
            patient.force()

    def retry(self) -> None:
        """Tries again to write what waits. Raises BrokenPipeError."""
        for patient in self._patients:
            patient.retry()


@contextmanager
def outputs_of(
    state: StateFolder,
    store: Path,
    layout: str | None,
    out: Path | None,
    log_folder: Path | None,
    jobs: Iterable[str] | None,
    lags: Callable[[], Iterable[JobLag]],
    topic: "VerdictTopic | None" = None,
) -> Iterator[Outputs]:
    """Opens all places; jobs is None where it isn't known whose records come. Raises OSError, StoreError among
    them, where one can't be opened."""
    with ExitStack() as stack:
        kept = KeptStore(store, tell, state)
        stack.callback(kept.close)
        sinks: list[tuple[str, Sink]] = [(str(store), kept)]
        shown: list[Sink] = []
        mended = "the store was damaged and is filled again" if kept.was_mended else ""
        if log_folder is not None:
            log_folder.mkdir(parents=True, exist_ok=True)
            sinks.append((str(log_folder), DatedReports(log_folder, resumes=True)))
        if out is not None:
            file = _file(state, out, layout, jobs, stack)
            if isinstance(file, ResumedLines) and file.notes:
                mended = "a record was torn, and is written again"
            sinks.append((str(out), file))
        elif (layout or "text") == "text" and sys.stdout.isatty():
            from dataflow.live_view import LiveView

            shown.append(stack.enter_context(LiveView(sys.stdout, lags)))
        else:
            stdout = Appended(Path(STDOUT), fd=1)
            stdout.end_line()
            stream = Pages(stdout)
            plain: Sink = TextReports(stream) if layout == "text" else JsonLines(stream)
            sinks.append((STDOUT, Told(plain, state.told / "stdout", stdout)))
        if topic is not None:
            stack.callback(topic.close)
            sinks.append((topic.name, topic))
        yield Outputs([Patient(name, sink, tell, state) for name, sink in sinks], shown, mended)


def mixed(out: Path, layout: str | None) -> str:
    """Why records of this layout can't go on in a file that holds the other one; "" where they can. A file that is not
    there, or can't be read, holds nothing here."""
    if not out.is_file():
        return ""
    try:
        with out.open("rb") as file:
            head = file.read(_HEAD_BYTES).lstrip(b"\0 \t\r\n")
    except OSError:
        return ""
    if not head or (layout == "text") != head.startswith(b"{"):
        return ""
    if layout == "text":
        return f"{out}: holds JSON lines, and is not gone on with as text; name another file, or --format jsonl"
    return f"{out}: holds text, and is not gone on with in JSON lines; name another file, or --format text"


def _file(state: StateFolder, out: Path, layout: str | None, jobs: Iterable[str] | None, stack: ExitStack) -> Sink:
    """Records in a file that is gone on with."""
    if layout == "text":
        file = Appended(out)
        stack.callback(file.close)
        file.end_line()
        return Told(TextReports(Pages(file)), state.told / "out", file)
    lines = ResumedLines(out, jobs)
    stack.callback(lines.close)
    for note in lines.notes:
        tell(note)
    return lines
