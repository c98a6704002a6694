"""What Slurm says of a job: `sacct -P`, `squeue -o`, `scontrol show job -o`.

Serves gate A rules 1–4. A controller that did not answer gives no rows: that is no answer, never an absent job.
"""

import re
from collections.abc import Iterable, Sequence

from extractors.polls import JobState, PollRecord, Said, StatePolled, failed, line_with, unusable

STATES: dict[str, JobState] = {
    "PENDING": JobState.PENDING,
    "CONFIGURING": JobState.PENDING,
    "REQUEUED": JobState.PENDING,
    "REQUEUE_FED": JobState.PENDING,
    "REQUEUE_HOLD": JobState.PENDING,
    "RESV_DEL_HOLD": JobState.PENDING,
    "SPECIAL_EXIT": JobState.PENDING,
    "SUSPENDED": JobState.PENDING,
    "RUNNING": JobState.RUNNING,
    "COMPLETING": JobState.RUNNING,
    "RESIZING": JobState.RUNNING,
    "SIGNALING": JobState.RUNNING,
    "STAGE_OUT": JobState.RUNNING,
    "STOPPED": JobState.RUNNING,
    "COMPLETED": JobState.SUCCEEDED,
    "FAILED": JobState.FAILED,
    "NODE_FAIL": JobState.FAILED,
    "BOOT_FAIL": JobState.FAILED,
    "LAUNCH_FAILED": JobState.FAILED,
    "RECONFIG_FAIL": JobState.FAILED,
    "OUT_OF_MEMORY": JobState.FAILED,
    "TIMEOUT": JobState.TIMED_OUT,
    "DEADLINE": JobState.TIMED_OUT,
    "CANCELLED": JobState.KILLED,
    "REVOKED": JobState.KILLED,
    "PREEMPTED": JobState.PREEMPTED,
}
COMPACT: dict[str, str] = {
    "PD": "PENDING",
    "CF": "CONFIGURING",
    "RQ": "REQUEUED",
    "RH": "REQUEUE_HOLD",
    "RD": "RESV_DEL_HOLD",
    "SE": "SPECIAL_EXIT",
    "S": "SUSPENDED",
    "R": "RUNNING",
    "CG": "COMPLETING",
    "RS": "RESIZING",
    "SI": "SIGNALING",
    "SO": "STAGE_OUT",
    "ST": "STOPPED",
    "CD": "COMPLETED",
    "F": "FAILED",
    "NF": "NODE_FAIL",
    "BF": "BOOT_FAIL",
    "OOM": "OUT_OF_MEMORY",
    "TO": "TIMEOUT",
    "DL": "DEADLINE",
    "CA": "CANCELLED",
    "RV": "REVOKED",
    "PR": "PREEMPTED",
}
"""squeue's compact states (`%t`)."""

UNREMARKABLE = {"PENDING", "RUNNING", "COMPLETING", "COMPLETED", "FAILED"}
NO_SUCH_JOB = "slurm_load_jobs error: Invalid job id specified"

_STATE_CELL = re.compile(r"^(?P<word>[A-Z_]+)(?: by \S+|\+)?$")
_EXIT = re.compile(r"^(\d{1,6}):(\d{1,4})$")
_STEP = re.compile(r"^(?P<job>\d+(?:_\d+)?(?:\+\d+)?)(?:\.(?P<step>\w+))?$")
_RECORD_KEY = re.compile(r"(?:^|\s)(JobId|JobName|JobState|Reason|Restarts|ExitCode)=(\S*)")


def read_slurm_state(record: PollRecord) -> tuple[Said, ...] | None:
    """The job's state as any of Slurm's tools prints it; None where the output is of none of them."""
    if NO_SUCH_JOB in record.stderr or NO_SUCH_JOB in record.stdout:
        return (Said(StatePolled(JobState.ABSENT), line_with(record.stderr + "\n" + record.stdout, NO_SUCH_JOB)),)
    if "slurm_load_jobs error" in record.stderr + record.stdout:
        return (failed(record, "the Slurm controller did not answer", line_with(record.stderr, "slurm_load_jobs")),)
    for reader in (_read_sacct, _read_scontrol, _read_squeue):
        said = reader(record)
        if said is not None:
            return (said,)
    return None


def slurm_state(cell: str) -> tuple[JobState, str] | None:
    """A state cell (`CANCELLED by 1234`, `TIMEOUT+`, `PD`) as the state and Slurm's full word."""
    found = _STATE_CELL.match(cell.strip())
    if found is None:
        return None
    word = COMPACT.get(found["word"], found["word"])
    if cell.rstrip().endswith("+") and word not in STATES:
        # A narrow column cuts the word: `OUT_OF_ME+`, `NODE_FAI+`.
        word = next((whole for whole in STATES if len(word) > 3 and whole.startswith(word)), word)
    state = STATES.get(word)
    return None if state is None else (state, word)


class _Row:
    """One row of sacct: a job, or one of its steps."""

    def __init__(self, line: str, cells: dict[str, str]) -> None:
        self.line = line
        self.cell = cells.get("State", "").strip()
        self.name = cells.get("JobName", "")
        self.exit_code = exit_of(cells.get("ExitCode", ""))
        step = _STEP.match(cells.get("JobID", "").strip())
        self.step = step["step"] if step else None
        self.is_job = step is not None and step["step"] is None
        self.said = slurm_state(self.cell)


