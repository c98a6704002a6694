"""A track: some trackers that fold the same beat, one after the other, and add their views to it."""

from collections.abc import Callable
from typing import Any

from extractors.record import Beat, Observation
from state.tracker import Tracker
from state.trackers.bursts import BurstsTracker
from state.trackers.coverage import CoverageTracker
from state.trackers.duty_cycle import DutyCycleTracker
from state.trackers.dynamics import DynamicsTracker
from state.trackers.engines import EnginesTracker
from state.trackers.facts import FactsTracker
from state.trackers.faults import FaultsTracker
from state.trackers.freshness import FreshnessTracker
from state.trackers.gpus import GpusTracker
from state.trackers.heartbeat import HeartbeatTracker
from state.trackers.nccl import NcclTracker
from state.trackers.phases import PhasesTracker
from state.trackers.pipeline import PipelineTracker
from state.trackers.restarts import RestartsTracker
from state.trackers.rollouts import RolloutsTracker
from state.trackers.scheduler import SchedulerTracker

Views = dict[str, Any]
Fold = tuple[Callable[[Any, Observation], None], Tracker]

TRACKS: dict[str, dict[str, type[Tracker]]] = {
    "freshness": {
        "facts": FactsTracker,
        "coverage": CoverageTracker,
        "scheduler": SchedulerTracker,
        "phases": PhasesTracker,
        "freshness": FreshnessTracker,
        "restarts": RestartsTracker,
    },
    "heartbeat": {"heartbeat": HeartbeatTracker, "engines": EnginesTracker},
    "bursts": {"faults": FaultsTracker, "bursts": BurstsTracker},
    "nccl": {"nccl": NcclTracker},
    "resources": {"gpus": GpusTracker, "pipeline": PipelineTracker},
    "rollouts": {"rollouts": RolloutsTracker, "duty_cycle": DutyCycleTracker, "dynamics": DynamicsTracker},
}
"""The steps of the flow and their trackers, each named as the case's view of it."""


class Track:
    """The trackers of one step for one job."""

    def __init__(self, step: str, snapshots: dict[str, bytes] | None = None) -> None:
        kinds = TRACKS[step]
        self.trackers: dict[str, Tracker] = {
            name: kind.restore(snapshots[name]) if snapshots else kind() for name, kind in kinds.items()
        }
        self._every: list[Fold] = []
        self._folds: dict[type, list[Fold]] = {}
        for tracker in self.trackers.values():
            if (every := type(tracker).EVERY) is not None:
                self._every.append((every, tracker))
            for signal, fold in tracker.FOLDS.items():
                self._folds.setdefault(signal, []).append((fold, tracker))

    def fold(self, beat: Beat, views: Views) -> Views:
        """Folds a beat; gives the views so far with this step's added."""
        folds = self._folds
        for observation in beat.observations:
            for every, tracker in self._every:
                every(tracker, observation)
            for fold, tracker in folds.get(type(observation.signal), ()):
                fold(tracker, observation)
        added = dict(views)
        for name, tracker in self.trackers.items():
            tracker.tick(beat.tick.at_us)
            added[name] = tracker.view()
        return added

    def snapshots(self) -> dict[str, bytes]:
        """The memory of this step's trackers, by name."""
        return {name: tracker.snapshot() for name, tracker in self.trackers.items()}
