"""What commands take: durations, moments, and the options that several of them share."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from dataflow.share import Share

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|d)?")
_SHARE = re.compile(r"(\d{1,5})/(\d{1,5})")
_LONGEST = 366 * 86_400.0
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, None: 1.0}


class Duration(click.ParamType[float]):
    """A duration such as `90s`, `10m` or `2h`; gives seconds."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = _DURATION.fullmatch(str(value).strip())
        if not found or not 0 < float(found[1]) * _UNITS[found[2]] <= _LONGEST:
            self.fail(f"{value!r} is no duration up to a year; write it like 90s, 10m or 2h", param, ctx)
        return float(found[1]) * _UNITS[found[2]]


class Moment(click.ParamType[int]):
    """A time in ISO 8601; gives microseconds UTC."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from extractors.clocks import parse_iso

        at_us = parse_iso(str(value))
        if at_us is None:
            self.fail(f"{value!r} is no time; write it like 2026-07-20T10:14:00Z", param, ctx)
        return at_us


class ShareOf(click.ParamType["Share"]):
    """A share such as `2/3`: the second of three."""

    name = "share"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> "Share":
        from dataflow.share import Share

        if isinstance(value, Share):
            return value
        found = _SHARE.fullmatch(str(value))
        if not found or not 1 <= int(found[1]) <= int(found[2]):
            self.fail(f"{value!r} is no share; write it like 2/3, the second of three processes", param, ctx)
        return Share(int(found[1]), int(found[2]))


_GATES = {"LIVENESS": "A", "RESOURCES": "B", "ROLLOUTS": "C", "DYNAMICS": "D"}


class GateLetter(click.ParamType[str]):
    """The letter of a gate, or its name, small or large."""

    name = "gate"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        letter = str(value).upper()
        letter = _GATES.get(letter, letter)
        if letter not in _GATES.values():
            self.fail(f"{value!r} is no gate; name A, B, C or D", param, ctx)
        return letter


BROKERS = click.option(
    "--brokers",
    "servers",
    metavar="HOST:PORT,...",
    help="Kafka's brokers ($KAFKA_BOOTSTRAP without it). Credentials and TLS are set by variables; see docs/kafka.md.",
)
LAYOUT = click.option(
    "--format",
    "layout",
    type=click.Choice(["text", "jsonl"]),
    help="Reports for people, or one JSON record a line. Without it: text on a terminal, jsonl into a pipe or FILE.",
)
OUT = click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the records to FILE instead of standard output. A watch goes on in a FILE, all else replaces it.",
)
JOB = click.option(
    "--job",
    "job_toml",
    type=click.Path(dir_okay=False, path_type=Path),
    help="What the launcher knew (job.toml); read instead of the captures' own.",
)
AS_OF = click.option(
    "--as-of", type=Moment(), help="Judge as things stood then (ISO 8601; UTC where it names no zone)."
)
LOG = click.option(
    "--log",
    "log_folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Also append the report of each changed verdict to DIRECTORY/<date>_<job>.md.",
)
WORKERS = click.option(
    "--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Worker threads of the flow."
)
CLOCK = click.option(
    "--clock",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="For drills: the time is what FILE says (ISO 8601), as who writes the logs puts it there.",
)
