"""The command line, noting what the disk was made to keep: `<bytes> <path>` a line, in the file that FORCED names. Its
state is kept twice a second."""

import os
from datetime import timedelta
from pathlib import Path

import dataflow.flow
from dataflow.cli import main

_fsync = os.fsync


def noted(fd: int) -> None:
    """Forces a file, and notes how much of it was there before."""
    size = os.fstat(fd).st_size
    _fsync(fd)
    with Path(os.environ["FORCED"]).open("a") as forced:
        forced.write(f"{size} {os.readlink(f'/proc/self/fd/{fd}')}\n")


if __name__ == "__main__":
    os.fsync = noted
    dataflow.flow.EPOCH = timedelta(seconds=0.5)
    main()
