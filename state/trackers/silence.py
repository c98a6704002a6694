"""That nothing is heard of a job: what the feed said of it, and the newest thing that was heard before."""

import msgspec

from extractors.record import Evidence, Unheard


class Silence(msgspec.Struct, frozen=True):
    """An outage that lasts. since_us is the event time of the newest line or poll that was heard, newest its place."""

    signal: Unheard
    since_us: int
    newest: Evidence | None = None
