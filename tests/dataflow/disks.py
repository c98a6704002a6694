"""Small file systems of their own, for tests of a full and of a read-only disk."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(place: Path, kib: int) -> Iterator[Path]:
    """A tmpfs of so many KiB. Skips the test where none may be mounted."""
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={kib}k", "none", str(place)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no tmpfs may be mounted here: {mounted.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def remount(place: Path, options: str) -> None:
    """Changes its size, or makes it read-only."""
    subprocess.run(["mount", "-o", f"remount,{options}", str(place)], check=True)


def fill(place: Path, leave: int = 0) -> Path:
    """A file that takes all room but so many bytes."""
    filling = place / "filling"
    found = os.statvfs(place)
    with filling.open("wb") as file:
        file.write(b"\0" * max(0, found.f_bavail * found.f_frsize - leave))
    return filling
