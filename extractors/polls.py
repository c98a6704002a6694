"""Poll records: one JSON object a line, raw tool output inside; and the signals that polls come to.

A poll that failed is a signal like any other: what could not be had is a value.
"""

from enum import StrEnum

import msgspec


class JobState(StrEnum):
    """A job's state, whichever scheduler says it."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    KILLED = "killed"
    PREEMPTED = "preempted"
    TIMED_OUT = "timed_out"
    UNSCHEDULABLE = "unschedulable"
    ABSENT = "absent"

    @property
    def over(self) -> bool:
        """Whether the job has ended by this record (an absent record alone proves nothing)."""
        return self not in (JobState.PENDING, JobState.RUNNING, JobState.ABSENT)


class PollRecord(msgspec.Struct, frozen=True):
    """One attempt of a probe, as recorded (CONTRACT §1)."""

    at: str
    probe: str
    target: str = ""
    command: tuple[str, ...] = ()
    exit: int | None = None
    elapsed_ms: float = 0.0
    stdout: str = ""
    stderr: str = ""
    error: str = ""


class PollFailed(msgspec.Struct, frozen=True):
    """A probe gave no usable answer: it failed, timed out, or its output can't be parsed (`why` says which)."""

    probe: str
    target: str
    command: tuple[str, ...]
    exit: int | None
    output: str
    why: str


class StatePolled(msgspec.Struct, frozen=True):
    """The authoritative state. None means that the tool did not say.

    exit_code is 128 + the signal where a signal ended it. failures counts failed tries of the whole job, requeues new
    tries of any kind (Slurm's `Restarts`: a failed node and a pre-emption alike). error is the scheduler's own reason,
    whatever it is called there.
    """

    state: JobState
    exit_code: int | None = None
    failures: int | None = None
    preemptions: int | None = None
    pods_alive: int | None = None
    error: str = ""
    requeues: int | None = None


class Pod(msgspec.Struct, frozen=True):
    """One pod. status is kubectl's word (`Running`, `OOMKilled`, …); reason and exit_code are of its last end."""

    name: str
    status: str
    node: str = ""
    restarts: int = 0
    reason: str = ""
    exit_code: int | None = None


class PodsPolled(msgspec.Struct, frozen=True):
    """The pods that the cluster lists for the job; empty is an answer."""

    pods: tuple[Pod, ...]


class GpuReading(msgspec.Struct, frozen=True):
    """One GPU at one moment. None is a cell that the tool could not fill, or was not asked for.

    index is the GPU's own; where the tool gives none, the GPU's place in the output. memory_activity_percent is the
    share of time that memory was read or written.
    """

    index: int
    utilization_percent: float | None = None
    power_watts: float | None = None
    memory_used_mib: float | None = None
    memory_total_mib: float | None = None
    memory_activity_percent: float | None = None


class GpusPolled(msgspec.Struct, frozen=True):
    """The GPUs of one target (a pod or host)."""

    target: str
    gpus: tuple[GpuReading, ...]


class GpuProcess(msgspec.Struct, frozen=True):
    """One process that holds a GPU (`--query-compute-apps`)."""

    gpu: str
    pid: int
    name: str
    memory_used_mib: float | None = None


class GpuProcessesPolled(msgspec.Struct, frozen=True):
    """Who holds the GPUs of one target."""

    target: str
    processes: tuple[GpuProcess, ...]


class Process(msgspec.Struct, frozen=True):
    """One row of ps or top. cpu_percent is a lifetime average where `lifetime` (ps), a current rate otherwise (top)."""

    pid: int
    cpu_percent: float
    rss_kib: float
    elapsed_seconds: float | None
    command: str
    lifetime: bool = True


class ProcessesPolled(msgspec.Struct, frozen=True):
    """The processes of one target, and what was asked for them."""

    target: str
    processes: tuple[Process, ...]
    command: tuple[str, ...] = ()


class Thread(msgspec.Struct, frozen=True):
    """One thread of a stack dump, innermost frame first, frames as `function (file:line)`."""

    name: str
    status: str
    frames: tuple[str, ...]


class StacksPolled(msgspec.Struct, frozen=True):
    """A live stack dump of one process. title is the process title that the dump names."""

    target: str
    pid: int
    title: str
    threads: tuple[Thread, ...]


class TrialsListed(msgspec.Struct, frozen=True):
    """A listing of trial artifacts: how many trials started (config.json) and ended (result.json)."""

    started: int
    ended: int
    newest_us: int | None


class SyncPolled(msgspec.Struct, frozen=True):
    """A log sync that succeeded."""

    seconds: float


PollSignal = (
    StatePolled
    | PodsPolled
    | GpusPolled
    | GpuProcessesPolled
    | ProcessesPolled
    | StacksPolled
    | TrialsListed
    | SyncPolled
    | PollFailed
)


class Said(msgspec.Struct, frozen=True):
    """A signal and the line of the raw output that says it; the line is empty where no line does. read is the piece of
    the line that was read, for lines too long to quote whole."""

    signal: PollSignal
    line: str = ""
    read: str = ""


OUTPUT_LIMIT = 4000
"""Characters of a failed probe's output that are kept: its end, where tools put the error."""


def failed(record: PollRecord, why: str, line: str = "") -> Said:
    """The record as a failure. line is the telling one; by default the first that the tool printed."""
    output = "\n".join(part.rstrip("\r\n") for part in (record.stdout, record.stderr) if part.strip()) or record.error
    if len(output) > OUTPUT_LIMIT:
        output = "…" + output[-OUTPUT_LIMIT:]
    signal = PollFailed(record.probe, record.target, record.command, record.exit, output, why)
    return Said(signal, line or first_line(record.stderr) or first_line(record.stdout))


def unusable(record: PollRecord, wanted: str) -> Said:
    """The record as a failure whose output holds none of what was wanted (`a job state`)."""
    line = first_line(record.stderr) or first_line(record.stdout)
    if record.error:
        return failed(record, record.error)
    if record.exit not in (0, None):
        return failed(record, f"exit {record.exit}: {line or 'no output'}"[:300])
    return failed(record, f"{wanted} was not found in the output: {line}"[:300] if line else "the output is empty")


def first_line(text: str) -> str:
    """The first line that is not blank."""
    return next((line for line in text.splitlines() if line.strip()), "")


def line_with(text: str, *pieces: str) -> str:
    """The first line that holds all the pieces, empty where there is none."""
    return next((line for line in text.splitlines() if all(piece in line for piece in pieces)), "")
