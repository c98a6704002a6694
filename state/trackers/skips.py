"""What was skipped or malformed, one entry a source: a part of the coverage."""

import msgspec

from extractors.harbor_trials import TrialUnreadable
from extractors.metrics import MetricsUnreadable
from extractors.polls import PollFailed
from extractors.record import Observation, SourceFailed, SourceKind

SKIPS_KEPT = 64


class Skip(msgspec.Struct, frozen=True):
    """The first piece of a source that was skipped, and how many there were. metrics says that it is a metrics record.

    command, exit and output are of a poll whose output could not be read; output else quotes the piece.
    """

    source: str
    kind: SourceKind
    why: str
    output: str = ""
    command: tuple[str, ...] = ()
    exit: int | None = None
    metrics: bool = False
    count: int = 1


def skip_of(observation: Observation) -> Skip | None:
    """What this observation tells of a skipped piece. A probe that failed is no such piece: its gate names it."""
    signal, evidence = observation.signal, observation.evidence
    if isinstance(signal, SourceFailed):
        return Skip(evidence.source, signal.kind, signal.why, evidence.quote)
    if isinstance(signal, TrialUnreadable):
        return Skip(evidence.source, SourceKind.TRIAL, signal.why, evidence.quote)
    if isinstance(signal, MetricsUnreadable):
        return Skip(evidence.source, SourceKind.AGGREGATED, signal.why, evidence.quote, metrics=True)
    if isinstance(signal, PollFailed) and signal.exit == 0:
        return Skip(evidence.source, SourceKind.POLL, signal.why, signal.output, signal.command, signal.exit)
    return None


def kept(skips: dict[str, Skip], skip: Skip) -> None:
    """Adds a skipped piece to those of its source. Bound: 64 sources."""
    key = f"metrics of {skip.source}" if skip.metrics else skip.source
    known = skips.get(key)
    if known is not None:
        skips[key] = msgspec.structs.replace(known, count=known.count + 1)
    elif len(skips) < SKIPS_KEPT:
        skips[key] = skip
