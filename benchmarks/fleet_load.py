"""What the shippers of a fleet send, made ahead and cheaply: the bodies of blocks stand ready, and get fresh times.

    python -m benchmarks.fleet_load BROKER PREFIX PARTITIONS LOAD

LOAD is JSON (`Load`). Makes all batches of a share of the shippers, sends them, each when its time comes (or at once),
and prints a line of JSON: what was sent, and when each job said that its state is another one.
"""

import random
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec
from kafka.record.default_records import DefaultRecordBatchBuilder

from benchmarks import growing
from benchmarks.produce import Batch, Producer
from dataflow.bundles import bundled
from dataflow.homes import writer_of
from dataflow.kafka import MOST_BYTES, Topic, partition_of
from dataflow.reads import Compression
from dataflow.wire import Carried, PollLine, Wire
from dataflow.wire_words import Begun, Listed, Tick
from extractors.record import Block, SourceKind

SECOND_US = 1_000_000
HEAD_START_SECONDS = 5.0
"""What a session says first is sent so long before its first round."""
POLL_SECONDS = 60
FLIP_SECONDS = (45.0, 75.0)
"""Between two polls of a job that tell of another state."""
BRISK = 4
"""Files of a job, beside its aggregated log, that grow at nearly each round."""
LOG_SHARE, BRISK_SHARE = 0.5, 0.3
"""Of a job's lines: those of its aggregated log, and of the brisk files together. The others share the rest."""
SAID_EVERY = 100
"""Of a worker's lines one in so many says something."""
BODY_LINES = 200
_AT = datetime(2026, 5, 4, 8, tzinfo=UTC)
_STAMP, _SHORT, _TIME = b"2026-05-04 08:00:00.000", b"05-04 08:00:00", b"08:00:00"
_POLLS = "polls/state.jsonl"
_WORDS = "an agent's words of what the tests said, and of what it will do about that"


class Load(msgspec.Struct, frozen=True):
    """A fleet: so many jobs with so many files each, which write so many lines a second together; each shipper makes a
    round every so many seconds. begin is when the first round is (epoch seconds), paced that each waits for its time;
    bundles that what a round says of many files is one message; share says which shippers these are, as (k, n)."""

    jobs: int = 500
    sources: int = 40
    lines: float = 50_000
    seconds: float = 60.0
    round: float = 0.25
    begin: float = 0.0
    paced: bool = False
    bundles: bool = False
    share: tuple[int, int] = (0, 1)

    @property
    def end_us(self) -> int:
        """The time of the last rounds, but for the phases of the shippers."""
        return int((self.begin + self.seconds) * SECOND_US)


class Sent(msgspec.Struct):
    """What was sent in all. flips are the polls with another state: job, time, state; late is by how much the sending
    was behind its time at most (seconds)."""

    messages: int = 0
    blocks: int = 0
    ticks: int = 0
    lines: int = 0
    body_bytes: int = 0
    packed_bytes: int = 0
    late: float = 0.0
    flips: list[tuple[str, int, str]] = []

    def __add__(self, other: "Sent") -> "Sent":
        late = max(self.late, other.late)
        sums = {name: getattr(self, name) + getattr(other, name) for name in self.__struct_fields__ if name != "late"}
        return Sent(**sums, late=late)


class Message(NamedTuple):
    """One message of a shipper."""

    topic: Topic
    carried: Carried


class _File:
    """A file that grows by so many lines a second."""

    def __init__(self, name: str, kind: SourceKind, lines: list[bytes], a_second: float, phase: float) -> None:
        self.listed = Listed(name, kind, Compression.NONE, writer_of(name))
        self._lines = lines
        self.a_second = a_second
        self._due = phase
        self._offset, self._line = 0, 1

    def grown(self, seconds: float, now_us: int) -> Block | None:
        """What came in so many seconds."""
        self._due += seconds * self.a_second
        count = int(self._due)
        if not count:
            return None
        self._due -= count
        data = _stamped(b"".join(self._lines[(self._line + n) % BODY_LINES] for n in range(count)), now_us)
        block = Block(self.listed.relative, self._offset, self._line, data)
        self._offset += len(data)
        self._line += count
        return block


