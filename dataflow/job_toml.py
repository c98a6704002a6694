"""The shape of job.toml: every table, key, type and possible value (CONTRACT §1). An unknown key is an error."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator

TARGET = "{target}"
DEFAULT_EVERY = 60.0
DEFAULT_PROBE_TIMEOUT = 20.0
DEFAULT_SYNC_TIMEOUT = 300.0
LONGEST_DURATION = 366 * 86_400.0

_DURATION = re.compile(r"^(?:(\d+(?:\.\d+)?)d)?(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?$")
_MESH = re.compile(
    r"^(?P<pod>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?::(?P<first>\d{1,3})(?:-(?P<last>\d{1,3}))?)?$"
)


def duration(text: object) -> float:
    """`45m`, `90s`, `1h30m`, `2d` as seconds. Raises ValueError where it is none, zero, or longer than a year."""
    if not isinstance(text, str):
        raise ValueError(f'a duration is written like "45m", not {text!r}')
    found = _DURATION.match(text)
    if found is None or not text:
        raise ValueError(f'{text!r} is no duration; write it like "60s", "45m", "2h" or "1h30m"')
    seconds = sum(
        float(part) * unit for part, unit in zip(found.groups(), (86_400, 3600, 60, 1), strict=True) if part is not None
    )
    if not 0 < seconds <= LONGEST_DURATION:
        raise ValueError(f"{text!r} is an impossible duration: it must be longer than nothing and within a year")
    return seconds


def _mesh_entry(entry: str) -> str:
    found = _MESH.match(entry)
    if found is None:
        raise ValueError(f'{entry!r} is no mesh entry; write "pod", "pod:3" or "pod:0-3"')
    if found["last"] is not None and int(found["first"]) > int(found["last"]):
        raise ValueError(f"{entry!r} counts its GPUs backwards")
    return entry


def _spoken(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise ValueError("it must be printable text, and not empty")
    return text


_Text = Annotated[str, AfterValidator(_spoken)]
_Duration = Annotated[float, BeforeValidator(duration)]
_Count = Annotated[int, Field(ge=1, le=10_000_000)]
_FromZero = Annotated[int, Field(ge=0, le=10_000_000)]
_Mesh = Annotated[tuple[Annotated[str, AfterValidator(_mesh_entry)], ...], Field(strict=False)]
_Words = Annotated[tuple[_Text, ...], Field(min_length=1, strict=False)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


class _Job(_Table):
    id: _Text | None = None
    cluster: _Text | None = None
    model: _Text | None = None
    architecture: Literal["dense", "moe"] | None = None
    active_params_b: Annotated[float, Field(gt=0, le=100_000)] | None = None
    geometry: _Text | None = None
    mode: Literal["agentic", "standard"] | None = None
    untested: str | None = None
    max_retries: _FromZero | None = None


class _MeshTable(_Table):
    policy: _Mesh = ()
    engine: _Mesh = ()


class _Engines(_Table):
    count: _Count | None = None
    tensor_parallel_size: _Count | None = None
    max_num_seqs: _Count | None = None
    enforce_eager: bool | None = None


class _Rollouts(_Table):
    n_concurrent_trials: _Count | None = None
    num_parallel_generation_workers: _Count | None = None
    num_coordinators: _Count | None = None
    max_staleness_steps: _FromZero | None = None


class _Training(_Table):
    max_steps: _Count | None = None


class Expect(_Table):
    """Allowances in seconds, overriding the run's own cadence."""

    bring_up: _Duration | None = None
    first_trial: _Duration | None = None
    phases: dict[_Text, _Duration] = {}


class _Sync(_Table):
    command: _Words
    every: _Duration = DEFAULT_EVERY
    timeout: _Duration = DEFAULT_SYNC_TIMEOUT


class _Probe(_Table):
    command: _Words
    targets: Annotated[tuple[_Text, ...], Field(strict=False, validate_default=True)] = ()
    every: _Duration = DEFAULT_EVERY
    timeout: _Duration = DEFAULT_PROBE_TIMEOUT

    @field_validator("targets")
    @classmethod
    def _match_the_command(cls, targets: tuple[str, ...], others: ValidationInfo) -> tuple[str, ...]:
        """Refuses a command that would run once for nobody, or as the same reading under several names."""
        asked = any(TARGET in word for word in others.data.get("command", ()))
        if asked and not targets:
            raise ValueError(f"the command asks for {TARGET}, and none are listed")
        if targets and not asked and "command" in others.data:
            raise ValueError(f"targets are listed, and no word of the command holds {TARGET}")
        return targets


class Probes(_Table):
    """The probes that wedgewatch knows."""

    state: _Probe | None = None
    pods: _Probe | None = None
    gpu: _Probe | None = None
    procs: _Probe | None = None
    stacks: _Probe | None = None
    trials: _Probe | None = None


class JobToml(_Table):
    """The whole file; every table may be absent."""

    job: _Job = _Job()
    mesh: _MeshTable = _MeshTable()
    engines: _Engines = _Engines()
    rollouts: _Rollouts = _Rollouts()
    training: _Training = _Training()
    expect: Expect = Expect()
    sync: _Sync | None = None
    probes: Probes = Probes()
