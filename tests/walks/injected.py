"""Faults that are put into a healthy run at a random time, each with what must be said of it, and when.

Each takes a walk that has come up and taken some steps, and gives what is expected. Times are seconds of the run.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass

from tests.captures.writing import deaths, processes
from tests.captures.writing import trainer as writing
from tests.captures.writing.engines import Load
from tests.captures.writing.run import Actor
from tests.captures.writing.trials import ADD_TESTS, Failure, trial
from tests.walks import oracle
from tests.walks.walk import Walk

BUSY = Load(34, 1, 44.0, 1100.0, 2500.0)
HUNGRY = Load(2, 0, 1.0, 60.0, 120.0)
UNDATED = 300.0
"""In a Slurm log a line without a time has that of the line before it."""
SLACK = 25.0
"""Two beats, and what a poll takes to be written."""


@dataclass(frozen=True, slots=True)
class Told:
    """What must be said: a KILL by this gate (or `restarts`) with this condition and one of these causes, no earlier
    than its evidence is whole and no later than GATES allows."""

    gate: str
    condition: str
    causes: tuple[str, ...]
    earliest: float
    latest: float


def rank_aborts(walk: Walk) -> Told:
    """A rank's watchdog ends its process; the engines go on."""
    at = _breaks_off(walk)
    deaths.watchdog_aborts(walk.run, at + 1, walk.rng.choice(walk.run.policy))
    due = max(oracle.newest_progress(walk) + 900, at + 61)
    return _lives_on(walk, at, Told("A", "WEDGED", ("collective_timeout",), due, max(due, at + 61) + walk.every))


def raylet_dies(walk: Walk) -> Told:
    """A node's raylet is gone, with all on it."""
    at = _breaks_off(walk)
    words = (
        f"(raylet, ip={walk.run.ip(1)}) Raylet is terminated. Termination is unexpected. Possible reasons include: (1)"
        " SIGKILL by the user or system OOM killer, (2) Invalid memory access from Raylet"
    )
    walk.run.supervisor(at + 1, 0, words)
    return _hangs(walk, at, ("raylet_died",))


def policy_actor_dies(walk: Walk) -> Told:
    """Ray's driver reports that a policy actor is dead; nothing tells why."""
    at = _breaks_off(walk)
    rank = walk.rng.choice(walk.run.policy)
    words = (
        "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n"
        f"\tclass_name: {rank.kind}\n\tactor_id: {walk.run.hex('actor', rank.pid, size=32)}\n\tpid: {rank.pid}"
    )
    walk.run.say(at + 1, walk.run.entry, words)
    deaths.worker_exits(walk.run, at + 1, rank)
    return _hangs(walk, at, ("actor_died", "worker_crashed"))


def put_times_out(walk: Walk) -> Told:
    """A coordinator's bounded put does not return."""
    at = _breaks_off(walk)
    words = (
        "skyrl_train.distributed.dispatch.DispatchPutTimeoutError: ray.put() for dp chunk 1 did not return within 600s"
        " (SKYRL_DISPATCH_PUT_TIMEOUT_S)."
    )
    walk.run.say(at + 1, walk.rng.choice(walk.run.coordinators), words, "out")
    return _hangs(walk, at, ("bounded_put_timeout",))


def falls_silent(walk: Walk) -> Told:
    """No line tells of it: two captures of the same frames do."""
    at = _breaks_off(walk)
    due = oracle.newest_progress(walk) + oracle.allowance(walk)
    first = walk.rng.uniform(at + 5, due + 300)
    second = first + walk.rng.uniform(70, 240)
    for when in (first, second):
        _dump(walk, when, walk.run.policy, processes.IN_COLLECTIVE)
    due = max(due, second)
    return _lives_on(walk, at, Told("A", "WEDGED", (), due, due + walk.every))


def communicator_stays_half_built(walk: Walk) -> Told:
    """The policy mesh never forms: its ranks began and never completed."""
    walk.facts["expect"] = {"bring_up": "20m"}
    walk.cut(walk.since + walk.rng.uniform(312.7, 314.3))
    at = walk.at
    due = at + 600
    when = walk.rng.uniform(due, due + 900)
    _dump(walk, when, walk.run.policy[:1], ("init_process_group (torch/distributed.py:88)",))
    return _lives_on(walk, at, Told("A", "WEDGED", (), when, max(when, 1260) + walk.every), serving=False)


def kernel_kills_a_rank(walk: Walk) -> Told:
    """The kernel ends a policy rank for its memory."""
    at = _breaks_off(walk)
    deaths.kernel_kills(walk.run, at + 1, walk.rng.choice(walk.run.policy))
    return _lives_on(walk, at, Told("B", "OOM_HOST", ("host_oom",), at + 1, at + 8))