class Shipper:
    """The shipper of one job, which sends at each round what its files say."""

    def __init__(self, number: int, load: Load) -> None:
        self.job = f"/bench/fleet-{number:05d}"
        self.sent = Sent()
        self._wire = Wire(f"node-{number:05d}", f"{number:032x}")
        self._round = load.round
        self._files = list(_files(self.job, number, load.sources, load.lines / load.jobs))
        self._chance = random.Random(number)
        self._polled = (0, 1)
        self._newest: dict[str, tuple[int, int]] = {}
        self._poll_due_us = self._flip_due_us = 0
        self._running = True

    def begin(self) -> Iterator[Message]:
        """What is said first."""
        toml = f'[job]\nid = "{self.job}"\nmodel = "Tern-8B"\n'
        yield self._word(Begun(f"runs{self.job}", toml, recorded=False))
        for file in self._files:
            yield self._word(file.listed)

    def hush(self) -> None:
        """Nothing comes of the files any more."""
        for file in self._files:
            file.a_second = 0.0

    def round(self, now_us: int) -> Iterator[Message]:
        """What came since the last round."""
        for file in self._files:
            block = file.grown(self._round, now_us)
            if block is not None:
                self.sent.blocks += 1
                self.sent.lines += block.data.count(b"\n")
                self.sent.body_bytes += len(block.data)
                yield Message(Topic.LINES, self._wire.block(block))
        yield from self._polls(now_us)
        self.sent.ticks += 1
        yield self._word(Tick(now_us, polls=self._newest, anchor_us=now_us))

    def _polls(self, now_us: int) -> Iterator[Message]:
        """A poll of the job's state once a minute, and when it is another one."""
        if not self._flip_due_us:
            self._poll_due_us = now_us
            self._flip_due_us = now_us + int(self._chance.uniform(5.0, FLIP_SECONDS[1]) * SECOND_US)
        if now_us >= self._flip_due_us:
            self._running = not self._running
            self._flip_due_us = now_us + int(self._chance.uniform(*FLIP_SECONDS) * SECOND_US)
            self.sent.flips.append((self.job, now_us // 1000 * 1000, self._state))
        elif now_us < self._poll_due_us:
            return
        self._poll_due_us = now_us + POLL_SECONDS * SECOND_US
        offset, line = self._polled
        data = growing.state_poll(self.job, datetime.fromtimestamp(now_us / SECOND_US, UTC), self._state).encode()
        self._newest = {_POLLS: (0, offset + len(data))}
        self._polled = offset + len(data), line + 1
        yield Message(Topic.POLLS, self._wire.poll(PollLine(_POLLS, offset, line, data[:-1])))

    @property
    def _state(self) -> str:
        return "running" if self._running else "failed"

    def _word(self, word: Begun | Listed | Tick) -> Message:
        return Message(Topic.LINES, self._wire.word(word))


def batches(load: Load, prefix: str, partitions: int) -> tuple[list[Batch], Sent]:
    """All that the shippers of a share send, in order of time, a batch for each round and topic; and its sums."""
    every: list[Batch] = []
    sent = Sent()
    for number in range(load.share[0], load.jobs, load.share[1]):
        shipper = Shipper(number, load)
        begin_us = int((load.begin + load.round * number / load.jobs) * SECOND_US)
        at_us = begin_us - int(HEAD_START_SECONDS * SECOND_US)
        every += _packed(shipper, at_us, list(shipper.begin()), prefix, partitions)
        for turn in range(1, int(load.seconds / load.round) + 1):
            now_us = begin_us + int(turn * load.round * SECOND_US)
            said = list(shipper.round(now_us))
            every += _packed(shipper, now_us, _bundled(said) if load.bundles else said, prefix, partitions)
        sent += shipper.sent
    every.sort(key=lambda batch: batch.at_us)
    return every, sent


def _bundled(messages: list[Message]) -> list[Message]:
    lines = bundled([each.carried for each in messages if each.topic is Topic.LINES])
    return [each for each in messages if each.topic is Topic.POLLS] + [Message(Topic.LINES, each) for each in lines]


def _packed(shipper: Shipper, at_us: int, messages: list[Message], prefix: str, partitions: int) -> Iterator[Batch]:
    key = shipper.job.encode()
    for topic in Topic:
        builder = DefaultRecordBatchBuilder(2, DefaultRecordBatchBuilder.CODEC_ZSTD, False, -1, -1, -1, 2 * MOST_BYTES)
        count = 0
        for message in messages:
            if message.topic is topic:
                builder.append(count, at_us // 1000, key, message.carried.value, message.carried.headers)
                count += 1
        if count:
            records = bytes(builder.build())
            shipper.sent.messages += count
            shipper.sent.packed_bytes += len(records)
            yield Batch(at_us, topic.under(prefix), partition_of(shipper.job, partitions), records)


def _files(job: str, number: int, sources: int, a_second: float) -> Iterator[_File]:
    log = [growing.quiet_line(job, _AT, each).encode() for each in range(BODY_LINES)]
    yield _File("finelog.log", SourceKind.AGGREGATED, log, LOG_SHARE * a_second, 0.0)
    brisk = min(BRISK, sources - 1)
    for worker in range(sources - 1):
        rest = (1 - LOG_SHARE - BRISK_SHARE) / max(1, sources - 1 - brisk)
        share = BRISK_SHARE / brisk if worker < brisk else rest
        phase = (worker * 0.37 + number * 0.11) % 1.0
        yield _File(_worker_file(worker), SourceKind.ACTOR, _WORKER_LINES, share * a_second, phase)


def _worker_lines() -> list[bytes]:
    stamp = growing.stamp(_AT)
    said = f"{stamp} | INFO     | skyrl_train.trainer:train:227 - Started: 'generate'\n"
    quiet = f"{stamp} | DEBUG    | harbor.agents.terminus_2:_log:88 - {_WORDS}"
    return [(f"{quiet} {number}\n" if number % SAID_EVERY else said).encode() for number in range(BODY_LINES)]


_WORKER_LINES = _worker_lines()


def _worker_file(worker: int) -> str:
    home = f"ray_session_logs/rank{worker % 4}-node{worker % 4}/session_2026-05-04_08-00-00_0_1"
    return f"{home}/worker-{worker:056x}-01000000-{1000 + worker}.out"


def _stamped(lines: bytes, now_us: int) -> bytes:
    seconds, us = divmod(now_us, SECOND_US)
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds)).encode()
    return lines.replace(_STAMP, stamp + b".%03d" % (us // 1000)).replace(_SHORT, stamp[5:]).replace(_TIME, stamp[11:])


def main() -> None:
    """Makes the batches, and sends them."""
    broker, prefix, partitions, said = sys.argv[1:]
    load = msgspec.json.decode(said, type=Load)
    every, sent = batches(load, prefix, int(partitions))
    with Producer(broker) as producer:
        for batch in every:
            ahead = batch.at_us / SECOND_US - time.time() if load.paced else 0.0
            if ahead > 0:
                producer.settle(0)
                time.sleep(ahead)
            sent.late = max(sent.late, -ahead)
            producer.send(batch)
        producer.settle()
    print(msgspec.json.encode(sent).decode(), flush=True)


if __name__ == "__main__":
    main()
