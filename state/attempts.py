"""Where one life of the job ends and the next begins (GATES, Attempt).

The attempt's number is the largest that any sign gives: the attempt suffix of a task path, the controller's failure
count while the job runs, the generation at the end of a pod's name, and the head's bring-up banners, less the first.
"""

import re
from collections.abc import Callable, Mapping
from typing import ClassVar

import msgspec

from extractors.polls import JobState, PodsPolled, StatePolled
from extractors.record import Observation
from extractors.supervisor import RoleAssigned
from state.policy import SECOND_US
from state.tracker import AttemptStarted
from state.trackers.scheduler import living_pods

BANNERS_APART = 60.0
"""Head banners closer than this many seconds are one banner, read in two homes."""

_GENERATION = re.compile(r"-\d+-[0-9a-f]{4,}-(\d+)$")
"""The end of an Iris pod's name: rank, hash, generation. A bare trailing number is an index, not a generation."""


class AttemptCutter(msgspec.Struct):
    """Counts attempts. Plain data; the number only rises."""

    VERSION: ClassVar[int] = 1

    number: int = 0
    banners: int = 0
    banner_us: int | None = None

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
        return polled.failures or 0 if polled.state is JobState.RUNNING else 0

    def _by_pods(self, observation: Observation) -> int:
        polled: PodsPolled = observation.signal
        found = (_GENERATION.search(pod.name) for pod in living_pods(polled.pods))
        return max((int(match[1]) for match in found if match), default=0)

    def _by_banner(self, observation: Observation) -> int:
        banner: RoleAssigned = observation.signal
        if banner.role != "head":
            return 0
        newest = self.banner_us
        if newest is None or observation.at_us - newest > BANNERS_APART * SECOND_US:
            self.banners += 1
            self.banner_us = observation.at_us
        return self.banners - 1


_SIGNS: Mapping[type, Callable[[AttemptCutter, Observation], int]] = {
    StatePolled: AttemptCutter._by_state,
    PodsPolled: AttemptCutter._by_pods,
    RoleAssigned: AttemptCutter._by_banner,
}
