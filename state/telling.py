"""Signals that may change an answer at once: a beat ends with them, so that nobody waits for its ten seconds.

What a job says thousands of times an hour (loads, bars, trials, notes) waits for the end of its beat. So do phases, by
which gates would change their answer back and forth, and polls: they are taken in sets, and half of a set is no
evidence. A state poll that gives another state than the one before it does not wait. That nothing is heard of a job
comes in a beat of its own.
"""

import msgspec

from extractors.polls import JobState, StatePolled
from extractors.record import Observation
from extractors.relaunches import Launched
from extractors.signal import Fault
from extractors.supervisor import DriverExited
from extractors.trainer import CheckpointSaved, StepCompleted, TrainingDone

TELLING: frozenset[type] = frozenset(
    {CheckpointSaved, DriverExited, Fault, Launched, StatePolled, StepCompleted, TrainingDone}
)


class Telling(msgspec.Struct):
    """Finds what is telling in a stream, each part of which it is given once. Plain data; state is the job's newest
    polled one."""

    state: JobState | None = None

    def first(self, run: list[Observation]) -> int | None:
        """The place of the first telling observation of a run; it and what is before it count as given."""
        for place, each in enumerate(run):
            kind = type(each.signal)
            if kind in TELLING and (kind is not StatePolled or self._turns(each.signal)):
                return place
        return None

    def passed(self, run: list[Observation]) -> None:
        """Takes note of a run that need not be told of."""
        for each in run:
            if type(each.signal) is StatePolled:
                self._turns(each.signal)

    def _turns(self, polled: StatePolled) -> bool:
        before, self.state = self.state, polled.state
        return before not in (None, polled.state)
