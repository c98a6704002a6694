"""What a running watch costs, by the kernel's account and its own."""

import os
from pathlib import Path

from tests.live.harness import Watch

MEGABYTE = 1 << 20


def lag(watch: Watch) -> float:
    """The largest lag of a job as the watch tells it, in seconds."""
    return max((float(job.get("lag") or 0.0) for job in watch.health().get("jobs", {}).values()), default=0.0)


def used(watch: Watch) -> float:
    """Processor seconds of the watch and of those that it started."""
    return sum(processor_of(pid) for pid in _family(watch))


def resident(watch: Watch, which: str = "VmRSS") -> float:
    """Megabytes of memory that the watch and those that it started hold."""
    return sum(resident_of(pid, which) for pid in _family(watch))


def processor_of(pid: int) -> float:
    """Processor seconds of a process and of those that it has waited for; 0 where it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(int(each) for each in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def resident_of(pid: int, which: str = "VmRSS") -> float:
    """Megabytes of memory that a process holds; 0 where it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{which}:")) / MEGABYTE


def _family(watch: Watch) -> list[int]:
    assert watch.process is not None
    found, todo = [], [watch.process.pid]
    while todo:
        pid = todo.pop()
        found.append(pid)
        try:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except OSError:
            continue
        todo += map(int, children)
    return found
