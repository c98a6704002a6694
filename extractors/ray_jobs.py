"""What `ray job status` says of a job (ray 2.40–2.60, dashboard/modules/job/cli.py). Serves gate A rules 1–4."""

import re

from extractors.polls import JobState, PollRecord, Said, StatePolled

STATES: dict[str, JobState] = {
    "PENDING": JobState.PENDING,
    "RUNNING": JobState.RUNNING,
    "SUCCEEDED": JobState.SUCCEEDED,
    "FAILED": JobState.FAILED,
    "STOPPED": JobState.KILLED,
}

_STATUS = re.compile(r"Status for job '(?P<job>[^']+)': (?P<state>[A-Z]+)")
_ENDED = re.compile(r"Job '(?P<job>[^']+)' (?P<how>succeeded|failed|was stopped)")
_UNKNOWN = re.compile(r"Job '?[\w-]+'? does not exist")
_MESSAGE = re.compile(r"Status message: (?P<message>.*)")
_EXIT = re.compile(r"exit code (\d{1,6})")


def read_ray_job_state(record: PollRecord) -> tuple[Said, ...] | None:
    """The job's state; None where the output is not of `ray job status`. A job that Ray does not know is absent."""
    text = record.stdout + "\n" + record.stderr
    message = _MESSAGE.search(text)
    error = message["message"].strip() if message else ""
    for line in text.splitlines():
        state = _state_in(line)
        if state is JobState.ABSENT:
            return (Said(StatePolled(state), line),)
        if state is not None:
            code = _EXIT.search(error)
            exit_code = int(code[1]) if code and state is JobState.FAILED else None
            return (Said(StatePolled(state, exit_code=exit_code, error=error if state.over else ""), line),)
    return None


def _state_in(line: str) -> JobState | None:
    if _UNKNOWN.search(line):
        return JobState.ABSENT
    status = _STATUS.search(line)
    if status is not None:
        return STATES.get(status["state"])
    ended = _ENDED.search(line)
    if ended is None:
        return None
    return {"succeeded": JobState.SUCCEEDED, "failed": JobState.FAILED, "was stopped": JobState.KILLED}[ended["how"]]
