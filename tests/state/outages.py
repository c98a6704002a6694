"""Streams in which nothing is heard of the job for a while."""

from typing import Any

from extractors.record import Beat, HeardAgain, Observation, Tick, Unheard
from tests.builders import saw, us

AWAY = Unheard("no broker of kafka-1:9092 answers", ("wedgewatch", "topics"), "timed out after 5 s")
AGAIN = HeardAgain("kafka-1:9092 answers")


def told(signal: Unheard | HeardAgain, at_us: int) -> Observation:
    """What the feed says, at a time of the stream."""
    return saw(0, signal).moved(at_us)


def outage(stream: list[Beat], place: int, gathered: int = 0, again: bool = True) -> list[Beat]:
    """The stream with an outage before the beat at this place, of which so many observations were there already."""
    before, beat, after = stream[:place], stream[place], stream[place + 1 :]
    released_us = before[-1].tick.at_us if before else us(0)
    released_us = beat.observations[gathered - 1].at_us if gathered else released_us
    away = Beat(beat.job, Tick(released_us + 1), (*beat.observations[:gathered], told(AWAY, released_us + 1)))
    back = Beat(beat.job, Tick(released_us + 2), (told(AGAIN, released_us + 2),))
    rest = Beat(beat.job, beat.tick, beat.observations[gathered:], beat.partial)
    return [*before, away, *([back] if again else []), rest, *after]


def is_part(few: list[bytes], many: list[bytes]) -> bool:
    """Whether one stands in the other, in its order."""
    rest = iter(many)
    return all(each in rest for each in few)


def short(record: dict[str, Any]) -> str:
    """`A PASS ALIVE` or `NO-KILL`."""
    gate = record.get("gate", "")
    return f"{gate} {record['status']} {record['condition']}" if gate else record["verdict"]


def newest(records: list[dict[str, Any]]) -> dict[str, str]:
    """What was said last of each gate, and the last verdict."""
    return {each.get("gate", "verdict"): short(each) for each in records}
