"""Where records go: JSON lines or the text report, job by job in the order in which the captures were named."""

from collections.abc import Callable
from itertools import chain
from threading import Lock
from typing import Any, Protocol, runtime_checkable

from bytewax.outputs import DynamicSink, FixedPartitionedSink, StatefulSinkPartition, StatelessSinkPartition

from dataflow.outcome import plain
from state.report import encode, text_report

Record = dict[str, Any]


class Sink(Protocol):
    """Takes records one at a time."""

    def write(self, record: Record) -> None:
        """Takes one record."""


@runtime_checkable
class Forces(Protocol):
    """A sink whose records can be forced to the disk."""

    def force(self) -> None:
        """Has the disk keep what was written. Raises OSError."""


class Debts(Protocol):
    """Who is told that a sink has records it couldn't write, and that it has none any more (StateFolder)."""

    def owes(self, sink: str) -> None:
        """It has some."""

    def paid(self, sink: str) -> None:
        """It has none."""


class Stream(Protocol):
    """Where text goes: a TextIO, or Pages of a file."""

    def write(self, text: str, /) -> Any:
        """Takes a text."""

    def flush(self) -> Any:
        """Lets it out."""


class InOrder:
    """Holds the records of later jobs back until the earlier ones are final, so that workers don't mix them."""

    def __init__(self, jobs: list[str], sink: Sink) -> None:
        self._waiting: dict[str, list[Record]] = {job: [] for job in dict.fromkeys(jobs)}
        self._sink = sink
        self._lock = Lock()

    def write(self, record: Record) -> None:
        with self._lock:
            self._waiting.setdefault(record["job"], []).append(record)
            while self._waiting:
                first = next(iter(self._waiting))
                held, self._waiting[first] = self._waiting[first], []
                for item in held:
                    self._sink.write(item)
                if not any(item.get("final") for item in held):
                    return
                del self._waiting[first]

    def end(self) -> None:
        """Gives what is still held back: a job that broke off never becomes final."""
        with self._lock:
            for item in chain.from_iterable(self._waiting.values()):
                self._sink.write(item)
            self._waiting.clear()


class JsonLines:
    """One JSON object a line."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def write(self, record: Record) -> None:
        self._stream.write(encode(record).decode() + "\n")
        self._stream.flush()


class TextReports:
    """A line for each change on the way, and the whole report of each final verdict."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def write(self, record: Record) -> None:
        if record.get("final"):
            self._stream.write("\n" + text_report(record) + "\n")
        elif record["kind"] == "verdict":
            says = f"{record['verdict']}  ({record['confidence']})"
            self._stream.write(f"{record['at']}  {plain(record['job'])}  {says}\n")
        else:
            says = f"gate {record['gate']}  {record['status']} {record['condition']}: {plain(record['reason'])}"
            self._stream.write(f"{record['at']}  {plain(record['job'])}  {says}\n")
        self._stream.flush()


class Decisions:
    """Remembers each job's newest decision, for the exit code, and the jobs whose final verdict quotes no line."""

    def __init__(self) -> None:
        self.newest: dict[str, str] = {}
        self.unfounded: set[str] = set()

    def write(self, record: Record) -> None:
        if record["kind"] != "verdict":
            return
        self.newest[record["job"]] = record["verdict"]
        if record["final"] and not any(gate["evidence"] for gate in record["gates"].values()):
            self.unfounded.add(record["job"])


class Every:
    """Gives each record to several sinks."""

    def __init__(self, *sinks: Sink) -> None:
        self._sinks = sinks

    def write(self, record: Record) -> None:
        for sink in self._sinks:
            sink.write(record)


class _Partition(StatelessSinkPartition[Record]):
    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def write_batch(self, items: list[Record]) -> None:
        for item in items:
            self._sink.write(item)


class Sinks(DynamicSink[Record]):
    """A sink as bytewax's output; all workers of the process write to the same one."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def build(self, step_id: str, worker_index: int, worker_count: int) -> _Partition:
        return _Partition(self._sink)


class _KeptPart(StatefulSinkPartition[Record, None]):
    def __init__(self, sink: Sink, force: Callable[[], None]) -> None:
        self._sink = sink
        self._force = force

    def write_batch(self, values: list[Record]) -> None:
        for value in values:
            self._sink.write(value)

    def snapshot(self) -> None:
        self._force()


class KeptSinks(FixedPartitionedSink[Record, None]):
    """A sink as the output of a flow that is recovered. The engine takes a snapshot of it after the records of each
    epoch, and before it holds the epoch for done: force has the disk keep them then. One worker writes all."""

    def __init__(self, sink: Sink, force: Callable[[], None]) -> None:
        self._sink = sink
        self._force = force

    def list_parts(self) -> list[str]:
        return ["records"]

    def part_fn(self, item_key: str) -> int:
        return 0

    def build_part(self, step_id: str, for_part: str, resume_state: None) -> _KeptPart:
        return _KeptPart(self._sink, self._force)
