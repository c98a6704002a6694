"""Where one life of the job ends and the next begins (GATES, Attempt).

The attempt's number is the largest that any sign gives: the attempt suffix of a task path, the controller's count of
failures or requeues while the job runs, the generation at the end of a pod's name, the head's bring-up banners, less
the first, and launches in one file after an end, or of which each shows that the one before it is over.
"""

from collections.abc import Callable, Mapping
from typing import ClassVar

import msgspec

from extractors.polls import JobState, PodsPolled, StatePolled
from extractors.record import Observation
from extractors.relaunches import Anew, Launched
from extractors.signal import Fault
from extractors.supervisor import RoleAssigned
from state.policy import SECOND_US
from state.progress import own_us
from state.tracker import AttemptStarted
from state.trackers.scheduler import generation_of, living_pods

BANNERS_APART = 60.0
"""Head banners of one home closer than this many seconds, by their own clock, are one: a file said twice, a second
file of it. Another home's clock may differ, so its banners are counted apart."""
LAUNCHES_APART = 10.0
RESTARTS_APART = 60.0
"""The launchers of several nodes speak within so many seconds, and the agents that restart their workers."""
ENDS = frozenset(
    {
        "launched_process_failed",
        "slurm_cancelled",
        "slurm_node_lost",
        "srun_task_exited",
        "torchrun_child_failed",
        "torchrun_signalled",
    }
)
"""Patterns of launchers that saw their processes end. An exit in order is none: what is launched then is the next
stage of a script."""


class AttemptCutter(msgspec.Struct):
    """Counts attempts. Plain data; the number only rises. lives are those that launches of one home tell, launch_us is
    the newest launch there, ended are the homes in which an end stands behind it."""

    VERSION: ClassVar[int] = 2

    number: int = 0
    banners: dict[str, int] = {}
    banner_us: dict[str, int] = {}
    lives: dict[str, int] = {}
    launch_us: dict[str, int] = {}
    ended: set[str] = set()

    def cut(self, run: list[Observation]) -> list[Observation]:
        """The observations, with an AttemptStarted before each that begins an attempt."""
        number = self.number
        places = [
            place for place, each in enumerate(run) if type(each.signal) in _SIGNS or each.origin.attempt > number
        ]
        marked, begin = [], 0
        for place in places:
            started = self.observe(run[place])
            if started is not None:
                marked += [*run[begin:place], _marker(started, run[place])]
                begin = place
        return [*marked, *run[begin:]] if marked else run

    def observe(self, observation: Observation) -> AttemptStarted | None:
        """The attempt that this observation begins, to be folded before it; None where it begins none."""
        said = observation.origin.attempt
        sign = _SIGNS.get(type(observation.signal))
        if sign is not None:
            said = max(said, sign(self, observation))
        if said <= self.number:
            return None
        self.number = said
        return AttemptStarted(said)

    def _by_state(self, observation: Observation) -> int:
        polled: StatePolled = observation.signal
        return max(polled.failures or 0, polled.requeues or 0) if polled.state is JobState.RUNNING else 0

    def _by_pods(self, observation: Observation) -> int:
        polled: PodsPolled = observation.signal
        return max((generation_of(pod) or 0 for pod in living_pods(polled.pods)), default=0)

    def _by_banner(self, observation: Observation) -> int:
        banner: RoleAssigned = observation.signal
        if banner.role != "head":
            return 0
        home, at_us = _home(observation), own_us(observation)
        newest = self.banner_us.get(home)
        if newest is None or at_us - newest > BANNERS_APART * SECOND_US:
            self.banners[home] = self.banners.get(home, 0) + 1
            self.banner_us[home] = at_us
        return self.banners[home] - 1

    def _by_launch(self, observation: Observation) -> int:
        launched: Launched = observation.signal
        home = _home(observation)
        lives = self.lives.get(home, 0)
        if lives == 0:
            self.lives[home] = 2 if launched.after is Anew.NOTHING else 1
        elif self._anew(launched.after, home, observation.evidence.at_us):
            self.lives[home] = lives + 1
        else:
            return lives - 1
        self.launch_us[home] = observation.evidence.at_us or 0
        self.ended.discard(home)
        return self.lives[home] - 1

    def _anew(self, after: Anew, home: str, at_us: int | None) -> bool:
        """Whether a launch begins another life than the one before it in its home."""
        if after is Anew.START:
            return True
        newest_us = self.launch_us.get(home, 0)
        apart = RESTARTS_APART if after is Anew.NOTHING else LAUNCHES_APART
        if at_us and newest_us and at_us - newest_us <= apart * SECOND_US:
            return False
        return after is Anew.NOTHING or home in self.ended

    def _by_end(self, observation: Observation) -> int:
        if observation.pattern in ENDS:
            self.ended.add(_home(observation))
        return 0


def _home(observation: Observation) -> str:
    return observation.evidence.source.split("/", 1)[0]


def _marker(started: AttemptStarted, observation: Observation) -> Observation:
    return Observation(started, observation.evidence, observation.at_us, "attempt_started", observation.origin)


_SIGNS: Mapping[type, Callable[[AttemptCutter, Observation], int]] = {
    StatePolled: AttemptCutter._by_state,
    PodsPolled: AttemptCutter._by_pods,
    RoleAssigned: AttemptCutter._by_banner,
    Launched: AttemptCutter._by_launch,
    Fault: AttemptCutter._by_end,
}
