"""Batches that stand ready, sent to one broker that listens plainly: a client whose cost is that of a socket.

It speaks Produce of version 7 (Kafka's protocol guide), the first that takes zstd, keeps what is under way within
bounds, and ends at an error.
"""

import socket
import struct
from types import TracebackType
from typing import NamedTuple

MOST_ON_THE_WAY = 64
PRODUCE, VERSION = 0, 7
NO_TRANSACTION = -1
LEADER_ALONE = 1
TIMEOUT_MS = 30_000
_CLIENT = b"fleet"


class Batch(NamedTuple):
    """Records of one partition, as Kafka keeps them, and when they are to be sent."""

    at_us: int
    topic: str
    partition: int
    records: bytes


class Producer:
    """Sends batches in order. Raises OSError where the broker goes away, ValueError where it refuses one."""

    def __init__(self, broker: str) -> None:
        host, _, port = broker.rpartition(":")
        self._socket = socket.create_connection((host, int(port)))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._answers = self._socket.makefile("rb")
        self._on_the_way = 0

    def __enter__(self) -> "Producer":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._answers.close()
        self._socket.close()

    def send(self, batch: Batch) -> None:
        """Sends a batch; waits where too many are under way."""
        head = struct.pack(f">hhih{len(_CLIENT)}s", PRODUCE, VERSION, 0, len(_CLIENT), _CLIENT)
        head += struct.pack(">hhi", NO_TRANSACTION, LEADER_ALONE, TIMEOUT_MS)
        topic = batch.topic.encode()
        head += struct.pack(f">ih{len(topic)}siii", 1, len(topic), topic, 1, batch.partition, len(batch.records))
        self._socket.sendall(struct.pack(">i", len(head) + len(batch.records)) + head + batch.records)
        self._on_the_way += 1
        self.settle(MOST_ON_THE_WAY)

    def settle(self, most: int = 0) -> None:
        """Waits until no more than so many are under way."""
        while self._on_the_way > most:
            (size,) = struct.unpack(">i", self._answers.read(4))
            answer = self._answers.read(size)
            (name,) = struct.unpack_from(">h", answer, 8)
            (code,) = struct.unpack_from(">h", answer, 8 + 2 + name + 4 + 4)
            if code:
                raise ValueError(f"the broker refuses a batch with code {code}")
            self._on_the_way -= 1
