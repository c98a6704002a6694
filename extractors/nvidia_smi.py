"""The plain table of `nvidia-smi` without a query: two lines a card, as drivers 470 to 580 draw it. A part of `gpu`."""

import re

from extractors.polls import GpuReading, GpusPolled, PollRecord, Said

_CARD = re.compile(r"\| +(?P<index>\d{1,3}) +\S[^|]*\| +[0-9A-Fa-f]{8}:[0-9A-Fa-f:.]+ ")
_LOAD = re.compile(
    r"\|[^|]*?(?:(?P<watts>\d+)W|N/A) +/ +(?:\d+W|N/A) *\| +(?P<used>\d+)MiB +/ +(?P<total>\d+)MiB *"
    r"\| +(?:(?P<share>\d{1,3})%|N/A) "
)


def read_table(record: PollRecord) -> Said | None:
    """The cards of the table; None where the output holds none. `N/A` (a MIG card's load) stays unknown."""
    readings: list[tuple[GpuReading, str]] = []
    index: int | None = None
    for line in record.stdout.splitlines():
        card, load = _CARD.match(line), _LOAD.match(line)
        if card is not None:
            index = int(card["index"])
        elif load is not None and index is not None:
            readings.append((_reading(index, load), line))
            index = None
    if not readings:
        return None
    return Said(GpusPolled(record.target, tuple(reading for reading, _ in readings)), readings[0][1])


def _reading(index: int, load: re.Match[str]) -> GpuReading:
    return GpuReading(
        index,
        utilization_percent=float(load["share"]) if load["share"] else None,
        power_watts=float(load["watts"]) if load["watts"] else None,
        memory_used_mib=float(load["used"]),
        memory_total_mib=float(load["total"]),
        memory_activity_percent=None,
    )
