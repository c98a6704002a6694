"""What GATES allows a phase of a walk, reckoned from its timers alone and apart from the code under test."""

import re

from state.policy import PHASE_STAGES, STAGE_FLOORS, Stage
from tests.walks.walk import Walk

_TIMER = re.compile(r" - (Started|Finished): '(\w+)'(?:, time cost: ([\d.]+)s)?$")
_PROGRESS = re.compile(
    r"Started: '|Finished: '|WANDB_MIRROR|Generation Buffer Progress|Training \w+ (?:Progress|Processed): |step=\d+ |"
    r"WORKER_FORWARD_ENTER|Policy Train epoch|saved checkpoint|Evaluation Progress"
)


def newest_progress(walk: Walk) -> float:
    """When the trainer last moved, in seconds of the run. The first line of a buffer shows no rise yet."""
    newest, waits = 0.0, False
    for at, text in _said(walk):
        first, waits = waits and "Buffer Progress" in text, waits and "Buffer Progress" not in text
        waits = waits or "Started: 'wait_for_generation_buffer'" in text
        if _PROGRESS.search(text) and not first:
            newest = max(newest, at)
    return newest


def allowance(walk: Walk) -> float:
    """What the innermost open phase may take, in seconds: its floor, twice that for the first time, or three times the
    longest so far; [expect] before all. A producer's phase does not stop its trainer from being in another one."""
    open_: list[str] = []
    longest: dict[str, float] = {}
    stage = Stage.BRING_UP
    for _, text in _said(walk):
        found = _TIMER.search(text)
        if found is None:
            continue
        begun, name, took = found[1] == "Started", found[2], found[3]
        if begun:
            open_ = [other for other in open_ if other != name and (name != "step" or other == "generate")] + [name]
        else:
            inner = open_[open_.index(name) + 1 :] if name in open_ else []
            open_ = open_[: open_.index(name)] if name in open_ else open_
            open_ += [other for other in inner if other == "generate"]
            longest[name] = max(longest.get(name, 0.0), float(took))
        innermost = open_[-1] if open_ else ""
        if (begun and name != "step") or (not begun and innermost not in ("", "step")):
            stage = PHASE_STAGES.get(innermost, Stage.TRAINING)
        elif begun and stage is Stage.BRING_UP:
            stage = Stage.GENERATION
    beside = [name for name in reversed(open_[:-1]) if name != "step"][:1] if open_[-1:] == ["generate"] else []
    awaited = [(stage, open_[-1] if open_ else ""), *((PHASE_STAGES.get(n, Stage.TRAINING), n) for n in beside)]
    return max(_of(walk, stage, name, longest) for stage, name in awaited)


def _of(walk: Walk, stage: Stage, name: str, longest: dict[str, float]) -> float:
    said = walk.facts.get("expect", {}).get("phases", {}).get(name)
    if said is not None:
        return float(said.removesuffix("m")) * 60
    floor = STAGE_FLOORS[stage]
    if name and name not in longest:
        return 2 * floor
    return max(floor, 3 * longest.get(name, 0.0))


def _said(walk: Walk) -> list[tuple[float, str]]:
    """What the trainer and the policy ranks said of their work up to now, in time."""
    run = walk.run
    actors = [run.entry, *run.policy]
    files = [walk.spoken.get(run.worker_file(actor, stream), []) for actor in actors for stream in ("err", "out")]
    return sorted((at, text) for file in files for at, _, text in file if at <= walk.at)