def _read_sacct(record: PollRecord) -> Said | None:
    """`sacct`, as a rule with `-P`: the job's row, unless it says COMPLETED while a step of it failed (the script lost
    srun's code).

    Of a job that was requeued the last row is the newest.
    """
    lines = record.stdout.splitlines()
    printed = _with_bars(lines)
    fields, rows = _sacct_fields(record, list(printed))
    if fields is None:
        return None
    readable = [_Row(printed[line], dict(zip(fields, line.rstrip("|").split("|"), strict=False))) for line in rows]
    readable = [row for row in readable if row.said is not None]
    jobs = [row for row in readable if row.is_job]
    if not jobs:
        answered = not rows and record.exit in (0, None)
        return _absent(lines) if answered else unusable(record, "a row with a job state")
    row = jobs[-1]
    if row.said is not None and row.said[0] is JobState.SUCCEEDED:
        row = _failed_step(readable) or row
    return _polled(row)


def _sacct_fields(record: PollRecord, lines: Sequence[str]) -> tuple[list[str] | None, list[str]]:
    """The columns, from the header or from the recorded `-o`/`--format=`, and the rows below."""
    rows = [line for line in lines if "|" in line]
    header = next((line for line in rows if "JobID" in line.split("|") and "State" in line.split("|")), None)
    if header is not None:
        return header.rstrip("|").split("|"), rows[rows.index(header) + 1 :]
    asked = re.search(r"sacct\b.*?(?:--format[= ]|-o\s*)([\w%,]+)", " ".join(record.command))
    if asked is None:
        return None, []
    names = {"jobid": "JobID", "state": "State", "exitcode": "ExitCode", "jobname": "JobName"}
    fields = [names.get(name.partition("%")[0].lower(), name) for name in asked[1].split(",")]
    return (fields if rows else None), rows


def _with_bars(lines: Sequence[str]) -> dict[str, str]:
    """The lines by their form with bars: without `-P` the columns are as wide as the rule under the header."""
    rule = next((place for place, line in enumerate(lines) if re.fullmatch(r"-{2,}(?: -{2,})+ *", line)), None)
    if not rule or "|" in lines[rule - 1]:
        return {line: line for line in lines}
    spans = [found.span() for found in re.finditer(r"-+", lines[rule])]
    table = (lines[rule - 1], *lines[rule + 1 :])
    return {"|".join(line[start:end].strip() for start, end in spans): line for line in table if line.strip()}


def _failed_step(rows: Iterable[_Row]) -> _Row | None:
    """The last step that failed and that no later step of the same name made good."""
    newest: dict[str, _Row] = {}
    for row in rows:
        if row.step is not None and row.step.isdecimal():
            newest[row.name] = row
    bad = [row for row in newest.values() if row.said and row.said[0].over and row.said[0] is not JobState.SUCCEEDED]
    return bad[-1] if bad else None


def _polled(row: _Row) -> Said | None:
    if row.said is None:
        return None
    state, word = row.said
    error = row.cell if word not in UNREMARKABLE or " by " in row.cell else ""
    exit_code = row.exit_code if state.over else None
    return Said(StatePolled(state, exit_code=exit_code, error=error), row.line)


def _read_scontrol(record: PollRecord) -> Said | None:
    """`scontrol show job -o` (and its many-line form): key=value pairs; of an array, a running member first."""
    found: list[Said] = []
    for block in re.split(r"(?m)^(?=JobId=)", record.stdout):
        cells = dict(_RECORD_KEY.findall(block))
        said = slurm_state(cells.get("JobState", ""))
        if said is None:
            continue
        state, _ = said
        restarts = cells.get("Restarts", "")
        polled = StatePolled(
            state,
            exit_code=exit_of(cells.get("ExitCode", "")) if state.over else None,
            error="" if cells.get("Reason", "None") == "None" else cells["Reason"],
            requeues=int(restarts) if restarts.isdecimal() and len(restarts) < 8 else None,
        )
        found.append(Said(polled, line_with(block, "JobState="), "JobState="))
    return _liveliest(found)


def _read_squeue(record: PollRecord) -> Said | None:
    """`squeue -o '%T|%j'`, and tables with a header, whose column counts (a user may be named `R`).

    A finished job leaves the queue: an empty answer is absence.
    """
    if "squeue" not in " ".join(record.command):
        return None
    if record.exit not in (0, None):
        return None
    found = []
    column: int | None = None
    for line in record.stdout.splitlines():
        cells = line.split("|") if "|" in line else line.split()
        if {"ST", "STATE"} & set(cells):
            column = next(place for place, cell in enumerate(cells) if cell in ("ST", "STATE"))
            continue
        tried = cells if column is None else cells[column : column + 1]
        said = next(filter(None, map(slurm_state, tried)), None)
        if said is not None:
            reason = re.search(r"\((?!None\))[A-Za-z][^()]*\)\s*$", line)
            error = reason[0].strip("() ") if reason and said[0] is JobState.PENDING else ""
            found.append(Said(StatePolled(said[0], error=error), line))
    if found:
        return _liveliest(found)
    if record.stdout.strip() and not re.match(r"\s*(JOBID|STATE|ST)\b", record.stdout):
        return None
    return _absent(record.stdout.splitlines()) if not record.stderr.strip() else None


def _liveliest(found: Sequence[Said]) -> Said | None:
    """Of several jobs (an array, a chain of successors) the one that runs, else that waits, else the last."""
    for state in (JobState.RUNNING, JobState.PENDING):
        for said in found:
            if isinstance(said.signal, StatePolled) and said.signal.state is state:
                return said
    return found[-1] if found else None


def _absent(lines: Sequence[str]) -> Said:
    return Said(StatePolled(JobState.ABSENT), lines[0] if lines else "")


def exit_of(cell: str) -> int | None:
    """`rc:signal` as one exit code, 128 + the signal where one ended it."""
    found = _EXIT.match(cell.strip())
    if found is None:
        return None
    return 128 + int(found[2]) if int(found[2]) else int(found[1])
