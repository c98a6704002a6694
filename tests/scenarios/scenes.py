"""Scenes: whole pieces of a run that a scenario needs and is not about, and bursts that no line tells alone.

`scene` is the speaker and the text names the piece with its settings, as in `step 3  wait=160 train=130`.
"""

import re
import shlex
from collections.abc import Callable, Mapping

from tests.captures.writing import bring_up, deaths, polls, trainer
from tests.captures.writing.engines import Load, busy, report, serve
from tests.captures.writing.run import Run
from tests.captures.writing.trainer import Pace
from tests.captures.writing.trials import trial
from tests.scenarios.speakers import Cue, Speaks, actor_of

Settings = Mapping[str, str]
Scene = Callable[[Run, Cue, re.Match[str], Settings], None]
PACE = ("wait", "forward", "train", "sync")


def settings(text: str) -> tuple[str, dict[str, str]]:
    """The words of a line, and its `key=value` pairs (quoted where they hold spaces)."""
    words, pairs = [], {}
    for word in shlex.split(text):
        key, equals, value = word.partition("=")
        if equals and re.fullmatch(r"[\w/]+", key):
            pairs[key] = value
        else:
            words.append(word)
    return " ".join(words), pairs


def _comes_up(run: Run, cue: Cue, found: re.Match[str], said: Settings) -> None:
    """Bring-up to the moment before the first phase: 700 s of lines."""
    bring_up.pods_start(run, cue.at)
    bring_up.driver_starts(run, cue.at, steps=int(said.get("steps", 60)))


def _pods_start(run: Run, cue: Cue, found: re.Match[str], said: Settings) -> None:
    bring_up.pods_start(run, cue.at, int(said.get("joined", 4)))


def _starts_up(run: Run, cue: Cue, found: re.Match[str], said: Settings) -> None:
    trainer.starts_up(run, cue.at, int(said.get("resumed", 0)))


def _step(run: Run, cue: Cue, found: re.Match[str], said: Settings) -> None:
    """A whole step; settings that are no pace and no reward are metrics of it."""
    pace = Pace(**{name: float(said[name]) for name in PACE if name in said})
    metrics = {name: float(value) for name, value in said.items() if name not in (*PACE, "reward", "of")}
    trainer.step(
        run,
        cue.at,
        int(found["number"]),
        pace,
        int(said.get("of", 60)),
        lambda: busy(run),
        float(said.get("reward", 0.31)),
        metrics,
    )


def _aborts(run: Run, cue: Cue, found: re.Match[str], said: Settings) -> None:
    deaths.watchdog_aborts(run, cue.at, run.policy[int(found["number"])])


def _barks(run: Run, cue: Cue, found: re.Match[str], said: Settings) -> None:
    deaths.watchdog_barks(run, cue.at, run.policy[int(found["number"])])


def _forward(run: Run, cue: Cue, found: re.Match[str], said: Settings) -> None:
    trainer.forward_enters(run, cue.at)


def _kernel_kills(run: Run, cue: Cue, found: re.Match[str], said: Settings) -> None:
    deaths.kernel_kills(run, cue.at, actor_of(run, found["who"]))


def _shut_down(run: Run, cue: Cue, found: re.Match[str], said: Settings) -> None:
    deaths.shut_down(run, cue.at, int(said.get("exit", 1)))


def _rest_is_well(run: Run, cue: Cue, found: re.Match[str], said: Settings) -> None:
    """What gates B and C ask for, in good order until the given time: cards, engines at work, a trial that earns its
    reward within the first minute."""
    trial(run, 900 + run.attempt, cue.at + 50, 1.0, took=50)
    _machines_are_well(run, cue, found, said)


def _machines_are_well(run: Run, cue: Cue, found: re.Match[str], said: Settings) -> None:
    """What gate B alone asks for: cards and engines at work until the given time."""
    assert cue.until is not None, "well until when?"
    serve(run, cue.at, cue.until, lambda: busy(run, 40))
    at = cue.at
    while at <= cue.until - 4:
        polls.gpu(run, at, int(said.get("policy", 88)), 71)
        at += 240


def _engines(run: Run, cue: Cue, found: re.Match[str], said: Settings) -> None:
    load = _load(said)
    for engine in run.engines:
        report(run, cue.at + engine.rank / 7, engine, load)


def _engine(run: Run, cue: Cue, found: re.Match[str], said: Settings) -> None:
    report(run, cue.at, run.engines[int(found["number"])], _load(said))


def _load(said: Settings) -> Load:
    number = {name: float(value) for name, value in said.items()}
    return Load(
        int(number.pop("running")),
        int(number.pop("waiting", 0)),
        number.pop("kv", 0.0),
        number.pop("prompt", 0.0),
        number.pop("generation", 0.0),
        **number,
    )


SCENES: dict[str, Scene] = {
    r"it comes up": _comes_up,
    r"pods start": _pods_start,
    r"the trainer starts up": _starts_up,
    r"step (?P<number>\d+)": _step,
    r"rank (?P<number>\d+) aborts": _aborts,
    r"rank (?P<number>\d+)'s watchdog barks": _barks,
    r"all ranks enter the forward": _forward,
    r"the kernel kills (?P<who>(?:rank|engine|coordinator) \d+)": _kernel_kills,
    r"the driver shuts down": _shut_down,
    r"the rest is well": _rest_is_well,
    r"the machines are well": _machines_are_well,
    r"all engines report": _engines,
    r"engine (?P<number>\d+) reports": _engine,
}
"""Scenes by their words. Every `key=value` of the line is a setting."""


def _scene(run: Run, cue: Cue, found: re.Match[str]) -> None:
    words, said = settings(cue.text.replace("'s watchdog", "`s watchdog"))
    words = words.replace("`s", "'s")
    for pattern, scene in SCENES.items():
        if matched := re.fullmatch(pattern, words):
            scene(run, cue, matched, said)
            return
    raise LookupError(f"no scene of the name: {words}")


SPEAKERS: dict[str, Speaks] = {r"scene": _scene}
