"""`python -m tests.walks healthy|faulty SEED [FOLDER]`: lays a seed's capture, says what is wrong with its verdicts."""

import sys
from pathlib import Path
from tempfile import mkdtemp

from tests.walks.judged import faulty_fault, healthy_fault


def main(kind: str, seed: str, folder: str = "") -> int:
    """Plays one seed. Gives the exit code: 1 where it failed."""
    place = Path(folder or mkdtemp(prefix=f"walk-{kind}-{seed}-"))
    why = {"healthy": healthy_fault, "faulty": faulty_fault}[kind](int(seed), place)
    print(why or f"{kind} seed {seed} is judged rightly; its capture: {place}")
    return 1 if why else 0


sys.exit(main(*sys.argv[1:]))
