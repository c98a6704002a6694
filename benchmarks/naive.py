"""What the reading would cost in simpler designs: each only finds the lines that hold a hint, and counts them.

    python -m benchmarks.naive DESIGN FILE

items        one bytewax item a line, each searched by an alternation of all hints
alternation  a loop over lines, each searched by an alternation of all hints
scans        a loop over lines, each scanned by Hyperscan
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.testing import TestingSink, TestingSource, cluster_main

from extractors.catalogue import CATALOGUE
from extractors.literals import Scanner


def _alternation() -> re.Pattern[bytes]:
    return re.compile(b"|".join(re.escape(hint.encode()) for hint in CATALOGUE.whole.hints))


def items(file: Path) -> int:
    """One item of the flow a line."""
    wanted, found, flow = _alternation(), [], Dataflow("naive")
    with file.open("rb") as log:
        lines = op.input("lines", flow, TestingSource(log))
        op.output("found", op.filter("hinted", lines, lambda line: bool(wanted.search(line))), TestingSink(found))
        cluster_main(flow, [], 0, worker_count_per_proc=1)  # type: ignore[no-untyped-call]
    return len(found)


def alternation(file: Path) -> int:
    """A loop with one regex."""
    wanted = _alternation()
    with file.open("rb") as log:
        return sum(1 for line in log if wanted.search(line))


def scans(file: Path) -> int:
    """A loop with one Hyperscan call a line."""
    scanner = Scanner(CATALOGUE.whole.hints)
    with file.open("rb") as log:
        return sum(1 for line in log if scanner.hits(line))


DESIGNS: dict[str, Callable[[Path], int]] = {"items": items, "alternation": alternation, "scans": scans}

if __name__ == "__main__":
    print(DESIGNS[sys.argv[1]](Path(sys.argv[2])))
