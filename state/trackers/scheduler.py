"""What the scheduler and the pod list said of the job, and what could not be asked. Serves gate A rules 1–4 and 8.

Bound: one of each matter, and the times of the newest 16 state polls.
"""

import re
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any, ClassVar

import msgspec

from extractors.polls import JobState, Pod, PodsPolled, PollFailed, StatePolled, SyncPolled
from extractors.record import Evidence, Observation
from state.policy import SECOND_US
from state.tracker import AttemptStarted, Tracker

POLLS_KEPT = 16

ENDED_STATUSES = frozenset(
    {"Succeeded", "Completed", "Failed", "Error", "OOMKilled", "Evicted", "ContainerStatusUnknown"}
)
"""kubectl's words for a pod that runs no more."""


def living_pods(pods: tuple[Pod, ...]) -> tuple[Pod, ...]:
    """The pods that have not ended by kubectl's word."""
    return tuple(pod for pod in pods if pod.status not in ENDED_STATUSES)


EVICTIONS = {
    "Evicted": "external_signal",
    "PreemptionByScheduler": "preempted",
    "TerminationByKubelet": "external_signal",
    "EvictionByEvictionAPI": "external_signal",
    "DeletionByTaintManager": "external_signal",
}
"""Kubernetes' words for a pod that it took away (its status, or the reason of its DisruptionTarget), by cause."""


def evicted_pod(pods: tuple[Pod, ...]) -> Pod | None:
    """A pod that Kubernetes took away, where no pod lives: beside living ones it is one that was replaced."""
    return None if living_pods(pods) else next((pod for pod in pods if pod.reason in EVICTIONS), None)


_GENERATION = re.compile(r"(-\d+)-[0-9a-f]{4,}-(\d+)$")
"""The end of an Iris pod's name: rank, hash, generation. A bare trailing number is an index, not a generation."""


def generation_of(pod: Pod) -> int | None:
    """Which life of its rank a pod is, by its name; None where the name does not say it."""
    found = _GENERATION.search(pod.name)
    return int(found[2]) if found else None


def current_pods(pods: tuple[Pod, ...]) -> tuple[Pod, ...]:
    """The pods without those that a later generation of the same rank has replaced: they stay listed for a while."""
    newest: dict[str, int] = {}
    for pod in pods:
        newest[_rank(pod)] = max(newest.get(_rank(pod), 0), generation_of(pod) or 0)
    return tuple(pod for pod in pods if (generation_of(pod) or 0) == newest[_rank(pod)])


def _rank(pod: Pod) -> str:
    found = _GENERATION.search(pod.name)
    return pod.name[: found.start()] + found[1] if found else pod.name


class SchedulerView(msgspec.Struct, frozen=True):
    """state is the newest successful poll (None: none yet), read at state_us.

    interval_seconds is the median distance of the state polls, None when unknown. failure is the newest failed
    state poll if none succeeded after it. queued_since and running_since are the first poll of that state in this
    attempt; over_since the first poll that showed the job over, absent_since the first of an unbroken run of
    absent records after the job was seen. empty_pods are the first and the newest of an unbroken run of pod polls
    without a living pod while the state said running; pods is the newest pod list, None when never read. synced_us is
    the newest log sync that succeeded, sync_failure the newest that failed if none succeeded after it.
    """

    state: StatePolled | None = None
    state_us: int | None = None
    state_evidence: Evidence | None = None
    interval_seconds: float | None = None
    failure: PollFailed | None = None
    failure_evidence: Evidence | None = None
    failed_in_a_row: int = 0
    queued_since_us: int | None = None
    running_since_us: int | None = None
    running_evidence: Evidence | None = None
    over_since_us: int | None = None
    over_evidence: Evidence | None = None
    seen_before: bool = False
    pods: tuple[Pod, ...] | None = None
    pods_us: int | None = None
    pods_evidence: Evidence | None = None
    pods_failure: PollFailed | None = None
    pods_failure_evidence: Evidence | None = None
    empty_pods_us: tuple[int, ...] = ()
    first_empty_pods_evidence: Evidence | None = None
    queued_evidence: Evidence | None = None
    absent_since_us: int | None = None
    synced_us: int | None = None
    sync_failure: PollFailed | None = None

    @property
    def job_state(self) -> JobState | None:
        """The newest state that was read."""
        return None if self.state is None else self.state.state


