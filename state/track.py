"""A track: some trackers that fold the same beat, one after the other, and add their views to it."""

from collections.abc import Callable, Sequence
from typing import Any

from extractors.record import Beat, Observation
from state.tracker import Tracker
from state.trackers.bursts import BurstsTracker
from state.trackers.coverage import CoverageTracker
from state.trackers.duty_cycle import DutyCycleTracker
from state.trackers.dynamics import DynamicsTracker
from state.trackers.engines import EnginesTracker
from state.trackers.facts import FactsTracker
from state.trackers.flights import FlightsTracker
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
Fold = Callable[[Any, Observation], None]

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
    "bursts": {"bursts": BurstsTracker},
    "nccl": {"nccl": NcclTracker, "flights": FlightsTracker},
    "resources": {"gpus": GpusTracker, "pipeline": PipelineTracker},
    "rollouts": {"rollouts": RolloutsTracker, "duty_cycle": DutyCycleTracker, "dynamics": DynamicsTracker},
}
"""The steps of the flow and their trackers, each named as the case's view of it. The ledger has the faults."""
FOLDED = frozenset(signal for trackers in TRACKS.values() for one in trackers.values() for signal in one.FOLDS)
"""The signals that a tracker folds."""


class Track:
    """The trackers of one step for one job."""

    def __init__(self, step: str, snapshots: dict[str, bytes] | None = None) -> None:
        self.step = step
        kinds = TRACKS[step]
        self.trackers: dict[str, Tracker] = {
            name: kind.restore(snapshots[name]) if snapshots else kind() for name, kind in kinds.items()
        }
        self._every: list[tuple[Callable[[Any, Sequence[Observation]], None], Tracker]] = []
        self._folds: dict[type, list[tuple[Fold, Tracker]]] = {}
        self._told: set[type] = set()
        self._shown: Views = {}
        self._showing = dict(self.trackers)
        for tracker in self.trackers.values():
            self._showing |= tracker.parts()
        self._ticking = {name for name, one in self._showing.items() if type(one).tick is not Tracker.tick}
        for tracker in self.trackers.values():
            if (every := type(tracker).EVERY) is not None:
                self._every.append((every, tracker))
            for signal, fold in tracker.FOLDS.items():
                self._folds.setdefault(signal, []).append((fold, tracker))

    def fold(self, beat: Beat, views: Views) -> Views:
        """Folds a beat; gives the views so far with this step's added."""
        folds, kinds = self._folds, beat.kinds
        for every, tracker in self._every:
            every(tracker, beat.observations)
        self._told |= kinds
        if not folds.keys().isdisjoint(kinds):
            for observation in beat.observations:
                for fold, tracker in folds.get(type(observation.signal), ()):
                    fold(tracker, observation)
        return views if beat.partial else self._viewed(beat.tick.at_us, views)

    def _viewed(self, now_us: int, views: Views) -> Views:
        """The views with this step's added. A tracker that was told nothing, and that no time passes for, shows what
        it showed before."""
        told, shown = self._told, self._shown
        for name, tracker in self._showing.items():
            moved = name in self._ticking and tracker.tick(now_us)
            if moved or name not in shown or not told.isdisjoint(tracker.FOLDS) or (told and tracker.EVERY is not None):
                shown[name] = tracker.view()
        told.clear()
        return {**views, **shown}

    def snapshots(self) -> dict[str, bytes]:
        """The memory of this step's trackers, by name."""
        return {name: tracker.snapshot() for name, tracker in self.trackers.items()}
