"""The rest of MarinSkyRL's fd-monitor: open files and memory pressure. A part of `host`, which reads its figures."""

from typing import Any

from extractors.pattern import Nature, pattern
from extractors.signal import Benign


@pattern(
    "host",
    Nature.BENIGN,
    hints=(" FDs open (", "Unable to read file descriptor usage"),
    regex=r"\[fd-monitor\] (?:\[\d\d:\d\d:\d\d\] (?:OK|INFO|(?P<high>WARNING|CRITICAL)): [\d,]+ / [\d,]+ FDs open \("
    r"|(?:\[\d\d:\d\d:\d\d\] )?(?P<unread>Unable to read file descriptor usage))",
    samples={
        "(RolloutCoordinator pid=15018, ip=10.1.0.6) [fd-monitor] [09:00:00] OK: 1,234 / 1,048,576 FDs open (0.1% of "
        "soft limit, hard limit: 1,048,576)": Benign("open-files"),
        "[fd-monitor] [09:00:00] INFO: 600 / 1,024 FDs open (58.6% of soft limit, hard limit: 4,096)": (
            Benign("open-files")
        ),
        "[fd-monitor] [09:00:00] WARNING: 800 / 1,024 FDs open (78.1% of soft limit, hard limit: 4,096)": (
            Benign("open-files-near-limit")
        ),
        "[fd-monitor] [09:00:00] CRITICAL: 1,000 / 1,024 FDs open (97.7% of soft limit, hard limit: 4,096)": (
            Benign("open-files-near-limit")
        ),
        "[fd-monitor] Unable to read file descriptor usage": Benign("open-files-unread"),
    },
    rejects=("1,000 / 1,024 FDs open (97.7%)", "[fd-monitor] [09:00:00] Unable to start"),
)
def open_files(found: Any) -> Benign:
    """How many files a process holds open, every 120 s; a warning from 75 % of its soft limit on. What the limit breaks
    (`Too many open files`) is raised where it breaks."""
    if found["unread"]:
        return Benign("open-files-unread")
    return Benign("open-files-near-limit" if found["high"] else "open-files")


@pattern(
    "host",
    Nature.BENIGN,
    hints=("emory pressure HIGH", "[fd-monitor] Started monitoring", "[fd-monitor] Disabled"),
    regex=r"\[fd-monitor\] (?:(?:\[\d\d:\d\d:\d\d\] )?(?:[A-Z]+: )?(?P<high>CGROUP|Node) memory pressure HIGH"
    r"|Started monitoring|Disabled \()",
    samples={
        "[fd-monitor] [09:00:00] CGROUP memory pressure HIGH — approaching the --memory cap; OOM-kill imminent": (
            Benign("memory-pressure")
        ),
        "[fd-monitor] [09:00:00] CRITICAL: CGROUP memory pressure HIGH — approaching the --memory cap": (
            Benign("memory-pressure")
        ),
        "[fd-monitor] [09:00:00] Node memory pressure HIGH": Benign("memory-pressure"),
        "[fd-monitor] Started monitoring (every 120s)": Benign("host-monitor"),
        "[fd-monitor] Disabled (interval <= 0)": Benign("host-monitor"),
    },
    rejects=("the node's memory pressure HIGH again", "[fd-monitor] Disabled by nobody"),
)
def memory_pressure(found: Any) -> Benign:
    """The monitor warns of memory, or says that it runs. No proof of a kill: its figures stand beside it."""
    return Benign("memory-pressure" if found["high"] else "host-monitor")


PATTERNS = (open_files, memory_pressure)
