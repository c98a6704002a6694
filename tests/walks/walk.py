"""A walk: a run made at random from its seed alone, whole or up to a moment; its polls, trials and noise beside it."""

import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from tests.captures.writing import bring_up, chatter, processes
from tests.captures.writing import trainer as writing
from tests.captures.writing.engines import Load, report
from tests.captures.writing.run import Run
from tests.captures.writing.trials import Failure, trial
from tests.walks import noise
from tests.walks.pace import LONG, pace
from tests.walks.places import PLACES, Place, facts_of
from tests.walks.trainers import TRAINERS, Trainer, evaluates, saves

PLAN = 60
"""Steps that the run is to take: far more than a walk sees."""
FLAKY = Failure(
    "NetworkError",
    "harbor.errors",
    "connection reset by peer",
    '  File "/opt/venv/lib/python3.12/site-packages/harbor/net.py", line 61, in call',
)
PASSED_THROUGH = Failure(
    "AgentTimeoutError",
    "harbor.trial.errors",
    "Agent execution timed out after 1800.0 seconds",
    '  File "/opt/venv/lib/python3.12/site-packages/harbor/trial/trial.py", line 301, in run',
)


@dataclass
class Walk:
    """A run on its way. at is where its timeline stands, in seconds; steps are the (begin, end) of the taken steps of
    the current attempt, done the newest step's number; long is how often a part of a step takes nearly all that it may;
    spoken the actors' files without any noise, once they are kept.
    """

    seed: int
    trainer: Trainer
    place: Place
    run: Run
    rng: random.Random
    facts: dict[str, Any]
    every: float
    at: float = 0.0
    done: int = 0
    steps: list[tuple[float, float]] = field(default_factory=list)
    since: float = 0.0
    long: float = LONG
    spoken: dict[str, list[tuple[float, int, str]]] = field(default_factory=dict)

    def comes_up(self) -> None:
        """From the pods' first line to the first step."""
        began = self.at
        self.since, self.steps = began, []
        if self.trainer.ours:
            bring_up.pods_start(self.run, began)
            self.at = bring_up.driver_starts(self.run, began, steps=PLAN)
        else:
            self._engines_come_up(began)
        if self.trainer.timed:
            self.at = writing.starts_up(self.run, self.at, self.done)

    def _engines_come_up(self, began: float) -> None:
        took = self.rng.uniform(60, 600)
        for actor in (self.run.entry, *self.run.policy, *self.run.engines):
            bring_up.arrives(self.run, began + 20, actor)
        for engine in self.run.engines:
            stamp = self.run.clock.vllm(began + took)
            words = f"INFO {stamp} [default_loader.py:308] Loading weights took 41.20 seconds"
            self.run.say(began + took + engine.rank / 9, engine, words, "out")
        self.at = began + took + 60
        if self.trainer.bar:
            self.run.say(self.at, self.run.entry, writing.tqdm(self.trainer.bar, 0, PLAN, 0.0))

    def takes(self, count: int) -> None:
        """So many steps, with an evaluation or a checkpoint between them now and then."""
        for _ in range(count):
            self.done += 1
            began = self.at
            self.at = self.trainer.step(self.run, self.rng, began, self.done, PLAN, self._pace())
            self.steps.append((began, self.at))
            if self.trainer.timed and self.long and self.rng.random() < 0.2:
                self.at = saves(self.run, self.rng, self.at, self.done)
            if self.trainer.timed and self.long and self.rng.random() < 0.1:
                self.at = evaluates(self.run, self.rng, self.at)

    def _pace(self) -> writing.Pace:
        """A trainer that does not show its first step's begin may not take long for it."""
        first = not self.steps
        return pace(self.rng, first, 0.0 if first and self.trainer.silent else self.long)

    def keeps_its_words(self) -> None:
        """What was said so far is what an oracle reckons with."""
        self.spoken = {path: list(said) for path, said in self.run.actor_files.items()}

    # --- beside the work
    def watched(self, start: float, end: float, flaky: float = 0.05) -> None:
        """Polls of state, pods and cards in [start, end]; some of them fail."""
        at, turn = start, self.rng.randrange(3)
        while at <= end:
            if self.rng.random() < flaky:
                self.place.state_fails(self.run, at, self.rng)
            else:
                self.place.state(self.run, at)
            if turn % 4 == 0:
                self.place.pods(self.run, at + 3)
            at, turn = at + self.every, turn + 1
        self._cards(start, end, flaky)

    def _cards(self, start: float, end: float, flaky: float) -> None:
        at = start + 5
        while at <= end - 4:
            if self.rng.random() >= flaky:
                self.place.cards(self.run, at, self.rng.randrange(4, 100), self.rng.randrange(100))
            at += self.rng.uniform(240, 480)

    def serves(self, start: float, end: float, load: Load, every: float = 60.0) -> None:
        """All engines report this load in [start, end]."""
        at = start + 3
        while at <= end:
            for engine in self.run.engines:
                report(self.run, at + engine.rank / 7, engine, load)
            at += every

    def rolls_out(self, start: float, end: float, count: int) -> None:
        """Ended trials, some rewarded, some without; a few exceptions of every kind."""
        if not self.trainer.agentic:
            return
        for number in range(count):
            at = self.rng.uniform(start + 200, max(end, start + 260))
            failure = self.rng.choice((None, None, None, PASSED_THROUGH, FLAKY)) if number else None
            reward = None if failure is FLAKY else float(number == 0 or self.rng.random() < 0.4)
            trial(self.run, number, at, reward, failure, took=self.rng.uniform(60, 200))

    def dumps(self, start: float, end: float) -> None:
        """Two live stacks of all policy ranks in the same frames, and what coordinators have used of their cores."""
        at = self.rng.uniform(start, max(start, end - 300))
        for again in (0.0, self.rng.uniform(65, 280)):
            for actor in self.run.policy:
                processes.stack(self.run, at + again + actor.rank, actor, "ppo_train", processes.IN_COLLECTIVE)
            if again and self.rng.random() < 0.3:
                processes.stack(self.run, at + again + 5, self.run.engines[0], "generate", processes.STEPPING)
        if self.rng.random() < 0.5 and at > 700:
            processes.ps(self.run, at, 0.3 * (at - 310))
            processes.ps(self.run, at + 300, 0.3 * (at - 10))

    def chats(self, start: float, end: float) -> None:
        """Monitors, and agents that talk of errors all day."""
        chatter.monitors(self.run, start, end, 900.0)
        if self.trainer.agentic:
            chatter.agents_talk(self.run, start, end, 1200.0)

    def hears(self, pool: tuple[noise.Said, ...], count: int, start: float, end: float) -> None:
        """This seed's share of such lines, at random times, by anybody."""
        for said in noise.share(pool, self._turn, count):
            noise.throw(self.run, self.rng, self.rng.uniform(start, end), said)

    def stumbles(self, count: int, spare: int = 2) -> None:
        """This seed's share of the errors that a run survives, each a few minutes at most before a step is banked, and
        so many steps more after it."""
        ends = [ended for _, ended in self.steps[:-spare]]
        for said in noise.share(noise.errors(), self._turn, count if ends else 0):
            at = self.rng.choice(ends) - self.rng.uniform(12, 200)
            noise.throw(self.run, self.rng, max(at, self.steps[0][0]), said)

    @property
    def _turn(self) -> int:
        """Which share of the noise is due: another one in each attempt."""
        return self.seed + 211 * self.run.attempt

    # --- the end of it
    def cut(self, at: float) -> None:
        """Nothing was said after this moment."""
        self.run.lines = [line for line in self.run.lines if line.at <= at]
        for path, said in self.run.actor_files.items():
            self.run.actor_files[path] = [line for line in said if line[0] <= at]
        for probe, rows in self.run.polls.items():
            self.run.polls[probe] = [row for row in rows if row[0] <= at]
        self.steps = [(began, ended) for began, ended in self.steps if ended <= at]
        self.at = at


def begins(seed: int, trainers: tuple[Trainer, ...] = TRAINERS, places: tuple[str, ...] = PLACES) -> Walk:
    """A walk that has not come up yet: what the seed decides of its trainer, its place and its watch."""
    rng = random.Random(seed)
    chosen = trainers[seed % len(trainers)]
    place = Place(rng.choice(places))
    start = datetime(2026, 3, 14, 7) + timedelta(minutes=rng.randrange(24 * 60))
    run = Run(f"walk-{seed}", f"/mira/rl-walk-{seed}", start)
    facts = facts_of(run, chosen.mode, PLAN)
    if place.kind != "iris" and rng.random() < 0.5:
        del facts["mesh"]
    return Walk(seed, chosen, place, run, rng, facts, every=rng.choice((60.0, 120.0, 180.0)))
