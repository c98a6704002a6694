"""Engines that decode badly or not at all (GATES, Gate B rules 7, 8 and 10)."""

import re

from extractors.record import Evidence
from extractors.vllm import AGGREGATED
from state.case import Case
from state.gate import Gap, Ruling, failed, unjudged
from state.gates.readings import (
    engine_lines,
    engine_words,
    gap_of,
    generating_for,
    generating_since,
    gpu_lines,
    minutes_of_window,
    newest_first,
)
from state.gates.supply import supply
from state.policy import (
    DENSE_FLOORS,
    ENGINE_FRESH,
    FLAT_SHARE,
    FLOOR_LINES,
    FLOOR_RUNNING,
    GENERATION_WINDOW,
    H100_MEMORY_MIB,
    MOE_FLOORS,
    SECOND_US,
    THRASHING_WAITING_FACTOR,
)
from state.trackers.engines import EngineState
from state.trackers.facts import JobFacts
from state.trackers.pipeline import StackDump
from state.trackers.processes import ProcessRole

_SIZES = re.compile(r"(?<![A-Za-z0-9.])(A?)(\d+(?:\.\d+)?)B(?![A-Za-z0-9])", re.IGNORECASE)
_FEWEST_LINES = 5


def thrashing(case: Case) -> Ruling | None:
    """Generation, for ≥ 10 min: waiting ≥ 4 × running on the fleet, throughput flat (±10 %) and the buffer not rising
    faster: lower concurrency or raise decode slots in lockstep."""
    filling = supply(case)
    if generating_for(case) < GENERATION_WINDOW or filling is None or filling.faster:
        return None
    loads = [case.engines.load(at_us) for at_us in minutes_of_window(case, GENERATION_WINDOW)]
    if any(load.waiting < THRASHING_WAITING_FACTOR * max(load.running, 1) for load in loads):
        return None
    rates = [load.generation_rate for load in loads]
    middle = len(rates) // 2
    first, second = sum(rates[:middle]) / middle, sum(rates[middle:]) / (len(rates) - middle)
    if abs(second - first) > FLAT_SHARE * max(first, 1.0):
        return None
    reason = (
        f"{engine_words(case)}; for 10 min at least {THRASHING_WAITING_FACTOR:.0f} wait for each that runs, throughput "
        f"is flat at {second:.0f} tokens/s and the buffer rises no faster than before"
    )
    facts = case.facts.facts
    fix = (
        f"lower n_concurrent_trials ({facts.n_concurrent_trials or 'not said'}) or raise max_num_seqs "
        f"({facts.max_num_seqs or 'not said'}), in lockstep"
    )
    return failed("THRASHING", reason, *engine_lines(case), *filling.lines, *gpu_lines(case), fix=fix)


def floored(case: Case) -> Ruling | None:
    """Generation: an engine with ≥ 8 running below the floor of its model class in ≥ 80 % of its lines over 10 min;
    with eager mode on, the fix is the configuration (CUDA graphs), and the reason says so first."""
    floor = model_floor(case.facts.facts)
    if floor is None or generating_for(case) < GENERATION_WINDOW or not _h100_class(case):
        return None
    slow = [engine for engine in case.engines.engines if _below(engine, floor, case)]
    if not slow:
        return None
    rate = max(engine.last.generation_rate for engine in slow)
    words = (
        f"{len(slow)} of {len(case.engines.engines)} engines decode below {floor:.0f} tokens/s with ≥ {FLOOR_RUNNING} "
        f"running for 10 min, the best of them {rate:.0f} ({slow[0].name})"
    )
    lines = [slow[0].evidence, *gpu_lines(case)]
    fix = "compare the engines' configuration (CUDA graphs, attention backend, parallelism) with the last good run"
    if case.facts.facts.enforce_eager:
        words = f"eager mode is on (enforce_eager), which costs CUDA graphs: {words}"
        fix = "set enforce_eager to false, so that CUDA graphs are used, and relaunch from the checkpoint"
        said = case.facts.sources.get("enforce_eager")
        lines += [said] if said is not None and said.quote else []
    return failed("FLOORED", words, *lines, fix=fix)