def cards_run_out_of_memory(walk: Walk) -> Told:
    """A rank meets the end of its card's memory, and the train loop fails."""
    at = _breaks_off(walk)
    message = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.50 GiB. GPU 0 has a total capacity of 79.11"
        " GiB of which 1.02 GiB is free."
    )
    rank = walk.rng.choice(walk.run.policy)
    frame = '  File "/opt/skyrl/skyrl_train/workers/worker.py", line 771, in ppo_train\n    loss.backward()\n'
    walk.run.say(at + 1, rank, f"Traceback (most recent call last):\n{frame}{message}")
    frames = (("skyrl_train/trainer.py", 203, "train"),)
    deaths.train_loop_fails(
        walk.run, at + 3, walk.done, f"ray.exceptions.RayTaskError(OutOfMemoryError): {message}", frames
    )
    return _lives_on(walk, at, Told("B", "OOM_GPU", ("cuda_oom",), at + 1, at + 8))


def engine_dies(walk: Walk) -> Told:
    """An engine meets weights without data; the driver gives up, and the job has failed."""
    at = _breaks_off(walk)
    deaths.meta_tensors(walk.run, at + 1, walk.rng.choice(walk.run.engines))
    over = deaths.shut_down(walk.run, at + 40, 1)
    walk.place.failures += 1
    seen = over + walk.rng.uniform(10, walk.every)
    walk.watched(walk.since + 30, over, flaky=0.0)
    walk.place.state(walk.run, seen, "failed", 1)
    walk.place.state(walk.run, seen + walk.every, "failed", 1)
    return Told("A", "DEAD", ("engine_meta_tensors",), over, seen + SLACK)


def done_and_not_gone(walk: Walk) -> Told:
    """Training is done, and the job goes on holding its cards."""
    at = walk.at
    walk.run.log(at, walk.run.entry, "skyrl_train.trainer:_train_loop:1329", "Training done!")
    return _lives_on(walk, at, Told("A", "WEDGED", ("done_not_exited",), at + 900, at + 900 + walk.every))


def sandboxes_are_never_built(walk: Walk) -> Told:
    """Every trial ends with the add-tests error."""
    return _trials_fail(walk, ADD_TESTS, "CONTAINER_FAULT", walk.rng.uniform(300, 3000))


def provider_refuses(walk: Walk) -> Told:
    """Every trial of two slots and more ends with one infrastructure exception."""
    failure = Failure(
        "DaytonaNotFoundError", "daytona.common.errors", "no runner", '  File "/opt/d.py", line 61, in call'
    )
    return _trials_fail(walk, failure, "INFRA_FAULT", walk.rng.uniform(2400, 3600))


def verifier_breaks(walk: Walk) -> Told:
    """The verifier fails in every trial."""
    failure = Failure(
        "VerifierRuntimeError", "harbor.trial.errors", "verifier crashed", '  File "/opt/h.py", line 333, in run'
    )
    return _trials_fail(walk, failure, "VERIFIER_FAULT", walk.rng.uniform(2400, 3600))


def outputs_are_junk(walk: Walk) -> Told:
    """The model repeats itself without end."""
    start, ends = walk.at, []
    _generates(walk, start, start + 1500)
    for number in range(40, 52):
        ends.append(start + 100 + 100 * (number - 40) + walk.rng.uniform(0, 60))
        trial(walk.run, number, ends[-1], 0.0, took=60)
    for path, body in walk.run.artifacts.items():
        if path.endswith("trajectory.json"):
            walk.run.artifacts[path] = _junk(body)
    walk.watched(walk.since + 30, start + 1500, flaky=0.0)
    return Told("C", "INCOHERENT", (), ends[0], ends[-1] + SLACK)


