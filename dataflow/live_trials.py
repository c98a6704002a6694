"""The trials and dumps of a live job: files that are read whole when they stand still."""

import os
from collections.abc import Iterator

from dataflow.beats import Run
from dataflow.capture import Source, TrialTar
from dataflow.flights import flight_observations
from dataflow.log_reading import observed, source_seen
from dataflow.opened import READ_BYTES
from dataflow.trial_files import JOB_RESULT, Trouble, job_result, one_trial
from dataflow.trial_watch import TrialSeen
from dataflow.trials import read_one, trial_observations
from extractors.harbor_trials import TrialEnded, TrialStarted
from extractors.record import Observation, SourceEnded, SourceFailed, SourceKind


class LiveTrials:
    """Reads what a look found; notes gets what the user should hear. open are the trials that are known to have
    begun; told are the starts and ends of trials in archives, which are read again when they were written again."""

    def __init__(self, notes: list[str]) -> None:
        self.notes = notes
        self.open: set[str] = set()
        self.told: dict[str, set[tuple[str, str]]] = {}

    def seen(self, found: TrialSeen, now_us: int) -> Run:
        """What a trial that began or ended says, or a job's own result. A start that nothing dates is of the time at
        which its config was written."""
        run: Run = []
        try:
            every = list((one_trial if found.name else job_result)(found.path, found.relative))
        except OSError as error:
            every = [Trouble(found.relative, f"cannot be read: {error.strerror}")]
        for each in every:
            if not isinstance(each, Trouble):
                run += read_one(each, now_us if found.ended else _written_us(found.path, now_us))
            elif found.ended:
                self.notes.append(f"{each.source}: {each.why}")
                failed = SourceFailed(SourceKind.TRIAL, each.why, each.whole)
                run.append(observed(failed, "source_failed", each.source, now_us))
        return self._of_the_end(found, run) if found.ended else self._of_the_start(found, run)

    def beginnings(self, runs: dict[str, Run]) -> list[Observation]:
        """That the folders and archives are there in which these trials lie, each at the first that its trials say."""
        first: dict[str, int] = {}
        for name, run in runs.items():
            folder = name.split("/", 1)[0]
            for each in run:
                first[folder] = min(each.at_us, first.get(folder, each.at_us))
        return [source_seen(SourceKind.TRIAL, folder, at_us) for folder, at_us in first.items()]

    def _of_the_start(self, found: TrialSeen, run: Run) -> Run:
        self.open.add(found.relative)
        # A result that is there already may be half written: it is read when it stands still, and told then.
        result = f"{found.relative}/{JOB_RESULT}"
        return [each for each in run if type(each.signal) is not TrialEnded and each.evidence.source != result]

    def _of_the_end(self, found: TrialSeen, run: Run) -> Run:
        """A start that was told is told once more, beside the end: now its date is known."""
        if found.relative not in self.open:
            return run
        self.open.discard(found.relative)
        ended_us = max((each.at_us for each in run), default=0)
        return [each.moved(ended_us) if type(each.signal) is TrialStarted else each for each in run]

    def archive(self, archive: TrialTar, now_us: int) -> Run:
        """What an archive says that was not told before."""
        told = self.told.setdefault(archive.relative, set())
        run: Run = []
        for each in trial_observations(archive, self.notes, now_us):
            if isinstance(each.signal, SourceEnded):
                continue
            if isinstance(each.signal, TrialStarted | TrialEnded):
                key = (type(each.signal).__name__, each.signal.trial)
                if key in told:
                    continue
                told.add(key)
            run.append(each)
        return run


class LiveDumps:
    """The dumps of a flight recorder, each read when it has its whole size. read are those that were."""

    def __init__(self, notes: list[str]) -> None:
        self.notes = notes
        self.read: set[str] = set()
        self._seen: dict[str, tuple[Source, int]] = {}

    def add(self, source: Source) -> None:
        """Takes in a dump that is there."""
        if source.relative not in self.read:
            self._seen[source.relative] = (source, -1)

    def look(self, now_us: int) -> Iterator[tuple[str, Run]]:
        """What those say that stand still since the last look, by their names."""
        for name, (source, size) in list(self._seen.items()):
            try:
                now = os.stat(source.path).st_size
            except OSError:
                continue
            if now != size:
                self._seen[name] = (source, now)
            elif size:
                del self._seen[name]
                self.read.add(name)
                yield name, self._read(source, now_us)

    def _read(self, source: Source, now_us: int) -> Run:
        found = flight_observations(source, READ_BYTES, self.notes, now_us)
        run: list[Observation] = [each for each in found if not isinstance(each.signal, SourceEnded)]
        if run and not isinstance(run[0].signal, SourceFailed):
            run = [source_seen(source.kind, source.relative, run[0].at_us), *run]
        return run


def _written_us(folder: str, now_us: int) -> int:
    try:
        return min(now_us, os.stat(f"{folder}/config.json").st_mtime_ns // 1000)
    except OSError:
        return now_us
