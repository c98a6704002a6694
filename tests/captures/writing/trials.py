"""Trial artifacts as Harbor leaves them, short: config, result, trajectory, reward, exception."""

import json
from dataclasses import dataclass

from tests.captures.writing.run import Run

TASKS = ("mend-sitemap", "trim-ledger", "rewire-cron", "lint-schema", "fold-archive", "trace-socket")
NO_SANDBOX = "Sandbox not found. Please build the environment first."


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception that ended a trial: its class, module and message, and the line that raised it."""

    kind: str
    module: str
    message: str
    frames: str

    @property
    def traceback(self) -> str:
        """The whole text of exception.txt."""
        return f"Traceback (most recent call last):\n{self.frames}\n{self.module}.{self.kind}: {self.message}\n"


ADD_TESTS = Failure(
    "AddTestsDirError",
    "harbor.verifier.verifier",
    "Failed to add tests directory to environment.",
    '  File "/opt/venv/lib/python3.12/site-packages/harbor/environments/daytona.py", line 506, in upload_dir\n'
    f'    raise RuntimeError("{NO_SANDBOX}")\n'
    f"RuntimeError: {NO_SANDBOX}\n\n"
    "The above exception was the direct cause of the following exception:\n\n"
    "Traceback (most recent call last):\n"
    '  File "/opt/venv/lib/python3.12/site-packages/harbor/trial/trial.py", line 333, in run\n'
    "    await self._run_verification()",
)
REFUSED_401 = Failure(
    "DaytonaAuthenticationError",
    "daytona.common.errors",
    "Failed to execute command: Bearer token invalid (HTTP 401)",
    '  File "/opt/venv/lib/python3.12/site-packages/daytona/_utils/errors.py", line 61, in async_wrapper\n'
    "    raise DaytonaAuthenticationError(message, status_code=401) from e",
)


PLANS = (
    "I list the folder first, then open the script that the task names.",
    "The parser drops the last field; I change the split and run the tests again.",
    "Two tests pass now, the third expects a header row, so I add one.",
)


@dataclass(frozen=True, slots=True)
class Course:
    """How a trial went, in seconds, where it went otherwise than most. turns None: 3 to 7; each turn says one of the
    plans and gives `tokens`. llm is what the model's calls took, late by how much the verifier outlived the trial.
    kept says whether the transcript is on file."""

    turns: int | None = None
    tokens: int = 310
    plans: tuple[str, ...] = PLANS
    setup: float = 6.0
    llm: float | None = None
    verifier: float = 11.4
    teardown: float = 0.6
    late: float = 0.0
    kept: bool = True


USUAL = Course()


def trial(
    run: Run,
    number: int,
    ended: float,
    reward: float | None = 1.0,
    failure: Failure | None = None,
    took: float | None = None,
    course: Course = USUAL,
) -> None:
    """One ended trial, 180–260 s long unless took says else. reward None: never scored."""
    name = f"{TASKS[number % len(TASKS)]}-{number:04d}"
    folder = f"trace_jobs/{name}__{run.hex('trial', number, size=7)}"
    took = 180 + run.rng.random() * 80 if took is None else took
    began = ended - took
    usual_turns = 3 + run.rng.randrange(5)
    turns = usual_turns if course.turns is None else course.turns
    graded = ended - course.teardown
    executed = graded - course.verifier
    config = _config(run, name, folder.split("/")[1])
    phases = {
        "environment_setup": _span(run, began, began + course.setup),
        "agent_setup": _span(run, began + course.setup, began + course.setup + 8),
        "agent_execution": _span(run, began + course.setup + 8, executed),
        "verifier": _span(run, executed, graded + (course.late and course.late + course.teardown)),
    }
    result = {
        "id": run.hex("id", number, size=32),
        "task_name": name,
        "trial_name": config["trial_name"],
        "source": "mend-set",
        "config": config,
        "agent_info": {
            "name": "terminus-2",
            "version": "2.0.0",
            "model_info": {"name": run.model, "provider": "hosted_vllm"},
        },
        "agent_result": {
            "n_input_tokens": 2100 * turns,
            "n_cache_tokens": 900 * turns,
            "n_output_tokens": course.tokens * turns,
            "cost_usd": None,
            "metadata": {
                "n_episodes": turns,
                "api_request_times_msec": _calls(turns, 0.8 * (took - 30) if course.llm is None else course.llm),
                "summarization_count": 0,
            },
        },
        "verifier_result": None if reward is None else {"rewards": {"reward": reward}},
        "exception_info": _exception(run, failure, ended),
        "started_at": run.clock.iso_us(began),
        "finished_at": run.clock.iso_us(ended),
        **phases,
    }
    files = run.artifacts
    files[f"{folder}/config.json"] = _json(config)
    files[f"{folder}/result.json"] = _json(result)
    if course.kept:
        files[f"{folder}/agent/trajectory.json"] = _json(_trajectory(run, began, turns, course))
    if reward is not None:
        files[f"{folder}/verifier/reward.txt"] = f"{reward:g}\n".encode()
    if failure is not None:
        files[f"{folder}/exception.txt"] = failure.traceback.encode()


def trials(run: Run, count: int, first: float, last: float) -> None:
    """Ended trials spread over [first, last]; every third earns its reward."""
    for number in range(count):
        at = first + (last - first) * number / max(1, count - 1)
        trial(run, number, at, 1.0 if number % 3 == 0 else 0.0)


def torn_trial(run: Run, number: int, ended: float) -> None:
    """An ended trial whose result was cut short while it was written."""
    trial(run, number, ended)
    newest = next(path for path in reversed(run.artifacts) if path.endswith("/result.json"))
    run.artifacts[newest] = run.artifacts[newest][:97]


def started_trial(run: Run, number: int, at: float, silent: bool = False) -> None:
    """A trial that has only begun: nothing but its config; with silent a transcript in which no agent spoke."""
    name = f"{TASKS[number % len(TASKS)]}-{number:04d}"
    folder = f"{name}__{run.hex('trial', number, size=7)}"
    run.artifacts[f"trace_jobs/{folder}/config.json"] = _json(_config(run, name, folder))
    run.artifacts[f"trace_jobs/{folder}/trial.log"] = f"Starting trial {folder}\n".encode()
    if silent:
        run.artifacts[f"trace_jobs/{folder}/agent/trajectory.json"] = _json(_trajectory(run, at - 20, 0, USUAL))


def _config(run: Run, name: str, trial_name: str) -> dict[str, object]:
    return {
        "task": {"path": f"/data/tasks/{name}", "source": "mend-set"},
        "trial_name": trial_name,
        "trials_dir": "trace_jobs",
        "agent": {"name": "terminus-2", "model_name": f"hosted_vllm/{run.model}", "override_timeout_sec": 1800.0},
        "environment": {"type": "daytona", "delete": True},
        "verifier": {"override_timeout_sec": 600.0},
    }


def _span(run: Run, start: float, end: float) -> dict[str, str]:
    return {"started_at": run.clock.iso_us(start), "finished_at": run.clock.iso_us(end)}


def _exception(run: Run, failure: Failure | None, ended: float) -> dict[str, str] | None:
    if failure is None:
        return None
    return {
        "exception_type": failure.kind,
        "exception_message": failure.message,
        "exception_traceback": failure.traceback,
        "occurred_at": run.clock.iso_us(ended - 0.7).rstrip("Z"),
    }


def _calls(turns: int, seconds: float) -> list[float]:
    """The milliseconds of each model call."""
    return [round(seconds / turns * 1000, 1)] * turns if turns else []


def _trajectory(run: Run, began: float, turns: int, course: Course) -> dict[str, object]:
    asked = "Repair the program in /app so that its tests pass."
    steps: list[dict[str, object]] = [{"step_id": 1, "source": "user", "message": asked}]
    if not turns:
        steps[0]["timestamp"] = run.clock.iso_us(began + 20)
    for turn in range(turns):
        steps.append(
            {
                "step_id": turn + 2,
                "timestamp": run.clock.iso_us(began + 20 + 15 * turn),
                "source": "agent",
                "message": _message(course.plans[turn % len(course.plans)]),
                "metrics": {"prompt_tokens": 700 * (turn + 1), "completion_tokens": course.tokens},
            }
        )
    return {"schema_version": "ATIF-v1.5", "session_id": run.hex("session", began, size=32), "steps": steps}


def _message(plan: str) -> str:
    """An agent's reply; an empty one is nothing at all."""
    commands = [{"keystrokes": "python -m pytest -q\n", "duration": 1.0}]
    return json.dumps({"analysis": plan, "commands": commands}, ensure_ascii=False) if plan else ""


def _json(body: object) -> bytes:
    return (json.dumps(body, indent=1) + "\n").encode()
