"""A stream of beats, and what a judge says of it."""

from typing import Any

from extractors.polls import JobState, StatePolled
from extractors.record import Beat, Observation, SourceKind, Tick
from extractors.trainer import BufferProgress
from state.judge import Judge
from state.policy import SECOND_US
from state.track import TRACKS, Track
from tests.builders import JOB, both_homes, reading, saw, started, us

STEP_US = 10 * SECOND_US


def beats(*observations: Observation, until: float) -> list[Beat]:
    """Beats of 10 s up to a time, the last one final."""
    edges = range(us(0) + STEP_US, us(until) + 1, STEP_US)
    return [
        Beat(
            JOB,
            Tick(edge, final=edge + STEP_US > us(until)),
            tuple(each for each in observations if edge - STEP_US <= each.at_us < edge),
        )
        for edge in edges
    ]


def running(until: float) -> list[Observation]:
    """A job that runs by its state, and whose buffer stands still, until the end."""
    polls = [saw(at, StatePolled(JobState.RUNNING), source="polls/state.jsonl") for at in range(0, int(until), 300)]
    bars = [saw(at + 1, BufferProgress(3, 64, float(at))) for at in range(10, int(until), 10)]
    steps = [saw(0.5, each.signal) for each in (started(0, "step"), started(0, "generate"))]
    seen = [*both_homes(), reading(SourceKind.POLL, "polls/state.jsonl"), *polls, *steps, *bars]
    return sorted(seen, key=lambda each: each.at_us)


def said(judge: Judge, stream: list[Beat]) -> tuple[list[dict[str, Any]], int]:
    """The records, and the most cases that waited at once."""
    tracks, records, most = [Track(step) for step in TRACKS], [], 0
    for beat in stream:
        views: dict[str, Any] = {}
        for track in tracks:
            views = track.fold(beat, views)
        records += () if beat.partial else judge.weigh(beat, views)
        most = max(most, len(judge.waiting))
    return records, most
