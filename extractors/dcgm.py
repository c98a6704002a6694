"""What the DCGM exporter says of GPUs, as Prometheus text. Serves gate B where pods can't be entered.

One output covers a node or more: each pod (else host) that the labels name is a target of its own.
"""

import math
import re
from collections.abc import Mapping

from extractors.polls import GpuReading, GpusPolled, PollRecord, Said, failed

_SAMPLE = re.compile(r"^(?P<name>DCGM_FI_\w+)\{(?P<labels>[^}]*)\}\s+(?P<value>\S+)")
_GPU = re.compile(r"^\d{1,4}$", re.ASCII)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
BLANK = 1.4e14
"""DCGM writes sentinels near 2^47 and 2^63 for fields that it could not read: no true value is that large."""


def read_dcgm(record: PollRecord) -> tuple[Said, ...]:
    """The GPUs of every target that the exporter names; empty where the output is no DCGM text."""
    if "DCGM_FI_" not in record.stdout:
        return ()
    targets: dict[str, dict[int, dict[str, float]]] = {}
    lines: dict[str, str] = {}
    seen = False
    for line in record.stdout.splitlines():
        found = _SAMPLE.match(line)
        if found is None:
            continue
        seen = True
        labels = dict(_LABEL.findall(found["labels"]))
        target = labels.get("pod") or labels.get("exported_pod") or record.target or labels.get("Hostname", "")
        value = _value(found["value"])
        if value is None or not _GPU.match(labels.get("gpu", "")):
            continue
        targets.setdefault(target, {}).setdefault(int(labels["gpu"]), {})[found["name"].removeprefix("DCGM_FI_")] = (
            value
        )
        if target not in lines or (found["name"].endswith("GPU_UTIL") and "GPU_UTIL" not in lines[target]):
            lines[target] = line
    if seen and not targets:
        return (failed(record, "no value of the DCGM text could be read"),)
    return tuple(
        Said(GpusPolled(target, tuple(_reading(index, gpus[index]) for index in sorted(gpus))), lines[target])
        for target, gpus in sorted(targets.items())
    )


def _reading(index: int, fields: Mapping[str, float]) -> GpuReading:
    """One GPU. Profiling fields are shares of 0–1 and stand in where the coarser ones are not exported."""
    active = fields.get("PROF_GR_ENGINE_ACTIVE", fields.get("PROF_SM_ACTIVE"))
    dram = fields.get("PROF_DRAM_ACTIVE")
    used, free = fields.get("DEV_FB_USED"), fields.get("DEV_FB_FREE")
    return GpuReading(
        index,
        utilization_percent=fields.get("DEV_GPU_UTIL", None if active is None else active * 100),
        power_watts=fields.get("DEV_POWER_USAGE"),
        memory_used_mib=used,
        memory_total_mib=None if used is None or free is None else used + free + fields.get("DEV_FB_RESERVED", 0.0),
        memory_activity_percent=fields.get("DEV_MEM_COPY_UTIL") if dram is None else dram * 100,
    )


def _value(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and abs(value) < BLANK else None
