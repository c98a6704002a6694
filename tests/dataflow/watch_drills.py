"""A watch as a process over a capture with a clock that tests turn."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from extractors.clocks import write_iso
from tests.dataflow.live_feeds import SECOND_US, bars
from tests.live.harness import Watch


@dataclass
class Drill(Watch):
    """place is where it keeps its store and its records, if that is not its folder."""

    place: Path | None = None

    @property
    def out(self) -> Path:
        return (self.place or self.folder) / "out.jsonl"

    @property
    def store(self) -> Path:
        return (self.place or self.folder) / "store"

    def at(self, at_us: int) -> "Drill":
        """Lets it be this time."""
        assert self.clock is not None
        new = self.clock.with_suffix(".new")
        new.write_text(write_iso(at_us))
        new.replace(self.clock)
        return self

    def ran_to(self, at_us: int, workers: int = 1) -> "Drill":
        """Runs it until all is judged up to a time."""
        self.at(at_us + 6 * SECOND_US).start(workers)
        self.wait_released(at_us)
        return self

    def logs(self, seconds: int, toml: str = "") -> None:
        """A log of a job that has a name."""
        (self.captures[0] / "job.toml").write_text(f'[job]\nid = "/kim/rl"\n{toml}')
        (self.captures[0] / "finelog.log").write_bytes(bars(0, seconds))


@contextmanager
def drill(folder: Path, place: Path | None = None) -> Iterator[Drill]:
    """One over an empty capture. It must never end in a traceback."""
    (folder / "run").mkdir()
    watch = Drill([folder / "run"], folder / "watch", folder / "clock", place=place)
    try:
        yield watch
    finally:
        watch.kill()
    assert "Traceback" not in watch.said
    assert "panicked" not in watch.said
