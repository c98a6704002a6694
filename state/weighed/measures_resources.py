"""What gate B measures, in words."""

from collections.abc import Callable

from state.case import Case
from state.gates.decoding import model_floor
from state.gates.oom import ooms_of
from state.gates.readings import (
    buffer_lines,
    engine_lines,
    engine_words,
    fleet_cap,
    fresh_polls,
    generating_for,
    generating_since,
    gpu_lines,
    gpu_words,
    minutes_of_window,
)
from state.gates.supply import supply
from state.policy import BACKPRESSURE_STEPS, BACKPRESSURE_WAIT_SHARE, FLOOR_LINES, FLOOR_RUNNING, GENERATION_WINDOW
from state.trackers.processes import ProcessRole
from state.weighed.measured import Measured, absent, measured
from state.weighed.measures_liveness import stage
from state.wording import clock, plural, span


def gpu_polls(case: Case) -> Measured:
    polls = fresh_polls(case, (*case.gpus.policy, *case.gpus.engine, *case.gpus.unknown))
    if not polls:
        return measured("no fresh GPU poll was read")
    newest = max(polls, key=lambda poll: poll.at_us)
    age = span(case.seconds_since(newest.at_us))
    return measured(f"the newest GPU poll is of {clock(newest.at_us)}, {age} old: {gpu_words(case)}", *gpu_lines(case))


def targets(case: Case) -> Measured:
    silent = len(case.gpus.failures)
    told = "every target of the mesh that was asked has answered" if not silent else f"{silent} polls have failed"
    return measured(f"{told}; {gpu_polls(case).says}", *gpu_lines(case))


def separation(case: Case) -> Measured:
    how = f", by {case.gpus.separated_by}" if case.gpus.separated_by else ""
    return measured(f"who is policy and who engine is {case.gpus.separation}{how}", *gpu_lines(case))


def engines(case: Case) -> Measured:
    newest = case.engines.newest
    if newest is None:
        return measured("no engine line was read")
    age = span(case.seconds_since(newest.last.at_us))
    return measured(f"the newest engine line is {age} old: {engine_words(case)}", newest.evidence)


def cap(case: Case) -> Measured:
    slots, said = fleet_cap(case), case.facts.sources.get("max_num_seqs")
    told = "max_num_seqs is not known" if slots is None else f"the fleet has {slots} decode slots"
    return measured(told, said if said is not None and said.quote else None)


def generation(case: Case) -> Measured:
    since = generating_since(case)
    if since is None:
        return absent(f"nothing is generated: {stage(case).says}", *stage(case).evidence)
    lasts = span(generating_for(case))
    return measured(f"{case.phases.stage} lasts for {lasts} (since {clock(since)})", *stage(case).evidence)


def unheard(case: Case) -> Measured:
    return measured(f"{generation(case).says}; {engines(case).says}", *stage(case).evidence, *engine_lines(case))


def measured_ooms(where: str, word: str) -> Callable[[Case], Measured]:
    """Measures the out-of-memory errors of `gpu` or `host`."""

    def ooms(case: Case) -> Measured:
        found = list(ooms_of(case, where))
        if not found:
            return measured(f"no unhandled {word} out-of-memory error is on record in this attempt")
        said = f"{plural(len(found), f'{word} out-of-memory error')}, none of them was fatal"
        return measured(f"{said} (the newest at {clock(found[-1].own_us)})", found[-1].sources[0])

    return ooms


def idle_ranks(case: Case) -> Measured:
    polls = len(case.gpus.policy) + len(case.gpus.policy_before)
    return measured(
        f"{gpu_words(case) or 'no GPU poll'}, in {plural(polls, 'newest poll')} of the policy ranks", *gpu_lines(case)
    )


def pairs(case: Case) -> Measured:
    found = case.pipeline.pairs(ProcessRole.POLICY, case.freshness.progress_us or 0)
    moving = [pair for pair in found if pair[0].frames != pair[1].frames]
    said = (
        f"{len(moving)} of {plural(len(found), 'policy rank')} that were dumped twice stand elsewhere the second time"
    )
    return measured(said, *(dump.evidence for pair in moving[:1] for dump in pair))


def steps_counted(case: Case) -> Measured:
    steps = case.pipeline.steps[-BACKPRESSURE_STEPS:]
    return measured(f"{plural(len(steps), 'completed step')} on record", steps[-1].evidence if steps else None)


def timed_steps(case: Case) -> Measured:
    steps = case.pipeline.steps[-BACKPRESSURE_STEPS:]
    if not steps:
        return measured("no completed step tells how long it waited for the buffer")
    waited, whole = sum(step.waited_seconds for step in steps), sum(step.seconds for step in steps)
    share = f" ({waited / whole:.1%})" if whole else ""
    last = "last step" if len(steps) == 1 else f"last {len(steps)} steps"
    said = f"the {last} waited {waited:.0f} of {whole:.0f} s{share} for the buffer"
    return measured(f"{said}; below {BACKPRESSURE_WAIT_SHARE:.0%} is backpressure", steps[-1].evidence)


