"""What Iris says of a job: the state tool's line and JSON, `iris job summary`, `iris job list`, `iris query`.

Serves gate A rules 1–4. Formats: job.proto of marin lib/iris, its cli/job.py and cli/query.py, and the operators'
`iris_ops.py --once [--json]`. Every reader gives None where the output is not of its kind.
"""

import csv
import json
import re
from typing import Any

from extractors.polls import JobState, PollRecord, Said, StatePolled, failed, unusable

STATES: dict[str, JobState] = {
    "pending": JobState.PENDING,
    "building": JobState.PENDING,
    "assigned": JobState.PENDING,
    "running": JobState.RUNNING,
    "succeeded": JobState.SUCCEEDED,
    "failed": JobState.FAILED,
    "worker_failed": JobState.FAILED,
    "cosched_failed": JobState.FAILED,
    "killed": JobState.KILLED,
    "preempted": JobState.PREEMPTED,
    "unschedulable": JobState.UNSCHEDULABLE,
    "absent": JobState.ABSENT,
}
CODES = ("", "pending", "building", "running", "succeeded", "failed", "killed", "worker_failed", "unschedulable")
"""JobState numbers of job.proto; 0 is `unspecified` and says nothing."""

TOOL_ERROR = 3
"""The state tool's own exit code for `could not read state`."""

_HUMAN = re.compile(
    r"^\[\d\d:\d\d:\d\d\] \S+ state=(?P<state>\w+)(?: \([^)]*\))? src=(?P<src>\w+) pods=(?P<pods>\S+)"
    r"(?: tasks=\S+)?(?: exit=(?P<exit>\S+))?(?: preempts=(?P<preempts>\S+))?(?: error=(?P<error>.*))?"
)
_SUMMARY = re.compile(
    r"^State: (?P<state>\w+)\s+exit=(?P<exit>\S+)\s+failures=(?P<failures>\S+)\s+preemptions=(?P<preempts>\S+)"
)
_SUMMARY_TASK = re.compile(r"^\s+\d+\s+[a-z_]+\s+(?P<exit>-?\d+|-)\s")
_FINISHED = re.compile(
    r"\[watch\] TERMINAL: (?P<watched>\w+)|Job completed with state: (?P<completed>\w+)"
    r"|.*\bjob=\S+ finished with state=(?P<followed>\w+), draining logs"
)
_RULE = re.compile(r"[-\s]+")
_CSV_HEADER = re.compile(r"^[a-z_][a-z0-9_]*(?:,[a-z_][a-z0-9_]*)*$")
_JOB_SPAN = r"(?<![\w./-]){}(?![\w./-])"


def read_iris_state(record: PollRecord) -> tuple[Said, ...] | None:
    """The job's state as any of the Iris tools prints it."""
    if record.exit == TOOL_ERROR:
        return None
    for reader in (_read_json, _read_human, _read_summary, _read_csv, _read_list, _read_table, _read_finished):
        said = reader(record)
        if said is not None:
            return (said,)
    return None


def _read_json(record: PollRecord) -> Said | None:
    """The state tool's and the summary's object, or an array of jobs (`job list --json`, `query -f json`)."""
    start = _json_start(record.stdout)
    if start is None:
        return None
    try:
        found, _ = json.JSONDecoder().raw_decode(record.stdout, start)
    except (ValueError, RecursionError) as error:
        return _read_human(record) or failed(record, f"the JSON is damaged: {error}")
    jobs = found if isinstance(found, list) else [found]
    if not all(isinstance(job, dict) and "state" in job for job in jobs):
        return None
    job = _choose(record, jobs)
    if not isinstance(job, dict):
        return job
    state = _from_object(job)
    if state is None:
        return failed(record, f"the key state holds {job['state']!r}, which is no job state")
    human = next((line for line in record.stdout.splitlines() if _HUMAN.match(line)), "")
    return Said(state, human or _state_line(record.stdout[start:], str(job.get("job_id", ""))), '"state"')


def _json_start(text: str) -> int | None:
    """Where the JSON begins: chatter and the human line, which also opens with a bracket, come before it."""
    offset = 0
    for line in text.splitlines(keepends=True):
        if line.startswith(("{", "[{", "[]")) or line.rstrip() == "[":
            return offset
        offset += len(line)
    return None


