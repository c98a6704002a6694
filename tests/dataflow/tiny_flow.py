"""A flow of a few lines with a memory, run as a process: what the engine does with its recovery databases.

Counts from 1 to `last` under three keys; each key's sum is remembered. Appends `key number sum` a line to `out`. Ends
itself with kill -9 before the number `dies`. Exit code 3 and words on standard error where the engine gives up.
"""

import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.recovery import RecoveryConfig
from bytewax.testing import cluster_main

from dataflow.recovery import Refusal, refusal
from dataflow.state_folder import StateError, held


class Counting(StatefulSourcePartition[Any, int]):
    def __init__(self, number: int | None, last: int, dies: int) -> None:
        self.number = number or 0
        self.last, self.dies = last, dies

    def next_batch(self) -> list[tuple[str, int]]:
        if self.number >= self.last:
            raise StopIteration
        self.number += 1
        if self.number == self.dies:
            os.kill(os.getpid(), 9)
        return [(key, self.number) for key in "abc"]

    def snapshot(self) -> int:
        return self.number


class Counted(FixedPartitionedSource[Any, int]):
    def __init__(self, last: int, dies: int) -> None:
        self.last, self.dies = last, dies

    def list_parts(self) -> list[str]:
        return ["shard-00"]

    def build_part(self, step_id: str, for_part: str, resume_state: int | None) -> Counting:
        return Counting(resume_state, self.last, self.dies)


class Written(StatelessSinkPartition[Any]):
    def __init__(self, out: Path) -> None:
        self.out = out

    def write_batch(self, items: list[Any]) -> None:
        with self.out.open("a") as out:
            out.writelines(f"{key} {number} {total}\n" for key, (number, total) in items)


class Writing(DynamicSink[Any]):
    def __init__(self, out: Path) -> None:
        self.out = out

    def build(self, step_id: str, worker_index: int, worker_count: int) -> Written:
        return Written(self.out)


def run(recovery: Path, out: Path, last: int, dies: int, workers: int) -> None:
    flow = Dataflow("tiny")
    numbers = op.input("numbers", flow, Counted(last, dies))
    sums = op.stateful_map(
        "sum", numbers, lambda total, number: ((total or 0) + number, (number, (total or 0) + number))
    )
    op.output("out", sums, Writing(out))
    config = RecoveryConfig(str(recovery), timedelta(0))
    cluster_main(flow, [], 0, worker_count_per_proc=workers, epoch_interval=timedelta(0), recovery_config=config)


def main(store: str, out: str, last: str, dies: str, workers: str, unchecked: str) -> int:
    """unchecked is a recovery folder to be used as it is, else "" for one that is held and looked over."""
    arguments = (Path(out), int(last), int(dies), int(workers))
    try:
        if unchecked:
            run(Path(unchecked), *arguments)
            return 0
        with held(Path(store), "tiny 1") as state:
            print(*state.notes, sep="\n", file=sys.stderr)
            try:
                run(state.recovery, *arguments)
            except Exception as error:
                if refusal(error) is not Refusal.DAMAGED:
                    raise
                state.quarantine("the engine can't read it")
                run(state.recovery, *arguments)
    except StateError as error:
        print(error, file=sys.stderr)
        return 2
    except Exception as error:
        print(refusal(error), type(error).__name__, str(error)[:300], file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
