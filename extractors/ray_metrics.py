"""What Ray's own metrics say of GPUs, as Prometheus text (Ray 2, `ray_node_gpus_utilization`). A part of `gpu`.

Serves gate B where neither nvidia-smi nor DCGM can be asked. Each node is a target of its own.
"""

import math
import re

from extractors.polls import GpuReading, GpusPolled, PollRecord, Said, failed

_SAMPLE = re.compile(
    r"^ray_node_(?P<what>gpus_utilization|gram_used|gram_available)\{(?P<labels>[^}]*)\}\s+(?P<value>\S+)"
)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_UTILIZATION = "gpus_utilization"


def read_ray_metrics(record: PollRecord) -> tuple[Said, ...]:
    """The GPUs of every node that the text names; empty where it is no such text. Memory is in MiB."""
    nodes: dict[str, dict[int, dict[str, float]]] = {}
    lines: dict[str, str] = {}
    unread = ""
    for line in record.stdout.splitlines():
        found = _SAMPLE.match(line)
        if found is None:
            continue
        labels = dict(_LABEL.findall(found["labels"]))
        index, value = labels.get("GpuIndex", ""), _value(found["value"])
        if value is None or not (index.isascii() and index.isdecimal() and len(index) < 5):
            unread = unread or line
            continue
        node = labels.get("ip") or labels.get("NodeAddress") or record.target
        nodes.setdefault(node, {}).setdefault(int(index), {})[found["what"]] = value
        if found["what"] == _UTILIZATION or node not in lines:
            lines[node] = line
    if unread and not nodes:
        return (failed(record, "no value of Ray's GPU metrics could be read", unread),)
    return tuple(
        Said(GpusPolled(node, tuple(_reading(index, gpus[index]) for index in sorted(gpus))), lines[node])
        for node, gpus in sorted(nodes.items())
    )


def _reading(index: int, said: dict[str, float]) -> GpuReading:
    used, free = said.get("gram_used"), said.get("gram_available")
    return GpuReading(
        index,
        utilization_percent=said.get(_UTILIZATION),
        memory_used_mib=used,
        memory_total_mib=None if used is None or free is None else used + free,
    )


def _value(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
