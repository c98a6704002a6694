"""Plays a scenario: its lines, in order of time, through the speakers onto a run; and the run's files on disk."""

import re
import tomllib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.captures.writing import disk
from tests.captures.writing.launch import job_toml
from tests.captures.writing.run import Run
from tests.scenarios import attempting, polling, scenes, speakers
from tests.scenarios.scenario import Entry, Scenario, ScenarioError
from tests.scenarios.speakers import Cue, Speaks

STARTED = datetime(2026, 3, 14, 7, 56)
"""Scenarios begin at 08:00, when Ray's sessions do."""
MIDNIGHT = STARTED.hour * 3600.0 + STARTED.minute * 60.0
SPEAKERS: Mapping[str, Speaks] = {**speakers.SPEAKERS, **scenes.SPEAKERS, **polling.SPEAKERS, **attempting.SPEAKERS}
LEFT_OUT = {"ray logs": "ray_session_logs/", "aggregated log": "finelog.log", "job.toml": "job.toml"}
"""What a header line `without:` may name, with the files that are then not on disk."""
_COUNTER = re.compile(r"\{n(?:\*(\d+))?(?:([+-])(\d+))?\}")


def play(scenario: Scenario, folder: Path) -> None:
    """Writes the scenario's capture into a folder. Raises ScenarioError where a line can't be played."""
    run = Run("scenario", "/mira/rl-scenario", STARTED)
    facts = _job(scenario, run)
    lines = [(at, entry.number, count, entry) for entry in scenario.given for count, at in enumerate(entry.times(), 1)]
    for at, _, count, entry in sorted(lines, key=lambda line: line[:3]):
        _say(scenario, run, at, count, entry)
    files = disk.synced(run) | {"job.toml": facts}
    if not run.lines:
        del files["finelog.log"]
    hidden = tuple(LEFT_OUT[name] for name in scenario.listed("without"))
    disk.write(folder, {path: body for path, body in files.items() if not (hidden and path.startswith(hidden))})


def _say(scenario: Scenario, run: Run, at: float, count: int, entry: Entry) -> None:
    until = None if entry.until is None else entry.until - MIDNIGHT
    cue = Cue(at - MIDNIGHT, _COUNTER.sub(lambda found: _counted(found, count), entry.text), until)
    words = _COUNTER.sub(lambda found: _counted(found, count), entry.speaker)
    for pattern, speak in SPEAKERS.items():
        found = re.fullmatch(pattern, words)
        if found is None:
            continue
        try:
            speak(run, cue, found)
        except (LookupError, ValueError, TypeError, AssertionError) as error:
            raise ScenarioError(f"{scenario.path}:{entry.number}: {words}: {cue.text}: {error!r}") from error
        return
    raise ScenarioError(f"{scenario.path}:{entry.number}: nobody is called: {words}")


def _counted(found: re.Match[str], count: int) -> str:
    number = count * int(found[1] or 1)
    return str(number + int(f"{found[2]}{found[3]}") if found[2] else number)


def _job(scenario: Scenario, run: Run) -> bytes:
    """job.toml: a launcher's usual facts, with the scenario's own laid over them; `no TABLE` takes a table out."""
    lines = scenario.lines("job")
    facts = tomllib.loads(job_toml(run).decode())
    for line in lines:
        if line.startswith("no "):
            facts.pop(line.removeprefix("no "), None)
    try:
        own = tomllib.loads("\n".join(line for line in lines if not line.startswith("no ")))
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{scenario.path}: job: {error}") from error
    for table, values in own.items():
        facts[table] = {**facts.get(table, {}), **values}
    return "\n".join(f"[{table}]\n{_table(values)}" for table, values in facts.items()).encode()


def _table(values: Mapping[str, Any]) -> str:
    return "".join(f"{key} = {_value(value)}\n" for key, value in values.items())


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_value(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return str(value)
