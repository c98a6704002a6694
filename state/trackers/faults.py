"""The errors of the attempt in time: the first cause, what it explains, and what was handled (GATES, Causal roles).

Bounds: the earliest 64 and the newest 64 events, 16 confirming lines, 8 homes an event.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import msgspec

from extractors.catalogue import CATALOGUE
from extractors.harbor import BatchCompleted, TrajectoryPassed
from extractors.metrics import StepMetrics
from extractors.pattern import Role
from extractors.polls import PodsPolled
from extractors.record import Evidence, Observation, SourceKind, SourceSeen
from extractors.signal import Fault, Teardown
from extractors.trainer import StepCompleted, TrainingDone
from extractors.vllm import EngineLoad
from state import causality
from state.outlived import is_detached
from state.policy import SECOND_US
from state.progress import ADVANCES, PROGRESS, own_us
from state.tracker import AttemptStarted, ShowingTracker
from state.trackers.fault_list import FaultEvent, FaultList
from state.trackers.scheduler import EVICTIONS, current_pods, evicted_pod

EARLIEST_KEPT = 64
NEWEST_KEPT = 64
CONFIRMS_KEPT = 16
NOTED_KEPT = 16
SOURCES_KEPT = 8
SAME_FAULT_SECONDS = 10.0
"""The same fault's own times in two homes differ by less."""
RECOVERED_AFTER_STEPS = 2
"""So many steps banked after an error show that the job moved on, whichever component it was."""


class FaultsView(msgspec.Struct, frozen=True):
    """events in time (bounded: the earliest 64 and newest 64 of the attempt). first is the first cause by time that
    nothing explains and nobody handled, None when there is none; cascade counts the later errors that it explains.
    hang is the newest unhandled hang signature, abort the newest that itself ended a policy process. confirms are
    the confirming lines (a kernel OOM, an OOMKilled). noted are faults that were handled or stood alone."""

    events: tuple[FaultEvent, ...] = ()
    first: FaultEvent | None = None
    cascade: int = 0
    hang: FaultEvent | None = None
    abort: FaultEvent | None = None
    confirms: tuple[FaultEvent, ...] = ()
    noted: tuple[FaultEvent, ...] = ()
    total: int = 0


