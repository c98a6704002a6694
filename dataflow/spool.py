"""The shelves of one job, by names. One that is done with lies there until no memory of the engine leads back to it."""

from pathlib import Path

from dataflow.shelf import Shelf

SWEEPS = 2
"""Snapshots after which the one in which a shelf is still spoken of can't be the newest that the engine has."""


class Spool:
    """A folder of shelves."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._retired: dict[str, int] = {}

    def shelf(self, name: str) -> Shelf:
        """The shelf of this name, as it lies there."""
        self._retired.pop(name, None)
        return Shelf(self._folder / name)

    def empty(self, name: str) -> Shelf:
        """The same, where it must be a new one."""
        shelf = self.shelf(name)
        shelf.remove()
        return shelf

    def retire(self, name: str) -> None:
        """It is not needed any more, unless a kill leads back to before this moment."""
        self._retired[name] = SWEEPS

    def sweep(self) -> None:
        """A snapshot was made: removes what was retired some before it."""
        for name in list(self._retired):
            self._retired[name] -= 1
            if self._retired[name] < 0:
                Shelf(self._folder / name).remove()
                del self._retired[name]

    def keep_only(self, names: set[str]) -> None:
        """A snapshot was gone back to: other shelves than these are of what is not known any more."""
        for path in self._folder.glob("*"):
            if path.name not in names:
                Shelf(path).remove()
