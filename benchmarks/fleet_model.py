"""What a fleet needs, from what single things cost: the tables of docs/scale.md (`python -m benchmarks.fleet model`).

The constants are measured, by `python -m benchmarks.fleet costs` and `drain`; the fleet, its prices and how full a
process may be are assumed, and said.
"""

import math
from collections.abc import Iterable, Sequence

import msgspec

DAY = 86_400
US = 1e-6
GB = 1e9


class Costs(msgspec.Struct, frozen=True):
    """Measured. Times are microseconds of one core's processor, bytes those on a broker's disk or a flow's."""

    heard: float = 33.0
    read: float = 8.0
    taken: float = 5.0
    tick: float = 19.0
    block: float = 11.0
    line: float = 0.8
    beat: float = 520.0
    snapshot_of_source: float = 60.0
    line_bytes: float = 165.0
    line_kept: float = 28.0
    message_kept: float = 45.0
    batch_kept: float = 490.0
    poll_kept: float = 250.0
    record_kept: float = 1_400.0
    source_snapshot: float = 2_000.0
    source_memory: float = 20_000.0
    job_memory: float = 300_000.0
    process_memory: float = 90e6
    beats_a_minute: float = 5.0
    records_an_hour: float = 12.0
    snapshots_a_minute: float = 2.0
    record: float = 800.0
    record_waited: float = 2_000.0


class Fleet(msgspec.Struct, frozen=True):
    """Assumed. Each rank writes one file; ranks_a_node of them share a shipper, the aggregated log has its own. With
    bundles all that a shipper says in a round is one message."""

    jobs: int = 10_000
    ranks: int = 1_000
    ranks_a_node: int = 8
    lines_a_rank: float = 0.1
    lines_of_log: float = 50.0
    polls_a_minute: float = 4.0
    round: float = 0.25
    bundles: bool = False
    tick_every: float = 2.0
    full: float = 0.6
    partitions_a_process: int = 4
    most_bytes_a_broker: float = 50e6
    replication: int = 3
    days: float = 7.0
    verdict_days: float = 30.0
    dollars: float = 0.08

    @property
    def shippers(self) -> int:
        """Of a job."""
        return math.ceil(self.ranks / self.ranks_a_node) + 1

    @property
    def sources(self) -> int:
        """Of a job."""
        return self.ranks + 1


class Job(msgspec.Struct, frozen=True):
    """What one job sends a second, and what it costs. messages are those that the brokers see."""

    lines: float
    blocks: float
    ticks: float
    polls: float
    messages: float
    kept: float
    processor: float
    snapshot: float


class Need(msgspec.Struct, frozen=True):
    """What a fleet needs. Bytes a second are as compressed; memory and snapshot are of one process."""

    job: Job
    cores: float
    processes: int
    jobs_a_process: float
    partitions: int
    messages: float
    shippers: int
    kept: float
    disk: float
    dollars: float
    network: float
    brokers: int
    memory: float
    snapshot_bytes: float
    snapshot_seconds: float


def rounds_with(a_second: float, round_seconds: float) -> float:
    """In how many rounds a second something came, of what comes so often at random."""
    return (1 - math.exp(-a_second * round_seconds)) / round_seconds


def job_of(fleet: Fleet, costs: Costs) -> Job:
    """One job. A file with new lines is a message in each round, and a shipper with a new message ticks."""
    node = rounds_with(fleet.lines_a_rank * fleet.ranks_a_node, fleet.round)
    log = rounds_with(fleet.lines_of_log, fleet.round)
    blocks = fleet.ranks * rounds_with(fleet.lines_a_rank, fleet.round) + log
    ticks = (fleet.shippers - 1) * max(node, 1 / fleet.tick_every) + max(log, 1 / fleet.tick_every)
    lines, polls = fleet.ranks * fleet.lines_a_rank + fleet.lines_of_log, fleet.polls_a_minute / 60
    kept = lines * costs.line_kept + (blocks + ticks) * costs.message_kept + ticks * costs.batch_kept
    messages = polls + (ticks if fleet.bundles else blocks + ticks)
    used = (
        messages * costs.heard
        + (blocks + ticks + polls) * (costs.read + costs.taken)
        + ticks * costs.tick
        + blocks * costs.block
        + lines * costs.line
    )
    used += costs.beats_a_minute / 60 * costs.beat + costs.records_an_hour / 3600 * costs.record
    snapshot = fleet.sources * costs.snapshot_of_source * costs.snapshots_a_minute / 60
    return Job(lines, blocks, ticks, polls, messages, kept + polls * costs.poll_kept, used * US, snapshot * US)


