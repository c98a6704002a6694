"""One Harbor trial's files as signals: it started, it ended with what, or it can't be read. Serves gate C.

Read are result.json of Harbor 0.1.45–0.26 (and the older form with unprefixed keys), config.json, exception.txt,
ATIF trajectories and opencode.txt. Each signal comes with the line that says it.
"""

import re
from collections.abc import Mapping

import msgspec

from extractors.coherence import Coherence as Coherence
from extractors.coherence import coherence_of
from extractors.harbor_job import read_job_result
from extractors.polls import TrialsListed
from extractors.quoting import quote
from extractors.transcripts import Transcript, read_opencode, read_trajectory
from extractors.trial_result import (
    BadResult,
    TrialResult,
    exception_of,
    output_tokens_of,
    read_result,
    reward_of,
    timing_of,
    trial_times,
    turns_of,
)
from extractors.trial_result import (
    TrialTiming as TrialTiming,
)

TRANSCRIPTS = ("trajectory.json", "opencode.txt")


class TrialStarted(msgspec.Struct, frozen=True):
    """A trial has its config on file: it was started. silent says that its transcript is on file and the agent wrote
    nothing in it so far, None that there is no transcript, or that the trial has ended. started_us is when it began, as
    its result or transcript says; its config does not."""

    trial: str
    silent: bool | None = None
    started_us: int | None = None


class TrialEnded(msgspec.Struct, frozen=True):
    """A trial was finalized. reward None means that nobody scored it; both reward and exception: scored.

    turns counts the agent's model calls, output_tokens what they gave; None where nothing says.
    """

    trial: str
    reward: float | None
    exception: str | None
    turns: int | None
    output_tokens: int | None
    timing: TrialTiming | None
    coherence: Coherence


class TrialUnreadable(msgspec.Struct, frozen=True):
    """A file of a trial is on file and can't be read; why names it and the place in it."""

    trial: str
    why: str


class TrialReading(msgspec.Struct, frozen=True):
    """A signal with its place: file (relative to the trial), 1-based line, byte offset of that line, and its quote.

    at_us is when it happened by the files' own account, None where they do not say. dated says that this line does.
    """

    signal: TrialStarted | TrialEnded | TrialUnreadable | TrialsListed
    file: str
    line: int
    offset: int
    quote: str
    at_us: int | None
    dated: bool = True


def wanted(file: str) -> bool:
    """Whether a file of a trial (path relative to it) is one that read_trial reads."""
    return file in ("config.json", "result.json", "exception.txt") or _base(file) in TRANSCRIPTS


def read_trial(trial: str, files: Mapping[str, bytes]) -> tuple[TrialReading, ...]:
    """What the files (by path relative to the trial) say of it. Of a whole job's folder, and where there is no trial's
    name, what the job's own count says."""
    raw = files.get("result.json")
    if not trial:
        return _counted(raw or b"")
    transcript = _transcript(files)
    read = None if raw is None else read_result(raw)
    result = read if isinstance(read, TrialResult) else None
    if raw is not None and result is not None and result.is_job:
        return _counted(raw)
    readings = [_started(trial, files, result, transcript)]
    if isinstance(read, BadResult):
        readings.append(_at(TrialUnreadable(trial, f"result.json: {read.why}"), "result.json", raw or b"", read.byte))
    if result is not None:
        readings.append(_ended(trial, raw or b"", result, transcript))
    elif files.get("exception.txt", b"").strip():
        readings.append(_ended_by_exception(trial, files["exception.txt"], transcript))
    return tuple(reading for reading in readings if reading is not None)


def _counted(raw: bytes) -> tuple[TrialReading, ...]:
    """A whole job's own count of its trials."""
    counted = read_job_result(raw)
    place = max(raw.find(b'"stats"'), 0)
    return () if counted is None else (_at(counted, "result.json", raw, place, counted.newest_us),)


def _started(
    trial: str, files: Mapping[str, bytes], result: TrialResult | None, transcript: Transcript | None
) -> TrialReading | None:
    """The start, from config.json, else from the result that followed it."""
    times = trial_times(result, transcript) if result else (None, None)
    at_us = times[0] if times[0] is not None or transcript is None else transcript.first_us
    silent = None if transcript is None or result else not any((transcript.turns, *transcript.texts))
    begun = TrialStarted(trial, silent, at_us)
    config = files.get("config.json", b"")
    if config.strip():
        read = _at(begun, "config.json", config, max(config.find(b'"trial_name"'), 0), at_us)
        return msgspec.structs.replace(read, dated=False)
    if result is not None:
        raw = files["result.json"]
        place = _place(raw, _stated("started_at", result.started_at), rb'"trial_name"')
        return _at(begun, "result.json", raw, place, at_us)
    if "config.json" in files and "result.json" not in files:
        return _at(TrialUnreadable(trial, "config.json: the file is empty"), "config.json", config, 0)
    return None