class SchedulerTracker(Tracker):
    """Folds the state and pod polls.

    `shown` is the view itself, replaced field by field. A state's clock starts where the state turns, and an absent
    record between two equal ones does not restart it.
    """

    shown: SchedulerView = SchedulerView()
    polls_us: list[int] = []
    last_present: JobState | None = None

    def _state(self, observation: Observation) -> None:
        polled: StatePolled = observation.signal
        at_us, evidence = observation.at_us, observation.evidence
        self._polled(at_us)
        self._show(
            state=polled,
            state_us=at_us,
            state_evidence=evidence,
            failure=None,
            failure_evidence=None,
            failed_in_a_row=0,
        )
        if polled.state is JobState.ABSENT:
            if self.shown.absent_since_us is None:
                self._show(absent_since_us=at_us)
            return
        self._show(seen_before=True, absent_since_us=None)
        if polled.state is not self.last_present:
            self._turned(polled.state, at_us, evidence)
        if polled.state is not JobState.RUNNING:
            self._show(empty_pods_us=(), first_empty_pods_evidence=None)

    def _turned(self, state: JobState, at_us: int, evidence: Evidence) -> None:
        self.last_present = state
        if state is JobState.PENDING:
            self._show(queued_since_us=at_us, queued_evidence=evidence, over_since_us=None, over_evidence=None)
        elif state is JobState.RUNNING:
            self._show(running_since_us=at_us, running_evidence=evidence, over_since_us=None, over_evidence=None)
        elif self.shown.over_since_us is None:
            self._show(over_since_us=at_us, over_evidence=evidence)

    def _pods(self, observation: Observation) -> None:
        polled: PodsPolled = observation.signal
        at_us, evidence = observation.at_us, observation.evidence
        self._show(
            pods=current_pods(polled.pods),
            pods_us=at_us,
            pods_evidence=evidence,
            pods_failure=None,
            pods_failure_evidence=None,
        )
        if living_pods(polled.pods):
            self._show(empty_pods_us=(), first_empty_pods_evidence=None)
        elif self.shown.job_state is JobState.RUNNING:
            before = self.shown.empty_pods_us
            first = self.shown.first_empty_pods_evidence or evidence
            self._show(empty_pods_us=(*before[:1], at_us), first_empty_pods_evidence=first)

    def _failed(self, observation: Observation) -> None:
        failure: PollFailed = observation.signal
        if failure.probe == "state":
            self._polled(observation.at_us)
            in_a_row = self.shown.failed_in_a_row + 1
            self._show(failure=failure, failure_evidence=observation.evidence, failed_in_a_row=in_a_row)
        elif failure.probe == "pods":
            self._show(pods_failure=failure, pods_failure_evidence=observation.evidence)
        elif failure.probe == "sync":
            self._show(sync_failure=failure)

    def _synced(self, observation: Observation) -> None:
        self._show(synced_us=observation.at_us, sync_failure=None)

    def _attempt(self, observation: Observation) -> None:
        if self.shown.state is not None and self.shown.state.state.over:
            # What ended was the life before; the state of this one was not yet read.
            self._show(state=None, state_us=None, state_evidence=None)
        running = self.shown.job_state is JobState.RUNNING
        self._show(
            queued_since_us=None,
            queued_evidence=None,
            running_since_us=observation.at_us if running else None,
            running_evidence=observation.evidence if running else None,
            over_since_us=None,
            over_evidence=None,
            empty_pods_us=(),
            first_empty_pods_evidence=None,
        )
        self.last_present = JobState.RUNNING if running else None

    def _polled(self, at_us: int) -> None:
        self.polls_us = [*self.polls_us, at_us][-POLLS_KEPT:]
        apart = [later - sooner for sooner, later in zip(self.polls_us, self.polls_us[1:], strict=False)]
        if apart:
            self._show(interval_seconds=median(apart) / SECOND_US)

    def _show(self, **changed: Any) -> None:
        self.shown = msgspec.structs.replace(self.shown, **changed)

    def view(self) -> SchedulerView:
        """The newest that was said, by matter."""
        return self.shown

    FOLDS: ClassVar[Mapping[type, Callable[[Any, Observation], None]]] = {
        StatePolled: _state,
        PodsPolled: _pods,
        PollFailed: _failed,
        SyncPolled: _synced,
        AttemptStarted: _attempt,
    }
