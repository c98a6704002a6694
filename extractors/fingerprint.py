"""Sameness of failures (GATES, Causal roles): what happened, with everything taken out that differs between two runs of
the same failure. Whom it happened to (file, data item, node) is a second, separate digest.
"""

from hashlib import sha256

import regex

from extractors.signal import Fault

DIGEST_CHARACTERS = 16

_VARYING = (
    (regex.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?Z?|\d\d:\d\d:\d\d(?:[.,]\d+)?"), "<time>"),
    (regex.compile(r"0x[0-9a-fA-F]+|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "<address>"),
    (regex.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b|\[[^\]\s]+\]:\d+"), "<address>"),
    (regex.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{12,}\b"), "<id>"),
    (regex.compile(r"\b\d+(?:\.\d+)?\s?(?:[KMGT]i?B|bytes|ms|milliseconds|seconds|minutes|s|%)(?![\w])"), "<amount>"),
    (regex.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"), "<n>"),
    (regex.compile(r"\s+"), " "),
)
"""What is taken out of a message, in this order, and what stands in its place."""


def plain(message: str) -> str:
    """A message without times, ranks, pids, addresses, sizes, durations and step numbers."""
    for pattern, stand_in in _VARYING:
        message = pattern.sub(stand_in, message)
    return message.strip()


def fingerprint(fault: Fault) -> str:
    """The digest of cause code, exception type, call site and plain message."""
    return _digest(fault.cause, fault.exception, fault.site, plain(fault.detail))


def entity_digest(fault: Fault) -> str:
    """The digest of whom the failure happened to, "" where that is not said."""
    return _digest(fault.entity) if fault.entity else ""


def _digest(*parts: str) -> str:
    return sha256("\x1f".join(parts).encode()).hexdigest()[:DIGEST_CHARACTERS]
