"""Whole `wedgewatch replay` of a generated capture against `rg -c` with the catalogue's hints and patterns.

    python -m benchmarks.replay_vs_rg [--megabytes 250] [--signals 0.05] [--pairs 5]

Each pair runs both, one after the other, on one core; medians are printed with the ratio of throughputs and the peak
memory of wedgewatch. Needs `rg` (ripgrep).
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.finelog import write
from extractors.catalogue import CATALOGUE


def rg_patterns() -> tuple[list[str], list[str]]:
    """(every pattern as a regex that rg understands, every hint as a regex)."""
    hints = [re.escape(hint) for hint in CATALOGUE.whole.hints]
    wanted = []
    for pattern in CATALOGUE.whole.patterns:
        text = pattern.regex.pattern if pattern.regex is not None else ""
        if not text or re.search(r"\(\?[=!<]|\(\?P=|\\\d|\*\+|\+\+", text.replace("(?P<", "(?:")):
            wanted += [re.escape(hint) for hint in pattern.hints]
        else:
            wanted.append(re.sub(r"\(\?P?<\w+>", "(?:", text))
    return wanted, hints


def timed(command: list[str]) -> float:
    """Wall seconds of a command on one core."""
    pinned = ["taskset", "-c", "0", *command] if shutil.which("taskset") else command
    begin = time.perf_counter()
    done = subprocess.run(pinned, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    took = time.perf_counter() - begin
    if done.returncode not in (0, 1):
        raise SystemExit(f"{command[0]} failed: {done.stderr.decode()[-400:]}")
    return took


def peak_megabytes(command: list[str]) -> float:
    """Peak resident memory of a command, in MB."""
    silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    child = os.posix_spawn(command[0], command, os.environ, file_actions=silent)
    _, _, usage = os.wait4(child, 0)
    return usage.ru_maxrss / 1024


def main() -> None:
    """Writes the capture, runs the pairs, prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=250)
    parser.add_argument("--signals", type=float, default=0.05)
    parser.add_argument("--pairs", type=int, default=5)
    asked = parser.parse_args()
    if not shutil.which("rg"):
        raise SystemExit("rg is not installed: it is the peer of this benchmark")
    with tempfile.TemporaryDirectory() as folder:
        capture = write(Path(folder) / "capture", asked.megabytes, asked.signals)
        log = str(capture / "finelog.log")
        size = os.path.getsize(log) / 1e6
        patterns, hints = rg_patterns()
        for name, lines in (("patterns", patterns), ("hints", hints)):
            (Path(folder) / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        commands = {
            "wedgewatch replay": [sys.executable, "-m", "dataflow.cli", "replay", "--format", "jsonl", str(capture)],
            "rg -c patterns": ["rg", "-c", "-j1", "-a", "-f", f"{folder}/patterns", log],
            "rg -c hints": ["rg", "-c", "-j1", "-a", "-f", f"{folder}/hints", log],
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(asked.pairs):
            for name, command in commands.items():
                times[name].append(timed(command))
        medians = {name: statistics.median(took) for name, took in times.items()}
        print(f"{size:.0f} MB, {asked.signals:.0%} signal lines, medians of {asked.pairs} paired runs, one core")
        for name, median in medians.items():
            ratio = median / medians["wedgewatch replay"]
            print(f"{name:<20} {median:7.2f} s  {size / median:7.0f} MB/s   wedgewatch is {ratio:.2f} x of it")
        print(f"peak memory of wedgewatch: {peak_megabytes(commands['wedgewatch replay']):.0f} MB")


if __name__ == "__main__":
    main()
