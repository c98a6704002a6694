"""job.toml: what the launcher knew of a job, and how to look at it live (CONTRACT §1).

A wrong setting fails at the start, with the file, the key and the line.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dataflow.job_toml import (
    DEFAULT_EVERY,
    DEFAULT_PROBE_TIMEOUT,
    DEFAULT_SYNC_TIMEOUT,
    TARGET,
    Expect,
    JobToml,
    Probes,
)
from dataflow.opened import reason
from dataflow.outcome import SettingsError
from dataflow.refusal import Refusal, refusal_of
from dataflow.toml_lines import key_lines, line_of, line_of_entry
from state.trackers.facts import JobFacts

MOST_BYTES = 1_048_576
MOST_TOLD = 20
"""Errors of one file that are told; the rest are counted."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A read-only command on a timer. `{target}` in its words stands for each of the targets. Durations are seconds."""

    name: str
    command: tuple[str, ...]
    targets: tuple[str, ...] = ()
    every: float = DEFAULT_EVERY
    timeout: float = DEFAULT_PROBE_TIMEOUT

    def commands(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """What to run: (target, command) for each target, or once with an empty target."""
        targets = self.targets or ("",)
        return tuple((t, tuple(word.replace(TARGET, t) for word in self.command)) for t in targets)


@dataclass(frozen=True, slots=True)
class Sync:
    """The command that pulls the job's logs into the capture, on a timer. Durations are seconds."""

    command: tuple[str, ...]
    every: float = DEFAULT_EVERY
    timeout: float = DEFAULT_SYNC_TIMEOUT


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that job.toml says. lines gives the 1-based line of each fact that it says, by the fact's name."""

    facts: JobFacts = field(default_factory=JobFacts)
    probes: tuple[Probe, ...] = ()
    sync: Sync | None = None
    lines: Mapping[str, int] = field(default_factory=dict)


def load_job(path: Path) -> Settings:
    """Reads a job.toml. Raises SettingsError, also where the file itself can't be read."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise SettingsError(f"{path}: cannot be read: {reason(error)}") from error
    if len(content) > MOST_BYTES:
        raise SettingsError(f"{path}: larger than {MOST_BYTES} bytes: this is no job.toml")
    return read_job(content, str(path))


def read_job(content: bytes, file: str = "job.toml") -> Settings:
    """The settings in a job.toml's bytes. Raises SettingsError naming file, key and line."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SettingsError(f"{file}: line {line}: the bytes are no UTF-8 text") from error
    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        what = "nested too deeply" if isinstance(error, RecursionError) else str(error).partition(";")[0]
        raise SettingsError(f"{file}: {_toml_error(text, what)}") from error
    try:
        job = JobToml.model_validate(tables)
    except ValidationError as error:
        wrong = error.errors()
        told = [_told(file, text, each) for each in wrong[:MOST_TOLD]]
        more = [f"{file}: {len(wrong) - MOST_TOLD} more errors"] if len(wrong) > MOST_TOLD else []
        raise SettingsError("\n".join(told + more)) from error
    settings = _settings(job, text)
    refused = list(_refused(settings, file, text))
    if refused:
        raise SettingsError("\n".join(refused))
    return settings


def _settings(job: JobToml, text: str) -> Settings:
    facts = JobFacts(
        **job.job.model_dump(),
        policy_mesh=job.mesh.policy,
        engine_mesh=job.mesh.engine,
        engine_count=job.engines.count,
        **job.engines.model_dump(exclude={"count"}),
        **job.rollouts.model_dump(),
        max_steps=job.training.max_steps,
        expect=_allowances(job.expect),
    )
    probes = tuple(
        Probe(name, probe.command, probe.targets, probe.every, probe.timeout)
        for name in Probes.model_fields
        if (probe := getattr(job.probes, name)) is not None
    )
    sync = Sync(job.sync.command, job.sync.every, job.sync.timeout) if job.sync else None
    renamed: dict[tuple[str, ...], str] = {
        ("mesh", "policy"): "policy_mesh",
        ("mesh", "engine"): "engine_mesh",
        ("engines", "count"): "engine_count",
    }
    known = set(JobFacts.__struct_fields__)
    lines = {renamed.get(path, path[-1]): line for path, line in key_lines(text).items() if len(path) <= 2}
    return Settings(facts, probes, sync, {name: line for name, line in lines.items() if name in known})


def _refused(settings: Settings, file: str, text: str) -> Iterator[str]:
    """What of the probes and the sync is not run, since it would change something: a line for each command."""
    every: tuple[Probe | Sync, ...] = (*settings.probes, *([settings.sync] if settings.sync else []))
    for probe in every:
        table = ("probes", probe.name) if isinstance(probe, Probe) else ("sync",)
        for key, entry, refusal in _refusals(probe):
            path = (*table, *key)
            yield f"{file}: line {line_of_entry(text, path, entry)}: {'.'.join(map(str, path))}: {refusal}"


def _refusals(probe: Probe | Sync) -> Iterator[tuple[tuple[str, int], str, Refusal]]:
    """The first word that is refused, else the first target that makes the command one that is: (key, entry, why)."""
    refusal = refusal_of(probe.command)
    if refusal is not None:
        yield ("command", refusal.index), probe.command[refusal.index], refusal
        return
    for at, (target, command) in enumerate(probe.commands() if isinstance(probe, Probe) else ()):
        if (refusal := refusal_of(command)) is not None:
            yield ("targets", at), target, refusal
            return


def _allowances(expect: Expect) -> dict[str, float]:
    named = {"bring_up": expect.bring_up, "first_trial": expect.first_trial}
    said = {name: seconds for name, seconds in named.items() if seconds is not None}
    return said | {f"phases.{phase}": seconds for phase, seconds in expect.phases.items()}


_KINDS = {"tuple_type": "a list", "model_type": "a table", "dict_type": "a table", "string_type": "a string"}


def _told(file: str, text: str, wrong: Any) -> str:
    """One of pydantic's errors as `job.toml: line 7: engines.count: …`."""
    path = tuple(part for part in wrong["loc"] if part != "[key]")
    key = ".".join(str(part) for part in path)
    listed = bool(path) and isinstance(path[-1], int)
    line = line_of_entry(text, path, wrong["input"]) if listed else line_of(text, path)
    if wrong["type"] == "extra_forbidden":
        says = "unknown key"
    elif wrong["type"] == "missing":
        says = "missing, and needed here"
    elif wrong["type"] == "value_error":
        says = str(wrong["ctx"]["error"])
    elif wrong["type"] == "too_short":
        says = "it must have at least one entry"
    elif wrong["type"] in _KINDS:
        says = f"it must be {_KINDS[wrong['type']]}, not {wrong['input']!r}"
    else:
        says = f"{wrong['msg'][:1].lower()}{wrong['msg'][1:]}, not {wrong['input']!r}"
    return f"{file}: line {line}: {key}: {says}"


def _toml_error(text: str, message: str) -> str:
    """tomllib's message with its line first; it writes `(at end of document)` for the last line."""
    found = re.search(r"\s*\(at line (\d+), column (\d+)\)", message)
    if found is not None:
        return f"line {found[1]}, column {found[2]}: {message[: found.start()]}"
    return f"line {text.count(chr(10)) + 1}: {message.removesuffix(' (at end of document)')}"