def hungry(case: Case) -> Measured:
    slots = fleet_cap(case)
    if not slots:
        return cap(case)
    most = max(case.engines.load(at_us).running for at_us in minutes_of_window(case, GENERATION_WINDOW))
    return measured(
        f"at the fullest minute of the last 10 the engines held {most} of {slots} slots; {engine_words(case)}",
        *engine_lines(case),
    )


def filling(case: Case) -> Measured:
    found = supply(case)
    if found is None:
        return measured("nothing tells how the buffer fills")
    pace = "slow" if found.slow else "rising faster than before" if found.faster else "at its usual pace"
    return measured(f"{found.words}, {pace}", *found.lines, *buffer_lines(case))


def queue(case: Case) -> Measured:
    loads = [case.engines.load(at_us) for at_us in minutes_of_window(case, GENERATION_WINDOW)]
    fewest = min(loads, key=lambda load: load.waiting / max(load.running, 1))
    said = f"in one of the last 10 minutes {fewest.waiting} waited for {fewest.running} that ran"
    rates = f"{min(load.generation_rate for load in loads):.0f} to {max(load.generation_rate for load in loads):.0f}"
    return measured(f"{said}; the fleet made {rates} tokens/s", *engine_lines(case))


def floor(case: Case) -> Measured:
    least, facts = model_floor(case.facts.facts), case.facts.facts
    if least is None:
        return measured(f"no floor is known for the model's class ({facts.model or 'the model is not said'})")
    return measured(f"the floor of the model's class is {least:.0f} tokens/s an engine")


def decoding(case: Case) -> Measured:
    if not case.engines.engines:
        return engines(case)
    slowest = min(case.engines.engines, key=lambda engine: engine.last.generation_rate)
    said = (
        f"{floor(case).says}; none with {FLOOR_RUNNING} or more running is below it in {FLOOR_LINES:.0%} of its lines"
    )
    newest = f"{slowest.last.generation_rate:.0f} tokens/s with {slowest.last.running} running"
    return measured(f"{said} (the slowest now makes {newest})", slowest.evidence)


def cards(case: Case) -> Measured:
    sizes = [card.memory_total_mib for poll in case.gpus.engine for card in poll.gpus if card.memory_total_mib]
    least = f"{min(sizes) / 1024:.0f} GiB" if sizes else "of unknown size"
    return measured(f"the engines' smallest GPU is {least}", *gpu_lines(case))


def silence(case: Case) -> Measured:
    quietest = min(case.engines.engines, key=lambda engine: engine.last.at_us, default=None)
    if quietest is None:
        return engines(case)
    age, load = span(case.seconds_since(quietest.last.at_us)), quietest.last
    said = f"the longest silent of {plural(len(case.engines.engines), 'engine')} spoke {age} ago"
    return measured(f"{said} with {load.running} running and {load.waiting} waiting", quietest.evidence)


def staleness_limit(case: Case) -> Measured:
    limit = case.facts.facts.max_staleness_steps
    return measured(f"max_staleness_steps is {'not said' if limit is None else limit}")


MEASURES: dict[str, Callable[[Case], Measured]] = {
    "fresh_polls(case, (*case.gpus.policy, *case.gpus.engine, *case.gpus.unknown))": gpu_polls,
    "case.gpus.separation": separation,
    "_unanswered_targets(case)": targets,
    "unheard_yet(case)": unheard,
    "case.engines.newest": engines,
    "case.seconds_since(case.engines.newest.last.at_us)": engines,
    "fleet_cap(case)": cap,
    "generating_since(case)": generation,
    "generating_for(case)": generation,
    "oom_gpu(case)": measured_ooms("gpu", "GPU"),
    "oom_host(case)": measured_ooms("host", "host"),
    "_all_idle(case)": idle_ranks,
    "case.pipeline.pairs(ProcessRole.POLICY, case.freshness.progress_us)": pairs,
    "len(case.pipeline.steps[-BACKPRESSURE_STEPS:])": steps_counted,
    "_trainer_bound(case, case.pipeline.steps[-BACKPRESSURE_STEPS:])": timed_steps,
    "_engines_hungry(case)": hungry,
    "supply(case)": filling,
    "supply(case).slow": filling,
    "supply(case).faster": filling,
    "case.engines.load(at_us)": queue,
    "model_floor(case.facts.facts)": floor,
    "_h100_class(case)": cards,
    "_below(engine, model_floor(case.facts.facts), case)": decoding,
    "_silent_and_busy(engine, case, generating_since(case))": silence,
    "generates_in_step(case)": staleness_limit,
}
