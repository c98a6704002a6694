"""Signals that several speakers say. A signal of one speaker stands beside its pattern instead."""

import msgspec


class Fault(msgspec.Struct, frozen=True):
    """A recognised error. cause is a code of state/causes.py; the pattern gives its causal role.

    detail is the message in a few words; exception the Python type, site the innermost own frame's function;
    rank the distributed rank that says it; entity the thing it happened to (actor class, node, file, key).
    """

    cause: str
    detail: str = ""
    exception: str = ""
    site: str = ""
    rank: int | None = None
    entity: str = ""


class Benign(msgspec.Struct, frozen=True):
    """A line that looks like death and is not. kind is the hyphenated name of the situation."""

    kind: str
    count: int = 1


class Noted(msgspec.Struct, frozen=True):
    """A line that says how the job is set up or fares, and that no rule weighs. kind is a hyphenated name."""

    kind: str
    count: int = 1


class BringUp(msgspec.Struct, frozen=True):
    """A step of coming up (staging, Ray joins, engines loading). what is a short noun phrase."""

    what: str
    done: int | None = None
    of: int | None = None


class Teardown(msgspec.Struct, frozen=True):
    """An orderly end's line. It proves nothing about why: look before it."""

    what: str
