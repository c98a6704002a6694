"""Folders that are listed again only when they changed: asking for a folder's time costs what one file does."""

import os

from dataflow.walk import entries_of

_AGAIN = 2
"""Times that a folder is listed again after a change: file systems count time in steps of some milliseconds, so what
comes right behind a listing may not change the folder's time."""


class Folders:
    """What was listed of a capture's folders of logs. `entries` serves a Walk."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[int, int], list[os.DirEntry[str]]]] = {}
        self._again: dict[str, int] = {}

    def forget(self) -> None:
        """Lists everything anew: some file systems tell folders' times late or never."""
        self._known.clear()
        self._again.clear()

    def changed(self) -> bool:
        """Whether an entry came or went in a folder that was listed, or nothing was."""
        if not self._known:
            return True
        for path, (stamp, _) in self._known.items():
            try:
                if _stamp(path) != stamp:
                    return True
            except OSError:
                return True
        return any(self._differs(path) for path in list(self._again))

    def _differs(self, path: str) -> bool:
        """Whether a folder that changed lately shows other entries by now."""
        self._again[path] -= 1
        if not self._again[path]:
            del self._again[path]
        before = self._known.pop(path)
        try:
            found = entries_of(path)
        except OSError:
            return True
        if [entry.name for entry in found] == [entry.name for entry in before[1]]:
            self._known[path] = before
            return False
        return True

    def entries(self, path: str) -> list[os.DirEntry[str]]:
        """A folder's entries by name. Raises OSError."""
        stamp = _stamp(path)
        known = self._known.get(path)
        if known is not None and known[0] == stamp:
            return known[1]
        found = entries_of(path)
        self._known[path] = (stamp, found)
        self._again[path] = _AGAIN
        return found

    def walked(self, folders: set[str]) -> None:
        """Drops what is no folder of the capture any more."""
        for path in [path for path in self._known if path not in folders]:
            del self._known[path]
            self._again.pop(path, None)


def _stamp(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_mtime_ns, found.st_ino