def model_floor(facts: JobFacts) -> float | None:
    """The least tokens per second of an engine of this model class, None where the class is not known."""
    dense, active = _sizes(facts)
    moe = facts.architecture == "moe" or (facts.architecture is None and active is not None)
    size, floors = (active, MOE_FLOORS) if moe else (dense, DENSE_FLOORS)
    if size is None:
        return None
    return next((floor for largest, floor in floors if size <= largest), None)


def _sizes(facts: JobFacts) -> tuple[float | None, float | None]:
    """Billions of parameters, all and active, as declared or as the model's name says (`30B-A3B`)."""
    named = _SIZES.findall(facts.model or "")
    whole = next((float(size) for active, size in named if not active), None)
    active = next((float(size) for active, size in named if active), None)
    return whole, facts.active_params_b if facts.active_params_b is not None else active


def _below(engine: EngineState, floor: float, case: Case) -> bool:
    from_us = case.now_us - int(GENERATION_WINDOW * SECOND_US)
    said = engine.since(from_us)
    spans = len(said) >= _FEWEST_LINES and engine.window[0].at_us <= from_us + int(ENGINE_FRESH * SECOND_US)
    if engine.tag == AGGREGATED or not spans:
        return False
    slow = sum(1 for sample in said if sample.running >= FLOOR_RUNNING and sample.generation_rate < floor)
    return slow >= FLOOR_LINES * len(said)


def _h100_class(case: Case) -> bool:
    """The floors are of an 80 GB card; a smaller one may rightly be slower. A size that is not said passes."""
    sizes = [card.memory_total_mib for poll in case.gpus.engine for card in poll.gpus if card.memory_total_mib]
    return not sizes or min(sizes) >= H100_MEMORY_MIB


def engine_lost(case: Case) -> Ruling | None:
    """Generation: an engine whose last line was busy and that has been silent for 10 min while others report, with
    one stack of it (else ERROR `UNMEASURED`). An engine whose last line was all zero is idle, not lost."""
    since_us = generating_since(case)
    if since_us is None:
        return None
    lost = [engine for engine in case.engines.engines if _silent_and_busy(engine, case, since_us)]
    others = [
        engine
        for engine in case.engines.engines
        if engine not in lost and case.seconds_since(engine.last.at_us) <= ENGINE_FRESH
    ]
    if not lost or not others:
        return None
    one, other = lost[0], max(others, key=lambda engine: engine.last.at_us)
    names = ", ".join(engine.name for engine in lost)
    reason = (
        f"{names} last spoke {case.seconds_since(one.last.at_us) / 60:.0f} min ago with {one.last.running} running and "
        f"{one.last.waiting} waiting, and is silent since while {len(others)} others report"
    )
    lines: tuple[Evidence, ...] = (one.evidence, other.evidence, *gpu_lines(case))
    stack = _stack_of(one, case)
    if stack is None:
        gaps = _no_stack(one, case)
        return unjudged("UNMEASURED", f"{reason}; what it does can't be told", *gaps, evidence=lines)
    fix = f"read what {one.name} stands in, restart it or relaunch from the checkpoint"
    return failed("ENGINE_LOST", reason, *lines, stack.evidence, fix=fix)


def _silent_and_busy(engine: EngineState, case: Case, since_us: int) -> bool:
    if not engine.complete or not engine.last.busy:
        return False
    return case.seconds_since(max(engine.last.at_us, since_us)) >= GENERATION_WINDOW


def _stack_of(engine: EngineState, case: Case) -> StackDump | None:
    dumps = case.pipeline.dumps(ProcessRole.ENGINE, engine.last.at_us)
    return next((dump for dump in reversed(dumps) if dump.pid == engine.pid), None)


def _no_stack(engine: EngineState, case: Case) -> list[Gap]:
    what = f"a live stack of {engine.name}"
    asked = [
        failed_poll
        for failed_poll in newest_first(case.pipeline.stack_failures)
        if str(engine.pid) in failed_poll.failure.command and failed_poll.at_us >= engine.last.at_us
    ]
    return [gap_of(what, asked[0])] if asked else [Gap(what, "no stack of it is on record since it fell silent")]
