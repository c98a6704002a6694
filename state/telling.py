"""Signals that may change an answer at once: a beat ends with them, so that nobody waits for its ten seconds.

What a job says thousands of times an hour (loads, bars, trials, notes) waits for the end of its beat. So do phases, by
which gates would change their answer back and forth, and polls: they are taken in sets, and half of a set is no
evidence.
"""

from extractors.relaunches import Launched
from extractors.signal import Fault
from extractors.supervisor import DriverExited
from extractors.trainer import CheckpointSaved, StepCompleted, TrainingDone

TELLING: frozenset[type] = frozenset({CheckpointSaved, DriverExited, Fault, Launched, StepCompleted, TrainingDone})
