"""What the engine keeps of a job is dropped when nothing more comes of it."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from dataflow.feed import ReplayFeed, open_feed
from dataflow.flow import run
from dataflow.outcome import Outcome
from extractors.record import Beat, Tick
from tests.live.test_replay_is_live import OWN


@dataclass
class Again:
    """A feed that may give a capture's beats, and say that the job is forgotten, before it gives them."""

    feed: ReplayFeed
    before: bool
    forgotten: bool
    records: list[str] = field(default_factory=list)

    @property
    def job(self) -> str:
        return self.feed.job

    def beats(self, outcome: Outcome | None = None) -> Iterator[Beat]:
        beats = list(self.feed.beats(outcome))
        if self.before:
            yield from (msgspec.structs.replace(beat, tick=Tick(beat.tick.at_us)) for beat in beats)
        if self.forgotten:
            yield Beat(self.job, Tick(0), forgotten=True)
        yield from beats

    def write(self, record: dict[str, str]) -> None:
        self.records.append(record["id"])


def said(before: bool, forgotten: bool) -> list[str]:
    """The ids of what is said of a capture, which may have been played before."""
    feed = Again(open_feed(str(OWN / "one_slot_401_burst")), before, forgotten)
    assert not run([feed], feed).errors  # type: ignore[list-item]
    return feed.records


def test_a_job_that_was_forgotten_is_a_new_one_when_it_comes_again() -> None:
    alone = said(before=False, forgotten=False)
    assert said(before=True, forgotten=True)[-len(alone) :] == alone
    assert said(before=True, forgotten=False)[-len(alone) :] != alone
