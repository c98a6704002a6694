"""Whole `wedgewatch replay` of a generated capture against `rg -c` with the catalogue's hints and patterns.

    python -m benchmarks.replay_vs_rg [--megabytes 250] [--signals 0.05] [--pairs 5] [--patterns-megabytes 0]

Each pair runs both, one after the other, on one core; medians are printed with the ratio of throughputs and the peak
memory of wedgewatch. rg searches the whole file for the hints (plain literals, its fastest form), and where asked the
file's first megabytes for the patterns: with hundreds of regexes it needs minutes for one. Needs `rg`.
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

from benchmarks.finelog import write
from benchmarks.run import Cost, measured, replay
from extractors.catalogue import CATALOGUE


def rg_patterns() -> tuple[list[str], list[str]]:
    """(every pattern as a regex that rg understands, every hint as a regex). A pattern that rg can't read, or that is a
    parser without a regex, is stood in for by its hints."""
    hints = [_escaped(hint) for hint in CATALOGUE.whole.hints]
    wanted: list[str] = []
    for pattern in CATALOGUE.whole.patterns:
        text = re.sub(r"\(\?P?<\w+>", "(?:", pattern.regex.pattern).replace("\\ ", " ") if pattern.regex else ""
        wanted += [text] if text and _compiles(text) else [_escaped(hint) for hint in pattern.hints]
    return wanted, hints


def _escaped(hint: str) -> str:
    return re.sub(r"([][\\.^$*+?{}()|])", r"\\\1", hint)


def _compiles(text: str) -> bool:
    done = subprocess.run(["rg", "-c", "-e", text, os.devnull], capture_output=True, check=False)
    return done.returncode in (0, 1) and "\n" not in text


def main() -> None:
    """Writes the capture, runs the pairs, prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=250)
    parser.add_argument("--signals", type=float, default=0.05)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--patterns-megabytes", type=float, default=0)
    asked = parser.parse_args()
    if not shutil.which("rg"):
        raise SystemExit("rg is not installed: it is the peer of this benchmark")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        capture = write(folder / "capture", asked.megabytes, asked.signals)
        log, head = capture / "finelog.log", folder / "head.log"
        with log.open("rb") as whole:
            head.write_bytes(whole.read(int(asked.patterns_megabytes * 1e6)))
        for kind, lines in zip(("patterns", "hints"), rg_patterns(), strict=True):
            (folder / kind).write_text("\n".join(lines) + "\n", encoding="utf-8")
        runs = {
            "wedgewatch replay": (replay(capture), log),
            "rg -c hints": (["rg", "-c", "-j1", "-a", "-F", "-f", str(folder / "literals"), str(log)], log),
        }
        if asked.patterns_megabytes:
            runs["rg -c patterns"] = (["rg", "-c", "-j1", "-a", "-f", str(folder / "patterns"), str(head)], head)
        (folder / "literals").write_text("\n".join(CATALOGUE.whole.hints) + "\n", encoding="utf-8")
        costs: dict[str, list[Cost]] = {name: [] for name in runs}
        for _ in range(asked.pairs):
            for name, (command, _) in runs.items():
                costs[name].append(measured(command, may_exit=(0, 1)))
        _print(asked, {name: os.path.getsize(file) / 1e6 for name, (_, file) in runs.items()}, costs)


def _print(asked: argparse.Namespace, sizes: dict[str, float], costs: dict[str, list[Cost]]) -> None:
    print(f"{asked.megabytes} MB, {asked.signals:.0%} signal lines, medians of {asked.pairs} paired runs, one core")
    ours = statistics.median(cost.processor for cost in costs["wedgewatch replay"])
    own_rate = sizes["wedgewatch replay"] / ours
    for name, ran in costs.items():
        processor = statistics.median(cost.processor for cost in ran)
        wall = statistics.median(cost.wall for cost in ran)
        rate = sizes[name] / processor
        print(f"{name:<18} {wall:7.2f} s wall {processor:7.2f} s cpu {rate:8.1f} MB/s   ratio {own_rate / rate:8.2f}")
    print(f"peak memory of wedgewatch: {max(cost.megabytes for cost in costs['wedgewatch replay']):.0f} MB")


if __name__ == "__main__":
    main()
