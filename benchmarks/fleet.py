"""A fleet through Kafka: what flow processes take, how late their records are, what they cost, and how it scales.

    python -m benchmarks.fleet WHAT [--jobs 500] [--sources 40] [--lines 50000] [--seconds N] [--processes N]

drain   the topics are filled before: the rate at which 1 and 2 processes read them, their processor time and memory,
        the broker's bytes a line
paced   shippers send by the real clock: from a telling poll to its record on the topic of verdicts
costs   what a message, a tick, a line, a beat and a snapshot cost a process, and what a job takes of memory
model   the table and the example of docs/scale.md, from `benchmarks/fleet_model.py`
all     drain, paced and costs

The broker is one of its own (Java and Maven are needed), or the one that KAFKA_BOOTSTRAP names, which listens plainly.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import msgspec
import orjson

from benchmarks import fleet_costs, fleet_model
from benchmarks.costs import processor_of, resident_of
from benchmarks.fleet_load import HEAD_START_SECONDS, SECOND_US, Load, Sent
from dataflow.kafka import Topic
from dataflow.kafka_follower import Follower
from dataflow.kafka_settings import BOOTSTRAP, PREFIX, Brokers, brokers_of
from dataflow.kafka_topics import topics_of
from extractors.clocks import parse_iso
from tests.kafka.artifacts import classpath
from tests.kafka.broker import Broker
from tests.live.harness import ROOT

PARTITIONS = 12
GENERATORS = 2
LATENESS = 5.0
WITHIN = 240.0
ROUNDED_US = 10_000
"""Health tells times in milliseconds."""
MESSAGE_SECONDS = 0.0001
"""What a generator takes to make a message, at most, with other processes beside it."""
SETTLING = 15.0
"""Of a paced run's beginning, when all jobs and files are new."""
Row = tuple[str, str]


@dataclass(frozen=True)
class Cluster:
    """A broker, and where its logs lie and its process runs, where it is our own."""

    bootstrap: str
    data: Path | None = None
    pid: int | None = None

    def topics(self) -> Brokers:
        """New topics. The processes that are started from now on use them."""
        os.environ[PREFIX] = f"fleet-{uuid4().hex[:8]}"
        brokers = brokers_of(self.bootstrap, dict(os.environ))
        with topics_of(brokers) as topics:
            topics.create(PARTITIONS, 1)
        return brokers

    def kept_bytes(self, prefix: str) -> int:
        """What the broker keeps of messages of lines and polls."""
        if self.data is None:
            return 0
        return sum(log.stat().st_size for log in self.data.glob(f"{prefix}.[lp]*/*.log"))


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """A broker of our own, or the one that is named."""
    if named := os.environ.get(BOOTSTRAP):
        yield Cluster(named)
        return
    broker = Broker(folder, classpath()).start()
    try:
        assert broker.process is not None
        yield Cluster(broker.bootstrap, folder / "data", broker.process.pid)
    finally:
        broker.kill()


