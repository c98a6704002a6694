"""Which files a capture directory has. A link is followed only inside the capture, and nothing is listed twice."""

import os
from collections import deque
from collections.abc import Callable

from dataflow.homes import HOMES, JOB_FILE, TRIALS_FOLDER
from dataflow.opened import reason
from dataflow.reads import unpacked_name


def entries_of(path: str) -> "list[os.DirEntry[str]]":
    """A folder's entries by name. Raises OSError."""
    with os.scandir(path) as entries:
        return sorted(entries, key=lambda entry: os.fsencode(entry.name))


Entries = Callable[[str], "list[os.DirEntry[str]]"]
"""Lists a folder, as entries_of does."""


class Walk:
    """The files under the folders that are homes, after `run`. Paths are relative to the root, `/`-separated.

    files are what may be read, with the real path of each; folders_of_trials likewise. failures are what should be
    readable and is not, skipped what is passed over on purpose; both as (relative path, why). Whoever walks again and
    again lists folders in a way that remembers what it listed.
    """

    def __init__(self, root: str, entries: Entries = entries_of) -> None:
        self.root = os.path.realpath(root)
        self._entries = entries
        self.files: dict[str, str] = {}
        self.folders_of_trials: dict[str, str] = {}
        self.failures: list[tuple[str, str]] = []
        self.skipped: list[tuple[str, str]] = []
        self._folders: dict[str, str] = {}
        self._real: dict[str, str] = {}
        self._links: deque[str] = deque()

    @property
    def listed(self) -> set[str]:
        """The real paths of the folders that were listed, the root among them."""
        return {self.root, *self._folders}

    def run(self) -> "Walk":
        """Walks. Raises OSError where the root itself cannot be listed."""
        for entry in self._entries(self.root):
            if entry.is_dir(follow_symlinks=False):
                self._folder(entry.name, entry.path)
            else:
                self._entry(entry, entry.name)
        while self._links:
            self._link(self._links.popleft())
        self._drop_packed_twins()
        return self

    def _folder(self, relative: str, real: str) -> None:
        """A folder of logs is walked; one at the top that is no home is passed over."""
        if relative == TRIALS_FOLDER:
            self.folders_of_trials[relative] = real
        elif relative == JOB_FILE:
            self.failures.append((relative, "a folder: no facts are read from it"))
        elif relative.split("/", 1)[0] in HOMES:
            self._down(relative, real)
        elif not relative.startswith("."):
            self.skipped.append((f"{relative}/", "not a folder of logs that is known here"))

    def _down(self, relative: str, real: str) -> None:
        waiting = [(relative, real)]
        while waiting:
            folder, path = waiting.pop()
            self._folders[path] = folder
            try:
                found = self._entries(path)
            except OSError as error:
                self.failures.append((f"{folder}/", f"cannot be listed: {reason(error)}"))
                continue
            for entry in found:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append((f"{folder}/{entry.name}", entry.path))
                else:
                    self._entry(entry, f"{folder}/{entry.name}")

    def _entry(self, entry: "os.DirEntry[str]", relative: str) -> None:
        if entry.is_symlink():
            self._links.append(relative)
        elif entry.is_file(follow_symlinks=False):
            self._file(relative, entry.path)
        else:
            self.failures.append((relative, "neither a file nor a folder"))

    def _file(self, relative: str, real: str) -> None:
        self.files[relative] = real
        self._real[real] = relative

    def _link(self, relative: str) -> None:
        path = os.path.join(self.root, relative)
        try:
            real = os.path.realpath(path, strict=True)
        except OSError as error:
            self.failures.append((relative, f"a link that leads nowhere: {reason(error)}"))
            return
        if not real.startswith(self.root + os.sep):
            self.failures.append((relative, "a link that leaves the capture: not followed"))
        elif path.startswith(real + os.sep):
            self.failures.append((relative, "a link to a folder that holds it: not followed"))
        elif twin := self._folders.get(real) or self._real.get(real):
            self.skipped.append((relative, f"a link to {twin}, which is read there"))
        elif os.path.isdir(real):
            self._folder(relative, real)
        elif os.path.isfile(real):
            self._file(relative, real)
        else:
            self.failures.append((relative, "neither a file nor a folder"))

    def _drop_packed_twins(self) -> None:
        """A packed copy that lies beside the file itself would be read twice."""
        for relative in list(self.files):
            plain = unpacked_name(relative)
            if plain != relative and plain in self.files:
                del self.files[relative]
                self.skipped.append((relative, f"{plain} lies beside it and is read instead"))
