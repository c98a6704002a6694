"""Who speaks in a scenario: which file a line goes to and which prefixes it wears. README.md lists them for writers.

A speaker is a pattern of words and the function that lets it speak. Its lines are written by the same builders as the
recorded captures (tests/captures/writing), onto a job of four pods: policy ranks 0-3 on pods 0 and 1, engines 0-3 on
pods 2 and 3, two coordinators, and the trainer in the entry task on pod 0.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from tests.captures.writing.deaths import c10
from tests.captures.writing.run import Actor, Run
from tests.captures.writing.trainer import LOOP


@dataclass(frozen=True, slots=True)
class Cue:
    """A line to be said: its text, when (seconds after the run's start), and until when a scene goes on."""

    at: float
    text: str
    until: float | None = None


class Speaks(Protocol):
    """Lets a speaker say its line. found is the match of the speaker's words."""

    def __call__(self, run: Run, cue: Cue, found: re.Match[str]) -> None: ...


_ACTOR = r"(?P<who>trainer|(?:rank|engine|coordinator) (?P<number>\d+))(?: (?P<home>alone|echoed))?(?: (?P<form>\w+))?"
_DEFAULT_FORMS = {"trainer": "logs", "rank": "logs", "engine": "info", "coordinator": "logs"}


def actor_of(run: Run, who: str) -> Actor:
    """The actor of `trainer`, `rank 3`, `engine 0`, `coordinator 1`."""
    kind, _, number = who.partition(" ")
    if kind == "trainer":
        return run.entry
    return {"rank": run.policy, "engine": run.engines, "coordinator": run.coordinators}[kind][int(number)]


def _speaks(run: Run, cue: Cue, found: re.Match[str]) -> None:
    who = found["who"]
    form = found["form"] or _DEFAULT_FORMS[who.split()[0]]
    stream, dress = _FORMS[form]
    actor = actor_of(run, who)
    text = dress(run, cue.at, actor, cue.text)
    if found["home"] == "echoed":
        run.echoed(cue.at, actor, text)
    else:
        run.say(cue.at, actor, text, stream, echo=found["home"] != "alone")


def _loguru(run: Run, at: float, actor: Actor, text: str) -> str:
    return f"{run.clock.loguru(at)} | INFO     | {LOOP}:658 - {text}"


def _vllm(severity: str) -> Callable[[Run, float, Actor, str], str]:
    def dressed(run: Run, at: float, actor: Actor, text: str) -> str:
        return "\n".join(f"{severity} {run.clock.vllm(at)} [core.py:1101] {line}" for line in text.split("\n"))

    return dressed


def _c10(run: Run, at: float, actor: Actor, text: str) -> str:
    heads = Run(run.name, run.job, run.start, attempt=run.attempt)
    for number, line in enumerate(text.split("\n")):
        c10(heads, at + number / 1000, actor, line)
    return "\n".join(line.text for line in heads.lines)


def _nccl(run: Run, at: float, actor: Actor, text: str) -> str:
    return f"{run.nodes[actor.node]}:{actor.pid}:{actor.pid + 80} [{actor.rank % run.gpus}] NCCL INFO {text}"


def _plain(run: Run, at: float, actor: Actor, text: str) -> str:
    return text


_FORMS: dict[str, tuple[str, Callable[[Run, float, Actor, str], str]]] = {
    "logs": ("err", _loguru),
    "prints": ("out", _plain),
    "info": ("out", _vllm("INFO")),
    "error": ("out", _vllm("ERROR")),
    "c10": ("err", _c10),
    "nccl": ("out", _nccl),
}
"""How a line is dressed, by name: the stream of the actor's file, and the prefix."""


def _driver(run: Run, cue: Cue, found: re.Match[str]) -> None:
    for line in cue.text.split("\n"):
        run.supervisor(cue.at, int(found["pod"] or 0), line)


def _raylet(run: Run, cue: Cue, found: re.Match[str]) -> None:
    head = f"[{run.clock.ray(cue.at)} I 61 61] (raylet) "
    run.daemon(cue.at, int(found["pod"]), "raylet.out", head + cue.text)


def _attempt(run: Run, cue: Cue, found: re.Match[str]) -> None:
    run.cast(int(found["number"]))


SPEAKERS: dict[str, Speaks] = {
    _ACTOR: _speaks,
    r"driver|pod (?P<pod>\d+)": _driver,
    r"raylet (?P<pod>\d+)": _raylet,
    r"attempt (?P<number>\d+)": _attempt,
}
