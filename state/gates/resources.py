"""Gate B: is the job's hardware fed, or busy for a good reason? Its rules in the order of GATES.md."""

import dataclasses
from functools import wraps

from state.case import Case
from state.gate import Clause, Gate, Ruling, passed
from state.gates.decoding import engine_lost, floored, thrashing
from state.gates.oom import oom_gpu, oom_host, ram_lines, ram_notes
from state.gates.readings import (
    GENERATING,
    buffer_lines,
    buffer_of_phase,
    buffer_words,
    engine_lines,
    engine_words,
    generating_for,
    gpu_lines,
    gpu_words,
    phase_lines,
)
from state.gates.resources_needs import over, the_engine_subscription, the_gpu_poll, the_ranks_apart, unheard_yet
from state.gates.starvation import backpressure, starved
from state.gates.training import idle_training, training
from state.policy import Stage


def bringing_up(case: Case) -> Ruling | None:
    """Bring-up: PASS `BRINGING_UP` once the GPU poll is read."""
    if case.phases.stage is not Stage.BRING_UP:
        return None
    came = (line for line in (case.freshness.bring_up,) if line is not None)
    return passed("BRINGING_UP", f"the job comes up: {gpu_words(case)}", *gpu_lines(case), *came, allowance=True)


def generation_settles(case: Case) -> Ruling | None:
    """The first minute of a generation in which no engine has spoken yet: what stood before it stands, by the GPU
    poll."""
    if not unheard_yet(case):
        return None
    condition = "TRAINING" if case.phases.counts else "BRINGING_UP"
    reason = f"generation began {generating_for(case):.0f} s ago and no engine has spoken yet: {gpu_words(case)}"
    return passed(condition, reason, *gpu_lines(case), *phase_lines(case), allowance=True)


def weights_or_checkpoint(case: Case) -> Ruling | None:
    """Weight sync and checkpoint: PASS `TRAINING` with the GPU poll quoted (engines are silent by design while
    weights move)."""
    if case.phases.stage not in (Stage.WEIGHT_SYNC, Stage.CHECKPOINT):
        return None
    words = "weights move" if case.phases.stage is Stage.WEIGHT_SYNC else "a checkpoint is written"
    reason = f"{words}, the engines are silent by design: {gpu_words(case)}"
    return passed("TRAINING", reason, *gpu_lines(case), *phase_lines(case))


def fed(case: Case) -> Ruling | None:
    """Otherwise: PASS `FED`."""
    lines = (*gpu_lines(case), *engine_lines(case))
    if case.phases.stage not in GENERATING:
        return passed("FED", f"nothing is amiss at stage {case.phases.stage}: {gpu_words(case)}", *lines)
    words = f"{engine_words(case)}; {gpu_words(case)}"
    if buffer_of_phase(case) is not None:
        words, lines = f"{words}; {buffer_words(case)}", (*lines, *buffer_lines(case))
    idle = not any(engine.last.busy for engine in case.engines.engines)
    return passed("FED", words, *lines, allowance=idle)


def _with_ram_warning(clause: Clause) -> Clause:
    """The clause, its ruling noting nodes whose host RAM is nearly used up (rule 2)."""

    @wraps(clause)
    def warned(case: Case) -> Ruling | None:
        ruling = clause(case)
        notes = ram_notes(case)
        if ruling is None or not notes:
            return ruling
        return dataclasses.replace(ruling, notes=ruling.notes + notes, evidence=ruling.evidence + ram_lines(case))

    return warned


RESOURCES = Gate(
    "B",
    "resources",
    clauses=(
        over,
        the_gpu_poll,
        the_ranks_apart,
        the_engine_subscription,
        *(
            _with_ram_warning(clause)
            for clause in (
                oom_gpu,
                oom_host,
                generation_settles,
                idle_training,
                training,
                backpressure,
                starved,
                thrashing,
                floored,
                bringing_up,
                weights_or_checkpoint,
                engine_lost,
                fed,
            )
        ),
    ),
)
