"""The share of a core that a process used between two rows of ps, which itself shows an average over the whole life."""

import msgspec

_PERCENT_GRAIN = 0.05
"""Half of the last digit that ps prints; over a long life it is many CPU seconds."""
_WORST_ERROR_PERCENT = 15.0


class CpuSample(msgspec.Struct):
    """A process's newest ps row. elapsed and cpu are seconds of its life."""

    elapsed: float
    cpu: float


def percent_between(before: CpuSample | None, now: CpuSample) -> float | None:
    """Percent of a core between two ps rows, or None where their rounding hides it."""
    if before is None or now.elapsed <= before.elapsed:
        return None
    passed = now.elapsed - before.elapsed
    error = _PERCENT_GRAIN * (now.elapsed + before.elapsed) / passed
    if error > _WORST_ERROR_PERCENT:
        return None
    return max(0.0, (now.cpu - before.cpu) / passed * 100)
