"""A sink that waits for its disk: what can't be written is kept, told once, and written when it can be."""

import zlib
from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Any

import orjson

from dataflow.ending import cannot_write
from dataflow.sinks import Debts, Forces, Sink
from state.report import encode
from state.wording import plural

Record = dict[str, Any]

KEPT_BYTES = 32 << 20
"""Of packed records: some ten thousand verdicts."""


class Patient:
    """Gives records on in their order. After an OSError they wait here, packed, and are tried again at the next record
    and at `retry`. Over KEPT_BYTES the oldest are dropped and counted. A pipe that nobody reads is raised.

    tell takes notes for standard error: one when the waiting begins, or its reason changes, and one when it ends.
    Workers may write at once.
    """

    def __init__(
        self, name: str, sink: Sink, tell: Callable[[str], None], debts: Debts, kept_bytes: int = KEPT_BYTES
    ) -> None:
        self.name = name
        self.dropped = 0
        self._sink = sink
        self._tell = tell
        self._debts = debts
        self._kept_bytes = kept_bytes
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._reason = ""
        self._waited = 0
        self._unforced = False
        self._lock = Lock()

    @property
    def waiting(self) -> int:
        """Records that wait."""
        return len(self._waiting)

    def write(self, record: Record) -> None:
        """Takes one record. Raises BrokenPipeError."""
        with self._lock:
            if not self._waiting and self._give(record):
                return
            self._keep(zlib.compress(encode(record), 1))
            if len(self._waiting) > 1:
                self._try()

    def retry(self) -> bool:
        """Tries again to write what waits; whether nothing waits any more. Raises BrokenPipeError."""
        with self._lock:
            return self._try()

    def force(self) -> None:
        """Has the disk keep what was written, where the sink can. Where that fails, the next run says all again."""
        with self._lock:
            self._force()

    def _force(self) -> None:
        if not isinstance(self._sink, Forces):
            return
        try:
            self._sink.force()
        except OSError as error:
            self._debts.owes(f"{self.name}, unforced")
            if not self._unforced:
                self._unforced = True
                self._tell(f"{cannot_write(error, self.name)}; the next start reads all again")

    def _keep(self, packed: bytes) -> None:
        self._waiting.append(packed)
        self._bytes += len(packed)
        self._waited += 1
        while self._bytes > self._kept_bytes and len(self._waiting) > 1:
            self._bytes -= len(self._waiting.popleft())
            self.dropped += 1

    def _try(self) -> bool:
        while self._waiting:
            if not self._give(orjson.loads(zlib.decompress(self._waiting[0]))):
                return False
            self._bytes -= len(self._waiting.popleft())
        if self._reason:
            self._ended()
        return True

    def _give(self, record: Record) -> bool:
        try:
            self._sink.write(record)
        except BrokenPipeError:
            raise
        except OSError as error:
            self._began(cannot_write(error, self.name))
            return False
        return True

    def _began(self, reason: str) -> None:
        if reason == self._reason:
            return
        if not self._reason:
            self._debts.owes(self.name)
        self._reason = reason
        self._tell(f"{reason}; the records wait in memory and are written when it can be")

    def _ended(self) -> None:
        written = plural(self._waited - self.dropped, "record")
        lost = f"; {self.dropped} older ones were dropped, as there were too many" if self.dropped else ""
        self._tell(f"{self.name}: can be written again; {written} that had to wait stand there now{lost}")
        self._reason, self.dropped, self._waited = "", 0, 0
        self._force()
        self._debts.paid(self.name)
