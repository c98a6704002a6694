"""Who waits for whom in generation: the engines on a full trainer, or for work that does not come (GATES, Gate B
rules 5 and 6). Starvation is a question of dispatch, and is said only with every measurement of the pipeline."""

from extractors.record import Evidence
from state.case import Case
from state.gate import Gap, Ruling, failed, passed, unjudged
from state.gates.pipeline_measures import Measured, coordinator_cpu, issued, live_stacks, staleness
from state.gates.readings import (
    buffer_of_phase,
    engine_lines,
    engine_words,
    fleet_cap,
    generating_for,
    generating_since,
    gpu_lines,
    minutes_of_window,
)
from state.gates.supply import WAITS, generates_in_step, supply
from state.policy import (
    BACKPRESSURE_STEPS,
    BACKPRESSURE_WAIT_SHARE,
    GENERATION_WINDOW,
    STARVED_IDLE_LINES,
    STARVED_KV_PERCENT,
    STARVED_RUNNING_SHARE,
    Stage,
)
from state.trackers.pipeline import StepTiming


def backpressure(case: Case) -> Ruling | None:
    """Generation: wait-for-buffer time of the last 3 steps < 5 % of step time, or the buffer full, however low the
    engines swing."""
    if case.phases.stage is not Stage.GENERATION:
        return None
    lines = (*gpu_lines(case), *engine_lines(case))
    buffer = buffer_of_phase(case)
    if buffer is not None and buffer.full:
        reason = (
            f"the buffer is full ({buffer.held}/{buffer.needed}), the trainer is the slow side: {engine_words(case)}"
        )
        return passed("BACKPRESSURE", reason, *lines, buffer.evidence)
    steps = case.pipeline.steps[-BACKPRESSURE_STEPS:]
    if len(steps) < BACKPRESSURE_STEPS or not _trainer_bound(case, steps):
        return None
    waited, whole = sum(step.waited_seconds for step in steps), sum(step.seconds for step in steps)
    reason = (
        f"the last {len(steps)} steps waited {waited:.0f} of {whole:.0f} s ({waited / whole:.1%}) for the buffer, the "
        f"trainer is the slow side: {engine_words(case)}"
    )
    return passed("BACKPRESSURE", reason, *lines, steps[-1].evidence)


def _trainer_bound(case: Case, steps: tuple[StepTiming, ...]) -> bool:
    """Whether the steps hardly waited, and the one under way has not already outwaited them."""
    whole = sum(step.seconds for step in steps)
    if whole <= 0 or sum(step.waited_seconds for step in steps) >= BACKPRESSURE_WAIT_SHARE * whole:
        return False
    waits_now = generating_for(case)
    return waits_now < GENERATION_WINDOW or waits_now < BACKPRESSURE_WAIT_SHARE * whole / len(steps)


def starved(case: Case) -> Ruling | None:
    """Generation, for ≥ 10 min: summed running ≤ 15 % of summed cap, waiting 0 on ≥ 90 % of engine lines, KV ≤ 10 %,
    buffer frozen or rising slower than a quarter of its own earlier rate; any measurement missing is ERROR."""
    since_us = generating_since(case)
    if since_us is None or generating_for(case) < GENERATION_WINDOW or not _engines_hungry(case):
        return None
    filling = supply(case)
    if filling is None:
        return _without_buffer(case)
    if not filling.slow:
        return None
    reason = f"{engine_words(case)}; {filling.words}"
    lines = (*engine_lines(case), *filling.lines, *gpu_lines(case))
    taken: list[Measured] = []
    missing: list[Gap] = []
    for measure in (coordinator_cpu, staleness, issued, live_stacks):
        measured, gaps = measure(case, since_us)
        missing += gaps
        taken += [] if measured is None else [measured]
    measures = (line for measured in taken for line in measured.lines)
    shown = tuple(dict.fromkeys((*lines, *measures)))
    if missing:
        what = "; ".join(dict.fromkeys(gap.what for gap in missing))
        return unjudged(
            "UNMEASURED", f"{reason}; why they have no work is not measured: {what}", *missing, evidence=shown
        )
    words = "; ".join(measured.words for measured in taken)
    lever = next((measured.lever for measured in taken if measured.lever), "")
    return failed("STARVED", f"{reason}; {words}", *shown, fix=lever or _upstream(case))


def _upstream(case: Case) -> str:
    facts = case.facts.facts
    return (
        "requests come too slowly from upstream: raise n_concurrent_trials "
        f"({facts.n_concurrent_trials or 'not said'}) or num_parallel_generation_workers "
        f"({facts.num_parallel_generation_workers or 'not said'})"
    )


def _without_buffer(case: Case) -> Ruling | None:
    """Hungry engines behind a trainer that waits for a buffer which no line shows. Where there is no buffer at all
    (synchronous generation, evaluation) a batch's last stragglers look just so, and nothing is concluded."""
    phase = case.phases.innermost
    if phase is None or phase.name != WAITS or generates_in_step(case):
        return None
    why = "no line of the generation buffer was printed since the trainer began to wait for it"
    lines: tuple[Evidence, ...] = (*engine_lines(case), phase.evidence, *gpu_lines(case))
    reason = f"{engine_words(case)}, and whether the buffer rises can't be told"
    return unjudged("UNMEASURED", reason, Gap("progress of the generation buffer", why), evidence=lines)


def _engines_hungry(case: Case) -> bool:
    cap = fleet_cap(case)
    if not cap:
        return False
    moments = minutes_of_window(case, GENERATION_WINDOW)
    if any(case.engines.load(at_us).running > STARVED_RUNNING_SHARE * cap for at_us in moments):
        return False
    said = [sample for engine in case.engines.engines for sample in engine.since(moments[0])]
    if not said:
        return not any(engine.last.busy for engine in case.engines.engines)
    idle = sum(1 for sample in said if sample.waiting == 0)
    full = max(sample.kv_percent or 0.0 for sample in said)
    return idle >= STARVED_IDLE_LINES * len(said) and full <= STARVED_KV_PERCENT
