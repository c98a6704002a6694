"""The measurements that say why engines have no work (GATES, Gate B, below the table): coordinator CPU, staleness,
issued against scheduled, and live stacks. Each gives its words and lines, or the gaps that keep it from being said."""

from dataclasses import dataclass

from extractors.record import Evidence
from state.case import Case
from state.gate import Gap
from state.gates.readings import gap_of, newest_first
from state.policy import BACKPRESSURE_WAIT_SHARE, DISPATCHER_BOUND_PERCENT, GENERATION_WINDOW, SECOND_US
from state.trackers.processes import ProcessRole
from state.wording import plural

_MOST_GAPS = 3
_STACK_ROLES = {
    ProcessRole.COORDINATOR: "coordinators",
    ProcessRole.POLICY: "policy ranks",
    ProcessRole.ENGINE: "engines",
}


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured, in words, and where; lever is the change that it speaks for, empty where it clears itself."""

    words: str
    lines: tuple[Evidence, ...]
    lever: str = ""


Measurement = tuple[Measured | None, list[Gap]]


def coordinator_cpu(case: Case, since_us: int) -> Measurement:
    """≥ 90 % of a core on a coordinator: dispatcher-bound, the lever is the number of coordinators."""
    current = [reading for reading in case.pipeline.coordinators if reading.at_us >= since_us]
    if not current:
        return None, _no_cpu(case, since_us)
    busiest = max(current, key=lambda reading: reading.percent)
    words = f"the busiest of {len(current)} coordinators uses {busiest.percent:.0f} % of a core ({busiest.how})"
    if busiest.percent < DISPATCHER_BOUND_PERCENT:
        return Measured(words, (busiest.evidence,)), []
    count = case.facts.facts.num_coordinators
    lever = f"dispatcher-bound: raise num_coordinators (now {count or 'not said'}) first"
    return Measured(words, (busiest.evidence,), lever), []


def _no_cpu(case: Case, since_us: int) -> list[Gap]:
    what = "coordinator CPU (procs)"
    refused = [failed for failed in newest_first(case.pipeline.process_failures) if failed.at_us >= since_us]
    if refused:
        return [gap_of(what, failed) for failed in refused[:_MOST_GAPS]]
    asked = case.pipeline.asked
    if asked is None or asked.at_us < since_us:
        return [Gap(what, "no procs poll is on record since generation began")]
    why = "no procs poll shows a coordinator since generation began"
    if case.pipeline.lifetime_only:
        why = "ps shows an average over the process's life, and two samples far enough apart are not there"
    return [Gap(what, why, asked.command, 0, asked.evidence.quote)]


def staleness(case: Case, since_us: int) -> Measurement:
    """Staleness throttling: where generation waits on the trainer, training is the slow side."""
    known = [step for step in case.pipeline.steps if step.staleness_mean is not None]
    if not known:
        why = "no metrics record of this attempt holds async/staleness_* with the step's timing"
        if case.dynamics.unreadable:
            why += f"; {case.dynamics.unreadable} could not be read: {case.dynamics.unreadable_why}"
        return None, [Gap("staleness throttling (metrics)", why)]
    newest = known[-1]
    share = newest.waited_seconds / newest.seconds if newest.seconds > 0 else 0.0
    most = newest.staleness_max if newest.staleness_max is not None else newest.staleness_mean or 0.0
    limit = case.facts.facts.max_staleness_steps
    words = f"staleness reached {most:.0f} of {'an unknown limit' if limit is None else limit}, the newest step waited "
    words += f"{share:.0%} of its time for the buffer"
    lines, stale = [newest.evidence], case.heartbeat.stale
    if stale is not None:
        words += f", {plural(stale.count, 'group')} thrown away as stale"
        lines.append(stale.evidence)
    if limit is not None and most >= limit and share < BACKPRESSURE_WAIT_SHARE:
        lever = f"training-bound: speed up training or raise max_staleness_steps (now {limit})"
        return Measured(words, tuple(lines), lever), []
    return Measured(words, tuple(lines)), []


def issued(case: Case, since_us: int) -> Measurement:
    """Issued against scheduled: requests that reach the engines and drain at once point upstream."""
    from_us = case.now_us - int(GENERATION_WINDOW * SECOND_US)
    said = [sample for engine in case.engines.engines for sample in engine.since(from_us)]
    newest = case.engines.newest
    if not said or newest is None:
        why = "no engine printed a line within the last 10 min"
        return None, [Gap("issued against scheduled (engine lines of the window)", why)]
    fed = sum(1 for sample in said if sample.prompt_rate > 0)
    words = f"{fed} of {len(said)} engine lines of the last 10 min show prompts, none left waiting"
    return Measured(words, (newest.evidence,)), []


def live_stacks(case: Case, since_us: int) -> Measurement:
    """Live stacks of a coordinator, a policy rank and an engine, taken since generation began."""
    found = {role: case.pipeline.dumps(role, since_us) for role in _STACK_ROLES}
    absent = [name for role, name in _STACK_ROLES.items() if not found[role]]
    if not absent:
        lines = tuple(dumps[-1].evidence for dumps in found.values())
        return Measured("live stacks of coordinator, policy rank and engine are on record", lines), []
    what = "live stacks of " + ", ".join(absent)
    refused = [failed for failed in newest_first(case.pipeline.stack_failures) if failed.at_us >= since_us]
    if refused:
        return None, [gap_of(what, failed) for failed in refused[:_MOST_GAPS]]
    return None, [Gap(what, "no stacks poll is on record since generation began")]
