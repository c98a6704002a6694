"""What was malformed or skipped on the way, as missing evidence of the gate that it concerns (CONTRACT §3, §6)."""

from extractors.record import SourceKind
from state.case import Case
from state.gate import Gap
from state.trackers.coverage import SourceCoverage
from state.trackers.skips import Skip
from state.wording import plural

GAPS_SHOWN = 8
"""Gaps of this kind that a gate lists one by one; the rest is counted."""

_BY_PROBE = {"state": "A", "pods": "A", "sync": "A", "gpu": "B", "procs": "B", "stacks": "B", "trials": "C"}


def skipped(case: Case, letter: str) -> tuple[Gap, ...]:
    """What of this gate's evidence was passed over, whatever the gate says."""
    gaps = [_gap(skip) for skip in case.coverage.skips if letter_of(skip) == letter]
    if letter == "A":
        gaps += [_unparsed(source, seen) for source, seen in sorted(case.coverage.sources.items()) if _torn(seen)]
    if len(gaps) <= GAPS_SHOWN:
        return tuple(gaps)
    left_out = len(gaps) - GAPS_SHOWN
    return (*gaps[:GAPS_SHOWN], Gap(f"{left_out} further sources", "something in each of them was skipped as well"))


def letter_of(skip: Skip) -> str:
    """The gate whose evidence was skipped: by the probe, the trials, the metrics; a log's is gate A's."""
    if skip.metrics:
        return "D"
    if skip.kind is SourceKind.POLL:
        return _BY_PROBE.get(skip.source.rsplit("/", 1)[-1].partition(".")[0], "A")
    return "C" if skip.kind is SourceKind.TRIAL else "A"


def _gap(skip: Skip) -> Gap:
    times = f"; {plural(skip.count, 'such piece')} in all" if skip.count > 1 else ""
    what = "a metrics record" if skip.metrics else "what was skipped"
    return Gap(f"{what} of {skip.source}", f"{skip.why}{times}", skip.command, skip.exit, skip.output)


def _torn(seen: SourceCoverage) -> bool:
    return bool(seen.unparsed) and seen.kind not in (SourceKind.POLL, SourceKind.TRIAL)


def _unparsed(source: str, seen: SourceCoverage) -> Gap:
    return Gap(f"{plural(seen.unparsed, 'line')} of {source}", "known by their form, but torn or malformed: not read")