def _ended(trial: str, raw: bytes, result: TrialResult, transcript: Transcript | None) -> TrialReading:
    reward, exception = reward_of(result), exception_of(result)
    transcribed = transcript.output_tokens if transcript else None
    tokens = output_tokens_of(result)
    signal = TrialEnded(
        trial,
        reward=reward,
        exception=exception,
        turns=turns_of(result, transcript),
        output_tokens=transcribed if tokens is None else tokens,
        timing=timing_of(result),
        coherence=_coherence(transcript, tokens),
    )
    return _at(signal, "result.json", raw, _telling(raw, result, signal), trial_times(result, transcript)[1])


def _telling(raw: bytes, result: TrialResult, ended: TrialEnded) -> int:
    """Where the file says it: the reward of a scored trial, the exception of another, else the end."""
    finish = _stated("finished_at", result.finished_at)
    if ended.reward is not None:
        scored = max(raw.find(b'"verifier_result"'), 0)
        return _place(raw, rb'"reward"\s*:\s*-?[\d.]', rb'"rewards"\s*:\s*\{', finish, start=scored)
    if ended.exception:
        return _place(raw, _stated("(?:exception_)?type", ended.exception), rb'"exception_info"', finish)
    return _place(raw, finish, rb'"verifier_result"')


def _stated(key: str, value: str | None) -> bytes:
    """A regex for a key (itself one) with this very value: phases and steps have the same keys."""
    return rf'"{key}"\s*:\s*"{re.escape(value)}"'.encode() if value else rb"(?!)"


def _place(raw: bytes, *regexes: bytes, start: int = 0) -> int:
    """The byte of the first regex that is found, else 0."""
    found = (re.compile(regex).search(raw, start) for regex in regexes)
    return next((match.start() for match in found if match), 0)


def _ended_by_exception(trial: str, raw: bytes, transcript: Transcript | None) -> TrialReading:
    """A trial whose result can't be had: the traceback's last line with a class name says what it ended with."""
    lines = [line for line in raw.decode("utf-8", "replace").splitlines() if line.strip() and not line[0].isspace()]
    last = lines[-1] if lines else ""
    named = next((line for line in reversed(lines) if _exception_class(line)), last)
    signal = TrialEnded(
        trial,
        reward=None,
        exception=_exception_class(named) or "UnknownError",
        turns=transcript.turns if transcript else None,
        output_tokens=transcript.output_tokens if transcript else None,
        timing=None,
        coherence=_coherence(transcript, None),
    )
    ended_us = transcript.last_us if transcript else None
    return _at(signal, "exception.txt", raw, max(raw.rfind(named.encode()), 0), ended_us)


def _exception_class(line: str) -> str:
    """`AddTestsDirError` of `harbor.verifier.verifier.AddTestsDirError: Failed …`; empty where the line names none."""
    path = line.partition(":")[0].strip()
    name = path.rpartition(".")[2]
    return name if path.replace(".", "").isidentifier() and name[:1].isupper() else ""


def _coherence(transcript: Transcript | None, tokens: int | None) -> Coherence:
    """The messages' coherence. Tokens without messages mean that the messages were not kept."""
    if transcript is None:
        return Coherence.UNKNOWN
    found = coherence_of(transcript.texts)
    return Coherence.UNKNOWN if found is Coherence.EMPTY and tokens and not transcript.turns else found


def _transcript(files: Mapping[str, bytes]) -> Transcript | None:
    """All trajectories of the trial as one (a multi-step trial has one a step), else opencode's own log."""
    found = [read_trajectory(files[name]) for name in sorted(files) if _base(name) == "trajectory.json"]
    read = [transcript for transcript in found if transcript is not None]
    if not read:
        read = [read_opencode(files[name]) for name in sorted(files) if _base(name) == "opencode.txt"]
    if not read:
        return None
    tokens = [t.output_tokens for t in read if t.output_tokens is not None]
    times = [t.first_us for t in read if t.first_us is not None]
    ends = [t.last_us for t in read if t.last_us is not None]
    return Transcript(
        texts=tuple(text for t in read for text in t.texts),
        turns=sum(t.turns for t in read),
        output_tokens=sum(tokens) if tokens else None,
        first_us=min(times, default=None),
        last_us=max(ends, default=None),
    )


def _at(
    signal: TrialStarted | TrialEnded | TrialUnreadable | TrialsListed,
    file: str,
    raw: bytes,
    place: int,
    at_us: int | None = None,
) -> TrialReading:
    """The signal at the line that holds this byte of the file."""
    start = raw.rfind(b"\n", 0, place) + 1
    end = raw.find(b"\n", start)
    line = raw[start : end if end >= 0 else len(raw)]
    text = line.decode("utf-8", "replace").rstrip("\r")
    read = raw[place : start + len(line)][:40].decode("utf-8", "replace")
    return TrialReading(signal, file, raw.count(b"\n", 0, start) + 1, start, quote(text, read), at_us)


def _base(file: str) -> str:
    return file.rpartition("/")[2]
