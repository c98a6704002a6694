"""Kafka: the names of the topics, which partition a job has, and the library's errors in one line each.

All records of one job share a partition of each topic, so that their order is kept (CONTRACT §5).
"""

import errno
import logging
import re
import time
from collections import deque
from collections.abc import Callable
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar
from zlib import crc32

from kafka import errors
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport

from dataflow.kafka_settings import CA_FILE, MECHANISM, PROTOCOL, USERNAME, Brokers

MOST_BYTES = 4 << 20
"""Of a message, before compression; the topics that `topics create` makes take it."""
CONNECT_SECONDS = 5.0
"""Within which brokers must answer the first word."""
FIRST_TRY_SECONDS = 1.0
"""The library doesn't say why it can't connect before its time is up, so it is given little at first, then more."""

Made = TypeVar("Made")


class Topic(StrEnum):
    """What is carried. A topic's name is `<prefix>.<word>`."""

    LINES = "lines"
    POLLS = "polls"
    VERDICTS = "verdicts"

    def under(self, prefix: str) -> str:
        """The topic's whole name."""
        return f"{prefix}.{self}"


class Trouble(StrEnum):
    """Why the brokers can't be used. All but DENIED may pass by themselves."""

    UNREACHABLE = "unreachable"
    DENIED = "denied"
    NO_TOPIC = "no_topic"
    REFUSED = "refused"


NO_TOPIC = "topic {} is not there; `wedgewatch topics create` makes it"


class BrokerError(OSError):
    """The brokers can't be used: filename names them, strerror says why and what would help."""

    def __init__(self, brokers: str, why: str, trouble: Trouble = Trouble.UNREACHABLE) -> None:
        super().__init__(errno.EIO, why, brokers)
        self.trouble = trouble

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"


def partition_of(job: str, partitions: int) -> int:
    """The partition of a job: the same on every machine, and what librdkafka's `consistent` partitioner says of the job
    as the key."""
    return crc32(job.encode("utf-8", "surrogatepass")) % partitions


class Said(NamedTuple):
    """A warning of the library: when (monotonic seconds), and its words."""

    at: float
    words: str


class _Listener(logging.Handler):
    """Keeps the library's warnings, which alone say why a connection fails, and lets none through to the terminal."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: deque[Said] = deque(maxlen=64)

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(Said(time.monotonic(), record.getMessage()))


_LISTENER = _Listener()
_LIBRARY = logging.getLogger("kafka")
_LIBRARY.addHandler(_LISTENER)
_LIBRARY.setLevel(logging.WARNING)
_LIBRARY.propagate = False


def _to_the_last_word(read: Callable[[Any], tuple[bytes, Exception | None]]) -> Callable[[Any], Any]:
    def reads(transport: Any) -> tuple[bytes, Exception | None]:
        heard, error = read(transport)
        return (heard, None) if heard else (heard, error)

    return reads


for _transport in (KafkaTCPTransport, KafkaSSLTransport):
    # The library drops what comes in one piece with the connection's end: the refusal of credentials, above all. What
    # was heard counts first; the end is seen again at the next read.
    if (_read := vars(_transport).get("_sock_recv")) is not None:
        _transport._sock_recv = _to_the_last_word(_read)

_REASONS: tuple[tuple[str, Trouble, str], ...] = (
    (
        r"SaslAuthenticationFailedError: (?:SaslAuthenticationFailedError: )?(.*?)(?: \(backoff.*)?$",
        Trouble.DENIED,
        f"the credentials are refused ({{}}); see {USERNAME} and its password",
    ),
    (r"UnsupportedSaslMechanismError", Trouble.DENIED, f"the brokers don't offer this SASL mechanism; see {MECHANISM}"),
    (
        r"CERTIFICATE_VERIFY_FAILED\] certificate verify failed: (.*?)(?: \(_ssl| \(backoff|$)",
        Trouble.DENIED,
        f"the broker's certificate is not trusted ({{}}); see {CA_FILE}",
    ),
    (r"WRONG_VERSION_NUMBER|RECORD_LAYER_FAILURE", Trouble.DENIED, f"no TLS is spoken there; see {PROTOCOL}"),
    (r"\w*AuthorizationFailedError", Trouble.DENIED, "this user may not do that; see the brokers' access lists"),
    (r"DNS lookup failed for (\S+?),", Trouble.UNREACHABLE, "the name {} is not known"),
    (r"ECONNREFUSED", Trouble.UNREACHABLE, "nothing listens there (connection refused)"),
    (r"EHOSTUNREACH|ENETUNREACH", Trouble.UNREACHABLE, "there is no way there from this host"),
    (
        r"Topic (\S+) not found in cluster metadata",
        Trouble.NO_TOPIC,
        NO_TOPIC,
    ),
)
"""What the library's warnings mean; the newest telling one counts."""
CLOSED = "socket disconnected"


def opened(make: Callable[[dict[str, Any]], Made], brokers: Brokers, seconds: float = CONNECT_SECONDS) -> Made:
    """A client of the library, connected within so many seconds. make takes what every client is told. Raises
    BrokerError, at once where this user or this host is not let in."""
    begun = time.monotonic()
    patience = FIRST_TRY_SECONDS
    while True:
        left = max(begun + seconds - time.monotonic(), 0.1)
        settings = {
            "bootstrap_servers": list(brokers.servers),
            "bootstrap_timeout_ms": int(1000 * min(patience, left)),
            "reconnect_backoff_max_ms": 1_000,
            **brokers.options,
        }
        try:
            return make(settings)
        except errors.KafkaError as error:
            why = broker_error(brokers, error, begun)
            if why.trouble is Trouble.DENIED or patience >= left:
                raise why from error
        patience *= 2


def broker_error(brokers: Brokers, error: Exception | None, since: float) -> BrokerError:
    """Why the brokers can't be used: from an error, and what the library has warned of since (monotonic seconds)."""
    words = [said.words for said in list(_LISTENER.said) if said.at >= since]
    if error is not None:
        words.append(str(error))
    for each in reversed(words):
        for pattern, trouble, says in _REASONS:
            if found := re.search(pattern, each):
                return BrokerError(brokers.name, says.format(*found.groups()), trouble)
    secured = str(brokers.options.get("security_protocol", "")).endswith("SSL")
    if any(CLOSED in each for each in words):
        hint = "" if secured else f"; perhaps TLS is wanted, see {PROTOCOL}"
        return BrokerError(brokers.name, f"the connection is closed{hint}")
    if error is None or isinstance(error, errors.KafkaTimeoutError):
        hint = f"; perhaps no TLS is spoken there, see {PROTOCOL}" if secured else ""
        return BrokerError(brokers.name, f"no answer{hint}")
    return BrokerError(brokers.name, said_of(error))


def said_of(error: Exception) -> str:
    """An error of the library in words, without its number."""
    words = re.sub(r"^\[Error \d+\] ", "", str(error)) or type(error).__name__
    described = getattr(error, "description", "")
    return f"{words.removesuffix(': None')}{f' ({described})' if described and described not in words else ''}"