def needed(fleet: Fleet, costs: Costs) -> Need:
    """What a fleet needs."""
    job = job_of(fleet, costs)
    cores = fleet.jobs * (job.processor + job.snapshot)
    processes = math.ceil(cores / fleet.full)
    each = fleet.jobs / processes
    kept = fleet.jobs * job.kept
    verdicts = fleet.jobs * costs.records_an_hour / 3600 * costs.record_kept
    disk = fleet.replication * DAY * (kept * fleet.days + verdicts * fleet.verdict_days)
    return Need(
        job=job,
        cores=cores,
        processes=processes,
        jobs_a_process=each,
        partitions=fleet.partitions_a_process * processes,
        messages=fleet.jobs * job.messages,
        shippers=fleet.jobs * fleet.shippers,
        kept=kept,
        disk=disk,
        dollars=disk / GB * fleet.dollars,
        network=kept * (1 + fleet.replication),
        brokers=max(fleet.replication, math.ceil(kept * fleet.replication / fleet.most_bytes_a_broker)),
        memory=costs.process_memory + each * (costs.job_memory + fleet.sources * costs.source_memory),
        snapshot_bytes=each * fleet.sources * costs.source_snapshot,
        snapshot_seconds=each * fleet.sources * costs.snapshot_of_source * US,
    )


EXAMPLES: tuple[tuple[str, Fleet], ...] = (
    ("500 jobs × 39 ranks", Fleet(500, 39, 39, 1.28, 50.0, 1.0, replication=1)),
    ("10,000 jobs × 1,000 ranks", Fleet()),
    ("the same, a round every 5 s", Fleet(round=5.0, tick_every=5.0)),
    ("and in bundles", Fleet(round=5.0, tick_every=5.0, bundles=True)),
)


def page() -> str:
    """Both tables."""
    return f"{_constants(Costs())}\n\n{_examples(Costs())}\n"


def _constants(costs: Costs) -> str:
    rows = [
        ("a message, heard by the Kafka client", f"{costs.heard:.0f} µs"),
        ("a message, read from its headers and body", f"{costs.read:.0f} µs"),
        ("a message, put where its job's tick finds it", f"{costs.taken:.0f} µs"),
        ("a block (the new lines of one file), read", f"{costs.block:.0f} µs"),
        ("a line in it, 5 % of them signals", f"{costs.line:.1f} µs"),
        ("a tick", f"{costs.tick:.0f} µs"),
        ("a beat, folded and judged", f"{costs.beat:.0f} µs, {costs.beats_a_minute:.0f} a minute of a job"),
        ("a line", f"{costs.line_bytes:.0f} bytes; {costs.line_kept:.0f} packed on a broker"),
        ("beside the lines on a broker", f"a message {costs.message_kept:.0f} bytes, a batch {costs.batch_kept:.0f}"),
        ("a record on the topic of verdicts", _record(costs)),
        ("records", f"{costs.records_an_hour:.0f} an hour of a job"),
        (
            "a source in a snapshot, twice a minute",
            f"{costs.snapshot_of_source:.0f} µs, {costs.source_snapshot / 1e3:.1f} KB",
        ),
        ("memory of a source, of a job beside, of a process", _memory(costs)),
    ]
    return _table(("what", "cost"), rows)


def _record(costs: Costs) -> str:
    waited = f"{costs.record_waited / 1e3:.0f} ms to confirm"
    return f"{costs.record_kept:,.0f} bytes packed, {costs.record:.0f} µs; {waited}"


def _memory(costs: Costs) -> str:
    sizes = f"{costs.source_memory / 1e3:.0f} KB, {costs.job_memory / 1e6:.1f} MB"
    return f"{sizes}, {costs.process_memory / 1e6:.0f} MB"


def _examples(costs: Costs) -> str:
    needs = [needed(fleet, costs) for _, fleet in EXAMPLES]
    rows: list[Sequence[str]] = [
        (
            "lines a second, of all jobs",
            *(_count(n.job.lines * f.jobs) for n, (_, f) in zip(needs, EXAMPLES, strict=True)),
        ),
        ("messages a second", *(_count(n.messages) for n in needs)),
        ("of them of one job", *(_count(n.job.messages) for n in needs)),
        ("shippers, each with its connections", *(_count(n.shippers) for n in needs)),
        ("cores for the flow", *(f"{n.cores:,.1f}" for n in needs)),
        ("flow processes, 60 % full", *(_count(n.processes) for n in needs)),
        ("jobs of a process", *(_count(n.jobs_a_process) for n in needs)),
        ("partitions", *(_count(n.partitions) for n in needs)),
        ("memory of a process", *(f"{n.memory / GB:.1f} GB" for n in needs)),
        (
            "a snapshot: bytes, and how long the process stands still",
            *(f"{n.snapshot_bytes / 1e6:,.0f} MB, {n.snapshot_seconds:.1f} s" for n in needs),
        ),
        ("into the brokers", *(f"{n.kept / 1e6:,.1f} MB/s" for n in needs)),
        ("network of the brokers, copies and one reading included", *(f"{n.network / 1e6:,.0f} MB/s" for n in needs)),
        ("broker disk for 7 days (verdicts 30)", *(f"{n.disk / GB:,.0f} GB" for n in needs)),
        ("dollars a month of it", *(f"{n.dollars:,.0f}" for n in needs)),
        ("brokers, by bytes", *(_count(n.brokers) for n in needs)),
    ]
    return _table(("", *(name for name, _ in EXAMPLES)), rows)


def _count(number: float) -> str:
    return f"{number:,.0f}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
