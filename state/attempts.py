"""Where one life of the job ends and the next begins (GATES, Attempt).

The attempt's number is the largest that any sign gives: the attempt suffix of a task path, the controller's count of
failures or requeues while the job runs, the generation at the end of a pod's name, and the head's bring-up banners,
less the first.
"""

from collections.abc import Callable, Mapping
from typing import ClassVar

import msgspec

from extractors.polls import JobState, PodsPolled, StatePolled
from extractors.record import Observation
from extractors.supervisor import RoleAssigned
from state.policy import SECOND_US
from state.progress import own_us
from state.tracker import AttemptStarted
from state.trackers.scheduler import generation_of, living_pods

BANNERS_APART = 60.0
"""Head banners of one home closer than this many seconds, by their own clock, are one: a file said twice, a second
file of it. Another home's clock may differ, so its banners are counted apart."""


class AttemptCutter(msgspec.Struct):
    """Counts attempts. Plain data; the number only rises."""

    VERSION: ClassVar[int] = 1

    number: int = 0
    banners: dict[str, int] = {}
    banner_us: dict[str, int] = {}

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
        home, at_us = observation.evidence.source.split("/", 1)[0], own_us(observation)
        newest = self.banner_us.get(home)
        if newest is None or at_us - newest > BANNERS_APART * SECOND_US:
            self.banners[home] = self.banners.get(home, 0) + 1
            self.banner_us[home] = at_us
        return self.banners[home] - 1


def _marker(started: AttemptStarted, observation: Observation) -> Observation:
    return Observation(started, observation.evidence, observation.at_us, "attempt_started", observation.origin)


_SIGNS: Mapping[type, Callable[[AttemptCutter, Observation], int]] = {
    StatePolled: AttemptCutter._by_state,
    PodsPolled: AttemptCutter._by_pods,
    RoleAssigned: AttemptCutter._by_banner,
}