def _choose(record: PollRecord, jobs: list[dict[str, Any]]) -> dict[str, Any] | Said:
    """The job that the record is about. None listed is an answer: the job is absent."""
    asked = " ".join((record.target, *record.command))
    ids = [str(job.get("job_id", "")) for job in jobs]
    named = [
        job for job, id_ in zip(jobs, ids, strict=True) if id_ and re.search(_JOB_SPAN.format(re.escape(id_)), asked)
    ]
    if len(named) == 1:
        return named[0]
    if record.exit not in (0, None) and not jobs:
        return unusable(record, "a job")
    if not jobs or (record.target.startswith("/") and record.target not in ids and all(ids)):
        return Said(StatePolled(JobState.ABSENT), _last_line(record.stdout))
    if len(jobs) == 1:
        return jobs[0]
    return failed(record, f"{len(jobs)} jobs are listed, and the command does not say which one is meant")


def _from_object(job: dict[str, Any]) -> StatePolled | None:
    """A job as an object; of protobuf JSON, numbers may be strings and zeros are left out."""
    raw = job["state"]
    state = JobState.ABSENT if job.get("source") == "absent" else state_named(raw)
    if state is None:
        return None
    omitted = 0 if str(raw).startswith("JOB_STATE_") else None
    error = str(job.get("error") or job.get("pending_reason") or "")
    tasks = job.get("tasks")
    exits = (
        [_count(task.get("exit_code")) for task in tasks if isinstance(task, dict)] if isinstance(tasks, list) else []
    )
    return StatePolled(
        _preempted(state, error),
        exit_code=_telling_exit(state, _count(job.get("exit_code")), exits),
        failures=_count(job.get("failure_count", omitted)),
        preemptions=_count(job.get("preemption_count", omitted)),
        pods_alive=_count(job.get("pods_alive")),
        error=error,
    )


def state_named(raw: Any) -> JobState | None:
    """A state by its number, its name or its protobuf name; None where it is none of them."""
    if isinstance(raw, bool):
        return None
    text = str(raw).strip()
    if text.isdecimal():
        text = CODES[int(text)] if len(text) == 1 and int(text) < len(CODES) else ""
    return STATES.get(text.removeprefix("JOB_STATE_").lower())


def _preempted(state: JobState, error: str) -> JobState:
    return JobState.PREEMPTED if state.over and error.startswith("Preempted by") else state


def _telling_exit(state: JobState, job_exit: int | None, task_exits: list[int | None]) -> int | None:
    """The job's exit code; of a job that died with 0, its first failed task's (the supervisor swallows it)."""
    if state.over and state is not JobState.SUCCEEDED and not job_exit:
        return next((code for code in task_exits if code), job_exit)
    return job_exit


def _read_human(record: PollRecord) -> Said | None:
    """`[22:47:31] /alice/rl state=running (3) src=summary pods=16 tasks=0/16 exit=0 preempts=1 error='…'`"""
    for line in record.stdout.splitlines():
        found = _HUMAN.match(line)
        if found is None:
            continue
        state = JobState.ABSENT if found["src"] == "absent" else state_named(found["state"])
        if state is None:
            return failed(record, f"{found['state']!r} is no job state", line)
        error = (found["error"] or "").strip().strip("'\"")
        polled = StatePolled(
            _preempted(state, error),
            exit_code=_count(found["exit"]),
            preemptions=_count(found["preempts"]),
            pods_alive=_count(found["pods"]),
            error=error,
        )
        return Said(polled, line)
    return None


def _read_summary(record: PollRecord) -> Said | None:
    """`iris job summary`: a State line, perhaps an Error line, then a table whose EXIT is each task's."""
    lines = record.stdout.splitlines()
    line = next((line for line in lines if _SUMMARY.match(line)), "")
    found = _SUMMARY.match(line)
    if found is None:
        return None
    state = state_named(found["state"])
    if state is None:
        return failed(record, f"{found['state']!r} is no job state", line)
    error = next((line.removeprefix("Error: ").strip() for line in lines if line.startswith("Error: ")), "")
    exits = [_count(task["exit"]) for task in map(_SUMMARY_TASK.match, lines) if task]
    polled = StatePolled(
        _preempted(state, error),
        exit_code=_telling_exit(state, _count(found["exit"]), exits),
        failures=_count(found["failures"]),
        preemptions=_count(found["preempts"]),
        error=error,
    )
    return Said(polled, line)


