"""The views of one job that the gates read, and its now."""

from dataclasses import dataclass

from state.trackers.bursts import BurstsView
from state.trackers.coverage import CoverageView
from state.trackers.duty_cycle import DutyCycleView
from state.trackers.dynamics import DynamicsView
from state.trackers.engines import EnginesView
from state.trackers.facts import FactsView
from state.trackers.faults import FaultsView
from state.trackers.flights import FlightsView
from state.trackers.freshness import FreshnessView
from state.trackers.gpus import GpusView
from state.trackers.heartbeat import HeartbeatView
from state.trackers.nccl import NcclView
from state.trackers.phases import PhasesView
from state.trackers.pipeline import PipelineView
from state.trackers.restarts import RestartsView
from state.trackers.rollouts import RolloutsView
from state.trackers.scheduler import SchedulerView


@dataclass(frozen=True, slots=True)
class Case:
    """One job as it stands at `now_us`. Each view is named for its tracker."""

    job: str
    now_us: int
    facts: FactsView
    coverage: CoverageView
    scheduler: SchedulerView
    phases: PhasesView
    freshness: FreshnessView
    faults: FaultsView
    restarts: RestartsView
    nccl: NcclView
    flights: FlightsView
    heartbeat: HeartbeatView
    engines: EnginesView
    gpus: GpusView
    pipeline: PipelineView
    rollouts: RolloutsView
    duty_cycle: DutyCycleView
    bursts: BurstsView
    dynamics: DynamicsView

    def seconds_since(self, at_us: int) -> float:
        """Seconds from a time to now."""
        return (self.now_us - at_us) / 1_000_000
