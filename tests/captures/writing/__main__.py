"""`python -m tests.captures.writing [NAME…]`: rewrites tests/captures/<name>/."""

import sys
from pathlib import Path

from tests.captures.writing import disk
from tests.captures.writing.all import CAPTURES


def main(names: list[str]) -> None:
    """Writes the named captures, or all. Raises KeyError for a name that is not one."""
    home = Path(__file__).resolve().parent.parent
    for name in names or CAPTURES:
        files = CAPTURES[name]()
        disk.write(home / name, files)
        size = sum(len(body) for body in files.values())
        print(f"{name}: {len(files)} files, {size / 1000:.0f} kB")


main(sys.argv[1:])