class FaultsTracker(ShowingTracker):
    """Events in the order of their own time, merged across homes; marked as handled where their component moves on.

    What they come to (first cause, cascade, hang) is worked out in state/causality.py when the view is asked for.
    """

    VERSION: ClassVar[int] = 4

    kept: FaultList = msgspec.field(default_factory=FaultList)
    confirms: list[FaultEvent] = []
    total: int = 0
    crowded_out: int = 0
    aggregated: list[str] = []
    teardown_us: int | None = None
    done_us: int | None = None
    progress_us: int | None = None
    progress_source: str = ""
    progress_offset: int = 0
    steps: list[tuple[int, int, str, int]] = []
    shown: FaultsView | None = None

    def _fault(self, observation: Observation) -> None:
        known = CATALOGUE.by_name.get(observation.pattern)
        role = (known.role if known is not None else None) or Role.ROOT
        if role is not Role.BENIGN:
            self._occurred(observation.signal, role, observation)

    def _pods(self, observation: Observation) -> None:
        polled: PodsPolled = observation.signal
        for pod in current_pods(polled.pods):
            told = any(event.fault.entity == pod.name for event in self.confirms)
            # What runs was killed in a life before; what its last end says is not of this attempt.
            if not told and pod.status != "Running" and "OOMKilled" in (pod.reason, pod.status):
                self._occurred(Fault("host_oom", "OOMKilled", entity=pod.name), Role.CONFIRMS, observation)
        if evicted := evicted_pod(polled.pods):
            said = Fault(EVICTIONS[evicted.reason], f"Kubernetes: {evicted.reason}", entity=evicted.name)
            self._occurred(said, Role.EITHER, observation)

    def _occurred(self, fault: Fault, role: Role, observation: Observation) -> None:
        self.shown = None
        self.total += observation.repeated
        evidence, count = (observation.evidence,), observation.repeated
        event = FaultEvent(fault, role, own_us(observation), observation.origin, evidence, count)
        if role is Role.CONFIRMS:
            self.confirms = [*self.confirms, event][-CONFIRMS_KEPT:]
        elif not self._merged(event):
            self.kept.put(event)
            if len(self.kept.events) > EARLIEST_KEPT + NEWEST_KEPT:
                self.crowded_out += self.kept.take(EARLIEST_KEPT).count

    def _merged(self, event: FaultEvent) -> bool:
        """Whether the event is one already on file: read in a second home, or said again before any progress."""
        source = event.sources[0]
        for place in reversed(self.kept.alike(event)):
            known = self.kept.events[place]
            if known.own_us < event.own_us - causality.AGAIN_US:
                return False
            if known.handled or not causality.same_fault(known, event):
                continue
            elsewhere = source.source not in [one.source for one in known.sources]
            if elsewhere and abs(known.own_us - event.own_us) <= SAME_FAULT_SECONDS * SECOND_US:
                self.kept.put(_in_both_homes(self.kept.take(place), event), place)
                return True
            in_order = self.progress_us is None or known.own_us <= event.own_us
            if not elsewhere and in_order and not self._moved_since(known):
                self.kept.events[place] = msgspec.structs.replace(known, count=known.count + event.count)
                return True
        return False

    def _moved_since(self, known: FaultEvent) -> bool:
        """Whether progress came after an error: by time, in one file without clocks by their places."""
        if self.progress_us is None or self.progress_us != known.own_us:
            return self.progress_us is not None and self.progress_us > known.own_us
        place = known.sources[0]
        return self.progress_source != place.source or self.progress_offset > place.offset

    def _moved(self, observation: Observation) -> None:
        at_us = own_us(observation)
        if self.progress_us is None or at_us >= self.progress_us:
            self.progress_us = at_us
            self.progress_source, self.progress_offset = observation.evidence.source, observation.evidence.offset
        if type(observation.signal) in ADVANCES:
            self.teardown_us = None
            if self.kept.events:
                self._recovered(observation, at_us)
                self._outlived(observation, at_us)

    def _stepped(self, observation: Observation) -> None:
        self._moved(observation)
        step: int = observation.signal.step
        if (self.steps and self.steps[-1][0] >= step) or getattr(observation.signal, "kind", "train") != "train":
            return
        banked = (step, own_us(observation), observation.evidence.source, observation.evidence.offset)
        self.steps = [*self.steps, banked][-RECOVERED_AFTER_STEPS:]
        if len(self.steps) == RECOVERED_AFTER_STEPS:
            _, since_us, source, offset = self.steps[0]
            self._mark(observation.evidence, lambda event: _precedes(event, since_us, source, offset))

    def _recovered(self, observation: Observation, at_us: int) -> None:
        origin = observation.origin
        component = causality.component(origin)
        self._mark(
            observation.evidence,
            lambda event: (
                event.origin.pid == origin.pid
                and event.own_us < at_us - SECOND_US
                and causality.component(event.origin) == component
            ),
        )

    def _outlived(self, observation: Observation, at_us: int) -> None:
        """Whoever moves on shows that the errors of dropped tasks ended nothing."""
        at = observation.evidence
        self._mark(at, lambda event: is_detached(event) and _precedes(event, at_us, at.source, at.offset))

    def _engine(self, observation: Observation) -> None:
        if self.kept.events and observation.signal.generation_rate > 0:
            self._recovered(observation, own_us(observation))

    def _coordinator(self, observation: Observation) -> None:
        if self.kept.events:
            self._recovered(observation, own_us(observation))

    def _mark(self, shown_by: Evidence, moved_on: Callable[[FaultEvent], bool]) -> None:
        for place, event in enumerate(self.kept.events):
            if not event.handled and moved_on(event):
                self.kept.events[place] = msgspec.structs.replace(event, handled=True, handled_by=shown_by)
                self.shown = None

    def _torn_down(self, observation: Observation) -> None:
        if self.teardown_us is None:
            self.teardown_us, self.shown = own_us(observation), None

    def _done(self, observation: Observation) -> None:
        self._moved(observation)
        if self.done_us is None:
            self.done_us, self.shown = own_us(observation), None

    def _home(self, observation: Observation) -> None:
        if observation.signal.kind in (SourceKind.AGGREGATED, SourceKind.POD, SourceKind.SLURM):
            self.aggregated.append(observation.evidence.source)

    def _attempt(self, observation: Observation) -> None:
        self.kept, self.confirms, self.steps = FaultList(), [], []
        self.total = self.crowded_out = 0
        self.teardown_us = self.done_us = self.progress_us = self.shown = None

    def view(self) -> FaultsView:
        """What the errors come to."""
        if self.shown is None:
            self.shown = self._weighed()
        return self.shown

    def _weighed(self) -> FaultsView:
        events, confirms = tuple(self.kept.events), tuple(self.confirms)
        first = causality.first_cause(events, confirms, self.teardown_us, self.done_us)
        cascade = causality.explained_by(first, events, frozenset(self.aggregated)) + self.crowded_out if first else 0
        noted = tuple(event for event in events if event.handled)[-NOTED_KEPT:]
        return FaultsView(
            events=events,
            first=first,
            cascade=cascade,
            hang=causality.newest_hang(events),
            abort=causality.newest_abort(events),
            confirms=confirms,
            noted=noted,
            total=self.total,
        )

    FOLDS: ClassVar[Mapping[type, Callable[[Any, Observation], None]]] = {
        **dict.fromkeys(PROGRESS, _moved),
        Fault: _fault,
        PodsPolled: _pods,
        StepCompleted: _stepped,
        StepMetrics: _stepped,
        TrainingDone: _done,
        EngineLoad: _engine,
        BatchCompleted: _coordinator,
        TrajectoryPassed: _coordinator,
        Teardown: _torn_down,
        SourceSeen: _home,
        AttemptStarted: _attempt,
    }


def _precedes(event: FaultEvent, at_us: int, source: str, offset: int) -> bool:
    """Whether an error came before a line: by time, in one file without clocks by their places."""
    place = event.sources[0]
    return event.own_us < at_us or (event.own_us == at_us and place.source == source and place.offset < offset)


def _in_both_homes(known: FaultEvent, event: FaultEvent) -> FaultEvent:
    """One event of two. The more telling pattern's fault is kept: the one that names a site and a rank."""
    origin = known.origin if known.origin.actor else event.origin
    fault = known.fault if known.fault.rank is not None or event.fault.rank is None else event.fault
    return msgspec.structs.replace(
        known,
        fault=fault,
        origin=origin,
        sources=(*known.sources, *event.sources)[:SOURCES_KEPT],
        count=max(known.count, event.count),
    )
