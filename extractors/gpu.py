"""What `nvidia-smi --query-gpu=…` and `--query-compute-apps=…` say, as CSV with or without header and units.

Serves gate B. The columns are those of the header, else those that the recorded command asked for: never a fixed
order. Without a query it is the plain table. A cell that the driver could not fill (`[N/A]`, `ERR!`) is None, never 0.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from extractors.dcgm import read_dcgm
from extractors.nvidia_smi import read_table
from extractors.polls import (
    GpuProcess,
    GpuProcessesPolled,
    GpuReading,
    GpusPolled,
    PollRecord,
    Said,
    failed,
    unusable,
)
from extractors.ray_metrics import read_ray_metrics

TOOL_FAILURES = (
    "No devices were found",
    "NVIDIA-SMI has failed",
    "Failed to initialize NVML",
    "Unable to determine the device handle",
    'Field "',
)
"""What nvidia-smi prints, at times to standard output with exit 0, where it could not read the GPUs, or one of them."""

SAME_SAMPLE = timedelta(milliseconds=10)
"""Rows of one sample carry timestamps this near to each other."""

_QUERY = re.compile(r"--query-(?P<what>gpu|compute-apps)[= ]+[\"']?(?P<fields>[\w.,]+)")
_UNIT = re.compile(r"\s*\[[^\]]*\]$")
_NUMBER = re.compile(r"^(-?\d{1,12}(?:\.\d+)?)\s*(?:%|W|MiB)?$")
_HEADER_FIELD = re.compile(r"^[a-z_]\w*(?:\.\w+)*(?: \[[\w%/. ]+\])?$")


def read_gpus(record: PollRecord) -> tuple[Said, ...]:
    """The GPUs, or who holds them, of one target (of DCGM: of each pod). A probe that gave neither failed."""
    if record.error:
        return (unusable(record, "a GPU reading"),)
    exported = read_dcgm(record) or read_ray_metrics(record)
    if exported:
        return exported
    tables = [_read_table(record, fields, rows) for fields, rows in _tables(record)]
    said = [one for one in (*tables, read_table(record)) if one is not None]
    complaint = next((line for line in _lines(record) if line.strip().startswith(TOOL_FAILURES)), "")
    failure = [failed(record, complaint.strip()[:300], complaint)] if complaint else []
    if said:
        return (*failure, *said)
    return tuple(failure) or (unusable(record, "a GPU reading"),)


def _lines(record: PollRecord) -> list[str]:
    return record.stdout.splitlines() + record.stderr.splitlines()


def _tables(record: PollRecord) -> list[tuple[list[str], list[tuple[str, list[str]]]]]:
    """The tables of the output: columns, and rows as (line, cells). Each header begins a table."""
    asked = [found["fields"].split(",") for found in _QUERY.finditer(" ".join(record.command))]
    tables: list[tuple[list[str], list[tuple[str, list[str]]]]] = []
    for line in record.stdout.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if _is_header(cells):
            tables.append(([_column(cell) for cell in cells], []))
            continue
        if not tables and asked:
            tables.append(([_column(field) for field in asked[0]], []))
        if tables and len(cells) == len(tables[-1][0]):
            tables[-1][1].append((line, cells))
    return tables


def _is_header(cells: Sequence[str]) -> bool:
    """A header names fields and holds no value: `index, utilization.gpu [%]`."""
    known = any(_column(cell) in ("index", "utilization.gpu", "power.draw", "pid", "memory.used") for cell in cells)
    return known and all(_HEADER_FIELD.match(cell) for cell in cells)


def _column(name: str) -> str:
    """A field's name without its unit, the spellings of one thing made one."""
    plain = _UNIT.sub("", name.strip())
    return {"used_gpu_memory": "used_memory", "power.draw.instant": "power.draw", "gpu_index": "index"}.get(
        plain, plain
    )


def _read_table(record: PollRecord, fields: list[str], rows: list[tuple[str, list[str]]]) -> Said | None:
    if "pid" in fields:
        return _read_processes(record, fields, rows)
    newest: dict[int, tuple[GpuReading, str]] = {}
    for place, (line, cells) in enumerate(_newest_sample(fields, rows)):
        cell = dict(zip(fields, cells, strict=True))
        reading = _reading(cell, place)
        if reading is not None:
            newest[reading.index] = (reading, line)
    if not any(_measured(reading) for reading, _ in newest.values()):
        return (
            failed(record, f"no cell of the GPU table could be read: {rows[0][0]}"[:300], rows[0][0]) if rows else None
        )
    readings = tuple(newest[index][0] for index in sorted(newest))
    line = next(line for reading, line in newest.values() if _measured(reading))
    return Said(GpusPolled(record.target, readings), line)


def _newest_sample(fields: list[str], rows: list[tuple[str, list[str]]]) -> list[tuple[str, list[str]]]:
    """Of a looped poll without an index column, the rows that share the newest timestamp."""
    if "index" in fields or "timestamp" not in fields or not rows:
        return rows
    column = fields.index("timestamp")
    times = [_timestamp(cells[column]) for _, cells in rows]
    last = times[-1]
    if last is None:
        return rows[-1:]
    return [row for row, at in zip(rows, times, strict=True) if at is not None and abs(last - at) <= SAME_SAMPLE]


def _timestamp(cell: str) -> datetime | None:
    try:
        return datetime.strptime(cell, "%Y/%m/%d %H:%M:%S.%f")
    except ValueError:
        return None


def _reading(cell: Mapping[str, str], place: int) -> GpuReading | None:
    """One row; None where the index column holds no number (a broken row is no GPU 0)."""
    index = number_of(cell["index"]) if "index" in cell else place
    if index is None:
        return None
    return GpuReading(
        int(index),
        utilization_percent=number_of(cell.get("utilization.gpu", "")),
        power_watts=number_of(cell.get("power.draw", "")),
        memory_used_mib=number_of(cell.get("memory.used", "")),
        memory_total_mib=number_of(cell.get("memory.total", "")),
        memory_activity_percent=number_of(cell.get("utilization.memory", "")),
    )


def _measured(reading: GpuReading) -> bool:
    """Whether any cell that gate B reads was filled."""
    cells = (reading.utilization_percent, reading.power_watts, reading.memory_used_mib)
    return any(cell is not None for cell in cells)


def _read_processes(record: PollRecord, fields: list[str], rows: list[tuple[str, list[str]]]) -> Said | None:
    """Who holds the GPUs. An empty list is an answer where the header or exit 0 says that the tool ran."""
    if not rows and (record.exit not in (0, None) or record.stderr.strip()):
        return None
    processes = []
    for _, cells in rows:
        cell = dict(zip(fields, cells, strict=True))
        pid = number_of(cell["pid"])
        if pid is not None:
            gpu = cell.get("gpu_uuid") or cell.get("gpu_bus_id") or cell.get("index") or ""
            name = cell.get("process_name") or cell.get("name") or ""
            processes.append(GpuProcess(gpu, int(pid), name, number_of(cell.get("used_memory", ""))))
    if rows and not processes:
        return failed(record, f"no row of the process table could be read: {rows[0][0]}"[:300], rows[0][0])
    line = rows[0][0] if rows else next((line for line in record.stdout.splitlines() if line.strip()), "")
    return Said(GpuProcessesPolled(record.target, tuple(processes)), line)


def number_of(cell: str) -> float | None:
    """A cell's number without its unit, None where there is none (`[N/A]`, `[Not Supported]`, `ERR!`, empty)."""
    found = _NUMBER.match(cell.strip())
    return float(found[1]) if found else None
