"""What a healthy run says beside its work: every benign line of the catalogue, look-alikes, errors that are handled."""

import random
import re
from dataclasses import dataclass
from functools import cache

from extractors.catalogue import CATALOGUE
from extractors.pattern import Nature, Pattern, Role
from extractors.sample import read_sample
from extractors.signal import Teardown
from state.causes import CAUSES
from state.gates.oom import DEATHS, TRAINER_DEATHS
from tests.captures.writing.run import Actor, Run
from tests.walks.stamps import moved_to

ENDS = DEATHS | TRAINER_DEATHS
"""Causes whose line says that a process has ended: such a process does not go on in the next line."""
_TRANSPORT = re.compile(r"^\[\d\d:\d\d:\d\d\] task=\S+ \| ", re.MULTILINE)
_TAG = re.compile(r"^(?:\x1b\[\d+m)?\([A-Z_a-z]\w* pid=\d+(?:, ip=[^)]*)?\)(?:\x1b\[0m)? ", re.MULTILINE)
_OF_RAY = re.compile(r"\((?:raylet|autoscaler|gcs_server)")


@dataclass(frozen=True, slots=True)
class Said:
    """A line (or several) of the catalogue: which pattern owns it, and what it is there."""

    pattern: str
    kind: str
    text: str


@cache
def benign() -> tuple[Said, ...]:
    """Every sample of every benign pattern."""
    return tuple(
        Said(entry.name, "benign", sample) for entry in _patterns() if _is_benign(entry) for sample in entry.samples
    )


@cache
def lookalikes() -> tuple[Said, ...]:
    """The look-alikes of all patterns, but for those that another pattern rightly reads as more than chatter."""
    return tuple(
        Said(entry.name, "look-alike", text)
        for entry in _patterns()
        for text in entry.rejects
        if all(_is_benign(CATALOGUE.by_name[name]) for name, _ in read_sample(text))
    )


@cache
def errors() -> tuple[Said, ...]:
    """Every sample of an error that its process can survive, and of the survivors' cascade. What confirms a kill is
    none."""
    return tuple(
        Said(entry.name, "error", sample)
        for entry in _patterns()
        if entry.nature is Nature.FAULT and entry.role is not Role.CONFIRMS and not _is_benign(entry)
        for sample, signal in entry.samples.items()
        if _is_survivable(getattr(signal, "cause", ""))
    )


@cache
def of_a_living_run() -> tuple[Said, ...]:
    """The benign lines and look-alikes that do not say that something shuts down."""
    closing = {name for name in (said.pattern for said in benign()) if _closes(CATALOGUE.by_name[name])}
    return tuple(said for said in (*benign(), *lookalikes()) if said.pattern not in closing)


def _patterns() -> tuple[Pattern, ...]:
    return CATALOGUE.whole.patterns


def _is_benign(entry: Pattern) -> bool:
    return entry.nature is Nature.BENIGN or entry.role is Role.BENIGN


def _closes(entry: Pattern) -> bool:
    return any(isinstance(signal, Teardown) for signal in entry.samples.values())


def _is_survivable(cause: str) -> bool:
    return cause in CAUSES and cause not in ENDS and not CAUSES[cause].fatal


def share(pool: tuple[Said, ...], seed: int, count: int) -> list[Said]:
    """The lines that this seed throws in: consecutive seeds take consecutive shares, so that many take all."""
    order = list(range(len(pool)))
    random.Random(len(pool)).shuffle(order)
    return [pool[order[(seed * count + turn) % len(pool)]] for turn in range(count)]


def throw(run: Run, rng: random.Random, at: float, said: Said) -> None:
    """Lets somebody say it: an actor, in both homes or in its own, or a pod."""
    text = moved_to(_TRANSPORT.sub("", said.text), run.clock.moment(at))
    if _OF_RAY.match(text):
        run.supervisor(at, 0, text)
        return
    text = _TAG.sub("", text)
    actors: list[Actor] = [run.entry, *run.policy, *run.engines, *run.coordinators]
    if said.kind == "error":
        _is_caught(run, at, rng.choice(actors), text)
        return
    if rng.random() < 0.2:
        for line in text.split("\n"):
            run.supervisor(at, rng.randrange(4), line)
        return
    run.say(at, rng.choice(actors), text, rng.choice(("out", "err")), echo=rng.random() < 0.8)


def _is_caught(run: Run, at: float, actor: Actor, text: str) -> None:
    """An error as code prints it that goes on: a word of its own before it, which also dates it."""
    run.log(at, actor, "skyrl_train.utils.retry:attempt:51", "attempt 1 failed, trying again:", "WARNING")
    run.say(at + 0.01, actor, text)