def starves(walk: Walk) -> Told:
    """The buffer stands still before nearly empty engines, and all of the pipeline is measured."""
    start = walk.at
    _generates(walk, start, start + 200)
    frozen, end = start + 200, start + 2400
    for tick in range(1, int((end - frozen) // 60)):
        writing.buffer_line(walk.run, frozen + 60 * tick, 27, start)
    walk.serves(frozen, end, HUNGRY, 30.0)
    used, first = 0.3 * frozen, frozen + walk.rng.uniform(30, 300)
    second = first + walk.rng.uniform(300, 600)
    share = walk.rng.choice((0.2, 0.97))
    processes.ps(walk.run, first, used)
    processes.ps(walk.run, second, used + share * (second - first))
    dumped = frozen + walk.rng.uniform(60, 1200)
    _dump(walk, dumped, walk.run.policy[:2], processes.WAITING)
    _dump(walk, dumped + 10, walk.run.coordinators, processes.DISPATCHING)
    _dump(walk, dumped + 20, walk.run.engines[:1], processes.STEPPING)
    walk.watched(walk.since + 30, end, flaky=0.0)
    due = max(frozen + 600, second, dumped + 10)
    return Told("B", "STARVED", (), due - 60, due + 60 + SLACK + 60)


def crashes_again(walk: Walk) -> Told:
    """Two attempts die of the same exception at the same place."""
    frames = (("skyrl_train/trainer.py", 203, "train"), ("skyrl_train/routing.py", 88, "replay"))
    second = 0.0
    for size in (512, 448):
        walk.watched(walk.since + 30, walk.at, flaky=0.0)
        walk.cut(walk.rng.uniform(walk.steps[-1][0] + 5, walk.at))
        second = walk.at + 1
        message = f"ValueError: expert map covers {size} of 576 sequences"
        deaths.train_loop_fails(walk.run, second, walk.done, message, frames)
        over = deaths.shut_down(walk.run, walk.at + 4, 1)
        walk.place.failures += 1
        walk.place.state(walk.run, over + 20, "pending")
        walk.at, walk.done = over + walk.rng.uniform(60, 300), 0
        walk.run.cast(walk.run.attempt + 1)
        walk.comes_up()
        walk.takes(1)
    walk.watched(walk.since + 30, walk.at, flaky=0.0)
    return Told("restarts", "", ("python_exception",), second, walk.since + 30 + SLACK)


def loss_is_no_number(walk: Walk) -> Told:
    """From some step on the loss is NaN."""
    bad = walk.rng.choice(("policy/final_loss", "policy/raw_grad_norm"))
    ends = []
    for number in range(walk.done + 1, 16):
        pace = writing.Pace(5, 5, walk.rng.uniform(10, 30), 3)
        changed = {bad: float("nan")} if number >= 12 else None
        walk.at = writing.step(walk.run, walk.at, number, pace, 60, reward=0.3, changed=changed)
        ends.append(walk.at)
    walk.watched(walk.since + 30, walk.at + walk.every, flaky=0.0)
    return Told("D", "COLLAPSED", (), ends[-4], ends[-3] + SLACK)


Inject = Callable[[Walk], Told]
ANYWHERE: tuple[Inject, ...] = (
    rank_aborts,
    kernel_kills_a_rank,
    cards_run_out_of_memory,
    engine_dies,
    done_and_not_gone,
    sandboxes_are_never_built,
    provider_refuses,
    verifier_breaks,
    outputs_are_junk,
    crashes_again,
)
"""Faults of any trainer of ours."""
TIMED: tuple[Inject, ...] = (raylet_dies, policy_actor_dies, put_times_out, falls_silent, communicator_stays_half_built)
"""Faults that the allowance of an open phase judges."""
BUFFERED: tuple[Inject, ...] = (starves, loss_is_no_number)
"""Faults that only the fully asynchronous trainer shows so."""
FAULTS: tuple[Inject, ...] = (*ANYWHERE, *TIMED, *BUFFERED)


# --- how a run goes on
def _breaks_off(walk: Walk) -> float:
    """The trainer says nothing more from a random time on; gives the time."""
    walk.cut(walk.rng.uniform(walk.steps[-1][0] + 1, walk.at))
    return walk.at


def _hangs(walk: Walk, at: float, causes: tuple[str, ...]) -> Told:
    """A signature that needs one live stack since the newest progress."""
    due = oracle.newest_progress(walk) + oracle.allowance(walk)
    when = walk.rng.uniform(at + 5, due + 600)
    _dump(walk, when, walk.run.policy[:1], processes.IN_COLLECTIVE)
    due = max(due, when)
    return _lives_on(walk, at, Told("A", "WEDGED", causes, due, due + walk.every))


def _lives_on(walk: Walk, at: float, told: Told, serving: bool = True) -> Told:
    """Engines and polls go on until it must have been said."""
    end = told.latest + walk.every + 30
    if serving:
        walk.serves(at, end, BUSY, 120.0)
    walk.watched(walk.since + 30, end, flaky=0.0)
    undated = UNDATED if walk.place.kind == "slurm" else 0.0
    return Told(told.gate, told.condition, told.causes, told.earliest - undated, told.latest + SLACK)


def _dump(walk: Walk, at: float, actors: list[Actor], frames: tuple[str, ...]) -> None:
    for number, actor in enumerate(actors):
        processes.stack(walk.run, at + number / 10, actor, "run", frames)


def _generates(walk: Walk, start: float, end: float) -> None:
    """The next step's buffer fills, slowly, before engines at work."""
    writing.started(walk.run, start, "step", 210)
    writing.started(walk.run, start + 0.1, "wait_for_generation_buffer")
    ticks = max(2, int((end - start) // 60))
    for tick in range(1, ticks):
        writing.buffer_line(walk.run, start + 60 * tick, min(63, 9 * tick if end - start < 300 else tick), start)
    walk.serves(start, end, BUSY)


def _trials_fail(walk: Walk, failure: Failure, condition: str, length: float) -> Told:
    """So many trials end in this way and no other, from the run's first step on."""
    walk.run.artifacts.clear()
    start = walk.at
    _generates(walk, start, start + length)
    ends = sorted(walk.rng.uniform(start + 20, start + length - 40) for _ in range(30))
    for number, ended in enumerate(ends):
        trial(walk.run, number, ended, None, failure, took=15)
    walk.watched(walk.since + 30, start + length, flaky=0.0)
    return Told("C", condition, (), ends[19], ends[-1] + SLACK)


def _junk(body: bytes) -> bytes:
    told = json.loads(body)
    for step in told["steps"]:
        if step["source"] == "agent":
            step["message"] = "the tests of the tests of " * 80
    return json.dumps(told).encode()
