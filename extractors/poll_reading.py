"""One line of `polls/<probe>.jsonl` as signals with quotes: the door through which poll records come in.

A line that is no record is a value that names the key and the place, never an exception.
"""

import re
from collections.abc import Callable
from datetime import datetime

import msgspec
import orjson

from extractors import kept
from extractors.clocks import parse_iso
from extractors.gpu import read_gpus
from extractors.iris import read_iris_state
from extractors.kubernetes import read_kubernetes_state, read_pods
from extractors.polls import PollRecord, PollSignal, Said, SyncPolled, failed, unusable
from extractors.processes import read_processes
from extractors.quoting import quote
from extractors.ray_jobs import read_ray_job_state
from extractors.slurm import read_slurm_state
from extractors.stacks import read_stacks
from extractors.trials_listing import read_trials


class PollReading(msgspec.Struct, frozen=True):
    """A record that was read. quotes[i] is a line of the decoded output that says signals[i] (at most 500 characters),
    or a window of the raw record where the output holds no such line."""

    record: PollRecord
    at_us: int
    signals: tuple[PollSignal, ...]
    quotes: tuple[str, ...]


class PollUnreadable(msgspec.Struct, frozen=True):
    """A line that is no poll record. why names the key, or what of the JSON is broken, and the byte it starts at."""

    why: str
    quote: str


STATE_READERS: dict[str, Callable[[PollRecord], tuple[Said, ...] | None]] = {
    "sacct": read_slurm_state,
    "squeue": read_slurm_state,
    "scontrol": read_slurm_state,
    "kubectl": read_kubernetes_state,
    "ray job": read_ray_job_state,
    "iris": read_iris_state,
}
"""The readers of a `state` probe by a word of the command. Wrappers hide tools: all are tried, the named one first."""


def read_poll(line: bytes) -> PollReading | PollUnreadable:
    """One line of a poll file."""
    raw = line.decode("utf-8", "replace").strip("\r\n")
    try:
        found = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        return PollUnreadable(f"malformed JSON at byte {_byte(raw, error.pos)}: {error.msg}", quote(raw))
    if not isinstance(found, dict):
        return PollUnreadable(f"a poll record is a JSON object, this is {type(found).__name__}", quote(raw))
    try:
        record = msgspec.convert({key: value for key, value in found.items() if value is not None}, PollRecord)
    except msgspec.ValidationError as error:
        return _misshapen(raw, str(error))
    reader = READERS.get(record.probe)
    if reader is None:
        why = f"key `probe`{_place(raw, 'probe')}: unknown probe {record.probe!r}, known are {', '.join(READERS)}"
        return PollUnreadable(why, quote(raw, '"probe"'))
    at_us = _moment(record.at)
    if at_us is None:
        why = f"key `at`{_place(raw, 'at')}: {record.at!r} is no RFC 3339 time with a zone"
        return PollUnreadable(why, quote(raw, '"at"'))
    try:
        said = reader(record)
        signals = tuple(one.signal for one in said)
        kept.check(signals)
    except Exception as error:
        return PollUnreadable(f"its reader failed ({type(error).__name__}: {error})"[:300], quote(raw))
    return PollReading(record, at_us, signals, tuple(_quote(one, raw) for one in said))


def read_state(record: PollRecord) -> tuple[Said, ...]:
    """The job's authoritative state, whichever tool printed it."""
    if record.error:
        return (unusable(record, "a job state"),)
    command = " ".join(record.command)
    readers = sorted(STATE_READERS.items(), key=lambda entry: entry[0] not in command)
    for reader in dict.fromkeys(reader for _, reader in readers):
        said = reader(record)
        if said is not None:
            return said
    return (unusable(record, "a job state"),)


_NOT_PULLED = re.compile(
    r"^\[ray\] REFUSING to mirror|^\[sync\] cannot read |^\[finelog\] [^\n]{0,200}\(rc=[1-9]"
    r"|hit the --finelog-lines cap"
)
"""What sync_rl_logs.py prints, with exit 0, of what it left out: a folder of two jobs, an unreadable environment, a
log fetch that failed, a log longer than it asked for."""


def read_sync(record: PollRecord) -> tuple[Said, ...]:
    """A log sync: it worked, or what it did not pull can't be judged."""
    if record.error or record.exit != 0:
        return (unusable(record, "a finished sync"),)
    lines = f"{record.stdout}\n{record.stderr}".splitlines()
    missed = next((line for line in lines if _NOT_PULLED.search(line)), "")
    if missed:
        return (failed(record, f"it ended with exit 0 but did not pull all: {missed.strip()}"[:300], missed),)
    return (Said(SyncPolled(record.elapsed_ms / 1000)),)


READERS: dict[str, Callable[[PollRecord], tuple[Said, ...]]] = {
    "state": read_state,
    "pods": read_pods,
    "gpu": read_gpus,
    "procs": read_processes,
    "stacks": read_stacks,
    "trials": read_trials,
    "sync": read_sync,
}


def _misshapen(raw: str, error: str) -> PollUnreadable:
    """A record of wrong types or with a key missing, from msgspec's message (``… - at `$.exit` ``)."""
    at = re.search(r"`\$\.(\w+)", error)
    missing = re.search(r"missing required field `(\w+)`", error)
    if missing is not None:
        return PollUnreadable(f"key `{missing[1]}` is missing from the record at byte 0", quote(raw))
    key = at[1] if at else ""
    reason = error.partition(" - at ")[0]
    return PollUnreadable(f"key `{key}`{_place(raw, key)}: {reason}", quote(raw, f'"{key}"'))


def _place(raw: str, key: str) -> str:
    found = re.search(rf'"{re.escape(key)}"\s*:', raw)
    return f" at byte {_byte(raw, found.start())}" if found else ""


def _byte(raw: str, character: int) -> int:
    return len(raw[:character].encode())


def _moment(text: str) -> int | None:
    """An aware time in microseconds. A naive one is refused: guessing its zone could be hours off."""
    at_us = parse_iso(text)
    if at_us is None or datetime.fromisoformat(text.strip()).tzinfo is None:
        return None
    return at_us


def _quote(said: Said, raw: str) -> str:
    if said.line.strip():
        return quote(said.line.rstrip("\r"), said.read)
    return quote(raw, '"error"' if '"error"' in raw else '"stdout"')
