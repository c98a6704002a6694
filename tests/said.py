"""What commands said, for tests: the records of a replay, sorted by their jobs."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from click.testing import CliRunner

from dataflow.cli import main
from tests.live.harness import job_of


def replay_of(*captures: Path) -> list[bytes]:
    """The records of a replay, as they are written."""
    ran = CliRunner().invoke(main, ["replay", *map(str, captures), "--format", "jsonl"])
    assert ran.exit_code == 0, ran.output
    return ran.stdout_bytes.split(b"\n")[:-1]


def by_job(lines: Iterable[bytes]) -> dict[str, list[bytes]]:
    """Records by their jobs, in order."""
    found = defaultdict(list)
    for line in lines:
        found[job_of(line)].append(line)
    return dict(found)
