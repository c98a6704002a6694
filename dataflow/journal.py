"""What the order of a job's live stream owes to the moment of its reading: lines that came later than the lateness, or
from a clock that runs ahead of ours. All else follows from the files, so that a replay with the journal is exact.

One JSON object a line, appended before what it tells of is released:
{"source": "finelog.log", "generation": 0, "from": 4096, "to": 8190, "at": 1784541600000000}
says that the observations at these byte offsets stand at this time (microseconds UTC), or
{"source": "finelog.log", "generation": 0, "now": "finelog.log.1"} that a file got another name.
"""

import os
import re
from collections import defaultdict, deque
from pathlib import Path

import msgspec
import orjson

from dataflow.beats import Run
from extractors.record import Observation

_NAME_BYTES = 120


class Moved(msgspec.Struct, frozen=True):
    """Observations of one generation of a file, by their byte offsets (both included), and their time."""

    begin: int
    end: int
    at_us: int


class Journal:
    """The journal of one job. What it held when it was opened is applied to what is read again. Without a path it
    remembers nothing."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._known: dict[tuple[str, int], deque[Moved]] = defaultdict(deque)
        self._newest: dict[str, int] = {}
        self._names: dict[str, tuple[str, int]] = {}
        if path is not None and path.exists():
            self._load(path.read_bytes())

    def moved(self, source: str, generation: int, run: Run) -> Run:
        """The run of a file, with the times that its observations had when they were read before. A file must be read
        in order: what lies behind is forgotten."""
        known = self._known.get((source, generation))
        if not known:
            return run
        out: Run = []
        for each in run:
            while known and known[0].end < each.evidence.offset:
                known.popleft()
            inside = known and known[0].begin <= each.evidence.offset
            out.append(at(each, known[0].at_us) if inside else each)
        return out

    def of_replay(self, run: Run) -> Run:
        """The same for files of a finished capture, under the names that they have there."""
        out: Run = []
        for each in run:
            source = each.evidence.source
            before, generation = self._names.get(source, (source, self._newest.get(source, 0)))
            out += self.moved(before, generation, [each])
        return out

    def keep(self, source: str, generation: int, run: Run, at_us: int) -> None:
        """Notes that these observations, which stand together in their file, were given this time. Raises OSError."""
        offsets = [each.evidence.offset for each in run]
        moved = {"source": source, "generation": generation, "from": min(offsets), "to": max(offsets), "at": at_us}
        self._append(moved)

    def renamed(self, source: str, generation: int, now: str) -> None:
        """Notes that a generation of a file has another name now. Raises OSError."""
        self._append({"source": source, "generation": generation, "now": now})

    def _append(self, entry: dict[str, object]) -> None:
        if self._path is None:
            return
        fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            os.write(fd, orjson.dumps(entry, option=orjson.OPT_APPEND_NEWLINE))
        finally:
            os.close(fd)

    def _load(self, lines: bytes) -> None:
        """A line that a kill tore was never acted on."""
        for line in lines.split(b"\n"):
            try:
                entry = orjson.loads(line)
                source, generation = str(entry["source"]), int(entry["generation"])
                if "now" in entry:
                    self._names[str(entry["now"])] = (source, generation)
                    continue
                moved = Moved(int(entry["from"]), int(entry["to"]), int(entry["at"]))
            except (ValueError, KeyError, TypeError):
                continue
            self._known[source, generation].append(moved)
            self._newest[source] = max(generation, self._newest.get(source, 0))


def journal_of(folder: Path, job: str) -> Path:
    """The file of a job's journal in a folder of journals."""
    name = re.sub(r"[^\w.-]+", "-", job.strip("/"))
    return folder / f"{name.encode()[:_NAME_BYTES].decode('utf-8', 'ignore') or 'job'}.jsonl"


def at(observation: Observation, at_us: int) -> Observation:
    """The observation at another time of the stream."""
    return Observation(
        observation.signal, observation.evidence, at_us, observation.pattern, observation.origin, observation.repeated
    )
