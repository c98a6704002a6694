"""The training stage: policy ranks that stand idle, and ranks at work (GATES, Gate B rules 3 and 4)."""

from state.case import Case
from state.gate import Gap, Ruling, failed, passed, unjudged
from state.gates.readings import gap_of, gpu_lines, gpu_words, newest_first, phase_lines
from state.policy import GPU_POLL_MAX_AGE, IDLE_UTILIZATION_PERCENT, Stage
from state.trackers.gpus import TargetPoll
from state.trackers.pipeline import StackDump
from state.trackers.processes import ProcessRole


def idle_training(case: Case) -> Ruling | None:
    """Training stage: all policy ranks ≤ 5 % utilisation in the newest two polls and no progress for the phase's
    allowance, with live stacks in which they stand still (else ERROR `UNMEASURED`)."""
    if case.phases.stage is not Stage.TRAINING or not _all_idle(case):
        return None
    since_us = case.freshness.known_us
    allowance = case.phases.allowance_seconds
    if since_us is None or case.seconds_since(since_us) <= allowance:
        return None
    silent = (
        f"all policy GPUs stand at ≤ {IDLE_UTILIZATION_PERCENT:.0f} % in the newest two polls and nothing has "
        f"progressed for {case.seconds_since(since_us) / 60:.0f} min, more than {case.phases.allowance_source}"
    )
    lines = tuple(line for line in (*gpu_lines(case), case.freshness.progress, *phase_lines(case)) if line is not None)
    pairs = case.pipeline.pairs(ProcessRole.POLICY, since_us)
    if not pairs:
        what = "live stacks of the policy ranks, two of each at least a minute apart"
        refused = [
            gap_of(what, refusal) for refusal in newest_first(case.pipeline.stack_failures) if refusal.at_us >= since_us
        ]
        gaps = refused[:2] or [Gap(what, "no such stacks are on record since the last progress")]
        return unjudged("UNMEASURED", f"{silent}; whether they stand still can't be told", *gaps, evidence=lines)
    if not all(stands_still(pair) for pair in pairs):
        return None
    frame = pairs[0][1].frames[0] if pairs[0][1].frames else "no frame"
    reason = f"{silent}; {len(pairs)} policy ranks stand in the same frames ({frame})"
    fix = "find what the policy ranks wait for (their stacks name the frame), fix it and relaunch from the checkpoint"
    return failed("IDLE_TRAINING", reason, *lines, pairs[0][0].evidence, pairs[0][1].evidence, fix=fix)


def stands_still(pair: tuple[StackDump, StackDump]) -> bool:
    """Whether a process is at the same place in both dumps."""
    return bool(pair[0].frames) and pair[0].frames == pair[1].frames


def _all_idle(case: Case) -> bool:
    newest = {poll.target: poll for poll in case.gpus.policy}
    before = {poll.target: poll for poll in case.gpus.policy_before}
    unseen = {entry.partition(":")[0] for entry in case.facts.facts.policy_mesh} & set(case.gpus.unasked)
    if not newest or unseen or newest.keys() - before.keys():
        return False
    fresh = all(case.seconds_since(poll.at_us) <= GPU_POLL_MAX_AGE for poll in newest.values())
    return fresh and all(_idle(poll) for poll in (*newest.values(), *before.values()))


def _idle(poll: TargetPoll) -> bool:
    used = [card.utilization_percent for card in poll.gpus]
    return bool(used) and all(percent is not None and percent <= IDLE_UTILIZATION_PERCENT for percent in used)


def training(case: Case) -> Ruling | None:
    """Training stage otherwise; low running counts of the engines meanwhile are healthy backpressure."""
    if case.phases.stage is not Stage.TRAINING:
        return None
    phase = case.phases.innermost
    name = "a training phase" if phase is None else phase.name
    reason = f"the trainer is in {name}: {gpu_words(case)}; what the engines hold meanwhile is no sign of hunger"
    return passed("TRAINING", reason, *gpu_lines(case), *phase_lines(case))
