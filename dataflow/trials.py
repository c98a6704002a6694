"""A capture's trials as observations in order of time: each started, ended, or can't be read (gate C).

Observations have to be sorted, so all of a folder's or an archive's are held: two small ones a trial.
"""

from collections.abc import Callable, Iterator

from dataflow.capture import TrialTar, TrialTree
from dataflow.notes import Notes
from dataflow.opened import Taken
from dataflow.reads import LIMITS, Limits
from dataflow.trial_files import TrialFiles, Trouble, trial_files
from extractors import kept
from extractors.harbor_trials import TrialEnded, TrialReading, TrialStarted, TrialUnreadable, read_trial
from extractors.polls import TrialsListed
from extractors.record import Evidence, Observation, SourceEnded, SourceFailed, SourceKind

TROUBLES_TOLD = 200
"""Troubles of one folder or archive that are told one by one; the rest are counted."""

_NAMES = {
    TrialStarted: "trial_started",
    TrialEnded: "trial_ended",
    TrialUnreadable: "trial_unreadable",
    TrialsListed: "trials_counted",
}
_TOLD_IN = tuple(_NAMES.values())
_NEEDED = ("config.json", "result.json")


def trial_observations(
    trials: TrialTree | TrialTar,
    notes: list[str],
    anchor_us: int,
    limits: Limits = LIMITS,
    go_on: Callable[[], None] = lambda: None,
    taken: Taken | None = None,
) -> Iterator[Observation]:
    """The trials' observations by time, then a SourceFailed for each trouble, then one SourceEnded for the whole.

    Evidence has no time where the trial's files have none. Such a trial stands where its other observation stands,
    else, like troubles and the end, at the newest time of all (anchor_us where there is none). SourceEnded counts
    trials as lines and the bytes of their files as size. notes gets what was not read as `<place>: <why>`. go_on is
    called before each trial and may raise, taken is told of an archive's bytes.
    """
    gathered, troubles, count, size = [], [], 0, 0
    for each in trial_files(trials, limits, taken):
        go_on()
        if isinstance(each, Trouble):
            troubles.append(each)
            continue
        read = _read(each)
        told_of = [observation for _, observation in read if type(observation.signal) is not TrialsListed]
        count, size = count + bool(told_of), size + each.size
        gathered += read
    newest_us = max((at_us for at_us, _ in gathered if at_us is not None), default=anchor_us)
    timed = _timed(gathered, newest_us)
    yield from timed
    told = _told(trials.relative, troubles)
    notes += [f"{trouble.source}: {trouble.why}" for trouble in told]
    _say_unreadable(trials.relative, timed, {trouble.source for trouble in told}, notes)
    for trouble in told:
        failed = SourceFailed(SourceKind.TRIAL, trouble.why, trouble.whole)
        yield _of_source(failed, "source_failed", trouble.source, newest_us)
    unreadable = sum(type(observation.signal) is TrialUnreadable for observation in timed)
    gap = f"{len(troubles)} file(s) or member(s) not read, or in part" if troubles else ""
    ended = SourceEnded(SourceKind.TRIAL, count, size, unreadable, complete=not troubles, gap=gap)
    yield _of_source(ended, "source_ended", trials.relative, newest_us)


def read_one(trial: TrialFiles, now_us: int) -> list[Observation]:
    """What the files of one trial say, by time; what they do not date is of now."""
    return _timed(_read(trial), now_us)


def _timed(gathered: list[tuple[int | None, Observation]], else_us: int) -> list[Observation]:
    return sorted((each.moved(else_us if at_us is None else at_us) for at_us, each in gathered), key=_order)


def _read(trial: TrialFiles) -> list[tuple[int | None, Observation]]:
    """One trial's observations, each with the trial's own time for it, or the nearest that it has."""
    readings = _readings(trial)
    known = [reading.at_us for reading in readings if reading.at_us is not None]
    nearest = min(known, default=None)
    told = [(nearest if reading.at_us is None else reading.at_us, _observed(trial, reading)) for reading in readings]
    for file in _NEEDED if trial.name else ():
        if why := trial.unread.get(file):
            unreadable = TrialReading(TrialUnreadable(trial.name, f"{file}: {why}"), file, 1, 0, "", None)
            told.append((nearest, _observed(trial, unreadable)))
    return told


def _readings(trial: TrialFiles) -> tuple[TrialReading, ...]:
    """What the files say. The one place where a failure of their reader is caught: it becomes an unreadable trial."""
    try:
        readings = read_trial(trial.name, trial.files)
        kept.check([reading.signal for reading in readings])
        return readings
    except Exception as error:
        file = next((file for file in reversed(_NEEDED) if file in trial.files), min(trial.files))
        why = f"{file}: its reader failed ({type(error).__name__}: {error})"
        return (TrialReading(TrialUnreadable(trial.name, why), file, 1, 0, "", None),)


def _observed(trial: TrialFiles, reading: TrialReading) -> Observation:
    name = _NAMES[type(reading.signal)]
    source = trial.sources[reading.file]
    own_us = reading.at_us if reading.dated else None
    return Observation(
        reading.signal, Evidence(name, source, reading.line, reading.offset, own_us, reading.quote), 0, name
    )


def _order(observation: Observation) -> tuple[int, str, int]:
    """By time; then by trial, its start before its end; a whole job's count before its trials."""
    trial = "" if type(observation.signal) is TrialsListed else observation.signal.trial
    return observation.at_us, trial, _TOLD_IN.index(observation.pattern)


def _say_unreadable(relative: str, observations: list[Observation], known: set[str], told: list[str]) -> None:
    """Tells of the trials that can't be read, but for files that were told before."""
    notes = Notes(relative, told)
    for observation in observations:
        if type(observation.signal) is TrialUnreadable and observation.evidence.source not in known:
            notes.say(f"{observation.signal.trial}: {observation.signal.why}")
    notes.rest()


def _told(relative: str, troubles: list[Trouble]) -> list[Trouble]:
    rest = len(troubles) - TROUBLES_TOLD
    if rest <= 0:
        return troubles
    return [*troubles[:TROUBLES_TOLD], Trouble(relative, f"{rest} more file(s) or member(s) were not read")]


def _of_source(signal: SourceFailed | SourceEnded, name: str, source: str, at_us: int) -> Observation:
    return Observation(signal, Evidence(name, source, 1, 0, None, ""), at_us, name)
