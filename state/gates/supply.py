"""Whether the generation buffer fills slowly, or faster than before (GATES, Gate B rules 6 and 7): by its bar, and
where the trainer draws none by the coordinators' groups or the step's rollout batch."""

from dataclasses import dataclass

from extractors.record import Evidence
from state.case import Case
from state.gates.readings import buffer_lines, buffer_of_phase, buffer_words, generating_since
from state.policy import ENGINE_FRESH, GENERATION_WINDOW, GROUPS_EXPECTED, STARVED_RATE_SHARE
from state.trackers.heartbeat import Buffer
from state.trackers.supply import GroupPace
from state.wording import plural, span

WAITS = "wait_for_generation_buffer"


@dataclass(frozen=True, slots=True)
class Supply:
    """How the buffer fills, in words and lines. faster holds where nothing says that it does not."""

    words: str
    lines: tuple[Evidence, ...]
    slow: bool
    faster: bool


def supply(case: Case) -> Supply | None:
    """How the buffer of the open phase fills; None where nothing tells."""
    buffer = buffer_of_phase(case)
    if buffer is not None:
        return Supply(buffer_words(case), buffer_lines(case), _slow(buffer), _faster(buffer))
    phase = case.phases.innermost
    if phase is None or phase.name != WAITS or not _runs_ahead(case):
        return None
    return _by_groups(case) or _by_batch(case)


def generates_in_step(case: Case) -> bool:
    """Whether generation is synchronous (max_staleness_steps = 0): all of a batch is issued at once, and its last
    stragglers look like hunger."""
    return case.facts.facts.max_staleness_steps == 0


def _runs_ahead(case: Case) -> bool:
    """Whether generation is shown to run ahead of training, so that engines always have a next group to begin."""
    limit = case.facts.facts.max_staleness_steps
    return bool(limit) if limit is not None else any(step.staleness_max for step in case.pipeline.steps)


def _slow(buffer: Buffer) -> bool:
    """Frozen, or rising slower than a quarter of its own earlier rate."""
    if buffer.full or buffer.recent_rate is None:
        return False
    if buffer.recent_rate <= 0:
        return True
    return buffer.earlier_rate is not None and buffer.recent_rate < STARVED_RATE_SHARE * buffer.earlier_rate


def _faster(buffer: Buffer) -> bool:
    """Whether the buffer rises faster than before, or nothing says that it does not. One that stands still does not."""
    if buffer.recent_rate is None:
        return True
    return buffer.recent_rate > 0 and (buffer.earlier_rate is None or buffer.recent_rate > buffer.earlier_rate)


def _by_groups(case: Case) -> Supply | None:
    """By the home that tells of most groups. Silence of one that is not read up to now tells nothing."""
    told = [pace for pace in case.heartbeat.groups if pace.ended or _read_now(pace, case)]
    pace = max(told, key=lambda each: (each.ended, each.best_rate), default=None)
    if pace is None or pace.best_rate * GENERATION_WINDOW < GROUPS_EXPECTED:
        return None
    words = (
        f"the coordinators ended {plural(pace.ended, 'group')} in the last 10 min, {pace.best_rate * 600:.0f} at the "
        "best mean of this attempt (the trainer draws no buffer bar)"
    )
    slow = pace.recent_rate < STARVED_RATE_SHARE * pace.best_rate
    return Supply(words, (pace.evidence,), slow, pace.recent_rate > pace.best_rate)


def _read_now(pace: GroupPace, case: Case) -> bool:
    source = case.coverage.sources.get(pace.evidence.source)
    newest = None if source is None or source.newest is None else source.newest.at_us
    return newest is not None and case.seconds_since(newest) <= ENGINE_FRESH


def _by_batch(case: Case) -> Supply | None:
    """A batch that took so long that it can't have filled at a quarter of the earlier rate. Until then it tells
    nothing, as a part of its groups may well be there."""
    batch, since_us = case.heartbeat.batch, generating_since(case)
    if batch is None or batch.earlier_rate is None or since_us is None:
        return None
    seconds = case.seconds_since(max(batch.started_us, since_us))
    if batch.needed >= STARVED_RATE_SHARE * batch.earlier_rate * seconds:
        return None
    words = (
        f"the rollout batch of step {batch.step} lacks groups after {span(seconds)}, earlier ones of {batch.needed} "
        f"came every {span(batch.needed / batch.earlier_rate)} (the trainer draws no buffer bar)"
    )
    return Supply(words, (batch.evidence,), True, False)