def _read_csv(record: PollRecord) -> Said | None:
    """`iris query -f csv`: chatter, a header, rows; lines end in CR LF, NULL is empty."""
    lines = record.stdout.splitlines()
    start = next((i for i, line in enumerate(lines) if _CSV_HEADER.match(line) and "state" in line.split(",")), None)
    if start is None:
        return None
    try:
        rows = [row for row in csv.DictReader(lines[start:]) if row.get("state")]
    except csv.Error as error:
        return failed(record, f"the CSV is damaged: {error}")
    job = _choose(record, [{str(key): value for key, value in row.items()} for row in rows])
    if not isinstance(job, dict):
        return job
    state = _from_object(job)
    id_ = str(job.get("job_id", ""))
    line = next((line for line in lines[start + 1 :] if id_ in line), "")
    return Said(state, line) if state is not None else failed(record, f"{job['state']!r} is no job state", line)


def _read_list(record: PollRecord) -> Said | None:
    """`iris job list`: a plain table, cells two spaces or more apart."""
    lines = record.stdout.splitlines()
    if any(line.strip() == "No jobs found." for line in lines):
        return Said(StatePolled(JobState.ABSENT), "No jobs found.")
    start = next((i for i, line in enumerate(lines) if re.match(r"\s*JOB ID\s{2,}STATE\b", line)), None)
    if start is None:
        return None
    cells = [(line, re.split(r"\s{2,}", line.strip())) for line in lines[start + 1 :] if line.strip()]
    rows = [
        {"job_id": cell[0], "state": cell[1], "error": cell[4] if len(cell) > 4 else "", "line": line}
        for line, cell in cells
        if len(cell) > 1 and state_named(cell[1]) is not None
    ]
    job = _choose(record, rows)
    if not isinstance(job, dict):
        return job
    state = _from_object(job)
    return None if state is None else Said(state, job["line"])


def _read_table(record: PollRecord) -> Said | None:
    """`iris query -f table`: a plain table. An empty cell leaves no trace, so of a row that lacks one only the job and
    its state are read, where they come first."""
    lines = [line for line in record.stdout.splitlines() if line.strip() and not _RULE.fullmatch(line)]
    start = next((i for i, line in enumerate(lines) if {"job_id", "state"} <= set(line.split())), None)
    if start is None:
        return None
    names = lines[start].split()
    rows = []
    for line in lines[start + 1 :]:
        cells = re.split(r"\s{2,}", line.strip())
        told = names if len(cells) == len(names) else [name for name in names[:2] if names[:2] == ["job_id", "state"]]
        row = dict(zip(told, cells, strict=False))
        if state_named(row.get("state", "")) is None:
            return None
        rows.append({**row, "line": line})
    job = _choose(record, rows)
    if not isinstance(job, dict):
        return job
    state = _from_object(job)
    return None if state is None else Said(state, job["line"])


def _read_finished(record: PollRecord) -> Said | None:
    """The one line in which the state tool, `iris job run` or `iris job logs -f` says how a job ended."""
    for line in record.stdout.splitlines() + record.stderr.splitlines():
        found = _FINISHED.match(line)
        state = state_named(found["watched"] or found["completed"] or found["followed"]) if found else None
        if state is not None:
            return Said(StatePolled(state), line)
    return None


def _state_line(text: str, job_id: str) -> str:
    """The `"state"` line of one object in pretty-printed JSON, else the line of its id."""
    lines = text.splitlines()
    at = next((i for i, line in enumerate(lines) if job_id and f'"{job_id}"' in line), 0)
    for line in lines[at:]:
        if '"state"' in line:
            return line
        if line.strip().startswith("}"):
            break
    return lines[at]


def _last_line(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.strip()), "")


def _count(raw: Any) -> int | None:
    """A whole number, also as a string; None where it is not said (`-`, empty, null)."""
    try:
        return None if raw is None or isinstance(raw, bool) else int(str(raw).strip())
    except ValueError:
        return None
