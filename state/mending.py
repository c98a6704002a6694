"""A store that is damaged: its files are copied aside, and what can still be read of them is kept.

Other folders in the store's (`watch/`) are not touched.
"""

import shutil
from pathlib import Path

from rocksdict import Rdict

from state.store import StoreError, store_files, store_options


def mended(folder: Path, aside: str) -> str:
    """Copies a damaged store's files into its sub-folder of the name `aside`, and repairs it, or empties it where
    nothing can be read. The store must be closed. Gives what was done, in words. Raises StoreError."""
    place = folder / aside
    try:
        place.mkdir()
        for path in store_files(folder):
            shutil.copy2(path, place / path.name)
    except OSError as error:
        shutil.rmtree(place, ignore_errors=True)
        raise StoreError(folder, f"is damaged, and can't be copied aside: {error.strerror or error}") from error
    try:
        Rdict.repair(str(folder), store_options())
        shutil.rmtree(folder / "lost", ignore_errors=True)
        kept = "what could be read of it was kept"
    except Exception:
        for path in store_files(folder):
            path.unlink(missing_ok=True)
        kept = "nothing of it could be read, and a new one is begun"
    return f"{folder}: the store was damaged; its files were copied to {aside}, {kept}"
