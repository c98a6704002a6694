"""Whole `wedgewatch replay` of a generated capture against `rg -c` with the same patterns, and against simpler designs.

    python -m benchmarks.replay_vs_rg [--megabytes 1000] [--signals 0.01 0.05 0.3] [--pairs 5]

Each pair runs all, one after the other, on one core; medians of processor seconds are printed as a table, with the
ratio of throughputs and the peak memory. The peers:

rg, patterns    every pattern of the catalogue as it stands, but for the names of its groups and in bytes; a parser
                without a regex, and what rg does not compile, by its hints. With an automaton of up to 2 GB: under
                rg's own limit, 10 MB, it does not finish a few megabytes in a minute
rg, loosened    the same with counted repetitions (`{0,80}`) as plain ones, so that rg needs no more than their literals
rg, literals    the catalogue's hints alone, which find lines and understand none: rg's fastest form
naive           the designs of benchmarks/naive.py over the log's first megabytes

Needs `rg`.
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.finelog import write
from benchmarks.naive import DESIGNS
from benchmarks.run import Cost, measured, replay
from extractors.catalogue import CATALOGUE

OURS = "wedgewatch replay"
HEADS = {"items": 2, "alternation": 2, "scans": 20}
"""Megabytes of the log that a naive design gets: enough for its rate."""
_RG = ("rg", "-c", "-j1", "-a")
_BYTES = (*_RG, "--no-unicode", "--regex-size-limit", "4G", "--dfa-size-limit", "2G")


def rg_patterns(reworded: Callable[[str], str]) -> list[str]:
    """Every pattern of the catalogue as one that rg compiles; hints stand in where there is no regex, or none that it
    reads."""
    wanted: list[str] = []
    for pattern in CATALOGUE.whole.patterns:
        text = reworded(pattern.regex.pattern) if pattern.regex else ""
        wanted += [text] if text and _compiles(text) else [_escaped(hint) for hint in pattern.hints]
    return wanted


def _in_bytes(pattern: str) -> str:
    """A pattern without the names of its groups, what is no ASCII as any byte."""
    return re.sub(r"[^\x00-\x7f]", ".", re.sub(r"\(\?P?<\w+>", "(?:", pattern).replace("\\ ", " "))


def _loosened(pattern: str) -> str:
    """A pattern in bytes, its counted repetitions plain: it matches no fewer lines."""
    return re.sub(r"\{[1-9]\d*,\d+\}", "+", re.sub(r"\{0,\d+\}", "*", _in_bytes(pattern)))


def _escaped(hint: str) -> str:
    return re.sub(r"[^\x00-\x7f]", ".", re.sub(r"([][\\.^$*+?{}()|])", r"\\\1", hint))


def _compiles(text: str) -> bool:
    done = subprocess.run(["rg", "-c", "--no-unicode", "-e", text, os.devnull], capture_output=True, check=False)
    return done.returncode in (0, 1) and "\n" not in text


def main() -> None:
    """Writes the captures, runs the pairs, prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--signals", type=float, nargs="+", default=[0.01, 0.05, 0.3])
    parser.add_argument("--pairs", type=int, default=5)
    asked = parser.parse_args()
    if not shutil.which("rg"):
        raise SystemExit("rg is not installed: it is the peer of this benchmark")
    print(f"{asked.megabytes} MB, medians of {asked.pairs} paired runs, processor time, one core\n")
    print("| signal lines | what | MB/s | wedgewatch ÷ this | peak MB |\n|---|---|---|---|---|")
    for share in asked.signals:
        with tempfile.TemporaryDirectory() as name:
            _compare(Path(name), asked.megabytes, share, asked.pairs)


PATTERNS: dict[str, Callable[[], list[str]]] = {
    "patterns": lambda: rg_patterns(_in_bytes),
    "loosened": lambda: rg_patterns(_loosened),
    "literals": lambda: list(CATALOGUE.whole.hints),
}


def _head(log: Path, to: Path, megabytes: int) -> Path:
    with log.open("rb") as whole:
        to.write_bytes(whole.read(megabytes * 1_000_000))
    return to


def _compare(folder: Path, megabytes: int, share: float, pairs: int) -> None:
    """Runs all over a log with this share of signal lines, and prints their rows."""
    capture = write(folder / "capture", megabytes, share)
    log = capture / "finelog.log"
    heads = {name: _head(log, folder / f"{name}.log", megabytes) for name, megabytes in HEADS.items()}
    for name, patterns in PATTERNS.items():
        (folder / name).write_text("\n".join(patterns()) + "\n", encoding="utf-8")
    runs = {
        OURS: (replay(capture), log),
        "rg, patterns": ([*_BYTES, "-f", str(folder / "patterns"), str(log)], log),
        "rg, loosened": ([*_BYTES, "-f", str(folder / "loosened"), str(log)], log),
        "rg, literals": ([*_RG, "-F", "-f", str(folder / "literals"), str(log)], log),
        **{
            f"naive: {name}": ([sys.executable, "-m", "benchmarks.naive", name, str(heads[name])], heads[name])
            for name in DESIGNS
        },
    }
    costs: dict[str, list[Cost]] = {name: [] for name in runs}
    for _ in range(pairs):
        for name, (command, _) in runs.items():
            costs[name].append(measured(command, may_exit=(0, 1)))
    rates = {
        name: os.path.getsize(file) / 1e6 / statistics.median(cost.processor for cost in costs[name])
        for name, (_, file) in runs.items()
    }
    for name, ran in costs.items():
        peak = max(cost.megabytes for cost in ran)
        print(
            f"| {share:.0%} | {name} | {rates[name]:.3g} | {rates[OURS] / rates[name]:.3g} | {peak:.0f} |", flush=True
        )


if __name__ == "__main__":
    main()
