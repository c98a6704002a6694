"""A probe's failure as a tracker keeps it: what was asked, when, and what came back instead of an answer."""

import msgspec

from extractors.polls import PollFailed
from extractors.record import Evidence


class PollFailedSeen(msgspec.Struct, frozen=True):
    """A failed poll with its place. at_us is the time of the poll."""

    failure: PollFailed
    at_us: int
    evidence: Evidence
