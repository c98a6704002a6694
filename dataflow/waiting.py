"""What was read of a live job and waits for its time: held for the lateness, released in order of time."""

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from dataflow.beats import Run
from dataflow.journal import Journal
from extractors.record import Observation, SourceFailed, SourceResumed

AHEAD_US = 60_000_000
"""A line from further in the future is of a clock that runs ahead, and stands at this distance."""


class Waiting:
    """The observations of a job that were not released yet, by the names of their files. released_us is up to when all
    was given, 0 before the first line was; late counts observations that came after their time had been.

    clock is asked where a line seems to be from the future: it may have been written while other files were read."""

    def __init__(self, journal: Journal, clock: Callable[[], int] = lambda: 0) -> None:
        self.released_us = 0
        self.late = 0
        self.begun = False
        self._journal = journal
        self._clock = clock
        self._held: dict[str, Run] = {}
        self._begun: set[str] = set()

    def line(self, name: str, generation: int, run: Run, now_us: int) -> None:
        """Takes in what one generation of a file says. What is late stands behind what was released, what is from the
        future near the present."""
        run = self._journal.moved(name, generation, run)
        if run[-1].at_us > now_us + AHEAD_US:
            now_us = max(now_us, self._clock())
        first_us, last_us = self.released_us + 1, now_us + AHEAD_US
        if run[0].at_us < first_us or run[-1].at_us > last_us:
            late = [each for each in run if each.at_us < first_us and not _is_of_now(each)]
            ahead = [each for each in run if each.at_us > last_us]
            self.late += len(late)
            for moved, to_us in ((late, first_us), (ahead, max(first_us, last_us))):
                if moved:
                    self._journal.keep(name, generation, moved, to_us)
            run = [each.moved(min(max(each.at_us, first_us), max(first_us, last_us))) for each in run]
        self.hold(name, run)

    def whole(self, name: str, run: Run) -> None:
        """Takes in what was read of a file at once: a trial, a dump, an archive of trials."""
        kept = [one for each in run for one in self._journal.moved(each.evidence.source, 0, [each])]
        first_us = self.released_us + 1
        for each in kept:
            if self.begun and (each.at_us < first_us or each.evidence.at_us is None):
                self._journal.keep(each.evidence.source, 0, [each], max(first_us, each.at_us))
        self.hold(name, sorted((each.moved(max(each.at_us, first_us)) for each in kept), key=attrgetter("at_us")))

    def begin(self, beginning: Observation) -> None:
        """Takes in that a folder of trials is there, once. Trials are not found in order of time: an earlier beginning
        takes the place of one that still waits. Raises OSError."""
        name = beginning.evidence.source
        held = self._held.get(name)
        if held is not None and beginning.at_us < held[0].at_us:
            held[0] = beginning.moved(max(beginning.at_us, self.released_us + 1))
        elif name not in self._begun:
            self._begun.add(name)
            self.whole(name, [beginning])

    def hold(self, name: str, run: Run) -> None:
        """Holds a run until its time comes."""
        if not run:
            return
        held = self._held.setdefault(name, [])
        held += run
        if len(held) > len(run) and held[-len(run) - 1].at_us > run[0].at_us:
            held.sort(key=attrgetter("at_us"))

    def release(self, upto_us: int, order: Callable[[str], tuple[int, str]]) -> Run:
        """What stands up to a time, in order; of the same time by the order of the files. Nothing before the time of
        the first line: a log may lie there for hours when its folder comes."""
        if not self.begun and not self._begins(upto_us):
            return []
        run: Run = []
        for name in sorted(self._held, key=order):
            held = self._held[name]
            end = next((place for place, each in enumerate(held) if each.at_us > upto_us), len(held))
            run += held[:end]
            if end == len(held):
                del self._held[name]
            else:
                del held[:end]
        run.sort(key=attrgetter("at_us"))
        self.released_us, self.begun = upto_us, True
        return run

    def _begins(self, upto_us: int) -> bool:
        """Whether the time of the first line has come. What failed until then is told with it."""
        every = (next((each.at_us for each in held if not _is_of_now(each)), None) for held in self._held.values())
        first_us = min((at_us for at_us in every if at_us is not None), default=None)
        if first_us is None or first_us > upto_us:
            return False
        for held in self._held.values():
            held[:] = [each.moved(first_us) if _is_of_now(each) else each for each in held]
            held.sort(key=attrgetter("at_us"))
        return True

    def snapshot(self) -> tuple[Any, ...]:
        """All that `restore` needs."""
        return self.released_us, self.late, self.begun, self._held, self._begun

    def restore(self, snapshot: tuple[Any, ...]) -> None:
        """Goes on where a snapshot was made."""
        self.released_us, self.late, self.begun, self._held, self._begun = snapshot


def _is_of_now(observation: Observation) -> bool:
    """Whether it tells how the reading of a file fares: another reading of the file may not meet it."""
    return type(observation.signal) in (SourceFailed, SourceResumed) and not observation.evidence.quote
