"""What the order of a job's live stream owes to the moment of its reading: lines that came later than the lateness, or
from a clock that runs ahead of ours. All else follows from the files, so that a replay with the journal is exact.

One JSON object a line, appended before what it tells of is released:
{"source": "finelog.log", "generation": 0, "from": 4096, "to": 8190, "at": 1784541600000000}
says that the observations at these byte offsets stand at this time (microseconds UTC), or
{"source": "finelog.log", "generation": 0, "now": "finelog.log.1", "as": 0} that a file got another name, or
{"source": "finelog.log", "generation": 1} that another content stands under its name.
"""

import re
from collections import defaultdict, deque
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import msgspec
import orjson

from dataflow.appended import Appended, force
from dataflow.beats import Run

_NAME_BYTES = 120
_OWED = 10_000
"""Entries that wait for room on the disk; over so many the oldest are lost, and a replay is no longer exact."""

Generation = tuple[str, int]
"""One content of a file: the name that it had, and how often the file was replaced before it."""


class Moved(msgspec.Struct, frozen=True):
    """Observations of one generation of a file, by their byte offsets (both included), and their time."""

    begin: int
    end: int
    at_us: int


class Journal:
    """The journal of one job. What it held when it was opened is applied to what is read again. Without a path it
    remembers nothing. trouble says why it can't be read or written now; what waits is written with the next entry, or
    by `retry`."""

    def __init__(self, path: Path | None = None) -> None:
        self.trouble = ""
        self._path = path
        self._torn = self._unforced = False
        self._owed: deque[bytes] = deque(maxlen=_OWED)
        self._known: dict[Generation, deque[Moved]] = defaultdict(deque)
        self._newest: dict[str, int] = {}
        self._roots: dict[Generation, Generation] = {}
        if path is None:
            return
        try:
            self._load(path.read_bytes())
        except FileNotFoundError:
            return
        except OSError as error:
            self._fails(error)

    def generation_of(self, source: str) -> int:
        """How often a file was replaced, as far as was told when it was opened."""
        return self._newest.get(source, 0)

    def moved(self, source: str, generation: int, run: Run) -> Run:
        """The run of a file, with the times that its observations had when they were read before. A file must be read
        in order: what lies behind is forgotten."""
        known = self._known.get(self._root(source, generation))
        if not known:
            return run
        out: Run = []
        for each in run:
            while known and known[0].end < each.evidence.offset:
                known.popleft()
            inside = known and known[0].begin <= each.evidence.offset
            out.append(each.moved(known[0].at_us) if inside else each)
        return out

    def of_replay(self, run: Run) -> Run:
        """The same for files of a finished capture, under the names that they have there."""
        out: Run = []
        for each in run:
            source = each.evidence.source
            out += self.moved(source, self.generation_of(source), [each])
        return out

    def keep(self, source: str, generation: int, run: Run, at_us: int) -> None:
        """Notes that these observations, which stand together in their file, were given this time."""
        offsets = [each.evidence.offset for each in run]
        moved = {"source": source, "generation": generation, "from": min(offsets), "to": max(offsets), "at": at_us}
        self._append(moved)

    def turned(self, source: str, generation: int) -> None:
        """Notes that another content stands under a name, as this generation."""
        self._append({"source": source, "generation": generation})

    def renamed(self, source: str, generation: int, now: str, now_generation: int = 0) -> None:
        """Notes that a generation of a file has another name now, as that one's generation."""
        self._append({"source": source, "generation": generation, "now": now, "as": now_generation})

    def retry(self) -> None:
        """Tries again to write what waits."""
        if self._path is None or not self._owed:
            return
        try:
            file = Appended(self._path)
            try:
                file.append(b"\n" * self._torn + b"".join(self._owed))
            finally:
                file.close()
        except OSError as error:
            self._fails(error)
            return
        self._owed.clear()
        self._torn, self.trouble, self._unforced = False, "", True

    def force(self) -> None:
        """Has the disk keep what was noted."""
        if self._path is None or not self._unforced:
            return
        try:
            force(self._path)
        except OSError as error:
            self._fails(error)
            return
        self._unforced = False
        self.trouble = self.trouble if self._owed else ""

    def _append(self, entry: dict[str, object]) -> None:
        self._owed.append(orjson.dumps(entry, option=orjson.OPT_APPEND_NEWLINE))
        self.retry()

    def _fails(self, error: OSError) -> None:
        self.trouble = error.strerror or str(error)

    def _root(self, source: str, generation: int) -> Generation:
        """The first name of a content."""
        return self._roots.get((source, generation), (source, generation))

    def _load(self, lines: bytes) -> None:
        """A line that a kill tore was never acted on."""
        self._torn = not lines.endswith(b"\n")
        for line in lines.split(b"\n"):
            with suppress(ValueError, KeyError, TypeError):
                self._loaded(orjson.loads(line))

    def _loaded(self, entry: dict[str, object]) -> None:
        source, generation = str(entry["source"]), _number(entry["generation"])
        root = self._root(source, generation)
        if "now" in entry:
            source, generation = str(entry["now"]), _number(entry.get("as", 0))
            self._roots[source, generation] = root
        elif "at" in entry:
            moved = Moved(_number(entry["from"]), _number(entry["to"]), _number(entry["at"]))
            self._known[root].append(moved)
        self._newest[source] = max(generation, self._newest.get(source, 0))


def _number(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError
    return value


def journal_of(folder: Path, job: str) -> Path:
    """The file of a job's journal in a folder of journals."""
    name = re.sub(r"[^\w.-]+", "-", job.strip("/")).encode()[:_NAME_BYTES].decode("utf-8", "ignore")
    return folder / f"{name}-{blake2b(job.encode('utf-8', 'replace'), digest_size=4).hexdigest()}.jsonl"
