"""What a poll of the cards says: near a utilisation or exactly at it, one role refused or not asked, smaller cards."""

from tests.captures.writing import polls
from tests.captures.writing.polls import NO_CONTAINER, SMI, Answer, inside, record
from tests.captures.writing.run import Run
from tests.scenarios.scenes import settings

_HEAD = "index, utilization.gpu [%], power.draw [W], memory.used [MiB], memory.total [MiB]"
_PODS = {"policy": (0, 1), "engine": (2, 3)}


def poll(run: Run, at: float, text: str) -> None:
    """`policy=88 engine=71` near these percents; `exactly policy=5 engine=71 memory=40960`; `refused`; of the exact
    form a role may be `refused`, `blank` (the tool fills no cell) or left out (not asked)."""
    words, said = settings(text)
    if words == "refused":
        polls.gpu_refused(run, at)
    elif words == "exactly":
        for role, share in said.items():
            for rank in _PODS.get(role, ()):
                pod = run.pod(rank)
                record(run, at + rank, "gpu", inside(run, pod, *SMI), _answer(run, share, said), pod)
    else:
        polls.gpu(run, at, int(said["policy"]), int(said["engine"]))


def _answer(run: Run, share: str, said: dict[str, str]) -> Answer:
    if share == "refused":
        return Answer(stderr=NO_CONTAINER, exit=1)
    size, watts = said.get("memory", "81559"), said.get("watts", "287.40")
    used = "[N/A]" if share == "blank" else f"{share} %"
    rows = [f"{card}, {used}, {watts} W, 38117 MiB, {size} MiB" for card in range(run.gpus)]
    return Answer("\n".join((_HEAD, *rows)) + "\n")
