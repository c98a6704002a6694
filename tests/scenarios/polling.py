"""What a scenario's polls say: `poll state`, `poll pods`, `poll gpus`, `poll procs`, `poll stacks`, `poll trials`."""

import re
from collections.abc import Callable

from tests.captures.writing import polls, processes
from tests.captures.writing.polls import Answer, record
from tests.captures.writing.run import Actor, Run
from tests.scenarios import cards
from tests.scenarios.scenes import settings
from tests.scenarios.speakers import Cue, Speaks, actor_of

PLACES: dict[str, tuple[str, tuple[str, ...]]] = {
    "in a collective": ("ppo_train", processes.IN_COLLECTIVE),
    "waiting for work": ("idle", processes.WAITING),
    "dispatching": ("run_batch", processes.DISPATCHING),
    "stepping": ("generate", processes.STEPPING),
}
"""Where a live stack may stand, by its words: the actor's method and its frames."""


def _commands(run: Run) -> dict[str, tuple[str, list[str]]]:
    """The probe's own name and its command, by the scenario's name of the poll."""
    kubectl = ["kubectl", "-n", "iris"]
    return {
        "state": ("state", ["iris_ops.py", run.job, "--once", "--json"]),
        "slurm": ("state", ["scontrol", "show", "job", "-o", "48211"]),
        "pods": ("pods", [*kubectl, "get", "pods", "-l", f"iris-job={run.slug}", "-o", "wide"]),
        "gpus": ("gpu", polls.inside(run, run.pod(0), *polls.SMI)),
        "procs": ("procs", polls.inside(run, run.pod(2), *processes.PS)),
        "stacks": ("stacks", polls.inside(run, run.pod(0), "py-spy", "dump", "--pid", str(run.policy[0].pid))),
        "trials": ("trials", ["aws", "s3", "ls", "--recursive", f"s3://iris-task-env{run.job}/trace_jobs/"]),
        "sync": ("sync", ["sync_rl_logs.py", run.job, "--dest", "."]),
    }


def _poll(run: Run, cue: Cue, found: re.Match[str]) -> None:
    """A poll: that failed, that timed out, its raw output, or what its own words say."""
    name = found["probe"]
    probe, command = _commands(run)[name]
    if said := re.match(r"fails(?: exit=(\d+))?(?: (.+))?", cue.text, re.DOTALL):
        record(run, cue.at, probe, command, Answer(stderr=f"{said[2] or 'refused'}\n", exit=int(said[1] or 1)))
    elif cue.text == "times out":
        record(run, cue.at, probe, command, Answer(exit=None, error="timeout after 20 s"))
    elif cue.text.startswith("prints"):
        record(run, cue.at, probe, command, Answer(cue.text.removeprefix("prints").lstrip("\n ") + "\n"))
    else:
        _OWN[name](run, cue)


def _state(run: Run, cue: Cue) -> None:
    word, said = settings(cue.text)
    numbers = {key: int(value) for key, value in said.items() if key != "error"}
    polls.state(run, cue.at, word, error=said.get("error", ""), **numbers)


def _slurm(run: Run, cue: Cue) -> None:
    """`RUNNING restarts=1`, `TIMEOUT reason=TimeLimit exit=0:15`, as scontrol prints a job."""
    word, said = settings(cue.text)
    row = (
        f"JobId=48211 JobName=rl-scenario UserId=mira(4711) JobState={word} Reason={said.get('reason', 'None')}"
        f" Requeue=1 Restarts={said.get('restarts', '0')} ExitCode={said.get('exit', '0:0')} NumNodes=4\n"
    )
    record(run, cue.at, *_commands(run)["slurm"], Answer(row))


def _pods(run: Run, cue: Cue) -> None:
    """`running`; `none`; `1=Evicted 2=Error`; `oomkilled 1` (as JSON)."""
    word, said = settings(cue.text)
    if oom := re.fullmatch(r"oomkilled (\d+)", word):
        polls.pods_json(run, cue.at, int(oom[1]))
    else:
        polls.pods(run, cue.at, {int(rank): status for rank, status in said.items()}, gone=word == "none")


def _gpus(run: Run, cue: Cue) -> None:
    """`policy=88 engine=71` in percent; `refused`; more forms in cards.py."""
    cards.poll(run, cue.at, cue.text)


def _procs(run: Run, cue: Cue) -> None:
    """`coordinators used 340s` of CPU since they began: ps shows it as an average over their lifetime."""
    used = re.fullmatch(r"coordinators used (\d+)s", cue.text)
    assert used is not None, cue.text
    processes.ps(run, cue.at, float(used[1]))


_STACKED = re.compile(r"(?P<kind>rank|engine|coordinator)s? (?P<first>\d+)(?:-(?P<last>\d+))? (?P<place>.+)")


def _stacks(run: Run, cue: Cue) -> None:
    """`ranks 0-3 in a collective`; `coordinator 0 refused`; `rank 1 in f (a.py:1) < g (b.py:2)`."""
    said = re.fullmatch(
        r"(?P<kind>rank|engine|coordinator)s? (?P<first>\d+)(?:-(?P<last>\d+))? (?P<place>.+)", cue.text
    )
    assert said is not None, cue.text
    for number in range(int(said["first"]), int(said["last"] or said["first"]) + 1):
        _stack(run, cue.at + number, actor_of(run, f"{said['kind']} {number}"), said["place"])


def _stack(run: Run, at: float, actor: Actor, place: str) -> None:
    if place == "refused":
        processes.stack_refused(run, at, actor)
    elif place in PLACES:
        method, frames = PLACES[place]
        processes.stack(run, at, actor, method, frames)
    else:
        processes.stack(run, at, actor, "run", tuple(place.removeprefix("in ").split(" < ")))


def _sync(run: Run, cue: Cue) -> None:
    record(run, cue.at, *_commands(run)["sync"], Answer("pulled 58 files\n"))


_OWN: dict[str, Callable[[Run, Cue], None]] = {
    "state": _state,
    "slurm": _slurm,
    "pods": _pods,
    "gpus": _gpus,
    "procs": _procs,
    "stacks": _stacks,
    "sync": _sync,
}


SPEAKERS: dict[str, Speaks] = {
    r"poll (?P<probe>state|slurm|pods|gpus|procs|stacks|trials|sync)": _poll,
}