@dataclass
class Flow:
    """One of several flow processes."""

    folder: Path
    bootstrap: str
    share: str
    began: float = 0.0
    process: "subprocess.Popen[bytes] | None" = field(default=None, repr=False)

    def start(self) -> "Flow":
        """Starts it, with nothing kept."""
        self.folder.mkdir(parents=True)
        words = [sys.executable, "-m", "dataflow.cli", "watch", "--brokers", self.bootstrap, "--share", self.share]
        words += ["--format", "jsonl", "--store", str(self.folder / "store"), "--out", str(self.folder / "out.jsonl")]
        with (self.folder / "stderr").open("wb") as said:
            self.process = subprocess.Popen(words, cwd=ROOT, env=_environment(), stderr=said, stdout=subprocess.DEVNULL)
        return self

    @property
    def pid(self) -> int:
        """Its process."""
        assert self.process is not None
        assert self.process.poll() is None, (self.folder / "stderr").read_text()[-2000:]
        return self.process.pid

    def released_us(self) -> list[int]:
        """Up to when each of its jobs was judged; 0 for one that has not begun."""
        return [parse_iso(job.get("released") or "") or 0 for job in self._jobs()]

    def up(self) -> bool:
        """Whether it has begun to look for messages."""
        return (self.folder / "store" / "watch" / "health.json").exists()

    def kept_bytes(self) -> int:
        """What it keeps for a restart."""
        return sum(path.stat().st_size for path in (self.folder / "store" / "watch" / "recovery").iterdir())

    def kill(self) -> None:
        """Ends it."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def _jobs(self) -> Sequence[dict[str, str]]:
        try:
            health = orjson.loads((self.folder / "store" / "watch" / "health.json").read_bytes())
        except OSError:
            return ()
        return list(health["jobs"].values())


@contextmanager
def flows(count: int, folder: Path, bootstrap: str) -> Iterator[list[Flow]]:
    """So many processes that share the partitions, once they are up."""
    running = [Flow(folder / f"flow-{number}", bootstrap, f"{number}/{count}") for number in range(1, count + 1)]
    try:
        for flow in running:
            flow.start()
        yield running
    finally:
        for flow in running:
            flow.kill()


def drain(folder: Path, cluster: Cluster, load: Load, counts: Sequence[int]) -> list[Row]:
    """Throughput: nothing runs beside the flow processes but the broker."""
    brokers = cluster.topics()
    past = msgspec.structs.replace(load, begin=time.time() - load.seconds - HEAD_START_SECONDS)
    sent = _sum(_generators(cluster, brokers, past))
    kept = cluster.kept_bytes(brokers.prefix)
    rows = [
        ("messages, lines, ticks", f"{sent.messages}, {sent.lines}, {sent.ticks}"),
        (
            "bytes of a line, and of it on the broker's disk",
            f"{sent.body_bytes / sent.lines:.0f}, {kept / sent.lines:.0f}",
        ),
    ]
    for count in counts:
        rows += _drained(folder / f"drain-{count}", cluster, past, sent, count)
    return rows


def _drained(folder: Path, cluster: Cluster, load: Load, sent: Sent, count: int) -> list[Row]:
    begun = time.monotonic()
    judged_us = load.end_us - int(LATENESS * SECOND_US) - ROUNDED_US
    with flows(count, folder, cluster.bootstrap) as running:
        _wait(lambda: all(flow.up() for flow in running), running)
        up, before, broker = time.monotonic(), _used(running), _broker_used(cluster)
        _wait(lambda: _judged(running, load.jobs, judged_us), running)
        took, used = time.monotonic() - up, _used(running) - before
        broker = _broker_used(cluster) - broker
        memory = [resident_of(flow.pid, "VmHWM") for flow in running]
        kept = sum(flow.kept_bytes() for flow in running)
    which = f"{count} process{'es' if count > 1 else ''}"
    rate = sent.lines / took
    return [
        (f"{which}: start to first look", f"{up - begun:.1f} s"),
        (f"{which}: lines a second", f"{rate:,.0f} ({rate * sent.body_bytes / sent.lines / 1e6:.1f} MB/s)"),
        (f"{which}: messages a second", f"{sent.messages / took:,.0f}"),
        (f"{which}: processor a line, of a core each", f"{used / sent.lines * 1e6:.1f} µs, {used / took / count:.0%}"),
        (f"{which}: the broker's processor, of a core", f"{broker / took:.0%}"),
        (f"{which}: memory at most, each", ", ".join(f"{each:.0f} MB" for each in memory)),
        (f"{which}: kept for a restart", f"{kept / 1e6:.0f} MB"),
    ]


def paced(folder: Path, cluster: Cluster, load: Load, counts: Sequence[int]) -> list[Row]:
    """Latency by the real clock."""
    return [row for count in counts for row in _paced(folder / f"paced-{count}", cluster, load, count)]


def _paced(folder: Path, cluster: Cluster, load: Load, count: int) -> list[Row]:
    brokers = cluster.topics()
    expected = load.seconds * (load.lines / 2 + load.jobs / load.round) + load.jobs * load.sources
    begin = time.time() + HEAD_START_SECONDS + 5 + expected * MESSAGE_SECONDS / GENERATORS
    real = msgspec.structs.replace(load, begin=begin, paced=True)
    seen = _Seen(brokers)
    with flows(count, folder, cluster.bootstrap) as running:
        generators = _started(cluster, brokers, real)
        while time.time() < begin + SETTLING:
            time.sleep(0.1)
            seen.look()
        before, broker, since = _used(running), _broker_used(cluster), time.monotonic()
        while time.time() < begin + load.seconds:
            seen.look()
        used, broker = _used(running) - before, _broker_used(cluster) - broker
        took = time.monotonic() - since
        memory = [resident_of(flow.pid) for flow in running]
        while time.time() < begin + load.seconds + LATENESS + 5:
            seen.look()
        sent = _sum(_said(each) for each in generators)
    waits, lost = _waits(sent, seen, begin, begin + load.seconds)
    which = f"{count} process{'es' if count > 1 else ''}"
    return [
        (
            f"{which}: lines, messages a second",
            f"{sent.lines / load.seconds:,.0f}, {sent.messages / load.seconds:,.0f}",
        ),
        (f"{which}: the generators were late by at most", f"{sent.late:.2f} s"),
        (f"{which}: telling polls, without a record", f"{len(waits) + lost}, {lost}"),
        (f"{which}: from a poll to its record beyond the lateness", _told(waits)),
        (f"{which}: processor of a core each, of the broker", f"{used / took / count:.0%}, {broker / took:.0%}"),
        (f"{which}: memory, each", ", ".join(f"{each:.0f} MB" for each in memory)),
    ]


def costs(folder: Path, cluster: Cluster) -> list[Row]:
    """What each thing costs, stage by stage."""
    brokers = cluster.topics()
    load = msgspec.structs.replace(fleet_costs.USUAL, begin=time.time() - fleet_costs.USUAL.seconds)
    number = _sum(_generators(cluster, brokers, load)).messages

    def hear() -> int:
        follower, heard = Follower(brokers, tuple(each.under(brokers.prefix) for each in Topic)), 0
        while heard < number:
            heard += len(follower.poll(1.0).messages)
        follower.close()
        return heard

    return fleet_costs.rows(folder, hear)


class _Seen:
    """The records of gate D on the topic of verdicts: their times, their statuses, and when they were there."""

    def __init__(self, brokers: Brokers) -> None:
        self.said: dict[str, list[tuple[float, int, str]]] = {}
        self._follower = Follower(brokers, (Topic.VERDICTS.under(brokers.prefix),))

    def look(self) -> None:
        """Takes what has come."""
        messages = self._follower.poll(0.05).messages
        now = time.time()
        for message in messages:
            record = orjson.loads(message.value)["data"]
            if record["kind"] == "gate" and record["gate"] == "D":
                at_us = parse_iso(record["at"]) or 0
                self.said.setdefault(record["job"], []).append((now, at_us, record["status"]))


def _waits(sent: Sent, seen: _Seen, begin: float, end: float) -> tuple[list[float], int]:
    """From each telling poll to its record beyond the lateness, and how many have none."""
    waits, lost = [], 0
    for job, at_us, state in sent.flips:
        if not begin + SETTLING <= at_us / SECOND_US < end - LATENESS - 1:
            continue
        wanted = "N/A" if state == "failed" else "PASS"
        said = (at for at, of_us, status in seen.said.get(job, ()) if 0 <= of_us - at_us < 30e6 and status == wanted)
        first = next(said, None)
        lost += first is None
        waits += [] if first is None else [first - at_us / SECOND_US - LATENESS]
    return waits, lost


def _told(waits: list[float]) -> str:
    if len(waits) < 2:
        return "too few"
    return f"p50 {statistics.median(waits):.2f} s, p99 {statistics.quantiles(waits, n=100)[98]:.2f} s"


def _started(cluster: Cluster, brokers: Brokers, load: Load) -> "list[subprocess.Popen[bytes]]":
    """Generators, each of a share of the shippers."""
    loads = [msgspec.structs.replace(load, share=(number, GENERATORS)) for number in range(GENERATORS)]
    words = [sys.executable, "-m", "benchmarks.fleet_load", cluster.bootstrap, brokers.prefix, str(PARTITIONS)]
    told = [[*words, msgspec.json.encode(each).decode()] for each in loads]
    return [subprocess.Popen(each, cwd=ROOT, env=_environment(), stdout=subprocess.PIPE) for each in told]


def _generators(cluster: Cluster, brokers: Brokers, load: Load) -> list[Sent]:
    return [_said(each) for each in _started(cluster, brokers, load)]


def _said(generator: "subprocess.Popen[bytes]") -> Sent:
    said, _ = generator.communicate()
    if generator.returncode:
        raise SystemExit("a generator failed")
    return msgspec.json.decode(said, type=Sent)


def _sum(every: "Sequence[Sent] | Iterator[Sent]") -> Sent:
    return sum(every, Sent())


def _judged(running: list[Flow], jobs: int, upto_us: int) -> bool:
    released = [each for flow in running for each in flow.released_us()]
    return len(released) == jobs and min(released) >= upto_us


def _wait(holds: Callable[[], bool], running: list[Flow]) -> None:
    until = time.monotonic() + WITHIN
    while not holds():
        assert time.monotonic() < until, [flow.released_us()[:3] for flow in running]
        for flow in running:
            _ = flow.pid
        time.sleep(0.05)


def _used(running: list[Flow]) -> float:
    return sum(processor_of(flow.pid) for flow in running)


def _broker_used(cluster: Cluster) -> float:
    return 0.0 if cluster.pid is None else processor_of(cluster.pid)


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def main() -> None:
    """Runs what was asked for and prints its table."""
    usual = Load()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["drain", "paced", "costs", "model", "all"])
    parser.add_argument("--jobs", type=int, default=usual.jobs)
    parser.add_argument("--sources", type=int, default=usual.sources)
    parser.add_argument("--lines", type=float, default=usual.lines, help="a second, of all jobs")
    parser.add_argument("--seconds", type=float, help="how much of the fleet's time is sent")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--bundle", action="store_true", help="each round of a shipper is one message")
    parser.add_argument("--round", type=float, default=usual.round, help="seconds from one round to the next")
    asked = parser.parse_args()
    if asked.what == "model":
        print(fleet_model.page())
        return
    load = Load(asked.jobs, asked.sources, asked.lines, round=asked.round, bundles=asked.bundle)
    with tempfile.TemporaryDirectory() as folder, cluster(Path(folder)) as broker:
        for name in ("drain", "paced", "costs") if asked.what == "all" else (asked.what,):
            seconds = asked.seconds or {"drain": 30.0, "paced": 75.0}.get(name, 30.0)
            of_it = msgspec.structs.replace(load, seconds=seconds)
            if name == "costs":
                rows = costs(Path(folder), broker)
            else:
                rows = {"drain": drain, "paced": paced}[name](Path(folder), broker, of_it, asked.processes)
            print(f"\n{name}\n" + "\n".join(f"  {what:54} {figure}" for what, figure in rows), flush=True)


if __name__ == "__main__":
    main()
